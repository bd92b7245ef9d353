package postgres_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"net/url"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"invoicebridge/internal/postgres"
	"invoicebridge/internal/testdb"
)

// execute does statements on a connection of its own.
func execute(t *testing.T, dsn string, statements ...string) {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	for _, sql := range statements {
		if _, err := pool.Exec(t.Context(), sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
}

// withOption is the same address, each connection of which has one more setting.
func withOption(t *testing.T, dsn, name, value string) string {
	t.Helper()
	at, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	query := at.Query()
	query.Set(name, value)
	at.RawQuery = query.Encode()
	return at.String()
}

// Wherever commits were told not to wait for the disk, the connection is refused, and what the error says to do helps.
func TestCommitsThatDoNotWaitForTheDiskAreRefused(t *testing.T) {
	t.Parallel()
	dsn := testdb.Empty(t)
	at, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	database, role := strings.TrimPrefix(at.Path, "/"), "careless_"+strings.ToLower(rand.Text()[:10])
	execute(t, dsn, "CREATE ROLE "+role+" LOGIN PASSWORD 'secret'")
	t.Cleanup(func() {
		pool, err := pgxpool.New(context.Background(), dsn)
		if err != nil {
			t.Fatal(err)
		}
		defer pool.Close()
		for _, sql := range []string{"DROP OWNED BY " + role, "DROP ROLE " + role} {
			if _, err := pool.Exec(context.Background(), sql); err != nil {
				t.Errorf("%s: %v", sql, err)
			}
		}
	})
	at.User = url.UserPassword(role, "secret")
	careless := at.String()
	check := func(dsn string) error { return postgres.CheckDurability(t.Context(), openPool(t, dsn), nil) }
	for _, c := range []struct{ source, off, remedy string }{
		{"database", `ALTER DATABASE "` + database + `" SET synchronous_commit = off`, `ALTER DATABASE "` + database + `" SET synchronous_commit = on`},
		{"user", "ALTER ROLE " + role + " SET synchronous_commit = off", `ALTER ROLE "` + role + `" SET synchronous_commit = on`},
		{
			"database user", "ALTER ROLE " + role + " IN DATABASE " + database + " SET synchronous_commit = off",
			`ALTER ROLE "` + role + `" IN DATABASE "` + database + `" SET synchronous_commit = on`,
		},
	} {
		execute(t, dsn, c.off)
		err := check(careless)
		if !errors.Is(err, postgres.ErrNotDurable) || !strings.Contains(err.Error(), "synchronous_commit") ||
			!strings.Contains(err.Error(), "(source: "+c.source+")") || !strings.Contains(err.Error(), "run "+c.remedy+",") {
			t.Fatalf("%s: %v", c.source, err)
		}
		execute(t, dsn, c.remedy)
		if err := check(careless); err != nil {
			t.Errorf("%s, after the remedy: %v", c.source, err)
		}
	}
	err = check(withOption(t, dsn, "synchronous_commit", "off"))
	if !errors.Is(err, postgres.ErrNotDurable) || !strings.Contains(err.Error(), "(source: client): take it out of the database's address") {
		t.Errorf("in the address: %v", err)
	}
}

func TestEveryCommitThatWaitsForTheLocalDiskIsTaken(t *testing.T) {
	t.Parallel()
	dsn := testdb.Empty(t)
	for _, value := range []string{"on", "local", "remote_write", "remote_apply"} {
		if err := postgres.CheckDurability(t.Context(), openPool(t, withOption(t, dsn, "synchronous_commit", value)), nil); err != nil {
			t.Errorf("%s: %v", value, err)
		}
	}
}

// What the whole server has off is told where the server's settings are mended. And a server that forces nothing to disk is one for tests: that
// is told, once for each setting, and is no refusal.
func TestWhatTheServerHasOffIsToldWithWhereToMendIt(t *testing.T) {
	t.Parallel()
	check := func(settings map[string]string) (logged string, err error) {
		t.Helper()
		server, err := postgres.StartTemporary(t.Context(), postgres.EmbeddedConfig{Settings: settings})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = server.Stop(context.WithoutCancel(t.Context())) })
		var log bytes.Buffer
		err = postgres.CheckDurability(t.Context(), openPool(t, server.DSN("postgres")), slog.New(slog.NewTextHandler(&log, nil)))
		return log.String(), err
	}
	logged, err := check(map[string]string{"fsync": "off", "full_page_writes": "off"})
	if err != nil || strings.Count(logged, "level=WARN") != 2 || !strings.Contains(logged, "setting=fsync") || !strings.Contains(logged, "setting=full_page_writes") {
		t.Errorf("nothing is forced to disk: %v, logged:\n%s", err, logged)
	}
	logged, err = check(map[string]string{"fsync": "on", "full_page_writes": "on", "synchronous_commit": "off"})
	if !errors.Is(err, postgres.ErrNotDurable) || !strings.Contains(err.Error(), "postgresql.conf") || logged != "" {
		t.Errorf("the server's own setting: %v, logged:\n%s", err, logged)
	}
}
