package app_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"invoicebridge/internal/app"
	"invoicebridge/internal/auth"
	"invoicebridge/internal/auth/crmstore"
	"invoicebridge/internal/auth/erpstore"
	"invoicebridge/internal/postgres"
	"invoicebridge/internal/testdb"
)

// An order or an invoice that was answered would be gone after a crash of PostgreSQL. Commands write, too. The queue's own connections may be
// lax (jobs.SessionSettings).
func TestNothingStartsOnADatabaseThatMayLoseWhatItHasCommitted(t *testing.T) {
	t.Parallel()
	quiet := slog.New(slog.DiscardHandler)
	erp := func(ctx context.Context, dsn string, serves func(string)) error {
		return app.RunERP(ctx, app.ERPConfig{Listen: "127.0.0.1:0", DatabaseURL: dsn}, quiet, serves)
	}
	crm := func(ctx context.Context, dsn string, serves func(string)) error {
		return app.RunCRM(ctx, app.CRMConfig{Listen: "127.0.0.1:0", DatabaseURL: dsn, ERPURL: "http://127.0.0.1:1", ERPTokens: []string{"acme=ibt_x"}}, quiet, serves)
	}
	for name, c := range map[string]struct {
		pool   *pgxpool.Pool
		schema postgres.Schema
		store  func(*pgxpool.Pool) auth.AdminStore
		run    func(ctx context.Context, dsn string, serves func(string)) error
	}{
		"erp": {testdb.ERP(t), app.ERPSchema(), func(p *pgxpool.Pool) auth.AdminStore { return erpstore.New(p) }, erp},
		"crm": {testdb.CRM(t), app.CRMSchema(), func(p *pgxpool.Pool) auth.AdminStore { return crmstore.New(p) }, crm},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dsn := testdb.DSN(t, c.pool)
			start := func() error {
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				return c.run(ctx, dsn, func(string) { stop() })
			}
			refused := func(err error) {
				t.Helper()
				if !errors.Is(err, postgres.ErrNotDurable) || !strings.Contains(err.Error(), "synchronous_commit") {
					t.Errorf("got %v", err)
				}
			}
			if err := start(); err != nil {
				t.Errorf("it does not start where commits wait: %v", err)
			}
			if _, err := c.pool.Exec(t.Context(), "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET synchronous_commit = off', current_database()); END $$"); err != nil {
				t.Fatal(err)
			}
			refused(start())
			list := app.TenantList{DatabaseFlag: app.DatabaseFlag{DatabaseURL: dsn}}
			refused(list.Run(t.Context(), &app.AdminEnv{Stdout: io.Discard, Schema: c.schema, Store: c.store}))
		})
	}
}
