package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"invoicebridge/internal/invoice"
	"invoicebridge/internal/jobs"
	"invoicebridge/internal/problem"
)

// defaultTargetInterval is longer than the CRM side's: each question costs a target something.
const defaultTargetInterval = 6 * time.Hour

// ERPReconcile says when and how far back the ERP asks its targets what they know. Zero values take the defaults.
type ERPReconcile struct {
	Interval time.Duration `name:"reconcile-interval" env:"ERP_RECONCILE_INTERVAL" default:"6h" help:"How often registrations are compared with what their targets know."`
	Overlap  time.Duration `name:"reconcile-overlap" env:"ERP_RECONCILE_OVERLAP" default:"24h" help:"How far a comparison looks back behind the end of the one before. Each registration in it is one question to its target."`
}

// check gives the mistakes, with those against how long a registration is tried.
func (r ERPReconcile) check(total time.Duration) error {
	var mistakes []error
	if r.Interval != 0 && r.Interval < time.Second {
		mistakes = append(mistakes, mistake("ERP_RECONCILE_INTERVAL", "%s is less than a second", r.Interval))
	}
	switch overlap := orDefault(r.Overlap, invoice.DefaultReconcileOverlap); {
	case overlap < 0:
		mistakes = append(mistakes, mistake("ERP_RECONCILE_OVERLAP", "%s is negative", overlap))
	case overlap < total:
		mistakes = append(mistakes, mistake("ERP_RECONCILE_OVERLAP",
			"%s is too small: a registration is tried for up to ERP_REGISTER_TOTAL_TIME=%s, and what ended late would never be compared", overlap, total))
	}
	return errors.Join(mistakes...)
}

func newERPReconciliation(cfg ERPReconcile, registrar *invoice.Registrar, log *slog.Logger) reconciliation {
	reconciler := invoice.NewReconciler(registrar, invoice.ReconcilerOptions{Overlap: cfg.Overlap, Logger: log})
	standing := func(ctx context.Context) (jobs.ReconcileStanding, error) {
		s, err := reconciler.Standing(ctx)
		return jobs.ReconcileStanding(s), err
	}
	return reconciliation{
		job: jobs.Reconcile{
			Run: reconciler.RunAll, RunTenant: func(ctx context.Context, tenant string) error {
				_, err := reconciler.Run(ctx, tenant, time.Time{})
				return err
			}, Interval: orDefault(cfg.Interval, defaultTargetInterval),
			RunTime: max(jobs.DefaultReconcileRunTime, 2*reconciler.LongestBatch()), Logger: log,
		},
		metrics: jobs.NewReconcileMetrics("erp", standing, log),
	}
}

// ERPReconcileCommand is the ERP's command "reconcile". It does at once, and to the end, what the service does by itself; a
// run of the service that is open is gone on with.
type ERPReconcileCommand struct {
	DatabaseFlag
	Tenant        string        `required:"" help:"Id of the tenant."`
	Since         time.Time     `placeholder:"TIME" help:"Look further back than to the last run and ERP_RECONCILE_OVERLAP: ask about all that was registered since then, such as 2026-03-02T00:00:00Z."`
	TargetTimeout time.Duration `name:"target-timeout" env:"ERP_TARGET_TIMEOUT" default:"30s" help:"Time limit of one request to a target, as the service has it."`
	HeldTime      time.Duration `name:"register-held-time" env:"ERP_REGISTER_HELD_TIME" default:"4h" help:"How long a target may work on one, as the service has it."`
	Overlap       time.Duration `name:"reconcile-overlap" env:"ERP_RECONCILE_OVERLAP" default:"24h" help:"How far to look back behind the end of the last run."`
}

// Run compares, and tells what came of it.
func (c *ERPReconcileCommand) Run(ctx context.Context, env *AdminEnv, log *slog.Logger) error {
	pool, err := c.Open(ctx, env.Schema)
	if err != nil {
		return err
	}
	defer pool.Close()
	registrar := invoice.NewRegistrar(pool, invoice.RegistrarOptions{
		Kinds: TargetKinds(c.TargetTimeout), Credential: credential, Worker: workerName(), HeldTime: c.HeldTime, Logger: log,
	})
	defer registrar.Close()
	report, err := invoice.NewReconciler(registrar, invoice.ReconcilerOptions{Overlap: c.Overlap, Logger: log}).Run(ctx, c.Tenant, c.Since)
	switch {
	case problem.Is(err, problem.NotFound): // nothing was begun
		return err
	case err != nil:
		return fmt.Errorf("%w (what was compared so far is kept; the next run goes on)", err)
	}
	return Table(env.Stdout, "FROM\tTO\tCOMPARED\tNEW\tREPAIRED\tUNANSWERED", []invoice.Reconciliation{report}, func(r invoice.Reconciliation) string {
		return fmt.Sprintf("%s\t%s\t%d\t%d\t%d\t%d", r.From.UTC().Format(time.RFC3339), r.To.UTC().Format(time.RFC3339),
			r.Compared, r.Found, r.Repaired, r.Unanswered)
	})
}
