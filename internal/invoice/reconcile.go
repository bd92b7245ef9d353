package invoice

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"invoicebridge/internal/erpdb"
)

// Settings of a Reconciler, unless ReconcilerOptions says otherwise.
const (
	// DefaultReconcileOverlap is how far a run looks back behind the end of the one before: for what a target takes back,
	// or shows late.
	DefaultReconcileOverlap = 24 * time.Hour
	// DefaultReconcileBatch is how many registrations are asked for before the run's state is committed. Each takes as long
	// as its target likes, and a process has only so much time before it makes room.
	DefaultReconcileBatch = 4
)

// ReconcileScope names the comparison of the ERP with its targets in the table of runs.
const ReconcileScope = "erp-targets"

// ErrOvertaken ends a run that another process has taken further meanwhile. Nothing is lost by it.
var ErrOvertaken = errors.New("another process goes on with this reconciliation run")

// ReconcilerOptions are a Reconciler's settings. Zero values are usable.
type ReconcilerOptions struct {
	Overlap time.Duration // 0: DefaultReconcileOverlap
	Batch   int32         // 0: DefaultReconcileBatch
	Logger  *slog.Logger  // nil discards
}

// Reconciler holds the ERP's registrations against what their targets know, by asking them (locate). It is safe for
// concurrent use, also by several processes on one database: they share a tenant's run.
type Reconciler struct {
	pool      *pgxpool.Pool
	registrar *Registrar
	opts      ReconcilerOptions
}

// NewReconciler makes a Reconciler that asks through registrar.
func NewReconciler(registrar *Registrar, opts ReconcilerOptions) *Reconciler {
	if opts.Overlap <= 0 {
		opts.Overlap = DefaultReconcileOverlap
	}
	if opts.Batch <= 0 {
		opts.Batch = DefaultReconcileBatch
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	return &Reconciler{pool: registrar.pool, registrar: registrar, opts: opts}
}

// LongestBatch is the longest that a run takes between two states that are committed.
func (r *Reconciler) LongestBatch() time.Duration {
	return time.Duration(r.opts.Batch) * r.registrar.LongestAttempt()
}

// Reconciliation is what a run did.
type Reconciliation struct {
	From, To time.Time // its window
	Compared int64     // registrations that their target was asked about, with an answer
	Found    int64     // divergences that no earlier run had found
	Repaired int64     // of these: settled at once
	// Unanswered are registrations that the target had no usable answer for. They are left to the next run.
	Unanswered int64
}

// The phases of a run, in their order.
const (
	phaseFinal = "final" // the window's registrations that have come to an end
	phaseOpen  = "open"  // those whose outcome is unknown, of whatever age
	phaseKnown = "known" // open divergences that this run has not seen: are they still there?
	phaseDone  = "done"
)

const runOfTenant = "reconciliation_runs_tenant_id_fkey"

// Run asks the targets of a tenant about its registrations: those of the window that have come to an end, and all that are
// unknown. The window reaches from DefaultReconcileOverlap (or as set) before the end of the last finished run to now.
// since moves its beginning back, never forward: what was not asked about yet would stay so. Only the first run begins
// with it in any case. Targets that can't be asked are left out; nothing is known of them but what they answered.
//
// A run that was cut off is gone on with from its last batch. No transaction is open while a target is asked.
//
// What is unknown is asked about by an attempt like any other, under the rules and the guard of every attempt: what has
// landed is settled. Where the target has asked to come back later, that is left to the next run until then. Nothing is
// ever sent. Everything else is only told, in the divergences.
//
// A target without an answer takes its own registrations out of the run, never those of others. Run ends early with ctx's
// error, with ErrOvertaken, or if the database fails; calling it again goes on. A tenant that is not there is problem
// not-found.
func (r *Reconciler) Run(ctx context.Context, tenant string, since time.Time) (Reconciliation, error) {
	for {
		run, adopted, err := r.open(ctx, tenant, since)
		if err != nil {
			return Reconciliation{}, fmt.Errorf("reconcile: %w", err)
		}
		if err := run.work(ctx); err != nil {
			return run.report, fmt.Errorf("reconcile, phase %s: %w", run.phase, err)
		}
		if !adopted || since.IsZero() || !since.Before(run.report.From) {
			return run.report, nil
		}
	}
}

// RunAll is Run for every tenant, one after the other. One that fails does not stop the others; the error tells of each.
func (r *Reconciler) RunAll(ctx context.Context) error {
	tenants, err := erpdb.New(r.pool).TenantList(ctx)
	if err != nil {
		return fmt.Errorf("reconcile: list tenants: %w", err)
	}
	var failed []error
	for _, tenant := range tenants {
		_, err := r.Run(ctx, tenant.ID, time.Time{})
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, ErrOvertaken):
			r.opts.Logger.InfoContext(ctx, "reconciliation is done by another process", "tenant", tenant.ID)
		case err != nil:
			failed = append(failed, fmt.Errorf("tenant %s: %w", tenant.ID, err))
		}
	}
	return errors.Join(failed...)
}

