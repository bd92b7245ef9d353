package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgxpool"

	"invoicebridge/internal/postgres"
	"invoicebridge/internal/testdb"
)

// schemaOf has one migration for each statement.
func schemaOf(statements ...string) postgres.Schema {
	files := fstest.MapFS{}
	for i, statement := range statements {
		text := "-- +goose Up\n" + statement + ";\n"
		files[fmt.Sprintf("%05d_step.sql", i+1)] = &fstest.MapFile{Data: []byte(text)}
	}
	return postgres.Schema{Name: "shop", FS: files, MigrateCommand: "shop migrate up"}
}

func twoTables() postgres.Schema {
	s := schemaOf("CREATE TABLE one (id int)", "CREATE TABLE two (id int)")
	s.River = true
	return s
}

func migrate(t *testing.T, dsn string, s postgres.Schema) []postgres.Migration {
	t.Helper()
	applied, err := postgres.Migrate(t.Context(), dsn, s, nil)
	if err != nil {
		t.Fatal(err)
	}
	return applied
}

func openPool(t *testing.T, dsn string) *pgxpool.Pool {
	t.Helper()
	pool, err := postgres.OpenPool(t.Context(), postgres.PoolConfig{DSN: dsn, MaxConns: 4, MinConns: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

func queryText(t *testing.T, pool *pgxpool.Pool, sql string) string {
	t.Helper()
	var text string
	if err := pool.QueryRow(t.Context(), sql).Scan(&text); err != nil {
		t.Fatal(err)
	}
	return text
}

func exec(t *testing.T, pool *pgxpool.Pool, sql string) {
	t.Helper()
	if _, err := pool.Exec(t.Context(), sql); err != nil {
		t.Fatal(err)
	}
}

// eventually is for what other sessions do.
func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	postgres.Eventually(t, what, done)
}

func TestMigrateAppliesOurVersionsAndRiversOnce(t *testing.T) {
	t.Parallel()
	dsn, schema := testdb.Empty(t), twoTables()
	applied := migrate(t, dsn, schema)
	if len(applied) < 3 || applied[0] != (postgres.Migration{Line: "shop", Version: 1, Name: "00001_step.sql"}) ||
		applied[2].Line != "river" {
		t.Errorf("applied %v", applied)
	}
	if again := migrate(t, dsn, schema); len(again) != 0 {
		t.Errorf("a second call applied %v", again)
	}
	pool := openPool(t, dsn)
	exec(t, pool, "INSERT INTO one SELECT count(*) FROM two, river_job")
	if err := postgres.CheckSchema(t.Context(), pool, schema); err != nil {
		t.Error(err)
	}
}

// Case M5.
func TestSixReplicasStartingAtOnceApplyEachVersionOnce(t *testing.T) {
	t.Parallel()
	cases := map[string]int{"on an empty database": 0, "on a database one version behind": 1}
	for name, before := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dsn, schema := testdb.Empty(t), twoTables()
			if before > 0 {
				migrate(t, dsn, schemaOf("CREATE TABLE one (id int)"))
			}
			var mu sync.Mutex
			var replicas sync.WaitGroup
			times := map[string]int{}
			for range 6 {
				replicas.Go(func() {
					applied, err := postgres.Migrate(t.Context(), dsn, schema, nil)
					if err != nil {
						t.Error(err)
					}
					mu.Lock()
					defer mu.Unlock()
					for _, m := range applied {
						times[m.String()]++
					}
				})
			}
			replicas.Wait()
			for version, n := range times {
				if n != 1 {
					t.Errorf("%s was applied %d times", version, n)
				}
			}
			pool := openPool(t, dsn)
			if err := postgres.CheckSchema(t.Context(), pool, schema); err != nil {
				t.Error(err)
			}
			status, err := postgres.SchemaStatus(t.Context(), pool, schema)
			if err != nil {
				t.Fatal(err)
			}
			if got, want := len(times), len(status.Applied)-before; got != want {
				t.Errorf("%d versions were applied, want %d", got, want)
			}
			rows := queryText(t, pool, "SELECT count(*) - count(DISTINCT version_id) || ' doubled' FROM "+postgres.VersionTable)
			if rows != "0 doubled" {
				t.Errorf("in the record of versions: %s", rows)
			}
		})
	}
}

