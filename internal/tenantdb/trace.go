package tenantdb

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/multitracer"
	"github.com/jackc/pgx/v5/pgconn"
)

// Tracer shows tracers a statement of a Scope as the one statement that it is for its caller, without what the Scope puts before it.
func Tracer(tracers ...pgx.QueryTracer) pgx.QueryTracer { return tracer{multitracer.New(tracers...)} }

type tracer struct{ *multitracer.Tracer }

type scopedKey struct{}

// scopedEnd is what became of a scoped statement, told by its batch bit by bit.
type scopedEnd struct{ tag pgconn.CommandTag }

// TraceBatchStart implements pgx.BatchTracer.
func (t tracer) TraceBatchStart(ctx context.Context, conn *pgx.Conn, data pgx.TraceBatchStartData) context.Context {
	if queued := data.Batch.QueuedQueries; len(queued) == 2 && isScope(queued[0].SQL) {
		ctx = t.TraceQueryStart(ctx, conn, pgx.TraceQueryStartData{SQL: queued[1].SQL, Args: queued[1].Arguments})
		return context.WithValue(ctx, scopedKey{}, new(scopedEnd))
	}
	return t.Tracer.TraceBatchStart(context.WithValue(ctx, scopedKey{}, nil), conn, data)
}

// TraceBatchQuery implements pgx.BatchTracer.
func (t tracer) TraceBatchQuery(ctx context.Context, conn *pgx.Conn, data pgx.TraceBatchQueryData) {
	if end, scoped := ctx.Value(scopedKey{}).(*scopedEnd); scoped {
		end.tag = data.CommandTag // the last one is the statement's
		return
	}
	t.Tracer.TraceBatchQuery(ctx, conn, data)
}

// TraceBatchEnd implements pgx.BatchTracer.
func (t tracer) TraceBatchEnd(ctx context.Context, conn *pgx.Conn, data pgx.TraceBatchEndData) {
	if end, scoped := ctx.Value(scopedKey{}).(*scopedEnd); scoped {
		t.TraceQueryEnd(ctx, conn, pgx.TraceQueryEndData{CommandTag: end.tag, Err: data.Err})
		return
	}
	t.Tracer.TraceBatchEnd(ctx, conn, data)
}
