package jobs

import (
	"context"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"
	"github.com/riverqueue/rivercontrib/otelriver"
	"go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/trace"

	"invoicebridge/internal/crmdb"
	"invoicebridge/internal/tracectx"
)

// metadata is what a job has besides its arguments.
type metadata struct {
	Traceparent string `json:"traceparent,omitempty"` // see tracectx.Of
}

// middleware traces a client's jobs; none where provider is nil.
//
// otelriver would begin a trace with each run and point from it to the one that inserted the job. Here a run belongs to the
// trace of what it is about, which the job carries: so every attempt, however late, is found beside the others in the one
// trace of its order. It is the only parent that otelriver finds in the context.
func middleware(provider trace.TracerProvider) []rivertype.Middleware {
	if provider == nil {
		return nil
	}
	return []rivertype.Middleware{
		&continueTrace{}, // before the other, which begins the span
		otelriver.NewMiddleware(&otelriver.MiddlewareConfig{
			TracerProvider: provider, MeterProvider: noop.NewMeterProvider(), EnableWorkSpanJobKindSuffix: true,
		}),
	}
}

// continueTrace goes on with the trace that a job carries.
type continueTrace struct{ river.MiddlewareDefaults }

var _ rivertype.WorkerMiddleware = (*continueTrace)(nil)

// Work implements rivertype.WorkerMiddleware. A job without a trace, or with metadata of another kind, begins one.
func (*continueTrace) Work(ctx context.Context, job *rivertype.JobRow, inner func(context.Context) error) error {
	var m metadata
	if err := json.Unmarshal(job.Metadata, &m); err == nil {
		ctx = tracectx.Continue(ctx, m.Traceparent)
	}
	return inner(ctx)
}

// traceContexts looks up which traces things belong to. Those without one are left out.
type traceContexts func(ctx context.Context, tx pgx.Tx, ids []uuid.UUID) (map[uuid.UUID]string, error)

// tracesOf gives the metadata of jobs about ids. Whoever enqueues and when, a job has the trace that is on record; that is
// one more statement, and only where tracing is on.
func (i *Inserter) tracesOf(ctx context.Context, tx pgx.Tx, ids []uuid.UUID, lookUp traceContexts) (map[uuid.UUID][]byte, error) {
	if !i.traced {
		return nil, nil
	}
	carried, err := lookUp(ctx, tx, ids)
	if err != nil {
		return nil, fmt.Errorf("look up the traces of what is to be enqueued: %w", err)
	}
	all := make(map[uuid.UUID][]byte, len(carried))
	for id, traceparent := range carried {
		if all[id], err = json.Marshal(metadata{Traceparent: traceparent}); err != nil {
			return nil, fmt.Errorf("write a job's metadata: %w", err)
		}
	}
	return all, nil
}

func tracesOfOperations(ctx context.Context, tx pgx.Tx, ids []uuid.UUID) (map[uuid.UUID]string, error) {
	rows, err := crmdb.New(tx).OperationListTraceContexts(ctx, ids)
	carried := make(map[uuid.UUID]string, len(rows))
	for _, row := range rows {
		carried[row.ID] = row.TraceContext
	}
	return carried, err
}
