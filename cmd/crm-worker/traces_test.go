package main

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"invoicebridge/internal/testdb"
)

func TestWhatACommandQueuesStaysInTheTracesOfItsOrders(t *testing.T) {
	collector := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer collector.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.URL)
	pool := testdb.CRM(t)
	database := "--database-url=" + testdb.DSN(t, pool)
	must(t, "tenant", "create", "acme", "--name=Acme", "--actor=me", database)
	const inTrace = `operations AS o JOIN river_job AS j ON j.args ->> 'operation_id' = o.id::text
		AND j.metadata ->> 'traceparent' = o.trace_context WHERE o.trace_context <> ''`
	must(t, "generate", "--tenant=acme", "--count=3", database)
	made := count(t, pool, "operations")
	if n := count(t, pool, inTrace); n != made || n < 3 {
		t.Errorf("%d of %d generated operations have a trace that their job is in", n, made)
	}
	exec(t, pool, "UPDATE operations SET status = 'unknown', flagged_at = now(), attempt = 1, first_sent_at = now()")
	exec(t, pool, "DELETE FROM river_job")
	var key string
	if err := pool.QueryRow(t.Context(), "SELECT key FROM operations ORDER BY id LIMIT 1").Scan(&key); err != nil {
		t.Fatal(err)
	}
	must(t, "operations", "replay", key, "--tenant=acme", "--reason=back", database)
	if n := count(t, pool, inTrace); n != 1 {
		t.Errorf("%d replayed operations have a trace that their job is in, want 1", n)
	}
}
