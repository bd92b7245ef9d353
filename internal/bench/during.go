package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"invoicebridge/internal/fleet"
)

// measureReconcile holds new invoices while both sides' books are compared without a break to new invoices alone.
func (l *lab) measureReconcile(ctx context.Context) error {
	return l.withERP(ctx, func(s *site, erp *program) error {
		if err := s.somethingToCompare(ctx, erp); err != nil {
			return err
		}
		create := s.creating(l.scale.clients, erp)
		compared := Series{What: "operations compared meanwhile", Unit: "/s"}
		during := measure{"create while reconciliation runs", "/s", func(ctx context.Context) (float64, error) {
			rate, n, err := s.whileReconciling(ctx, erp, create)
			compared.add(n)
			return rate, err
		}}
		if err := l.compare(ctx, "create_during_reconciliation", 0.9, during, s.rate("without", create)); err != nil {
			return err
		}
		l.tell(compared)
		return nil
	})
}

// somethingToCompare has a number of operations delivered.
func (s *site) somethingToCompare(ctx context.Context, erp *program) error {
	worker, err := s.lab.start(ctx, fleet.CRM, s.crmEnv(erp))
	if err != nil {
		return err
	}
	defer worker.stop()
	if _, err := s.submit(ctx, worker, "R", s.lab.scale.compared); err != nil {
		return err
	}
	return errors.Join(s.delivered(ctx, 50*time.Millisecond), worker.failure())
}

// whileReconciling measures a load while a worker compares, as soon as it has begun to, and gives what it compared a second.
func (s *site) whileReconciling(ctx context.Context, erp *program, of load) (rate, compared float64, err error) {
	worker, err := s.lab.start(ctx, fleet.CRM, append(s.crmEnv(erp), "CRM_RECONCILE_INTERVAL=1s"))
	if err != nil {
		return 0, 0, err
	}
	defer worker.stop()
	sum := func(ctx context.Context) (n float64, err error) {
		err = scan(ctx, s.crmDSN, `SELECT coalesce(sum(compared), 0)::float8 FROM reconciliation_runs`, &n)
		return n, err
	}
	begin, err := sum(ctx)
	if err != nil {
		return 0, 0, err
	}
	var from float64
	err = await(ctx, "reconciliation has begun", 50*time.Millisecond, func(ctx context.Context) (bool, error) {
		from, err = sum(ctx)
		return from > begin, err
	})
	if err != nil {
		return 0, 0, err
	}
	got, err := s.lab.closed(ctx, of)
	if err != nil {
		return 0, 0, err
	}
	to, err := sum(ctx)
	if err == nil && to <= from {
		err = errors.New("nothing was compared meanwhile")
	}
	return got.rate, (to - from) / (s.lab.scale.window + s.lab.scale.warmUp).Seconds(), err
}

// measurePurge holds new invoices while expired reservations are removed to new invoices alone.
func (s *site) measurePurge(ctx context.Context, erp *program) error {
	create := s.creating(s.lab.scale.clients, erp)
	removed := Series{What: "expired reservations removed meanwhile", Unit: "/s"}
	during := measure{"create while the purge runs", "/s", func(ctx context.Context) (float64, error) {
		rate, n, err := s.whilePurging(ctx, create)
		removed.add(n)
		return rate, err
	}}
	if err := s.lab.compare(ctx, "create_during_purge", 0.9, during, s.rate("without", create)); err != nil {
		return err
	}
	s.lab.tell(removed)
	return nil
}

// whilePurging measures a load while the command purges at the service's own pace.
func (s *site) whilePurging(ctx context.Context, of load) (rate, removed float64, err error) {
	left := func() (n float64, err error) {
		err = scan(ctx, s.erpDSN, `SELECT count(*)::float8 FROM idempotency_records WHERE expires_at < now()`, &n)
		return n, err
	}
	before, err := left()
	if err != nil {
		return 0, 0, err
	}
	purging, end := context.WithCancel(ctx)
	defer end()
	purged := make(chan error, 1)
	go func() {
		_, err := s.lab.programs.Command(purging, fleet.ERP, []string{"ERP_DATABASE_URL=" + s.erpDSN}, "purge", "--reason", "bench")
		if purging.Err() != nil {
			err = nil // ended by us
		}
		purged <- err
	}()
	got, err := s.lab.closed(ctx, of)
	end()
	err = errors.Join(err, <-purged)
	if err != nil {
		return 0, 0, err
	}
	after, err := left()
	if err == nil && after >= before {
		err = fmt.Errorf("nothing was removed meanwhile, of %.0f", before)
	}
	return got.rate, (before - after) / (s.lab.scale.window + s.lab.scale.warmUp).Seconds(), err
}
