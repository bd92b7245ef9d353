package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"invoicebridge/internal/fleet"
	"invoicebridge/internal/jobs"
	"invoicebridge/internal/postgres"
)

// The queue's row of River's own, by which its pages pause it: what is submitted meanwhile stays to be delivered.
const (
	pauseQueue = `INSERT INTO river_queue (name, metadata, paused_at, created_at, updated_at) VALUES ('default', '{}', now(), now(), now())
		ON CONFLICT (name) DO UPDATE SET paused_at = now(), updated_at = now()`
	resumeQueue = `UPDATE river_queue SET paused_at = NULL, updated_at = now() WHERE name = 'default'`
)

// openOperations asks whether any operation still has to be delivered.
const openOperations = `SELECT EXISTS (SELECT FROM operations WHERE status IN ('pending', 'processing', 'unknown'))`

// measureDeliver holds deliveries, from the first attempt until the last operation has succeeded, to jobs that do nothing,
// and to creating invoices over HTTP without a CRM side.
func (l *lab) measureDeliver(ctx context.Context) error {
	return l.withERP(ctx, func(s *site, erp *program) error {
		batch := 0
		deliver := measure{fmt.Sprintf("deliveries end to end, %d operations", l.scale.deliveries), "/s", func(ctx context.Context) (float64, error) {
			batch++
			return s.deliver(ctx, erp, fmt.Sprintf("D%d-", batch), nil)
		}}
		nothing := measure{"River, jobs that do nothing, the same settings", "/s", s.nothing}
		create := s.rate(fmt.Sprintf("create over HTTP, %d clients, %d tenants", l.scale.clients, l.scale.tenants), s.creating(l.scale.clients, erp))
		all, err := l.inTurn(ctx, deliver, nothing, create)
		if err != nil {
			return err
		}
		l.figure(newFigure("deliveries_to_queue", 0.2, all[0], all[1]))
		l.figure(newFigure("deliveries_to_create", 0.6, all[0], all[2]))
		if l.config.Profiles == "" {
			return nil
		}
		_, err = s.deliver(ctx, erp, "DP-", func(worker *program) error {
			failed := make(chan error, 1)
			go func() { failed <- l.profile(ctx, erp, "deliveries") }()
			return errors.Join(l.profile(ctx, worker, "deliveries"), <-failed)
		})
		return err
	})
}

// deliver has operations wait, starts a worker, and gives how many a second it delivered. beside, where given, is called with
// the worker at work.
func (s *site) deliver(ctx context.Context, erp *program, prefix string, beside func(worker *program) error) (rate float64, err error) {
	n, err := s.waiting(ctx, erp, prefix, s.lab.scale.deliveries)
	if err != nil {
		return 0, err
	}
	worker, err := s.lab.start(ctx, fleet.CRM, s.crmEnv(erp))
	if err != nil {
		return 0, err
	}
	defer worker.stop()
	if beside != nil {
		if err := beside(worker); err != nil {
			return 0, err
		}
	}
	if err := s.delivered(ctx, 20*time.Millisecond); err != nil {
		return 0, errors.Join(err, worker.failure())
	}
	var seconds float64
	var failed int
	err = scan(ctx, s.crmDSN, `SELECT extract(epoch FROM max(finished_at) - min(first_sent_at))::float8, count(*) FILTER (WHERE status <> 'succeeded')
		FROM operations WHERE order_id LIKE '`+prefix+`%'`, &seconds, &failed)
	if err != nil || failed > 0 || seconds <= 0 {
		return 0, errors.Join(err, fmt.Errorf("%d of %d operations did not succeed (%.3f s)", failed, n, seconds))
	}
	return float64(n) / seconds, nil
}

// delivered waits until no operation is open.
func (s *site) delivered(ctx context.Context, every time.Duration) error {
	return await(ctx, "all operations are delivered", every, func(ctx context.Context) (bool, error) {
		var open bool
		err := scan(ctx, s.crmDSN, openOperations, &open)
		return !open, err
	})
}

