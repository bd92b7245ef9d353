package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"path"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/pressly/goose/v3"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

var (
	// ErrSchemaOutdated says that the database lacks versions this binary needs.
	ErrSchemaOutdated = errors.New("schema is older than this program")

	// ErrSchemaNewer says that the database has versions this binary does not know.
	ErrSchemaNewer = errors.New("schema is newer than this program")

	// ErrSchemaForeign says that the database is that of the other service.
	ErrSchemaForeign = errors.New("the database is another service's")
)

// Status compares a database with what a binary knows.
type Status struct {
	Applied []Migration // known and there
	Pending []Migration // known and not there
	Unknown []Migration // there and not known: a newer binary's
}

// CheckSchema returns nil only if the database has exactly the versions this binary knows, goose's and River's.
// Otherwise the error is ErrSchemaOutdated or ErrSchemaNewer and says what to run, or ErrSchemaForeign. It changes
// nothing.
func CheckSchema(ctx context.Context, pool *pgxpool.Pool, s Schema) error {
	status, err := SchemaStatus(ctx, pool, s)
	if err != nil {
		return fmt.Errorf("check schema %s: %w", s.Name, err)
	}
	if len(status.Pending) > 0 {
		return fmt.Errorf("%s: %w: it lacks %s; run %q", s.Name, ErrSchemaOutdated, list(status.Pending), s.MigrateCommand)
	}
	return status.refuseNewer(s)
}

func (st Status) refuseNewer(s Schema) error {
	if len(st.Unknown) == 0 {
		return nil
	}
	return fmt.Errorf("%s: %w: it has %s; run the newer program that made them, or restore the database from before",
		s.Name, ErrSchemaNewer, list(st.Unknown))
}

// SchemaStatus lists every version this binary knows or the database has. It changes nothing, and needs no
// migration to have run. It fails with ErrSchemaForeign on the other service's database.
func SchemaStatus(ctx context.Context, pool *pgxpool.Pool, s Schema) (Status, error) {
	known, err := s.known()
	if err != nil {
		return Status{}, err
	}
	if err := refuseForeign(ctx, pool, s); err != nil {
		return Status{}, err
	}
	there, err := recorded(ctx, pool, s)
	if err != nil {
		return Status{}, err
	}
	var status Status
	for _, m := range known {
		at := slices.IndexFunc(there, m.sameVersion)
		if at < 0 {
			status.Pending = append(status.Pending, m)
			continue
		}
		status.Applied = append(status.Applied, m)
		there = slices.Delete(there, at, at+1)
	}
	status.Unknown = there
	return status, nil
}

func refuseForeign(ctx context.Context, pool *pgxpool.Pool, s Schema) error {
	if s.Foreign == "" {
		return nil
	}
	foreign, err := hasTable(ctx, pool, s.Foreign)
	if err == nil && foreign {
		err = fmt.Errorf("%w: it has the table %q; is its address right?", ErrSchemaForeign, s.Foreign)
	}
	return err
}

func (m Migration) sameVersion(other Migration) bool {
	return m.Line == other.Line && m.Version == other.Version
}

// known are the versions in the binary, in the order in which they are applied.
func (s Schema) known() ([]Migration, error) {
	provider, err := newProvider(new(sql.DB), s) // only asked for its sources, so no database is needed
	if err != nil {
		return nil, err
	}
	var known []Migration
	for _, source := range provider.ListSources() {
		known = append(known, Migration{Line: s.Name, Version: source.Version, Name: path.Base(source.Path)})
	}
	if !s.River {
		return known, nil
	}
	migrator, err := newRiverMigrator(nil)
	if err != nil {
		return nil, err
	}
	for _, m := range migrator.AllVersions() {
		known = append(known, Migration{Line: riverLine, Version: int64(m.Version), Name: m.Name})
	}
	return known, nil
}

// recorded are the versions the database has.
func recorded(ctx context.Context, pool *pgxpool.Pool, s Schema) ([]Migration, error) {
	there, err := recordedIn(ctx, pool, s.Name, versionTable, "version_id")
	if err != nil || !s.River {
		return there, err
	}
	byRiver, err := recordedIn(ctx, pool, riverLine, "river_migration", "version")
	return append(there, byRiver...), err
}

// recordedIn reads one record of versions. Goose keeps version 0 as a sign that its table is set up.
func recordedIn(ctx context.Context, pool *pgxpool.Pool, line, table, column string) ([]Migration, error) {
	there, err := hasTable(ctx, pool, table)
	if err != nil || !there {
		return nil, err
	}
	name := pgx.Identifier{column}.Sanitize()
	rows, _ := pool.Query(ctx, "SELECT DISTINCT "+name+"::bigint FROM "+pgx.Identifier{table}.Sanitize()+
		" WHERE "+name+" > 0 ORDER BY 1") // the error comes with the rows
	versions, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	if err != nil {
		return nil, fmt.Errorf("read table %s: %w", table, err)
	}
	var recorded []Migration
	for _, version := range versions {
		recorded = append(recorded, Migration{Line: line, Version: version})
	}
	return recorded, nil
}

func hasTable(ctx context.Context, pool *pgxpool.Pool, table string) (there bool, err error) {
	if err := pool.QueryRow(ctx, "SELECT to_regclass($1) IS NOT NULL", table).Scan(&there); err != nil {
		return false, fmt.Errorf("look for table %s: %w", table, err)
	}
	return there, nil
}

func newProvider(db *sql.DB, s Schema) (*goose.Provider, error) {
	provider, err := goose.NewProvider(goose.DialectPostgres, db, s.FS, goose.WithTableName(versionTable),
		goose.WithDisableGlobalRegistry(true), goose.WithSlog(slog.New(slog.DiscardHandler)))
	if err != nil {
		return nil, fmt.Errorf("read the migrations of %s: %w", s.Name, err)
	}
	return provider, nil
}

func newRiverMigrator(pool *pgxpool.Pool) (*rivermigrate.Migrator[pgx.Tx], error) {
	migrator, err := rivermigrate.New(riverpgxv5.New(pool), &rivermigrate.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, fmt.Errorf("read River's migrations: %w", err)
	}
	return migrator, nil
}

func list(migrations []Migration) string {
	names := make([]string, len(migrations))
	for i, m := range migrations {
		names[i] = m.String()
	}
	return strings.Join(names, ", ")
}
