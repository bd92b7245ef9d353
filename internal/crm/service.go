package crm

import (
	"context"
	"log/slog"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// JobInserter puts the delivery of operations into the queue. internal/jobs has the real one.
type JobInserter interface {
	// InsertDeliveries adds one job for each operation on the caller's transaction: jobs and operations become
	// visible together at its commit, or neither does. scheduledAt is the earliest time of the first attempt.
	InsertDeliveries(ctx context.Context, tx pgx.Tx, operationIDs []uuid.UUID, scheduledAt time.Time) error
}

// Options are a Service's settings. Zero values are usable.
type Options struct {
	Logger *slog.Logger // nil discards
}

// Service takes orders in and tells what became of them. It is safe for concurrent use.
type Service struct {
	pool *pgxpool.Pool
	jobs JobInserter
	log  *slog.Logger
}

// NewService makes a Service on the CRM side's database.
func NewService(pool *pgxpool.Pool, jobs JobInserter, opts Options) *Service {
	s := &Service{pool: pool, jobs: jobs, log: opts.Logger}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	return s
}
