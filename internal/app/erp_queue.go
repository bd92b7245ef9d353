package app

import (
	"context"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"go.opentelemetry.io/otel/trace"

	"invoicebridge/internal/invoice"
	"invoicebridge/internal/jobs"
)

// ERPQueueFlags are what commands need that put registrations into the ERP's queue.
type ERPQueueFlags struct {
	DatabaseFlag
	TargetTimeout time.Duration `name:"target-timeout" env:"ERP_TARGET_TIMEOUT" default:"30s" help:"Time limit of one request to a target, as the service has it: whoever has been at one for longer is gone."`
}

// Invoices gives do a Service that puts jobs into the queue; a running service works them.
func (f ERPQueueFlags) Invoices(ctx context.Context, env *AdminEnv, log *slog.Logger, do func(context.Context, *invoice.Service) error) error {
	return env.Traced(ctx, "erp-api", log, func(ctx context.Context, provider trace.TracerProvider) error {
		pool, err := f.Open(ctx, env.Schema)
		if err != nil {
			return err
		}
		defer pool.Close()
		queue, err := f.queue(pool, log, provider)
		if err != nil {
			return err
		}
		return do(ctx, invoice.NewService(pool, invoice.Options{Logger: log, Registrations: queue, Reconciliations: queue}))
	})
}

func (f ERPQueueFlags) queue(pool *pgxpool.Pool, log *slog.Logger, provider trace.TracerProvider) (*jobs.ERPInserter, error) {
	registrar := invoice.NewRegistrar(pool, invoice.RegistrarOptions{Kinds: TargetKinds(f.TargetTimeout), Credential: credential, Logger: log})
	defer registrar.Close()
	return jobs.NewERPInserter(pool, registrar.LongestAttempt(), log, jobs.WithTraces(provider))
}
