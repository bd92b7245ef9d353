package crm

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"invoicebridge/internal/crmdb"
	"invoicebridge/internal/logctx"
)

// The phases of a run, in their order.
const (
	phaseInvoices   = "invoices"   // the ERP's list of the window, held against the operations
	phaseOperations = "operations" // the window's succeeded operations whose invoice that did not meet
	phaseOpen       = "open"       // operations that were sent and have no outcome, of whatever age
	phaseKnown      = "known"      // open divergences that this run has not seen: are they still there?
	phaseDone       = "done"
)

// position is how far a run has come.
type position struct{ phase, cursor string }

// reconcileRun is one run in this process.
type reconcileRun struct {
	*Reconciler
	id          uuid.UUID
	tenant      string
	token       string
	from, to    time.Time
	startedAt   time.Time // by the database's clock
	at          position
	report      Reconciliation
	pauseFactor float64
	silent      int  // questions in a row that the ERP did not answer
	restarted   bool // from the top of the ERP's list, as it did not know its cursor any more
	log         *slog.Logger
}

// open adopts the tenant's open run, or begins one.
func (r *Reconciler) open(ctx context.Context, tenant string, since time.Time) (run *reconcileRun, adopted bool, err error) {
	queries := crmdb.New(r.pool)
	row, err := queries.ReconciliationRunGetOpen(ctx, tenant, ReconcileScope)
	adopted = err == nil
	if errors.Is(err, pgx.ErrNoRows) {
		row, err = r.begin(ctx, queries, tenant, since)
	}
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, false, ErrOvertaken
	}
	if err != nil {
		return nil, false, fmt.Errorf("open a run: %w", err)
	}
	run = &reconcileRun{
		Reconciler: r, id: row.ID, tenant: tenant, from: row.WindowFrom, to: row.WindowTo, startedAt: row.StartedAt,
		at:  position{row.Phase, row.Cursor},
		log: r.opts.Logger.With(logctx.TenantKey, tenant, "run", row.ID),
		report: Reconciliation{
			From: row.WindowFrom, To: row.WindowTo, Compared: row.Compared, Found: row.Found, Repaired: row.Repaired,
		},
	}
	run.log.InfoContext(ctx, "reconciliation begins", "from", run.from, "to", run.to, "adopted", adopted, "phase", run.at.phase)
	return run, adopted, nil
}

func (r *Reconciler) begin(ctx context.Context, queries *crmdb.Queries, tenant string, since time.Time) (crmdb.ReconciliationRunGetOpenRow, error) {
	arg := crmdb.ReconciliationRunBeginParams{
		ID: uuid.Must(uuid.NewV7()), TenantID: tenant, Scope: ReconcileScope, Phase: phaseInvoices,
		OverlapSeconds: r.opts.Overlap.Seconds(),
	}
	if !since.IsZero() {
		arg.Since = &since
	}
	row, err := queries.ReconciliationRunBegin(ctx, arg)
	return crmdb.ReconciliationRunGetOpenRow(row), err
}

// work goes on with the run, batch by batch, to its end.
func (run *reconcileRun) work(ctx context.Context) error {
	for run.at.phase != phaseDone {
		began := run.opts.Now()
		b, next, err := run.step(ctx)
		if err == nil {
			err = ctx.Err() // an answer that came because ctx ended is none
		}
		if err != nil {
			return err
		}
		if err := run.commit(ctx, b, next); err != nil {
			return err
		}
		run.progress(ctx, next)
		run.at = next
		if took := run.opts.Now().Sub(began); run.pauseFactor > 0 {
			if err := run.opts.Pause(ctx, time.Duration(run.pauseFactor*float64(took))); err != nil {
				return err
			}
		}
	}
	return nil
}

// step reads and compares one batch. It writes nothing.
func (run *reconcileRun) step(ctx context.Context) (b *reconcileBatch, next position, err error) {
	b = newReconcileBatch(run.token)
	switch run.at.phase {
	case phaseInvoices:
		next, err = run.compareInvoices(ctx, b)
	case phaseOperations:
		next, err = run.compareOperations(ctx, b)
	case phaseOpen:
		next, err = run.compareOpen(ctx, b)
	case phaseKnown:
		next, err = run.compareKnown(ctx, b)
	default:
		err = fmt.Errorf("a newer program's phase %q", run.at.phase)
	}
	return b, next, err
}

// progress tells how far the run has come: each batch to who listens closely, each phase to all.
func (run *reconcileRun) progress(ctx context.Context, next position) {
	level := slog.LevelDebug
	if next.phase != run.at.phase {
		level = slog.LevelInfo
	}
	run.log.Log(ctx, level, "reconciliation goes on", "done", run.at.phase, "next", next.phase, "compared", run.report.Compared,
		"found", run.report.Found, "repaired", run.report.Repaired, "unanswered", run.report.Unanswered)
}
