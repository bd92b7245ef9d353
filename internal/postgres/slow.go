package postgres

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"
)

// DefaultSlowQuery is how long a statement takes before it counts as slow.
const DefaultSlowQuery = 500 * time.Millisecond

// SlowQueries logs and counts statements that took long, from the request to the last row read, waiting for locks
// included. It is a tracer for PoolConfig and a prometheus.Collector, for all pools of a service. A statement is told by
// the name that sqlc gives it; neither its text nor its arguments are, for they may be a customer's.
type SlowQueries struct {
	limit time.Duration
	log   *slog.Logger
	count prometheus.Counter
}

var (
	_ pgx.QueryTracer      = (*SlowQueries)(nil)
	_ pgx.BatchTracer      = (*SlowQueries)(nil)
	_ pgx.CopyFromTracer   = (*SlowQueries)(nil)
	_ prometheus.Collector = (*SlowQueries)(nil)
)

// NewSlowQueries makes SlowQueries; limit 0 is DefaultSlowQuery.
func NewSlowQueries(limit time.Duration, log *slog.Logger) *SlowQueries {
	if limit <= 0 {
		limit = DefaultSlowQuery
	}
	return &SlowQueries{limit: limit, log: log, count: prometheus.NewCounter(prometheus.CounterOpts{
		Name: "database_slow_queries_total", Help: "Statements that took longer than the limit; the log has their names.",
	})}
}

// Describe implements prometheus.Collector.
func (s *SlowQueries) Describe(ch chan<- *prometheus.Desc) { s.count.Describe(ch) }

// Collect implements prometheus.Collector.
func (s *SlowQueries) Collect(ch chan<- prometheus.Metric) { s.count.Collect(ch) }

type statementKey struct{}

// statement is one that runs. Its name is looked for only if it was slow.
type statement struct {
	sql   string
	table string // that a COPY fills
	began time.Time
}

func (s statement) name() string {
	if s.table != "" {
		return "COPY " + s.table
	}
	return queryName(s.sql)
}

// TraceQueryStart implements pgx.QueryTracer.
func (s *SlowQueries) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	return context.WithValue(ctx, statementKey{}, statement{sql: data.SQL, began: time.Now()})
}

// TraceQueryEnd implements pgx.QueryTracer.
func (s *SlowQueries) TraceQueryEnd(ctx context.Context, conn *pgx.Conn, data pgx.TraceQueryEndData) {
	s.end(ctx, conn, data.CommandTag.RowsAffected(), data.Err)
}

// TraceBatchStart implements pgx.BatchTracer: a batch is told as one, by its first statement.
func (s *SlowQueries) TraceBatchStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceBatchStartData) context.Context {
	first := "batch"
	if data.Batch != nil && len(data.Batch.QueuedQueries) > 0 {
		first = data.Batch.QueuedQueries[0].SQL
	}
	return context.WithValue(ctx, statementKey{}, statement{sql: first, began: time.Now()})
}

// TraceBatchQuery implements pgx.BatchTracer.
func (s *SlowQueries) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}

// TraceBatchEnd implements pgx.BatchTracer.
func (s *SlowQueries) TraceBatchEnd(ctx context.Context, conn *pgx.Conn, data pgx.TraceBatchEndData) {
	s.end(ctx, conn, 0, data.Err)
}

// TraceCopyFromStart implements pgx.CopyFromTracer.
func (s *SlowQueries) TraceCopyFromStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceCopyFromStartData) context.Context {
	return context.WithValue(ctx, statementKey{}, statement{table: strings.Join(data.TableName, "."), began: time.Now()})
}

// TraceCopyFromEnd implements pgx.CopyFromTracer.
func (s *SlowQueries) TraceCopyFromEnd(ctx context.Context, conn *pgx.Conn, data pgx.TraceCopyFromEndData) {
	s.end(ctx, conn, data.CommandTag.RowsAffected(), data.Err)
}

func (s *SlowQueries) end(ctx context.Context, conn *pgx.Conn, rows int64, err error) {
	ran, _ := ctx.Value(statementKey{}).(statement)
	took := time.Since(ran.began)
	if took < s.limit || ran.began.IsZero() {
		return
	}
	s.count.Inc()
	attrs := []slog.Attr{slog.String("query", ran.name()), slog.Duration("took", took), slog.Int64("rows", rows), slog.Bool("failed", err != nil)}
	if conn != nil {
		attrs = append(attrs, slog.Uint64("pid", uint64(conn.PgConn().PID())))
	}
	s.log.LogAttrs(ctx, slog.LevelWarn, "slow query", attrs...)
}

// queryName is the name that sqlc writes in front of a statement, ours and River's, else its first word: never more of
// the text.
func queryName(sql string) string {
	sql = strings.TrimSpace(sql)
	if named, found := strings.CutPrefix(sql, "-- name: "); found {
		sql = named
	}
	name, _, _ := strings.Cut(sql, " ")
	name, _, _ = strings.Cut(name, "\n")
	return name[:min(len(name), 100)]
}
