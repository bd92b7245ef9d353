package crm

import (
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// fillOperations makes n orders with an operation each, as they usually are: nearly all have succeeded, some failed, a few
// are open; and an attempt each, of the last two days. PLAN_ROWS says how many, for those who want to look closer.
func fillOperations(t *testing.T, s *submitSetup, n int) {
	t.Helper()
	if more, err := strconv.Atoi(os.Getenv("PLAN_ROWS")); err == nil {
		n = more
	}
	s.exec(`INSERT INTO orders (tenant_id, source, order_id, version, status, content, content_hash)
		SELECT $1, 'crm-' || (i % 3), 'SO-' || lpad(i::text, 7, '0'), 1, 'confirmed', '{}', decode(repeat('00', 32), 'hex')
		FROM generate_series(1, $2::int) AS i`, testTenant, n)
	s.exec(`INSERT INTO operations (id, tenant_id, key, kind, source, order_id, role, sequence, order_version, request, request_hash,
		                        status, attempt, first_sent_at, finished_at, next_attempt_at, invoice_id, invoice_number, reason, created_at)
		SELECT gen_random_uuid(), $1, 'k-' || i, 'invoice', 'crm-' || (i % 3), 'SO-' || lpad(i::text, 7, '0'), 'final', 1, 1, '{}',
		       decode(repeat('00', 32), 'hex'), x.status, 1, now(),
		       CASE WHEN x.status IN ('succeeded', 'failed') THEN now() END, CASE WHEN x.status = 'unknown' THEN now() END,
		       CASE WHEN x.status = 'succeeded' THEN gen_random_uuid() END, CASE WHEN x.status = 'succeeded' THEN 'INV-' || i END,
		       CASE x.status WHEN 'succeeded' THEN '' WHEN 'failed' THEN 'rejected' ELSE 'no_answer' END, now() - i * interval '4 seconds'
		FROM generate_series(1, $2::int) AS i
		CROSS JOIN LATERAL (SELECT CASE WHEN i % 500 = 0 THEN 'failed' WHEN i % 1000 = 1 THEN 'unknown' ELSE 'succeeded' END AS status) AS x`,
		testTenant, n)
	s.exec(`INSERT INTO attempts (operation_id, number, started_at, finished_at, outcome, worker)
		SELECT id, 1, created_at, created_at + interval '1 second', CASE WHEN status = 'succeeded' THEN 'delivered' ELSE 'lost' END, 'w'
		FROM operations`)
	s.exec("VACUUM ANALYZE operations, orders, attempts")
}

// The list that is filtered by state was once read whole.
func TestListsAndDashboardReadByIndexHoweverManyThereAre(t *testing.T) {
	s := setupSubmit(t)
	fillOperations(t, s, 20_000)
	config := s.pool.Config()
	config.MaxConns = 1 // whose counters are read below
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	c := NewConsole(pool, ConsoleOptions{})
	read := func() (scans, rows int64) {
		t.Helper()
		if _, err := pool.Exec(t.Context(), "SELECT pg_stat_force_next_flush()"); err != nil {
			t.Fatal(err)
		}
		err := pool.QueryRow(t.Context(), `SELECT sum(seq_scan), sum(seq_tup_read + idx_tup_fetch) FROM pg_stat_user_tables
			WHERE relname IN ('operations', 'orders')`).Scan(&scans, &rows)
		if err != nil {
			t.Fatal(err)
		}
		return scans, rows
	}
	yes := true
	const page = 10 * DefaultPageLimit // a bitmap may read all that match, and these are few
	for _, look := range []struct {
		name string
		most int64 // rows read
		do   func() error
	}{
		{"failed", page, search(t, c, OperationSearch{Status: StatusFailed})},
		{"failed, oldest first", page, search(t, c, OperationSearch{Status: StatusFailed, PageQuery: PageQuery{OldestFirst: true}})},
		{"unknown", page, search(t, c, OperationSearch{Status: StatusUnknown})},
		{"succeeded", page, search(t, c, OperationSearch{Status: StatusSucceeded})},
		{"pending, of which there is none", page, search(t, c, OperationSearch{Status: StatusPending})},
		{"attention", page, search(t, c, OperationSearch{Attention: true})},
		{"flagged", page, search(t, c, OperationSearch{Flagged: &yes})},
		{"due", page, search(t, c, OperationSearch{Due: true})},
		{"reason", page, search(t, c, OperationSearch{Reason: ReasonRejected})},
		{"all", page, search(t, c, OperationSearch{})},
		{"order", page, search(t, c, OperationSearch{Order: "SO-0000500"})},
		{"text", 3 * page, search(t, c, OperationSearch{Text: "SO-00004"})},
		{"key", page, search(t, c, OperationSearch{Key: "k-500"})},
		{"an order's operations", page, func() error {
			_, err := NewService(pool, s.jobs, Options{}).GetOrder(t.Context(), testTenant, "crm-2", "SO-0000500")
			return err
		}},
		{"detail", page, func() error { _, err := c.OperationDetail(t.Context(), testTenant, "k-500"); return err }},
		{"sources", page, func() error { _, err := c.ListSources(t.Context(), testTenant); return err }},
	} {
		scansBefore, rowsBefore := read()
		if err := look.do(); err != nil {
			t.Fatalf("%s: %v", look.name, err)
		}
		scans, rows := read()
		if scans > scansBefore || rows-rowsBefore > look.most {
			t.Errorf("%s: %d tables read whole, %d rows read", look.name, scans-scansBefore, rows-rowsBefore)
		}
	}
	for range 2 {
		began := time.Now()
		d, err := c.Dashboard(t.Context(), testTenant)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("dashboard in %s, %d states", time.Since(began), len(d.States))
	}
}

func search(t *testing.T, c *Console, f OperationSearch) func() error {
	return func() error {
		_, err := c.SearchOperations(t.Context(), testTenant, f)
		return err
	}
}
