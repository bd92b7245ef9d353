package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"invoicebridge/internal/crm"
	"invoicebridge/internal/erpapi"
	"invoicebridge/internal/jobs"
)

// CRMReconcile says when and how far back the CRM side compares its books with the ERP's. Zero values take the defaults.
type CRMReconcile struct {
	Interval time.Duration `name:"reconcile-interval" env:"CRM_RECONCILE_INTERVAL" default:"15m" help:"How often operations and invoices are compared."`
	Overlap  time.Duration `name:"reconcile-overlap" env:"CRM_RECONCILE_OVERLAP" default:"48h" help:"How far a comparison looks back behind the end of the one before; it must exceed TOTAL_TIME."`
	// PauseFactor 0 stands for no pause.
	PauseFactor float64 `name:"reconcile-pause-factor" env:"CRM_RECONCILE_PAUSE_FACTOR" default:"3" help:"The comparison pauses after each batch for this many times as long as the batch took, to leave both sides to others; 0: never. By hand it does not pause."`
}

const maxReconcilePauseFactor = 1000

// check gives the mistakes, with those against the settings that it depends on.
func (r CRMReconcile) check(total, personalData time.Duration) error {
	var mistakes []error
	if r.Interval != 0 && r.Interval < time.Second {
		mistakes = append(mistakes, mistake("CRM_RECONCILE_INTERVAL", "%s is less than a second", r.Interval))
	}
	if !(r.PauseFactor >= 0 && r.PauseFactor <= maxReconcilePauseFactor) { // also refuses NaN
		mistakes = append(mistakes, mistake("CRM_RECONCILE_PAUSE_FACTOR", "%v is not from 0 to %d", r.PauseFactor, maxReconcilePauseFactor))
	}
	switch overlap := r.overlap(); {
	case overlap <= total:
		mistakes = append(mistakes, mistake("CRM_RECONCILE_OVERLAP",
			"%s is too small: an operation is tried for up to TOTAL_TIME=%s, and what ended late would never be compared", overlap, total))
	case overlap > personalData:
		mistakes = append(mistakes, mistake("CRM_RECONCILE_OVERLAP",
			"%s is too large: after CRM_PERSONAL_DATA_RETENTION=%s there is no customer left to compare", overlap, personalData))
	}
	return errors.Join(mistakes...)
}

func (r CRMReconcile) overlap() time.Duration {
	return orDefault(r.Overlap, crm.DefaultReconcileOverlap)
}

// reconciliation is the CRM side's periodic comparison with the ERP, with its metrics.
type reconciliation struct {
	job     jobs.Reconcile
	metrics *jobs.ReconcileMetrics
}

func newCRMReconciliation(cfg CRMReconcile, pool *pgxpool.Pool, client *erpapi.Client, tokens erpTokens, sweeper *crm.Sweeper, log *slog.Logger) reconciliation {
	reconciler := crm.NewReconciler(pool, client, crm.ReconcilerOptions{
		Token: tokens.of, Overlap: cfg.Overlap, PauseFactor: cfg.PauseFactor, Enqueue: sweeper.Sweep, Logger: log,
	})
	standing := func(ctx context.Context) (jobs.ReconcileStanding, error) {
		s, err := reconciler.Standing(ctx)
		told := jobs.ReconcileStanding{Open: make(map[string]int64, len(s.Open)), Age: s.Age, Ran: s.Ran}
		for kind, n := range s.Open {
			told.Open[string(kind)] = n
		}
		return told, err
	}
	return reconciliation{
		job:     jobs.Reconcile{Run: reconciler.RunAll, RunTenant: reconciler.Continue, Interval: cfg.Interval, Logger: log},
		metrics: jobs.NewReconcileMetrics("crm", standing, log),
	}
}

// CRMReconcileCommand is the CRM side's command "reconcile". It does at once, and to the end, what the service does by
// itself; a run of the service that is open is gone on with.
type CRMReconcileCommand struct {
	DatabaseFlag
	Tenant         string        `required:"" help:"Id of the tenant."`
	Since          time.Time     `placeholder:"TIME" help:"Look further back than to the last run and CRM_RECONCILE_OVERLAP: compare all that was made since then, such as 2026-03-02T00:00:00Z."`
	ERPURL         string        `name:"erp-url" env:"ERP_URL" required:"" placeholder:"URL" help:"Where the ERP's paths begin."`
	ERPTokens      []string      `name:"erp-token" env:"ERP_TOKENS" sep:";" required:"" placeholder:"TENANT=TOKEN" help:"The ERP's bearer token of a tenant, as for serve; the role reader is enough."`
	AttemptTimeout time.Duration `name:"attempt-timeout" env:"ATTEMPT_TIMEOUT" default:"30s" help:"Time for one question to the ERP, and for one attempt of the service, as it has it."`
	Overlap        time.Duration `name:"reconcile-overlap" env:"CRM_RECONCILE_OVERLAP" default:"48h" help:"How far to look back behind the end of the last run."`
}

// Run compares, and tells what came of it.
func (c *CRMReconcileCommand) Run(ctx context.Context, env *AdminEnv, log *slog.Logger) error {
	tokens, err := readERPTokens(c.ERPTokens, os.ReadFile)
	if err != nil {
		return err
	}
	client, err := erpapi.NewClient(erpapi.ClientConfig{BaseURL: c.ERPURL, AttemptTimeout: c.AttemptTimeout})
	if err != nil {
		return mistake("ERP_URL", "%v", err)
	}
	defer client.CloseIdleConnections()
	pool, err := c.Open(ctx, env.Schema)
	if err != nil {
		return err
	}
	defer pool.Close()
	inserter, err := jobs.NewInserter(pool, log)
	if err != nil {
		return err
	}
	sweeper := jobs.NewSweeper(pool, inserter, crm.NewDeliverer(pool, client, crm.DelivererOptions{Logger: log}), 0)
	report, err := crm.NewReconciler(pool, client, crm.ReconcilerOptions{
		Token: tokens.of, Overlap: c.Overlap, Enqueue: sweeper.Sweep, Logger: log,
	}).Run(ctx, c.Tenant, c.Since)
	if err != nil {
		return fmt.Errorf("%w (what was compared so far is kept; the next run goes on)", err)
	}
	return Table(env.Stdout, "FROM\tTO\tCOMPARED\tNEW\tREPAIRED\tUNANSWERED", []crm.Reconciliation{report}, func(r crm.Reconciliation) string {
		return fmt.Sprintf("%s\t%s\t%d\t%d\t%d\t%d", r.From.UTC().Format(time.RFC3339), r.To.UTC().Format(time.RFC3339),
			r.Compared, r.Found, r.Repaired, r.Unanswered)
	})
}
