package jobs

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"go.opentelemetry.io/otel/trace"

	"invoicebridge/internal/crm"
)

// Inserter puts jobs into the queue and works none. It is safe for concurrent use.
type Inserter struct {
	river  *river.Client[pgx.Tx]
	traced bool
	waker  *waker // nil: without a pool there is none
}

var _ crm.JobInserter = (*Inserter)(nil)

// InserterOption changes an Inserter from its default.
type InserterOption func(*inserterOptions)

type inserterOptions struct{ traces trace.TracerProvider }

// WithTraces has jobs carry the trace of what they are about. A nil provider changes nothing.
func WithTraces(provider trace.TracerProvider) InserterOption {
	return func(o *inserterOptions) { o.traces = provider }
}

// NewInserter makes an Inserter. Jobs are only ever inserted on a caller's transaction; pool is for Wake, and may be nil: then the
// workers find the jobs when they look next.
func NewInserter(pool *pgxpool.Pool, log *slog.Logger, options ...InserterOption) (*Inserter, error) {
	var o inserterOptions
	for _, option := range options {
		option(&o)
	}
	d := newDriver(pool, &pilot{now: time.Now})
	client, err := river.NewClient(insertingDriver{d}, &river.Config{
		Logger: logger(log), Middleware: middleware(o.traces),
	})
	if err != nil {
		return nil, fmt.Errorf("make the inserting River client: %w", err)
	}
	i := &Inserter{river: client, traced: o.traces != nil}
	if pool != nil {
		i.waker = &waker{log: logger(log), notify: func(ctx context.Context) error {
			return notifyOf(ctx, d.GetExecutor(), client.Schema(), river.QueueDefault)
		}}
	}
	return i, nil
}

// Wake implements crm.JobInserter.
func (i *Inserter) Wake() {
	if i.waker != nil {
		i.waker.wake()
	}
}

// InsertDeliveries implements crm.JobInserter, by COPY. A time that is not in the future by the database's clock means at
// once.
func (i *Inserter) InsertDeliveries(ctx context.Context, tx pgx.Tx, operationIDs []uuid.UUID, scheduledAt time.Time) error {
	return i.insert(ctx, tx, operationIDs, scheduledAt, tracesOfOperations, func(id uuid.UUID) river.JobArgs { return DeliverArgs{OperationID: id} })
}

func (i *Inserter) insert(ctx context.Context, tx pgx.Tx, ids []uuid.UUID, scheduledAt time.Time, traces traceContexts, args func(uuid.UUID) river.JobArgs) error {
	if len(ids) == 0 {
		return nil
	}
	traceOf, err := i.tracesOf(ctx, tx, ids, traces)
	if err != nil {
		return err
	}
	params := make([]river.InsertManyParams, len(ids))
	for n, id := range ids {
		params[n] = river.InsertManyParams{Args: args(id), InsertOpts: &river.InsertOpts{ScheduledAt: scheduledAt, Metadata: traceOf[id]}}
	}
	if _, err := i.river.InsertManyFastTx(ctx, tx, params); err != nil {
		return fmt.Errorf("insert %d jobs of kind %s: %w", len(params), params[0].Args.Kind(), err)
	}
	return nil
}

func logger(log *slog.Logger) *slog.Logger {
	if log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return log
}
