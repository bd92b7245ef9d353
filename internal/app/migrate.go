package app

import (
	"context"
	"fmt"
	"log/slog"

	"invoicebridge/internal/postgres"
)

// MigrateCommands are the commands under "migrate", the same in both services. See AdminEnv.
type MigrateCommands struct {
	Up     MigrateUp     `cmd:"" help:"Bring the database to the version of this program. Any number may run at once."`
	Status MigrateStatus `cmd:"" help:"Show which versions the database has."`
}

// MigrateUp is the command "migrate up".
type MigrateUp struct{ DatabaseFlag }

// Run applies what is missing.
func (c *MigrateUp) Run(ctx context.Context, env *AdminEnv, log *slog.Logger) error {
	applied, err := postgres.Migrate(ctx, c.DatabaseURL, env.Schema, log)
	for _, m := range applied {
		fmt.Fprintf(env.Stdout, "applied %s\n", m)
	}
	if err == nil && len(applied) == 0 {
		fmt.Fprintln(env.Stdout, "nothing to do: the schema is up to date")
	}
	return err
}

// MigrateStatus is the command "migrate status".
type MigrateStatus struct{ DatabaseFlag }

// Run lists the versions.
func (c *MigrateStatus) Run(ctx context.Context, env *AdminEnv) error {
	pool, err := postgres.OpenPool(ctx, postgres.PoolConfig{
		DSN: c.DatabaseURL, ApplicationName: env.Schema.Name + " migrate status", MaxConns: 1,
	})
	if err != nil {
		return err
	}
	defer pool.Close()
	status, err := postgres.SchemaStatus(ctx, pool, env.Schema)
	if err != nil {
		return err
	}
	type line struct {
		m     postgres.Migration
		state string
	}
	var lines []line
	for _, group := range []struct {
		migrations []postgres.Migration
		state      string
	}{{status.Applied, "applied"}, {status.Pending, "pending"}, {status.Unknown, "of a newer program"}} {
		for _, m := range group.migrations {
			lines = append(lines, line{m, group.state})
		}
	}
	return Table(env.Stdout, "STATE\tVERSION", lines, func(l line) string { return l.state + "\t" + l.m.String() })
}
