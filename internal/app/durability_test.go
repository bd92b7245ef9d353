package app_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/url"
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

// An order or an invoice that was answered would be gone after a crash of PostgreSQL. The queue's address may give another user, with other
// settings; commands write, too.
func TestNothingStartsOnADatabaseThatMayLoseWhatItHasCommitted(t *testing.T) {
	t.Parallel()
	quiet := slog.New(slog.DiscardHandler)
	erp := func(ctx context.Context, dsn, queue string, serves func(string)) error {
		return app.RunERP(ctx, app.ERPConfig{Listen: "127.0.0.1:0", DatabaseURL: dsn, Queue: app.QueueConfig{DatabaseURL: queue}}, quiet, serves)
	}
	crm := func(ctx context.Context, dsn, queue string, serves func(string)) error {
		return app.RunCRM(ctx, app.CRMConfig{
			Listen: "127.0.0.1:0", DatabaseURL: dsn, ERPURL: "http://127.0.0.1:1", ERPTokens: []string{"acme=ibt_x"}, Queue: app.QueueConfig{DatabaseURL: queue},
		}, quiet, serves)
	}
	for name, c := range map[string]struct {
		pool   *pgxpool.Pool
		schema postgres.Schema
		store  func(*pgxpool.Pool) auth.AdminStore
		run    func(ctx context.Context, dsn, queue string, serves func(string)) error
	}{
		"erp": {testdb.ERP(t), app.ERPSchema(), func(p *pgxpool.Pool) auth.AdminStore { return erpstore.New(p) }, erp},
		"crm": {testdb.CRM(t), app.CRMSchema(), func(p *pgxpool.Pool) auth.AdminStore { return crmstore.New(p) }, crm},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dsn := testdb.DSN(t, c.pool)
			start := func(queue string) error {
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				return c.run(ctx, dsn, queue, func(string) { stop() })
			}
			refused := func(err error) {
				t.Helper()
				if !errors.Is(err, postgres.ErrNotDurable) || !strings.Contains(err.Error(), "synchronous_commit") {
					t.Errorf("got %v", err)
				}
			}
			at, err := url.Parse(dsn)
			if err != nil {
				t.Fatal(err)
			}
			query := at.Query()
			query.Set("synchronous_commit", "off")
			at.RawQuery = query.Encode()
			refused(start(at.String()))
			if _, err := c.pool.Exec(t.Context(), "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET synchronous_commit = off', current_database()); END $$"); err != nil {
				t.Fatal(err)
			}
			refused(start(""))
			list := app.TenantList{DatabaseFlag: app.DatabaseFlag{DatabaseURL: dsn}}
			refused(list.Run(t.Context(), &app.AdminEnv{Stdout: io.Discard, Schema: c.schema, Store: c.store}))
		})
	}
}