func TestServiceIsRefusedOnAnOlderSchemaAndToldWhatToRun(t *testing.T) {
	t.Parallel()
	withoutRiver := twoTables()
	withoutRiver.River = false
	cases := map[string]struct {
		there *postgres.Schema
		lacks string
	}{
		"empty database":     {nil, "shop 1 (00001_step.sql), shop 2"},
		"one version behind": {ptr(schemaOf("CREATE TABLE one (id int)")), "shop 2 (00002_step.sql)"},
		"without River":      {&withoutRiver, "river 1"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dsn := testdb.Empty(t)
			if c.there != nil {
				migrate(t, dsn, *c.there)
			}
			err := postgres.CheckSchema(t.Context(), openPool(t, dsn), twoTables())
			if !errors.Is(err, postgres.ErrSchemaOutdated) {
				t.Fatalf("got %v", err)
			}
			for _, want := range []string{c.lacks, `run "shop migrate up"`} {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q is missing in: %v", want, err)
				}
			}
		})
	}
}

func ptr[T any](v T) *T { return &v }

func TestOlderBinaryIsRefusedOnANewerSchemaAndChangesNothing(t *testing.T) {
	t.Parallel()
	older := schemaOf("CREATE TABLE one (id int)")
	older.River = true
	cases := map[string]struct{ change, names string }{
		"ours":    {"INSERT INTO " + postgres.VersionTable + " (version_id, is_applied) VALUES (7, true)", "shop 7"},
		"River's": {"INSERT INTO river_migration (line, version) VALUES ('main', 99)", "river 99"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dsn := testdb.Empty(t)
			migrate(t, dsn, older)
			pool := openPool(t, dsn)
			exec(t, pool, c.change)
			next := twoTables() // it also has a version to apply, and must not begin
			_, migrateErr := postgres.Migrate(t.Context(), dsn, next, nil)
			for _, err := range []error{migrateErr, postgres.CheckSchema(t.Context(), pool, older)} {
				if !errors.Is(err, postgres.ErrSchemaNewer) || !strings.Contains(err.Error(), c.names) ||
					!strings.Contains(err.Error(), "run the newer program") {
					t.Errorf("got %v", err)
				}
			}
			if got := queryText(t, pool, "SELECT (to_regclass('two') IS NULL)::text"); got != "true" {
				t.Error("a migration was applied to a schema from the future")
			}
		})
	}
}

func TestSchemaStatusListsWhatIsThereAndWhatIsNot(t *testing.T) {
	t.Parallel()
	dsn := testdb.Empty(t)
	migrate(t, dsn, schemaOf("CREATE TABLE one (id int)"))
	pool := openPool(t, dsn)
	exec(t, pool, "INSERT INTO "+postgres.VersionTable+" (version_id, is_applied) VALUES (9, true)")
	got, err := postgres.SchemaStatus(t.Context(), pool, schemaOf("CREATE TABLE one (id int)", "CREATE TABLE two (id int)"))
	if err != nil {
		t.Fatal(err)
	}
	want := postgres.Status{
		Applied: []postgres.Migration{{Line: "shop", Version: 1, Name: "00001_step.sql"}},
		Pending: []postgres.Migration{{Line: "shop", Version: 2, Name: "00002_step.sql"}},
		Unknown: []postgres.Migration{{Line: "shop", Version: 9}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestCheckingAnEmptyDatabaseLeavesItEmpty(t *testing.T) {
	t.Parallel()
	pool := openPool(t, testdb.Empty(t))
	if err := postgres.CheckSchema(t.Context(), pool, twoTables()); !errors.Is(err, postgres.ErrSchemaOutdated) {
		t.Errorf("got %v", err)
	}
	if got := queryText(t, pool, "SELECT count(*)::text FROM pg_tables WHERE schemaname = 'public'"); got != "0" {
		t.Errorf("it has %s tables now", got)
	}
}

func TestFailedMigrationIsNamedAndTheNextRunGoesOnFromThere(t *testing.T) {
	t.Parallel()
	dsn := testdb.Empty(t)
	broken := schemaOf("CREATE TABLE one (id int)", "CREATE TABLE two (id int); INSERT INTO nowhere VALUES (1)", "CREATE TABLE three (id int)")
	applied, err := postgres.Migrate(t.Context(), dsn, broken, nil)
	if err == nil || !strings.Contains(err.Error(), "version 2 (00002_step.sql) failed") || !strings.Contains(err.Error(), "shop migrate up") {
		t.Errorf("got %v", err)
	}
	if len(applied) != 1 || applied[0].Version != 1 {
		t.Errorf("applied %v", applied)
	}
	mended := schemaOf("CREATE TABLE one (id int)", "CREATE TABLE two (id int)", "CREATE TABLE three (id int)")
	if applied = migrate(t, dsn, mended); len(applied) != 2 || applied[0].Version != 2 {
		t.Errorf("the next run applied %v", applied)
	}
}

// hold keeps HeldSchema's second version waiting until it is released.
func hold(t *testing.T, pool *pgxpool.Pool) (release func()) {
	t.Helper()
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), "SELECT pg_advisory_xact_lock(1)"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback(context.Background()) })
	return func() {
		if err := tx.Rollback(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

const waitingMigration = `pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%TABLE two%'`

func isHeld(t *testing.T, pool *pgxpool.Pool) func() bool {
	return func() bool { return queryText(t, pool, "SELECT count(*)::text FROM "+waitingMigration) == "1" }
}

func TestMigrationCutOffHalfWayLeavesNothingAndTheNextRunFinishes(t *testing.T) {
	t.Parallel()
	cases := map[string]func(t *testing.T, pool *pgxpool.Pool, cancel context.CancelFunc){
		"by its own program": func(_ *testing.T, _ *pgxpool.Pool, cancel context.CancelFunc) { cancel() },
		"by its server": func(t *testing.T, pool *pgxpool.Pool, _ context.CancelFunc) {
			exec(t, pool, "SELECT pg_terminate_backend(pid) FROM "+waitingMigration)
		},
	}
	for name, cutOff := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dsn := testdb.Empty(t)
			pool := openPool(t, dsn)
			schema, release := postgres.HeldSchema(), hold(t, pool)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			ended := make(chan error, 1)
			go func() {
				_, err := postgres.Migrate(ctx, dsn, schema, nil)
				ended <- err
			}()
			eventually(t, "the migration is half-way", isHeld(t, pool))

			cutOff(t, pool, cancel)
			if err := <-ended; err == nil || !strings.Contains(err.Error(), "version 2") {
				t.Errorf("the migration ended with %v", err)
			}
			release()
			if applied := migrate(t, dsn, schema); len(applied) != 1 || applied[0].Version != 2 {
				t.Errorf("the next run applied %v", applied)
			}
		})
	}
}

