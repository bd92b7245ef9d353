package verify

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"invoicebridge/internal/fleet"
	"invoicebridge/internal/wire"
)

// Own is an installation of the built programs that a run makes for itself, and takes away again.
type Own struct {
	Programs string // the folder of erp-api, crm-worker and targetsim
	Log      *slog.Logger
	Progress func(check string) // may be nil
}

// own is a run on installations of its own.
type own struct {
	main     *installation
	cutting  *cutting
	contract contract
	killed   chan Row // the check that has to wait for leases runs beside the others, on an installation of its own
}

// Run makes all checks. An error means that they could not be made.
func (o Own) Run(ctx context.Context) (_ []Row, err error) {
	p := fleet.Programs{Dir: o.Programs}
	if err := p.Check(); err != nil {
		return nil, err
	}
	s, err := startServer(ctx, o.Log)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.embedded.Stop(context.WithoutCancel(ctx))) }()
	r, err := o.start(ctx, p, s)
	if err != nil {
		return nil, err
	}
	defer r.main.close()
	rows := runAll(ctx, r.checks(), o.Progress)
	return rows, ctx.Err()
}

func (o Own) start(ctx context.Context, p fleet.Programs, s *server) (*own, error) {
	if o.Progress != nil {
		o.Progress("(starting PostgreSQL and the programs)")
	}
	r := &own{cutting: &cutting{}, killed: make(chan Row, 1)}
	go func() {
		r.killed <- check{"a consumer killed before its acknowledgement", func(ctx context.Context, f *findings) error {
			return consumerKilled(ctx, f, p, s)
		}}.run(ctx)
	}()
	var err error
	if r.main, err = newInstallation(ctx, p, s, "main"); err != nil {
		<-r.killed
		return nil, err
	}
	if err := r.serve(ctx); err != nil {
		<-r.killed
		r.main.close()
		return nil, err
	}
	return r, nil
}

func (r *own) serve(ctx context.Context) error {
	if err := r.main.serveERPs(ctx); err != nil {
		return err
	}
	if err := r.main.serveWorkers(ctx, r.cutting.plan); err != nil {
		return err
	}
	r.contract = contract{run: runName(), seen: seen{limit: 10 * time.Second, interval: pollInterval}}
	for _, s := range r.main.erps {
		r.contract.replicas = append(r.contract.replicas, newEndpoint(s.URL(), r.main.erpToken))
	}
	atAnswer := func(int) wire.Fault { return wire.Fault{Action: wire.Cut, Direction: wire.ToClient} }
	for n, s := range r.main.erps {
		broken, err := r.main.wire(ctx, atAnswer, s)
		if err != nil {
			return err
		}
		healthy, cut := r.contract.replicas[n], r.contract.cut
		r.contract.cut = func(k int) (endpoint, error) {
			if k%len(r.main.erps) == n || cut == nil {
				return healthy.through(broken), nil
			}
			return cut(k)
		}
	}
	return nil
}

// checks are the eight.
func (r *own) checks() []check {
	all := r.contract.checks()
	lost, hand := all[3], all[4]
	return append(all[:3:3],
		check{lost.name, func(ctx context.Context, f *findings) error { return r.answerLost(ctx, f, lost) }},
		check{"a consumer killed before its acknowledgement", r.takeKilled},
		check{"the external service does not answer", r.targetSilent},
		check{"repeats after the end of the retention", r.afterRetention},
		check{"work by hand", func(ctx context.Context, f *findings) error { return r.byHand(ctx, f, hand) }},
	)
}

// takeKilled waits for the check that ran beside the others.
func (r *own) takeKilled(_ context.Context, f *findings) error {
	row := <-r.killed
	f.row = row
	return nil
}

// cutting is a plan that cuts answers of a service for as long as it is told to.
type cutting struct {
	left atomic.Int64 // answers still to be cut
	cut  atomic.Int64
}

func (c *cutting) plan(connection int) wire.Fault {
	if connection%2 == 1 || c.left.Add(-1) < 0 {
		return wire.Fault{}
	}
	return wire.Fault{Action: wire.Cut, Direction: wire.ToClient, Reached: func() { c.cut.Add(1) }}
}

