package testdb

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgxpool"

	"invoicebridge/internal/postgres"
)

func text(t testing.TB, pool *pgxpool.Pool, sql string, args ...any) string {
	t.Helper()
	var text string
	if err := pool.QueryRow(context.Background(), sql, args...).Scan(&text); err != nil {
		t.Fatal(err)
	}
	return text
}

func TestDatabasesHaveTheSchemaTheServicesWant(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pool   *pgxpool.Pool
		schema postgres.Schema
	}{{ERP(t), erpSchema()}, {CRM(t), crmSchema()}} {
		if err := postgres.CheckSchema(t.Context(), c.pool, c.schema); err != nil {
			t.Error(err)
		}
	}
}

func TestWhatOneTestWritesNoOtherSees(t *testing.T) {
	t.Parallel()
	one, two := ERP(t), ERP(t)
	if _, err := one.Exec(t.Context(), "CREATE TABLE mine (id int)"); err != nil {
		t.Fatal(err)
	}
	if got := text(t, two, "SELECT (to_regclass('mine') IS NULL)::text"); got != "true" {
		t.Error("the other test's database has the table, too")
	}
}

func TestDatabaseIsDroppedWithItsTestThoughSomebodyIsConnected(t *testing.T) {
	t.Parallel()
	var dsn string
	t.Run("user", func(t *testing.T) { dsn = NewCRMDSN(t) })
	s := server(t)
	name := func(dsn string) string {
		config, err := pgxpool.ParseConfig(dsn)
		if err != nil {
			t.Fatal(err)
		}
		return config.ConnConfig.Database
	}
	const exists = "SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)::text"
	if got := text(t, s.admin, exists, name(dsn)); got != "false" {
		t.Error("the database is still there")
	}

	var left *pgxpool.Pool
	t.Run("user who leaves a connection open", func(t *testing.T) {
		dsn = NewCRMDSN(t)
		var err error
		if left, err = postgres.OpenPool(t.Context(), postgres.PoolConfig{DSN: dsn, MaxConns: 1}); err != nil {
			t.Fatal(err)
		}
	})
	defer left.Close()
	if got := text(t, s.admin, exists, name(dsn)); got != "false" {
		t.Error("the database is still there")
	}
}

func TestAddressOfAPoolLeadsToItsDatabase(t *testing.T) {
	t.Parallel()
	pool := ERP(t)
	const where = "SELECT current_database()"
	if one, two := text(t, pool, where), text(t, open(t, DSN(t, pool)), where); one != two {
		t.Errorf("the pool is on %s, its address leads to %s", one, two)
	}
}

func TestEmptyDatabaseHasNoTable(t *testing.T) {
	t.Parallel()
	pool := open(t, Empty(t))
	if got := text(t, pool, "SELECT count(*)::text FROM pg_tables WHERE schemaname = 'public'"); got != "0" {
		t.Errorf("it has %s", got)
	}
}

// A second testServer on the same server stands for the test process of another package.
func TestProcessesThatStartTogetherMakeTheTemplateOnce(t *testing.T) {
	t.Parallel()
	first := server(t)
	schema := crmSchema()
	schema.Name = "together"
	names := make([]string, 4)
	var processes sync.WaitGroup
	for i := range names {
		processes.Go(func() {
			other := &testServer{dsn: first.dsn, admin: first.admin, templates: map[string]string{}}
			var err error
			if names[i], err = other.template(t.Context(), schema); err != nil {
				t.Error(err)
			}
		})
	}
	processes.Wait()
	for _, name := range names {
		if name != names[0] {
			t.Errorf("processes use different templates: %q", names)
		}
	}
	if got := text(t, first.admin, "SELECT string_agg(datname, ',') FROM pg_database WHERE datname LIKE 'template_together%'"); got != names[0] {
		t.Errorf("there are the templates %s", got)
	}
}

func TestDatabaseIsReplacedInBothFormsOfAddresses(t *testing.T) {
	t.Parallel()
	want := map[string]string{"postgres://me:pw@/old?host=%2Frun": "new", "host=/run user=me dbname=old": "new"}
	got := map[string]string{}
	for dsn := range want {
		config, err := pgxpool.ParseConfig(withDatabase(dsn, "new"))
		if err != nil {
			t.Fatal(err)
		}
		got[dsn] = config.ConnConfig.Database
		if config.ConnConfig.Host != "/run" || config.ConnConfig.User != "me" {
			t.Errorf("%s: the rest of the address has changed: %s", dsn, withDatabase(dsn, "new"))
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestKeptConnectionIsReportedAndHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	pool := open(t, Empty(t))
	conn, err := pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	report := &reporter{TB: t}
	closePool(report, pool, 0)
	if !strings.Contains(report.said, "has not released 1") {
		t.Errorf("reported: %q", report.said)
	}
}

type reporter struct {
	testing.TB
	said string
}

func (r *reporter) Errorf(format string, args ...any) { r.said += fmt.Sprintf(format, args...) }

// BenchmarkDatabase is what one test pays: make, connect, drop.
func BenchmarkDatabase(b *testing.B) {
	NewERPDSN(b)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			one := &oneTest{TB: b}
			ERP(one)
			one.end()
		}
	})
}

// oneTest ends within a benchmark.
type oneTest struct {
	testing.TB
	cleanups []func()
}

func (t *oneTest) Cleanup(f func()) { t.cleanups = append(t.cleanups, f) }

func (t *oneTest) end() {
	for i := len(t.cleanups) - 1; i >= 0; i-- {
		t.cleanups[i]()
	}
}
