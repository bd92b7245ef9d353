package testdb

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"invoicebridge/internal/postgres"
)

// ServerVariable names the environment variable with a superuser's address of a server to use.
const ServerVariable = "TEST_DATABASE_URL"

// testServer is the server of this test process.
type testServer struct {
	dsn   string
	admin *pgxpool.Pool // on the maintenance database; lives as long as the process

	mu        sync.Mutex
	templates map[string]string // schema's name to database
}

// theServer is one for the process: a test binary has no place of its own to keep it, and one server per test would
// cost a second each.
var theServer = sync.OnceValues(startServer)

func server(t testing.TB) *testServer {
	t.Helper()
	s, err := theServer()
	if err != nil {
		t.Fatalf("testdb: %v", err)
	}
	return s
}

func startServer() (*testServer, error) {
	ctx := context.Background()
	dsn := os.Getenv(ServerVariable)
	if dsn == "" {
		embedded, err := postgres.StartTemporary(ctx, postgres.EmbeddedConfig{})
		if err != nil {
			return nil, err
		}
		dsn = embedded.DSN("postgres") // never stopped: it ends with this process
	}
	admin, err := postgres.OpenPool(ctx, postgres.PoolConfig{DSN: dsn, ApplicationName: "testdb", MaxConns: 4, MinConns: 1})
	if err != nil {
		return nil, fmt.Errorf("server of %s: %w", ServerVariable, err)
	}
	return &testServer{dsn: dsn, admin: admin, templates: map[string]string{}}, nil
}

// create copies a database and drops the copy, whoever is still connected, when the test ends.
func (s *testServer) create(t testing.TB, kind, template string) string {
	t.Helper()
	ctx := context.Background()
	name := "test_" + kind + "_" + strings.ToLower(rand.Text()[:12])
	quoted := quote(name)
	// Copying files is faster here than writing the copy to the WAL page by page: nothing is forced to disk.
	_, err := s.admin.Exec(ctx, "CREATE DATABASE "+quoted+" TEMPLATE "+quote(template)+" STRATEGY file_copy")
	if err != nil {
		t.Fatalf("testdb: create a database: %v", err)
	}
	t.Cleanup(func() {
		s.untilLeft(ctx, name)
		if _, err := s.admin.Exec(ctx, "DROP DATABASE "+quoted+" WITH (FORCE)"); err != nil {
			t.Errorf("testdb: drop the test's database: %v", err)
		}
	})
	return withDatabase(s.dsn, name)
}

// untilLeft gives the sessions of a pool just closed a moment to end: for one that is still there DROP DATABASE
// pauses for 100 ms. Those that stay longer are ended by it.
func (s *testServer) untilLeft(ctx context.Context, name string) {
	for range 20 {
		var left bool
		err := s.admin.QueryRow(ctx, `
			SELECT NOT EXISTS (SELECT FROM pg_stat_activity WHERE datname = $1)
			FROM pg_sleep(0.001)`, name).Scan(&left)
		if err != nil || left {
			return
		}
	}
}

// withDatabase is the same address with another database, for both forms of addresses.
func withDatabase(dsn, name string) string {
	if u, err := url.Parse(dsn); err == nil && strings.HasPrefix(u.Scheme, "postgres") {
		u.Path = "/" + name
		return u.String()
	}
	return dsn + " dbname=" + name
}