// waiting submits orders of all tenants while nothing is delivered, and gives how many.
func (s *site) waiting(ctx context.Context, erp *program, prefix string, n int) (submitted int, err error) {
	if err := execute(ctx, s.crmDSN, pauseQueue); err != nil {
		return 0, err
	}
	worker, err := s.lab.start(ctx, fleet.CRM, s.crmEnv(erp))
	if err != nil {
		return 0, err
	}
	submitted, err = s.submit(ctx, worker, prefix, n)
	worker.stop()
	if err != nil {
		return 0, err
	}
	var begun int
	err = scan(ctx, s.crmDSN, `SELECT count(*) FROM operations WHERE attempt > 0 AND order_id LIKE '`+prefix+`%'`, &begun)
	if err == nil && begun > 0 {
		err = fmt.Errorf("%d operations were delivered while the queue was paused", begun)
	}
	return submitted, errors.Join(err, execute(ctx, s.crmDSN, resumeQueue, "VACUUM ANALYZE operations", "ANALYZE"))
}

// submit hands n orders to a CRM side, an array for each tenant at a time.
func (s *site) submit(ctx context.Context, worker *program, prefix string, n int) (submitted int, err error) {
	const perCall = 500
	c, err := dial(ctx, worker.address)
	if err != nil {
		return 0, err
	}
	defer c.close()
	for call := 0; submitted < n && ctx.Err() == nil; call++ {
		tenant := call % s.lab.scale.tenants
		ids := make([]string, min(perCall, max(1, n/s.lab.scale.tenants), n-submitted))
		for i := range ids {
			ids[i] = fmt.Sprintf("%s%d", prefix, submitted+i)
		}
		c.buffer = submit(c.buffer[:0], head("/v1/orders", s.lab.tokens.crm[tenant]), ids...)
		got, err := c.do(ctx, c.buffer)
		if err == nil {
			err = taken(got)
		}
		if err != nil {
			return submitted, err
		}
		submitted += len(ids)
	}
	return submitted, ctx.Err()
}

// taken wants the answer to orders that were taken.
func taken(a *answer) error {
	if a.status/100 != 2 {
		return fmt.Errorf("not taken: %d %.300s", a.status, a.body)
	}
	return nil
}

// nothing works as many jobs that do nothing, in this process, and gives how many a second.
func (s *site) nothing(ctx context.Context) (float64, error) {
	pool, err := postgres.OpenPool(ctx, postgres.PoolConfig{
		DSN: s.crmDSN, ApplicationName: "bench queue", MaxConns: 4, RuntimeParams: jobs.SessionSettings(),
	})
	if err != nil {
		return 0, err
	}
	defer pool.Close()
	client, err := jobs.NewBaseline(pool, jobs.Config{}, nil)
	if err != nil {
		return 0, err
	}
	n := s.lab.scale.deliveries
	if err := client.InsertBaseline(ctx, n); err != nil {
		return 0, err
	}
	if err := client.Start(ctx); err != nil {
		return 0, err
	}
	defer func() { _ = client.Stop(context.WithoutCancel(ctx)) }()
	err = await(ctx, "all jobs are worked", 20*time.Millisecond, func(ctx context.Context) (bool, error) {
		var left bool
		err := scan(ctx, s.crmDSN, `SELECT EXISTS (SELECT FROM river_job WHERE state IN ('available', 'running') AND kind = 'nothing')`, &left)
		return !left, err
	})
	if err != nil {
		return 0, err
	}
	var seconds float64
	var worked int
	err = scan(ctx, s.crmDSN, `SELECT extract(epoch FROM max(finalized_at) - min(attempted_at))::float8, count(*) FROM river_job
		WHERE kind = 'nothing' AND state = 'completed'`, &seconds, &worked)
	if err != nil || worked != n || seconds <= 0 {
		return 0, errors.Join(err, fmt.Errorf("%d of %d jobs were worked (%.3f s)", worked, n, seconds))
	}
	return float64(n) / seconds, execute(ctx, s.crmDSN, `DELETE FROM river_job WHERE kind = 'nothing'`)
}
