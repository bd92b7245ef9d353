package crm

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"invoicebridge/internal/crmdb"
	"invoicebridge/internal/erpapi"
	"invoicebridge/internal/logctx"
	"invoicebridge/internal/problem"
)

// Settings of a Reconciler, unless ReconcilerOptions says otherwise.
const (
	// DefaultReconcileOverlap is how far a run looks back behind the end of the one before. It must exceed the longest
	// time from an operation's making to its invoice: the total time of its attempts, and a day for what people do.
	DefaultReconcileOverlap = 48 * time.Hour
	// DefaultReconcileSettle is how long after an attempt's end its request may still be at work at the ERP. Before
	// that, the ERP's "not found" proves nothing. It covers the longest settings of the ERP's request and shutdown times.
	DefaultReconcileSettle = 30 * time.Minute
	// DefaultReconcileBatch is how many invoices, or operations, are compared before the run's state is committed. It
	// is the longest page that the ERP gives.
	DefaultReconcileBatch = 200
)

// ReconcileScope names the comparison of the CRM side with the ERP in the table of runs.
const ReconcileScope = "crm-erp"

// ErrOvertaken ends a run that another process has taken further meanwhile. Nothing is lost by it.
var ErrOvertaken = errors.New("another process goes on with this reconciliation run")

// Books is the ERP, as reconciliation reads it: by its API only. *erpapi.Client is the real one.
type Books interface {
	ListInvoices(ctx context.Context, token string, q erpapi.InvoiceQuery) erpapi.InvoiceListing
	GetOperation(ctx context.Context, token, key string) erpapi.Exchange
}

// ReconcilerOptions are a Reconciler's settings. Zero values are usable, except that without Token every tenant is
// without one.
type ReconcilerOptions struct {
	// Token gives the ERP's token of a tenant, or "" if none is configured. It needs the role reader only.
	Token   func(tenant string) string
	Overlap time.Duration // 0: DefaultReconcileOverlap
	Settle  time.Duration // 0: DefaultReconcileSettle; must exceed the ERP's longest request
	Batch   int           // 1 to 200; 0: DefaultReconcileBatch
	// PauseFactor makes RunAll pause after each batch for a multiple of the time that the batch took, so that both sides are never
	// busy with it for more than one part in 1 + PauseFactor, and less when they are slow because others use them. 0: no pause.
	PauseFactor float64
	// Enqueue puts into the queue what was never sent and has lost its job, and says how many that were; (*Sweeper).Sweep
	// does. nil: nothing is enqueued.
	Enqueue func(ctx context.Context) (int, error)
	// Pause waits between batches, and before a question is asked again that the ERP could not answer; nil: a timer.
	Pause  func(ctx context.Context, d time.Duration) error
	Now    func() time.Time // for how long a batch took; nil: time.Now
	Logger *slog.Logger     // nil discards
}

// Reconciler compares the CRM side's books with the ERP's. It is safe for concurrent use, also by several processes on
// one database: they share a tenant's run, and each batch is written by one of them.
type Reconciler struct {
	pool *pgxpool.Pool
	erp  Books
	opts ReconcilerOptions
}

// NewReconciler makes a Reconciler on the CRM side's database.
func NewReconciler(pool *pgxpool.Pool, erp Books, opts ReconcilerOptions) *Reconciler {
	if opts.Token == nil {
		opts.Token = func(string) string { return "" }
	}
	if opts.Overlap <= 0 {
		opts.Overlap = DefaultReconcileOverlap
	}
	if opts.Settle <= 0 {
		opts.Settle = DefaultReconcileSettle
	}
	if opts.Batch <= 0 || opts.Batch > DefaultReconcileBatch {
		opts.Batch = DefaultReconcileBatch
	}
	if opts.Pause == nil {
		opts.Pause = pause
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	return &Reconciler{pool: pool, erp: erp, opts: opts}
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// Reconciliation is what a run did.
type Reconciliation struct {
	From, To time.Time // its window
	Compared int64     // pairs of operation and invoice, and questions about operations without one
	Found    int64     // divergences that no earlier run had found
	Repaired int64     // of what was found, or was never sent: put right at once
	// Unanswered are operations that the ERP could not be asked about. They are left to the next run.
	Unanswered int64
}

// Run compares a tenant's operations with the ERP's invoices and returns when all of the window is compared. The window
// reaches from DefaultReconcileOverlap (or as set) before the end of the last finished run to now, and for the first run
// from the beginning. since moves its beginning back, never forward: what was not compared yet would stay so. Only the
// first run begins with it in any case.
//
// A run that was cut off is gone on with, from its last batch, whatever since is; if since lies before that run's
// window, one more run follows. Each batch is one transaction: what it found, what it repaired, and how far the run
// has come. No transaction is open while the ERP is asked. Memory is bounded by the batch.
//
// What is safe is repaired: an open operation whose invoice the ERP has is settled, a number is taken over, and what was
// never sent is enqueued. Everything else is only told, in the divergences. Running it again right after finds nothing
// new.
//
// Run ends early with ctx's error, with ErrOvertaken, with a problem if the ERP can't be read (unavailable; forbidden
// where it does not take our token), or if the database fails. Calling it again goes on.
func (r *Reconciler) Run(ctx context.Context, tenant string, since time.Time) (Reconciliation, error) {
	return r.run(ctx, tenant, since, 0)
}

func (r *Reconciler) run(ctx context.Context, tenant string, since time.Time, pauseFactor float64) (Reconciliation, error) {
	token := r.opts.Token(tenant)
	if token == "" {
		return Reconciliation{}, problem.New(problem.Forbidden, "No ERP token is configured for tenant %q.", tenant)
	}
	for {
		run, adopted, err := r.open(ctx, tenant, since)
		if err != nil {
			return Reconciliation{}, fmt.Errorf("reconcile: %w", err)
		}
		run.token, run.pauseFactor = token, pauseFactor
		if err := run.work(ctx); err != nil {
			return run.report, fmt.Errorf("reconcile, phase %s: %w", run.at.phase, err)
		}
		if !adopted || since.IsZero() || !since.Before(run.from) {
			return run.report, nil
		}
	}
}

// RunAll is Run for every tenant that has a token, one after the other, with the pauses of PauseFactor. One that fails does not
// stop the others; the error tells of each.
func (r *Reconciler) RunAll(ctx context.Context) error {
	tenants, err := crmdb.New(r.pool).TenantList(ctx)
	if err != nil {
		return fmt.Errorf("reconcile: list tenants: %w", err)
	}
	var failed []error
	for _, tenant := range tenants {
		if r.opts.Token(tenant.ID) == "" {
			continue
		}
		_, err := r.run(ctx, tenant.ID, time.Time{}, r.opts.PauseFactor)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, ErrOvertaken):
			r.opts.Logger.InfoContext(ctx, "reconciliation is done by another process", logctx.TenantKey, tenant.ID)
		case err != nil:
			failed = append(failed, fmt.Errorf("tenant %s: %w", tenant.ID, err))
		}
	}
	return errors.Join(failed...)
}

// Continue is Run for a tenant's open run; without one there is nothing to do. What another process does is no error.
func (r *Reconciler) Continue(ctx context.Context, tenant string) error {
	_, err := crmdb.New(r.pool).ReconciliationRunGetOpen(ctx, tenant, ReconcileScope)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reconcile: look for the open run: %w", err)
	}
	_, err = r.Run(ctx, tenant, time.Time{})
	if errors.Is(err, ErrOvertaken) {
		r.opts.Logger.InfoContext(ctx, "reconciliation is done by another process", logctx.TenantKey, tenant)
		return nil
	}
	return err
}