// answerLost is the contract's check, and then the same for deliveries: the worker finds out by itself.
func (r *own) answerLost(ctx context.Context, f *findings, direct check) error {
	if err := direct.do(ctx, f); err != nil {
		return err
	}
	r.cutting.left.Store(orders)
	if err := r.main.submit(ctx, 0, names("wire", orders)...); err != nil {
		return err
	}
	if err := r.main.delivered(ctx, "wire", orders); err != nil {
		return err
	}
	r.cutting.left.Store(0)
	lost, err := number(ctx, r.main.crm, `SELECT count(*) FROM attempts AS a JOIN operations AS o ON o.id = a.operation_id
		WHERE o.order_id LIKE 'V-wire-%' AND a.outcome = 'lost'`)
	if err != nil {
		return err
	}
	if lost == 0 {
		f.deviate("no delivery lost its answer, though %d connections were cut", r.cutting.cut.Load())
	}
	f.done("%d requests and %d deliveries (%d attempts without an answer), answers cut at the first byte", orders, orders, lost)
	return r.main.tell(ctx, f, "wire", orders)
}

// targetSilent lets the accounting system take what it is sent without ever saying so.
func (r *own) targetSilent(ctx context.Context, f *findings) error {
	i := r.main
	if err := i.addLedger(ctx); err != nil {
		return err
	}
	if err := i.script(ctx, silent(orders)...); err != nil {
		return err
	}
	f.done("%d invoices registered at a ledger that knows no keys, took each and did not answer", orders)
	if err := i.submit(ctx, 1, names("silent", orders)...); err != nil {
		return err
	}
	if err := i.delivered(ctx, "silent", orders); err != nil {
		return err
	}
	if err := i.registered(ctx, orders); err != nil {
		return err
	}
	if err := i.tell(ctx, f, "silent", orders); err != nil {
		return err
	}
	return i.tellEffects(ctx, f, orders)
}

// silent is a script of requests that are taken and never answered.
func silent(n int) []string {
	return strings.Split(strings.TrimSuffix(strings.Repeat("accept-silent ", n), " "), " ")
}

func (i *installation) registered(ctx context.Context, registrations int) error {
	return await(ctx, "all registrations have succeeded", func(ctx context.Context) (bool, error) {
		n, err := number(ctx, i.erp, `SELECT count(*) FROM registrations WHERE status = 'succeeded'`)
		return n == registrations, err
	})
}

// tellEffects counts the target's entries besides the invoices.
func (i *installation) tellEffects(ctx context.Context, f *findings, expected int) error {
	perInvoice, err := i.effects(ctx)
	if err != nil {
		return err
	}
	f.count(expected, perInvoice)
	return nil
}

// afterRetention lets more time pass than any key is kept for, and has everything come again.
func (r *own) afterRetention(ctx context.Context, f *findings) error {
	i := r.main
	f.done("%d requests and %d orders, and again 400 days later, after a purge", orders, orders)
	var tally tally
	first := make([]answer, orders)
	for n := range orders {
		first[n] = r.contract.replica(n).issue(ctx, r.contract.invoice("late", n))
		tally.add(r.contract.invoice("late", n).order, first[n])
	}
	if err := i.submit(ctx, 0, names("late", orders)...); err != nil {
		return err
	}
	if err := i.delivered(ctx, "late", orders); err != nil {
		return err
	}
	if err := i.letTimePass(ctx); err != nil {
		return err
	}
	for n := range orders {
		want := r.contract.invoice("late", n)
		got := r.contract.replica(n+1).issue(ctx, want)
		tally.add(want.order, got)
		r.contract.wantReplay(f, want, first[n], got)
		other := want
		other.price = "900.00"
		r.contract.wantMismatch(f, want, r.contract.replica(n).issue(ctx, other))
	}
	if err := i.submit(ctx, 1, names("late", orders)...); err != nil {
		return err
	}
	if err := r.contract.tell(ctx, f, &tally, orders); err != nil {
		return err
	}
	return i.tell(ctx, f, "late", orders)
}

// letTimePass makes every reservation 400 days older, and purges.
func (i *installation) letTimePass(ctx context.Context) error {
	_, err := i.erp.Exec(ctx, `UPDATE idempotency_records SET first_seen_at = first_seen_at - interval '400 days',
		completed_at = completed_at - interval '400 days', expires_at = expires_at - interval '400 days'`)
	if err != nil {
		return fmt.Errorf("let time pass: %w", err)
	}
	if _, err := i.programs.Command(ctx, "erp-api", i.erpEnv(), "purge", "--reason", "verification"); err != nil {
		return err
	}
	if n, err := number(ctx, i.erp, `SELECT count(*) FROM idempotency_records WHERE expires_at < now()`); err != nil || n > 0 {
		return errors.Join(err, fmt.Errorf("%d expired reservations are left after the purge", n))
	}
	return nil
}