func TestMigrationOfAKilledProgramIsFinishedByTheNext(t *testing.T) {
	t.Parallel()
	dsn := testdb.Empty(t)
	pool := openPool(t, dsn)
	release := hold(t, pool)
	kill := postgres.StartMigrator(t, dsn)
	eventually(t, "the migration is half-way", isHeld(t, pool))

	kill()
	eventually(t, "the server gives the migration up", func() bool { return !isHeld(t, pool)() })
	release()
	if applied := migrate(t, dsn, postgres.HeldSchema()); len(applied) != 1 || applied[0].Version != 2 {
		t.Errorf("the next run applied %v", applied)
	}
}

func TestMigrateWaitingForAnotherSaysForWhomAndEndsWithItsContext(t *testing.T) {
	t.Parallel()
	dsn := testdb.Empty(t)
	pool := openPool(t, dsn)
	schema, release := postgres.HeldSchema(), hold(t, pool)
	first := make(chan error, 1)
	go func() {
		_, err := postgres.Migrate(t.Context(), dsn, schema, nil)
		first <- err
	}()
	eventually(t, "the first migration is half-way", isHeld(t, pool))

	said := &lines{}
	ctx, cancel := context.WithCancel(t.Context())
	second := make(chan error, 1)
	go func() {
		_, err := postgres.Migrate(ctx, dsn, schema, slog.New(slog.NewTextHandler(said, nil)))
		second <- err
	}()
	eventually(t, "the second says for whom it waits", func() bool { return strings.Contains(said.String(), "shop migrate") })
	cancel()
	if err := <-second; !errors.Is(err, context.Canceled) {
		t.Errorf("the second ended with %v", err)
	}
	release()
	if err := <-first; err != nil {
		t.Errorf("the first ended with %v", err)
	}
}

// lines is a log that can be read while it is written.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func TestMigrateWithoutItsFilesFails(t *testing.T) {
	t.Parallel()
	var none fs.FS = fstest.MapFS{}
	_, err := postgres.Migrate(t.Context(), testdb.Empty(t), postgres.Schema{Name: "shop", FS: none}, nil)
	if err == nil || !strings.Contains(err.Error(), "read the migrations of shop") {
		t.Errorf("got %v", err)
	}
}
