package postgres

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// ErrNotDurable says that the database answers a commit before it is on disk.
var ErrNotDurable = errors.New("the database may lose what it has committed")

// CheckDurability refuses connections whose commits PostgreSQL answers before they are on disk (synchronous_commit = off): if it
// crashed then, an invoice or order that was answered would be gone, and its number given again. All other values wait for the
// local disk; what a standby has by then is its administrator's choice. The error is ErrNotDurable and says where the setting
// comes from and what to do.
//
// With fsync or full_page_writes off a crash of PostgreSQL alone loses nothing, one of the machine may destroy everything. That is
// how servers for tests are set up, so it is told in the log only.
//
// It is asked once, at the start, of one connection: who changes the setting later is not noticed, but a transaction that sets it
// for itself can stay.
func CheckDurability(ctx context.Context, pool *pgxpool.Pool, log *slog.Logger) error {
	var commit, source, database, user, fsync, fullPages string
	err := pool.QueryRow(ctx, `
		SELECT setting, source, current_database(), session_user, current_setting('fsync'), current_setting('full_page_writes')
		FROM pg_settings WHERE name = 'synchronous_commit'`).Scan(&commit, &source, &database, &user, &fsync, &fullPages)
	if err != nil {
		return fmt.Errorf("look at the database's durability: %w", err)
	}
	if commit == "off" {
		return fmt.Errorf("database %q, user %q: %w: synchronous_commit is off (source: %s): %s, and start again",
			database, user, ErrNotDurable, source, commitRemedy(source, database, user))
	}
	for name, value := range map[string]string{"fsync": fsync, "full_page_writes": fullPages} {
		if value == "off" {
			logger(log).WarnContext(ctx, "a crash of the database's machine may destroy the whole database: leave it on but for tests", "setting", name, "value", value)
		}
	}
	return nil
}

// commitRemedy is what switches synchronous_commit on where pg_settings.source says that it was switched off.
func commitRemedy(source, database, user string) string {
	database, user = pgx.Identifier{database}.Sanitize(), pgx.Identifier{user}.Sanitize()
	const on = " SET synchronous_commit = on"
	switch source {
	case "database":
		return "run ALTER DATABASE " + database + on
	case "user":
		return "run ALTER ROLE " + user + on
	case "database user":
		return "run ALTER ROLE " + user + " IN DATABASE " + database + on
	case "global":
		return "run ALTER ROLE ALL" + on
	case "client":
		return "take it out of the database's address (or PGOPTIONS)"
	}
	return "set it to on in postgresql.conf (or where the server's command line has it) and reload the server, or run ALTER DATABASE " + database + on
}
