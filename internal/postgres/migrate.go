package postgres

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/riverqueue/river/rivermigrate"
)

// versionTable is goose's record of what it has applied.
const versionTable = "schema_version"

// Schema is what one of the two databases must look like for this binary.
type Schema struct {
	Name           string // "erp" or "crm"
	FS             fs.FS  // goose's SQL files, in its root
	River          bool   // River's tables belong to it
	MigrateCommand string // what errors tell a person to run, for example "erp-api migrate up"
	// Foreign is a table that only the other service's database has; "" for none. Versions alone don't tell the two
	// apart: both count from 1.
	Foreign string
}

// Migration is one version of one of the two lines of migrations.
type Migration struct {
	Line    string // the schema's name, or "river"
	Version int64
	Name    string // "" for a version this binary does not know
}

func (m Migration) String() string {
	if m.Name == "" {
		return fmt.Sprintf("%s %d", m.Line, m.Version)
	}
	return fmt.Sprintf("%s %d (%s)", m.Line, m.Version, m.Name)
}

const riverLine = "river"

// Migrate brings the database to the version this binary knows and returns what it applied, in order, also beside an
// error. Any number of programs may call it at once: they take turns under a session lock, and each version is
// applied once. Every version is a transaction of its own (unless its file says NO TRANSACTION), so one that fails
// or is cut off leaves nothing behind, those before it stay, and the next call goes on from there. A schema newer
// than this binary is left alone: ErrSchemaNewer.
//
// Lock, goose and River share one session. If that is lost, so is the lock, and nothing more is applied.
func Migrate(ctx context.Context, dsn string, s Schema, log *slog.Logger) ([]Migration, error) {
	log = logger(log).With("schema", s.Name)
	session, err := openMigrationSession(ctx, dsn, s)
	if err != nil {
		return nil, fmt.Errorf("migrate %s: %w", s.Name, err)
	}
	defer session.Close()
	unlock, err := lockMigrations(ctx, session, log)
	if err != nil {
		return nil, fmt.Errorf("migrate %s: %w", s.Name, err)
	}
	defer unlock()
	applied, err := migrateLocked(ctx, session, s, log)
	if err != nil {
		return applied, fmt.Errorf("migrate %s: %w", s.Name, err)
	}
	return applied, nil
}

func migrateLocked(ctx context.Context, session *pgxpool.Pool, s Schema, log *slog.Logger) ([]Migration, error) {
	status, err := SchemaStatus(ctx, session, s)
	if err != nil {
		return nil, err
	}
	if err := status.refuseNewer(s); err != nil {
		return nil, err
	}
	applied, err := migrateGoose(ctx, session, s, log)
	if err != nil {
		return applied, err
	}
	if s.River {
		byRiver, err := migrateRiver(ctx, session, log)
		if applied = append(applied, byRiver...); err != nil {
			return applied, err
		}
	}
	return applied, separateTenants(ctx, session)
}

// separateTenants holds the role that work for tenants runs under to their rows (tenantdb), in tables that are new, too.
// It comes last: River's tables are there by then. A database without the function has no tenants.
func separateTenants(ctx context.Context, session *pgxpool.Pool) error {
	var known bool
	if err := session.QueryRow(ctx, "SELECT to_regproc('separate_tenants') IS NOT NULL").Scan(&known); err != nil || !known {
		return err
	}
	if _, err := session.Exec(ctx, "SELECT separate_tenants()"); err != nil {
		return fmt.Errorf("separate the tenants: %w", err)
	}
	return nil
}

func migrateGoose(ctx context.Context, session *pgxpool.Pool, s Schema, log *slog.Logger) ([]Migration, error) {
	db := stdlib.OpenDBFromPool(session)
	defer func() { _ = db.Close() }()
	provider, err := newProvider(db, s)
	if err != nil {
		return nil, err
	}
	results, err := provider.Up(ctx)
	var partial *goose.PartialError
	if errors.As(err, &partial) {
		results = partial.Applied
	}
	var applied []Migration
	for _, r := range results {
		m := Migration{Line: s.Name, Version: r.Source.Version, Name: path.Base(r.Source.Path)}
		log.Info("migration applied", "version", m.Version, "name", m.Name, "took", r.Duration.Round(time.Millisecond))
		applied = append(applied, m)
	}
	switch {
	case partial != nil:
		return applied, fmt.Errorf("version %d (%s) failed, those before it are applied; mend it and run %q again: %w",
			partial.Failed.Source.Version, path.Base(partial.Failed.Source.Path), s.MigrateCommand, partial.Err)
	case err != nil:
		return applied, fmt.Errorf("run migrations: %w", err)
	}
	return applied, nil
}

// migrateRiver runs apart from goose: River's versions need a commit between each other.
func migrateRiver(ctx context.Context, session *pgxpool.Pool, log *slog.Logger) ([]Migration, error) {
	migrator, err := newRiverMigrator(session)
	if err != nil {
		return nil, err
	}
	result, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil)
	if err != nil {
		return nil, fmt.Errorf("run River's migrations: %w", err)
	}
	var applied []Migration
	for _, v := range result.Versions {
		log.Info("River migration applied", "version", v.Version, "name", v.Name, "took", v.Duration.Round(time.Millisecond))
		applied = append(applied, Migration{Line: riverLine, Version: int64(v.Version), Name: v.Name})
	}
	return applied, nil
}

// errSessionLost ends a migration whose lock may have passed to somebody else.
var errSessionLost = errors.New("the session that holds the migration lock was lost")

// openMigrationSession opens a pool that never has more than the one session it begins with.
func openMigrationSession(ctx context.Context, dsn string, s Schema) (*pgxpool.Pool, error) {
	config, err := poolConfig(PoolConfig{DSN: dsn, ApplicationName: s.Name + " migrate", MaxConns: 1})
	if err != nil {
		return nil, err
	}
	config.MinConns = 0
	config.MaxConnLifetime, config.MaxConnIdleTime = 24*time.Hour, 24*time.Hour
	opened := make(chan struct{}, 1)
	config.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		select {
		case opened <- struct{}{}:
		default:
			return errSessionLost
		}
		if err := refusePooler(ctx, conn); err != nil {
			return err
		}
		// The server then gives up on a migration within seconds of this program's death, and the next one
		// can start. Servers on some platforms can't do that; they notice at the end of the statement.
		_, _ = conn.Exec(ctx, "SET client_connection_check_interval = '2s'")
		return nil
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	if err := pool.Ping(ctx); err != nil {
		pool.Close()
		return nil, explain(config.ConnConfig, err)
	}
	return pool, nil
}
