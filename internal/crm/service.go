package crm

import (
	"context"
	"log/slog"
	"time"

	"invoicebridge/internal/tenantdb"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// JobInserter puts the delivery of operations into the queue. internal/jobs has the real one.
type JobInserter interface {
	// InsertDeliveries adds one job for each operation on the caller's transaction: jobs and operations become
	// visible together at its commit, or neither does. scheduledAt is the earliest time of the first attempt.
	InsertDeliveries(ctx context.Context, tx pgx.Tx, operationIDs []uuid.UUID, scheduledAt time.Time) error
	// Wake is to be called after the commit: it tells the workers, of all processes, that there are jobs. It returns at once
	// and may fail unseen; the workers then find the jobs when they look next, within a second or so.
	Wake()
}

// Options are a Service's settings. Zero values are usable, except that without Actions nothing can be started that needs a
// job of its own, and without ERP and Token the ERP is not asked before an approval.
type Options struct {
	Logger *slog.Logger // nil discards
	// Submitted is told what each submitted order led to; it must not block. nil: nobody is told.
	Submitted func(Channel, Outcome)
	Actions   ActionJobs
	// ERP is asked before a resolution is approved; Token gives its token of a tenant, or "".
	ERP   Books
	Token func(tenant string) string
	// ReconcileOverlap is a Reconciler's; 0: DefaultReconcileOverlap.
	ReconcileOverlap time.Duration
}

// Service takes orders in and tells what became of them. It is safe for concurrent use.
type Service struct {
	db   tenantdb.DB
	jobs JobInserter
	opts Options
	log  *slog.Logger
	told func(Channel, Outcome)
}

// NewService makes a Service on the CRM side's database.
func NewService(pool *pgxpool.Pool, jobs JobInserter, opts Options) *Service {
	if opts.Token == nil {
		opts.Token = func(string) string { return "" }
	}
	if opts.ReconcileOverlap <= 0 {
		opts.ReconcileOverlap = DefaultReconcileOverlap
	}
	s := &Service{db: tenantdb.New(pool), jobs: jobs, opts: opts, log: opts.Logger, told: opts.Submitted}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if s.told == nil {
		s.told = func(Channel, Outcome) {}
	}
	return s
}
