package app_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"invoicebridge/internal/app"
	"invoicebridge/internal/audit"
	"invoicebridge/internal/auth"
	"invoicebridge/internal/auth/erpstore"
	"invoicebridge/internal/testdb"
)

// A database is restored to what it was before an invoice, under a service that has the answer in memory: nobody may be told
// of an invoice that is not there.
func TestAnAnswerInMemoryDoesNotOutliveTheDatabaseItCameFrom(t *testing.T) {
	t.Parallel()
	pool := testdb.ERP(t)
	admin := auth.NewAdmin(erpstore.New(pool))
	if err := admin.CreateTenant(t.Context(), "acme", "Acme", audit.By{Actor: "test"}); err != nil {
		t.Fatal(err)
	}
	_, token, err := admin.CreateToken(t.Context(), "acme", auth.RoleWriter, "test", audit.By{Actor: "test"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ready, ended := make(chan string, 1), make(chan error, 1)
	go func() {
		ended <- app.RunERP(ctx, app.ERPConfig{
			Listen: "127.0.0.1:0", DatabaseURL: testdb.DSN(t, pool), ReplayCache: 1, ShutdownTimeout: 5 * time.Second,
			Registering: app.RegisterConfig{Disabled: true},
		}, slog.New(slog.DiscardHandler), func(addr string) { ready <- addr })
	}()
	var address string
	select {
	case addr := <-ready:
		address = "http://" + addr + "/v1/invoices"
	case err := <-ended:
		t.Fatalf("it does not start: %v", err)
	}
	defer func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("a stop is no error: %v", err)
		}
	}()
	post := func() (replayed bool, err error) {
		answer, err := issueCall(http.DefaultClient, address, token, 1)
		if err != nil {
			return false, err
		}
		defer answer.Body.Close()
		if answer.StatusCode != http.StatusCreated {
			return false, fmt.Errorf("status %d", answer.StatusCode)
		}
		return answer.Header.Get("Idempotent-Replayed") == "true", nil
	}
	for _, want := range []bool{false, true} {
		if replayed, err := post(); err != nil || replayed != want {
			t.Fatalf("replayed %v, %v, want %v", replayed, err, want)
		}
	}
	err = pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), `SET LOCAL session_replication_role = replica; TRUNCATE invoices, idempotency_records CASCADE`)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := pool.Exec(t.Context(), `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'erp-api'`); err != nil {
		t.Fatal(err)
	}
	var replayed bool
	waitFor(t, "an answer over a new connection", func() bool {
		var err error
		replayed, err = post()
		return err == nil
	})
	if replayed {
		t.Error("the answer of an invoice that is not there was told")
	}
}