// targetRun is one run in this process.
type targetRun struct {
	*Reconciler
	id            uuid.UUID
	tenant        string
	startedAt     time.Time // by the database's clock
	phase, cursor string
	report        Reconciliation
	silent        map[string]int // by target: questions in a row without an answer
	log           *slog.Logger
}

// open adopts the tenant's open run, or begins one.
func (r *Reconciler) open(ctx context.Context, tenant string, since time.Time) (run *targetRun, adopted bool, err error) {
	queries := erpdb.New(r.pool)
	row, err := queries.ReconciliationRunGetOpen(ctx, tenant, ReconcileScope)
	adopted = err == nil
	if errors.Is(err, pgx.ErrNoRows) {
		begun, beginErr := queries.ReconciliationRunBegin(ctx, erpdb.ReconciliationRunBeginParams{
			ID: uuid.Must(uuid.NewV7()), TenantID: tenant, Scope: ReconcileScope, Phase: phaseFinal,
			OverlapSeconds: r.opts.Overlap.Seconds(), Since: optionalTime(since),
		})
		row, err = erpdb.ReconciliationRunGetOpenRow(begun), beginErr
	}
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, false, ErrOvertaken
	}
	if violates(err, runOfTenant) {
		return nil, false, noTenant(tenant)
	}
	if err != nil {
		return nil, false, fmt.Errorf("open a run: %w", err)
	}
	run = &targetRun{
		Reconciler: r, id: row.ID, tenant: tenant, startedAt: row.StartedAt, phase: row.Phase, cursor: row.Cursor,
		silent: map[string]int{}, log: r.opts.Logger.With("tenant", tenant, "run", row.ID),
		report: Reconciliation{
			From: row.WindowFrom, To: row.WindowTo, Compared: row.Compared, Found: row.Found, Repaired: row.Repaired,
		},
	}
	run.log.InfoContext(ctx, "reconciliation with targets begins", "from", row.WindowFrom, "to", row.WindowTo, "adopted", adopted)
	return run, adopted, nil
}

// work goes on with the run, batch by batch, to its end.
func (run *targetRun) work(ctx context.Context) error {
	for run.phase != phaseDone {
		b := &targetBatch{findings: map[[2]string]targetFinding{}}
		phase, cursor, err := run.step(ctx, b)
		if err == nil {
			err = ctx.Err() // an answer that came because ctx ended is none
		}
		if err == nil {
			err = run.commit(ctx, b, phase, cursor)
		}
		if err != nil {
			return err
		}
		level := slog.LevelDebug
		if phase != run.phase {
			level = slog.LevelInfo
		}
		run.log.Log(ctx, level, "reconciliation with targets goes on", "done", run.phase, "next", phase, "compared", run.report.Compared,
			"found", run.report.Found, "repaired", run.report.Repaired, "unanswered", run.report.Unanswered)
		run.phase, run.cursor = phase, cursor
	}
	return nil
}
