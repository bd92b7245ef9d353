package chaos

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"invoicebridge/internal/fleet"
)

// disturb carries out the schedule. Events overlap, but not those about one process. It returns when all have ended.
func (w *world) disturb(ctx context.Context, events []Event) {
	var all sync.WaitGroup
	defer all.Wait()
	for _, e := range events {
		if !pause(ctx, e.At-w.history.now()) {
			return
		}
		all.Go(func() {
			if err := w.cause(ctx, e); errors.Is(err, errBusy) || err != nil && ctx.Err() == nil {
				w.history.note("%s could not be done: %v", e.Kind, err)
				w.history.undone(e.Kind)
				return
			}
			w.history.count(e.Kind) // also what was under way when the time was over: it has disturbed
		})
	}
}

func (w *world) cause(ctx context.Context, e Event) error {
	erp, worker := w.slots[erpName(e.Slot)], w.slots[workerName(e.Slot)]
	switch e.Kind {
	case KillERP:
		return erp.unlessBusy(func() error { return erp.kill(ctx, w.programs, e.Lasts) })
	case KillWorker:
		return worker.unlessBusy(func() error { return worker.kill(ctx, w.programs, e.Lasts) })
	case FreezeERP:
		return erp.unlessBusy(func() error { return erp.freeze(ctx, e.Lasts) })
	case FreezeWorker:
		return worker.unlessBusy(func() error { return worker.freeze(ctx, e.Lasts) })
	case RestartOne:
		s := []*slot{erp, worker}[int(e.At/time.Millisecond)%2]
		return s.unlessBusy(func() error { return s.restart(ctx, w.programs, e.Lasts) })
	case Rolling:
		return w.roll(ctx, w.options.Other, e)
	case WrongClock:
		return w.wrongClock(ctx, e)
	case CrashDB:
		return w.crashDatabase(ctx)
	case Terminate:
		return w.terminate(ctx)
	case Storm:
		w.history.note("a storm begins")
		w.weather.stormy.Store(true)
		pause(ctx, e.Lasts)
		w.weather.stormy.Store(false)
		w.history.note("the storm is over")
	case Purge:
		return w.purge(ctx)
	case Reconcile:
		return w.commands(ctx, "reconcile", "--tenant", tenant)
	case Replay:
		return w.replay(ctx)
	case ReplayMany:
		return w.replayMany(ctx)
	case Cancel:
		return w.cancel(ctx)
	}
	return nil
}

// roll restarts all processes of both services, one after the other, as the other build, and then back.
func (w *world) roll(ctx context.Context, other fleet.Programs, e Event) error {
	for _, p := range []fleet.Programs{other, w.programs} {
		for n := range replicas {
			for _, name := range []string{erpName(n), workerName(n)} {
				s := w.slots[name]
				if err := s.inTurn(func() error { return s.restart(ctx, p, e.Lasts) }); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// wrongClock restarts one process as a build whose clock is wrong, and after a while as it was.
func (w *world) wrongClock(ctx context.Context, e Event) error {
	if w.options.Skewed.Dir == "" {
		return fmt.Errorf("no build with a wrong clock is given")
	}
	name := []string{erpName(e.Slot), workerName(e.Slot)}[int(e.At/time.Millisecond)%2]
	s := w.slots[name]
	return s.inTurn(func() error {
		w.history.note("%s gets a wrong clock", name)
		if err := s.restart(ctx, w.options.Skewed, e.Lasts); err != nil {
			return err
		}
		pause(ctx, wrongClockLasts)
		return s.restart(ctx, w.programs, e.Lasts)
	})
}

const wrongClockLasts = 10 * time.Second

// terminate cuts every third connection to the databases.
func (w *world) terminate(ctx context.Context) error {
	_, err := w.pools["erp"].Exec(ctx, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
		WHERE datname IN ('erp', 'crm') AND application_name <> 'chaos' AND pid % 3 = 0`)
	w.history.note("database connections are terminated")
	return err
}

// purge makes some of what is finished old enough, and purges.
func (w *world) purge(ctx context.Context) error {
	for pool, statements := range aged() {
		for _, statement := range statements {
			if _, err := w.pools[pool].Exec(ctx, statement); err != nil {
				return err
			}
		}
	}
	err := w.commands(ctx, "purge", "--reason", "chaos")
	for what, counted := range map[string][2]string{
		"reservations removed by purges": {"erp", `SELECT count(*) FROM invoices AS i WHERE NOT EXISTS
			(SELECT FROM idempotency_records AS r WHERE r.tenant_id = i.tenant_id AND r.resource_id = i.id)`},
		"requests minimised by purges": {"crm", `SELECT count(*) FROM operations WHERE minimised_at IS NOT NULL`},
		"orders minimised by purges":   {"crm", `SELECT count(*) FROM orders WHERE minimised_at IS NOT NULL`},
	} {
		var n int
		if failed := w.pools[counted[0]].QueryRow(ctx, counted[1]).Scan(&n); failed != nil {
			return errors.Join(err, failed)
		}
		w.history.removed(what, n)
	}
	return err
}

// aged are the statements that make half of what is finished older than anything is kept.
func aged() map[string][]string {
	const old = "interval '400 days'"
	return map[string][]string{
		"erp": {`UPDATE idempotency_records SET first_seen_at = first_seen_at - ` + old + `, completed_at = completed_at - ` + old + `,
			expires_at = expires_at - ` + old + ` WHERE status = 'succeeded' AND expires_at > now() AND random() < 0.5`},
		"crm": {
			`UPDATE operations SET created_at = created_at - ` + old + `, first_sent_at = first_sent_at - ` + old + `, finished_at = finished_at - ` + old + `
			WHERE status = 'succeeded' AND finished_at > now() - ` + old + ` AND random() < 0.5`,
			`UPDATE attempts AS a SET started_at = a.started_at - ` + old + `, finished_at = a.finished_at - ` + old + `
			FROM operations AS o WHERE o.id = a.operation_id AND o.finished_at < now() - ` + old + ` AND a.started_at > now() - ` + old,
			`UPDATE orders AS r SET created_at = r.created_at - ` + old + `, updated_at = r.updated_at - ` + old + `
			FROM operations AS o WHERE (o.tenant_id, o.source, o.order_id) = (r.tenant_id, r.source, r.order_id)
				AND o.finished_at < now() - ` + old + ` AND r.updated_at > now() - ` + old,
			`UPDATE inbox_messages AS m SET received_at = m.received_at - ` + old + `
			FROM operations AS o WHERE (o.tenant_id, o.source, o.order_id) = (m.tenant_id, m.source, m.order_id)
				AND o.finished_at < now() - ` + old + ` AND m.received_at > now() - ` + old,
		},
	}
}

// commands runs a command of both services.
func (w *world) commands(ctx context.Context, args ...string) error {
	w.history.note("%s runs", args[0])
	if _, err := w.programs.Command(ctx, fleet.ERP, w.erpEnv(), args...); err != nil {
		return err
	}
	_, err := w.programs.Command(ctx, fleet.CRM, w.crmEnv(), args...)
	return err
}
