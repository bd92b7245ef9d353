package telemetry

import (
	"context"
	"strings"

	"github.com/exaring/otelpgx"
	"github.com/jackc/pgx/v5"
	"go.opentelemetry.io/otel/metric/noop"
)

// Queries traces statements, for a pool; nil where tracing is off. A statement that belongs to no traced work has no span,
// so the queue's own polling leaves none. Neither text nor arguments of a statement are recorded.
func (t *Traces) Queries() pgx.QueryTracer {
	if t == nil {
		return nil
	}
	return otelpgx.NewTracer(
		otelpgx.WithTracerProvider(t.provider), otelpgx.WithMeterProvider(noop.NewMeterProvider()),
		otelpgx.WithDisableSQLStatementInAttributes(), otelpgx.WithDisableConnectionDetailsInAttributes(), otelpgx.WithDisableAcquireTracer(),
		otelpgx.WithSpanNameCtxFunc(queryName),
	)
}

// queryName is the name that sqlc writes in front of a statement (ours and River's), else its first word.
func queryName(ctx context.Context, sql string) string {
	if rest, ok := strings.CutPrefix(strings.TrimSpace(sql), "-- name: "); ok {
		if name, _, ok := strings.Cut(rest, " "); ok {
			return name
		}
	}
	return otelpgx.SQLOperationName(ctx, sql)
}
