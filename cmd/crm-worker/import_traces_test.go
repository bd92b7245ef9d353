package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"

	"invoicebridge/internal/crm"
	"invoicebridge/internal/orderfile"
	"invoicebridge/internal/testdb"
)

func TestEachOrderOfAnImportedFileHasATraceOfItsOwnIfSomebodyWantsTraces(t *testing.T) {
	var taken atomic.Int64
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/traces" {
			taken.Add(1)
		}
	}))
	defer collector.Close()
	pool := testdb.CRM(t)
	database := "--database-url=" + testdb.DSN(t, pool)
	must(t, "tenant", "create", "acme", "--name=Acme", "--actor=me", database)
	traces := func(orders ...string) []string {
		t.Helper()
		file, err := os.Create(filepath.Join(t.TempDir(), "orders.jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		made := make([]crm.Order, len(orders))
		for i, order := range orders {
			made[i] = smallOrder(order)
		}
		if err := orderfile.WriteJSONLines(file, made); err != nil {
			t.Fatal(err)
		}
		must(t, "import", "--tenant=acme", database, file.Name())
		rows, err := pool.Query(t.Context(), `SELECT DISTINCT o.trace_context FROM operations AS o
			JOIN river_job AS j ON j.args ->> 'operation_id' = o.id::text AND j.metadata ->> 'traceparent' = o.trace_context
			WHERE o.order_id = ANY ($1)`, orders)
		if err != nil {
			t.Fatal(err)
		}
		all, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "")
	if got := traces("SO-1", "SO-2"); len(got) != 0 || taken.Load() != 0 {
		t.Errorf("nobody wants traces, but there are %v", got)
	}
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.URL)
	if got := traces("SO-3", "SO-4"); len(got) != 2 {
		t.Errorf("two orders have the traces %v", got)
	}
	if taken.Load() == 0 {
		t.Error("the command has ended without sending its spans")
	}
}
