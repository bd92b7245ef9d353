package main

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"

	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"

	"invoicebridge/internal/app"
	"invoicebridge/internal/postgres"
)

// databases are the two addresses, and the server if it is ours.
type databases struct {
	erp, crm string
	embedded *postgres.Embedded // nil if both addresses were given
}

// openDatabases starts the embedded server if an address is missing, and migrates both databases.
func openDatabases(ctx context.Context, s settings, log *slog.Logger) (databases, error) {
	d := databases{erp: s.ERPDatabaseURL, crm: s.CRMDatabaseURL}
	if d.erp == "" || d.crm == "" {
		var err error
		d.embedded, err = postgres.StartEmbedded(ctx, postgres.EmbeddedConfig{
			Dir: filepath.Join(s.DataDir, "postgres"), Logger: log,
		})
		if err != nil {
			return d, err
		}
	}
	setup, ctx := errgroup.WithContext(ctx)
	setup.Go(func() error { return d.ready(ctx, &d.erp, app.ERPSchema(), log) })
	setup.Go(func() error { return d.ready(ctx, &d.crm, app.CRMSchema(), log) })
	return d, setup.Wait()
}

// ready makes the database if it is ours, and brings its schema up.
func (d databases) ready(ctx context.Context, dsn *string, schema postgres.Schema, log *slog.Logger) error {
	if *dsn == "" {
		if err := d.embedded.CreateDatabase(ctx, schema.Name); err != nil {
			return err
		}
		*dsn = d.embedded.DSN(schema.Name)
	}
	_, err := postgres.Migrate(ctx, *dsn, schema, log)
	return err
}

// String says where the data are, without passwords.
func (d databases) String() string {
	if d.embedded == nil {
		return "the given databases"
	}
	return fmt.Sprintf("PostgreSQL %s in %s", d.embedded.Version(), d.embedded.Dir())
}

// openPool opens the few connections that the demo itself counts with.
func openPool(ctx context.Context, dsn string) (*pgxpool.Pool, error) {
	return postgres.OpenPool(ctx, postgres.PoolConfig{DSN: dsn, ApplicationName: "bridge", MaxConns: 2, MinConns: 1})
}
