package app

import (
	"context"
	"errors"
	"log/slog"

	"github.com/jackc/pgx/v5/pgxpool"

	"invoicebridge/internal/postgres"
)

// SchemaConfig says on which schemas a service starts. Its variable begins with the name of the service.
type SchemaConfig struct {
	AllowNewer bool `name:"allow-newer-schema" env:"ALLOW_NEWER_SCHEMA" help:"Start on a database whose schema is newer than this program: to take a release back whose notes allow it."`
}

// check refuses a schema that this program does not know. What migrations add, the program before them can do without; so a
// process that runs already stays at work while they are made, and with AllowNewer it may start, too.
func (c SchemaConfig) check(ctx context.Context, pool *pgxpool.Pool, s postgres.Schema, log *slog.Logger) error {
	err := postgres.CheckSchema(ctx, pool, s)
	if c.AllowNewer && errors.Is(err, postgres.ErrSchemaNewer) {
		log.WarnContext(ctx, "the database's schema is newer than this program", "error", err)
		return nil
	}
	return err
}
