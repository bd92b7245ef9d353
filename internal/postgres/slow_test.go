package postgres_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"invoicebridge/internal/postgres"
	"invoicebridge/internal/testdb"
)

// logged is a log that several may write to.
type logged struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// slowPool is a pool whose statements are slow from limit on.
func slowPool(t *testing.T, limit time.Duration) (*pgxpool.Pool, *postgres.SlowQueries, *logged) {
	t.Helper()
	t.Parallel()
	log := &logged{}
	slow := postgres.NewSlowQueries(limit, slog.New(slog.NewTextHandler(log, nil)))
	pool, err := postgres.OpenPool(t.Context(), postgres.PoolConfig{DSN: testdb.Empty(t), MaxConns: 1, Slow: slow})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool, slow, log
}

func TestSlowQueriesAreToldByNameAndCounted(t *testing.T) {
	pool, slow, log := slowPool(t, time.Nanosecond)
	ctx := t.Context()
	before := sum(t, slow)
	if _, err := pool.Exec(ctx, "-- name: InvoiceTouch :exec\nSELECT $1::text, 'verbatim'", "argument"); err != nil {
		t.Fatal(err)
	}
	if _, err := pool.Exec(ctx, "-- name: InvoiceBreak :exec\nSELECT 1 / $1::int", 0); err == nil {
		t.Fatal("no error")
	}
	if _, err := pool.Exec(ctx, "CREATE TABLE things (name text)"); err != nil {
		t.Fatal(err)
	}
	if _, err := pool.CopyFrom(ctx, pgx.Identifier{"things"}, []string{"name"}, pgx.CopyFromRows([][]any{{"row 1"}, {"row 2"}})); err != nil {
		t.Fatal(err)
	}
	batch := &pgx.Batch{}
	batch.Queue("-- name: ThingInsert :exec\nINSERT INTO things VALUES ($1)", "in a batch")
	if err := pool.SendBatch(ctx, batch).Close(); err != nil {
		t.Fatal(err)
	}
	lines := log.String()
	for _, want := range []string{
		"query=InvoiceTouch", "rows=1 failed=false", "query=InvoiceBreak", "failed=true", "query=CREATE", `query="COPY things"`, "rows=2", "query=ThingInsert", "pid=",
	} {
		if !strings.Contains(lines, want) {
			t.Errorf("the log has no %s:\n%s", want, lines)
		}
	}
	for _, secret := range []string{"argument", "verbatim", "row 1", "in a batch", "things (name"} {
		if strings.Contains(lines, secret) {
			t.Errorf("the log has %q:\n%s", secret, lines)
		}
	}
	if told, counted := strings.Count(lines, "slow query"), sum(t, slow)-before; told < 5 || counted < 5 {
		t.Errorf("%d told, %v counted", told, counted)
	}
}

func TestQuickQueriesAreNotTold(t *testing.T) {
	pool, slow, log := slowPool(t, time.Hour)
	if _, err := pool.Exec(t.Context(), "SELECT 1"); err != nil {
		t.Fatal(err)
	}
	if log.String() != "" || sum(t, slow) != 0 {
		t.Errorf("told: %s", log)
	}
}

func TestTheOldestTransactionIsNamed(t *testing.T) {
	pool, _, _ := slowPool(t, time.Hour)
	log := &logged{}
	watch := postgres.NewTransactions(pool, time.Nanosecond, slog.New(slog.NewTextHandler(log, nil)))
	if got := figures(t, watch); len(got) != 0 {
		t.Errorf("before the first look: %v", got)
	}
	if err := watch.Look(t.Context()); err != nil {
		t.Fatal(err)
	}
	if log.String() != "" {
		t.Errorf("told of %s", log)
	}
	if got := strings.Join(figures(t, watch), " "); got != "database_idle_in_transaction_seconds=0 database_oldest_transaction_seconds=0" {
		t.Errorf("with no transaction: %s", got)
	}
	conn, err := pgx.Connect(t.Context(), pool.Config().ConnString()+"&application_name=forgotten")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if _, err := conn.Exec(t.Context(), "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 'a secret'"); err != nil {
		t.Fatal(err)
	}
	if err := watch.Look(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"old transaction", "application=forgotten", `state="idle in transaction"`, "age=", "pid="} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log has no %s: %s", want, log)
		}
	}
	if strings.Contains(log.String(), "secret") {
		t.Errorf("the log has the statement: %s", log)
	}
	for _, figure := range figures(t, watch) {
		if strings.HasSuffix(figure, "=0") {
			t.Error(figure)
		}
	}
	pool.Close()
	if err := watch.Look(t.Context()); err == nil {
		t.Error("no error from a closed pool")
	}
	if got := figures(t, watch); len(got) != 0 {
		t.Errorf("after a look that failed: %v", got)
	}
}

// gather are a collector's figures by name.
func gather(t *testing.T, c prometheus.Collector) []*dto.MetricFamily {
	t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(c)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	return families
}

// figures are a collector's gauges as name=value.
func figures(t *testing.T, c prometheus.Collector) (lines []string) {
	t.Helper()
	for _, family := range gather(t, c) {
		lines = append(lines, fmt.Sprintf("%s=%v", family.GetName(), family.GetMetric()[0].GetGauge().GetValue()))
	}
	return lines
}

// sum is what a collector's counters have counted.
func sum(t *testing.T, c prometheus.Collector) (n float64) {
	t.Helper()
	for _, family := range gather(t, c) {
		n += family.GetMetric()[0].GetCounter().GetValue()
	}
	return n
}
