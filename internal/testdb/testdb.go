// Package testdb gives every test a PostgreSQL database of its own, copied in some milliseconds from a template
// that was migrated once. The server is the one TEST_DATABASE_URL names (any superuser's address), or a temporary
// one that this test process starts and that dies with it. `make test` runs all packages on one server, by
// cmd/withpg.
package testdb

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"invoicebridge/db"
	"invoicebridge/internal/postgres"
)

// poolSize is enough for a test with a few racing connections; tests run in parallel on one server.
const poolSize = 10

// closeLimit is how long a test that has ended may keep connections.
const closeLimit = 10 * time.Second

// ERP returns a pool on a fresh database with the ERP's schema and River's. Both go when the test ends.
func ERP(t testing.TB) *pgxpool.Pool {
	t.Helper()
	return open(t, NewERPDSN(t))
}

// CRM returns a pool on a fresh database with the CRM's schema and River's. Both go when the test ends.
func CRM(t testing.TB) *pgxpool.Pool {
	t.Helper()
	return open(t, NewCRMDSN(t))
}

// NewERPDSN is the address of a fresh database with the ERP's schema, for tests of built programs.
func NewERPDSN(t testing.TB) string {
	t.Helper()
	return fresh(t, "erp", erpSchema())
}

// NewCRMDSN is the address of a fresh database with the CRM's schema, for tests of built programs.
func NewCRMDSN(t testing.TB) string {
	t.Helper()
	return fresh(t, "crm", crmSchema())
}

// Empty is the address of a fresh database without any table, for tests of migrations.
func Empty(t testing.TB) string {
	t.Helper()
	return server(t).create(t, "empty", "template0")
}

// DSN is the address of the database a pool of this package is connected to.
func DSN(t testing.TB, pool *pgxpool.Pool) string {
	t.Helper()
	return pool.Config().ConnString()
}

func erpSchema() postgres.Schema {
	return postgres.Schema{
		Name: "erp", FS: db.ERPMigrations(), River: true, MigrateCommand: "erp-api migrate up", Foreign: "orders",
	}
}

func crmSchema() postgres.Schema {
	return postgres.Schema{
		Name: "crm", FS: db.CRMMigrations(), River: true, MigrateCommand: "crm-worker migrate up", Foreign: "invoices",
	}
}

func fresh(t testing.TB, kind string, schema postgres.Schema) string {
	t.Helper()
	s := server(t)
	template, err := s.template(context.Background(), schema)
	if err != nil {
		t.Fatalf("testdb: make the template of %s: %v", kind, err)
	}
	return s.create(t, kind, template)
}

func open(t testing.TB, dsn string) *pgxpool.Pool {
	t.Helper()
	pool, err := postgres.OpenPool(context.Background(), postgres.PoolConfig{
		DSN: dsn, ApplicationName: t.Name(), MaxConns: poolSize, MinConns: 1,
	})
	if err != nil {
		t.Fatalf("testdb: %v", err)
	}
	t.Cleanup(func() { closePool(t, pool, closeLimit) })
	return pool
}

// closePool does not wait for ever for a connection the test has kept.
func closePool(t testing.TB, pool *pgxpool.Pool, limit time.Duration) {
	t.Helper()
	closed := make(chan struct{})
	go func() {
		pool.Close()
		close(closed)
	}()
	select {
	case <-closed:
	case <-time.After(limit):
		t.Errorf("testdb: the test has not released %d of its connections", pool.Stat().AcquiredConns())
	}
}
