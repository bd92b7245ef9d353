package app

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"invoicebridge/internal/backoff"
	"invoicebridge/internal/invoice"
	"invoicebridge/internal/jobs"
	"invoicebridge/internal/postgres"
	"invoicebridge/internal/telemetry"
)

// RegisterConfig is how invoices are registered at external targets. Durations and numbers that are 0 stand for their
// defaults.
type RegisterConfig struct {
	Disabled      bool          `name:"disable-register" env:"ERP_DISABLE_REGISTER" help:"This process works on no registrations; others on the same database do. It still writes down what is to be registered."`
	Workers       int           `name:"register-workers" env:"ERP_REGISTER_WORKERS" default:"8" help:"Registrations at once."`
	TargetTimeout time.Duration `name:"target-timeout" env:"ERP_TARGET_TIMEOUT" default:"30s" help:"Time for one request to a target. An attempt makes up to two; what targets promise has to outlast them."`
	TotalTime     time.Duration `name:"register-total-time" env:"ERP_REGISTER_TOTAL_TIME" default:"24h" help:"How long a registration may be open before an operator is told."`
	HeldTime      time.Duration `name:"register-held-time" env:"ERP_REGISTER_HELD_TIME" default:"4h" help:"How long a target may work on one before an operator is told."`
	SweepInterval time.Duration `name:"register-sweep-interval" env:"ERP_REGISTER_SWEEP_INTERVAL" default:"30s" help:"How often registrations are looked for that nobody works on."`

	// BackOff is the pause between attempts; not for configuration, but for those who run the service in their own
	// process. Zero: invoice.DefaultRegistrationBackOff.
	BackOff backoff.BackOff `kong:"-"`
}

func (c RegisterConfig) check() error {
	var mistakes []error
	if c.Workers < 0 || c.Workers > 1000 {
		mistakes = append(mistakes, mistake("ERP_REGISTER_WORKERS", "%d is not from 1 to 1000", c.Workers))
	}
	if c.TargetTimeout != 0 && (c.TargetTimeout < minAttemptTimeout || c.TargetTimeout > maxAttemptTimeout) {
		mistakes = append(mistakes, mistake("ERP_TARGET_TIMEOUT", "%s is not from %s to %s", c.TargetTimeout, minAttemptTimeout, maxAttemptTimeout))
	}
	for _, d := range []struct {
		variable string
		is       time.Duration
	}{
		{"ERP_REGISTER_TOTAL_TIME", c.TotalTime}, {"ERP_REGISTER_HELD_TIME", c.HeldTime}, {"ERP_REGISTER_SWEEP_INTERVAL", c.SweepInterval},
	} {
		if d.is != 0 && d.is < time.Second {
			mistakes = append(mistakes, mistake(d.variable, "%s is less than a second", d.is))
		}
	}
	return errors.Join(mistakes...)
}

// registering is the part of the ERP that works on registrations, put together.
type registering struct {
	queue          *jobs.ERPInserter
	metrics        *jobs.ERPMetrics
	registrar      *invoice.Registrar
	purge          purge
	reconciliation reconciliation
	worker         *jobs.Client  // nil: this process works on none
	pool           *pgxpool.Pool // the queue's own
	shutdown       time.Duration
	log            *slog.Logger
}

// newRegistering makes the parts, and fails on targets that can't be served. The working client comes last.
func newRegistering(ctx context.Context, cfg ERPConfig, pool *pgxpool.Pool, traces *telemetry.Traces, slow *postgres.SlowQueries, log *slog.Logger) (_ *registering, err error) {
	c := cfg.Registering
	kinds := targetKinds(c.TargetTimeout, traces)
	r := &registering{
		metrics: jobs.NewERPMetrics(pool, log), purge: newERPPurge(cfg.Retention, pool, log), shutdown: cfg.ShutdownTimeout, log: log,
	}
	r.registrar = invoice.NewRegistrar(pool, invoice.RegistrarOptions{
		Kinds: kinds, Credential: credential, Worker: workerName(), TotalTime: c.TotalTime, HeldTime: c.HeldTime,
		BackOff: c.BackOff, Logger: log, Observer: r.metrics,
	})
	r.reconciliation = newERPReconciliation(cfg.Reconcile, r.registrar, log)
	if r.queue, err = jobs.NewERPInserter(pool, r.registrar.LongestAttempt(), log, jobs.WithTraces(traces.Provider())); err != nil || c.Disabled {
		return r, err
	}
	if err := invoice.CheckTargets(ctx, pool, kinds); err != nil {
		return nil, mistake("ERP_TARGET_TIMEOUT", "with %s, and %d requests an attempt, not every target can be served:\n%v",
			orDefault(c.TargetTimeout, DefaultTargetTimeout), requestsPerAttempt, err)
	}
	if err := invoice.CheckCredentials(ctx, pool, credential); err != nil {
		log.ErrorContext(ctx, "nothing is registered at targets without their credential", "error", err)
	}
	r.pool, err = postgres.OpenPool(ctx, postgres.PoolConfig{
		DSN: cfg.Queue.url(cfg.DatabaseURL), ApplicationName: "erp-api queue", MaxConns: riverMaxConns, Tracer: traces.Queries(), Slow: slow,
		RuntimeParams: jobs.SessionSettings(),
	})
	if err != nil {
		return nil, err
	}
	r.worker, err = jobs.NewERPClient(r.pool, jobs.ERPDeps{
		Registrar: r.registrar, Inserter: r.queue, Metrics: r.metrics, Logger: log,
	}, jobs.Config{
		Workers: c.workers(), SweepInterval: c.sweepInterval(), SoftStopTimeout: shareOfShutdown(cfg.ShutdownTimeout), Purge: r.purge.job,
		Reconcile: r.reconciliation.job, Traces: traces.Provider(), PollOnly: cfg.Queue.PollOnly,
	})
	if err != nil {
		closePool(r.pool, log)
		return nil, err
	}
	return r, nil
}

const (
	defaultRegisterWorkers = 8
	defaultRegisterSweep   = 30 * time.Second
)

func (c RegisterConfig) workers() int {
	if c.Workers == 0 {
		return defaultRegisterWorkers
	}
	return c.Workers
}

func (c RegisterConfig) sweepInterval() time.Duration {
	return orDefault(c.SweepInterval, defaultRegisterSweep)
}

// share is the part of the shutdown time that requests get.
func (r *registering) share(all time.Duration) time.Duration {
	if r.worker == nil {
		return all
	}
	return shareOfShutdown(all)
}

// working says whether registrations are worked on; nil: this process is not to.
func (r *registering) working() func() bool {
	if r.worker == nil {
		return nil
	}
	return r.worker.Working
}

// start begins to work. Not until ctx ends: that would stop the worker before, or beside, the server.
func (r *registering) start(ctx context.Context) error {
	if r.worker == nil {
		return nil
	}
	return r.worker.Start(context.WithoutCancel(ctx))
}

// stop ends the work in what is left of the shutdown time.
func (r *registering) stop() error {
	if r.worker == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), r.shutdown-shareOfShutdown(r.shutdown))
	defer cancel()
	err := r.worker.Stop(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		r.log.Warn("registrations still running at the end of the shutdown time are left to the next process")
		return nil
	}
	return err
}

func (r *registering) close() {
	r.registrar.Close()
	if r.pool != nil {
		closePool(r.pool, r.log)
	}
}
