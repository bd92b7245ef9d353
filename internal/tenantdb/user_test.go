package tenantdb_test

import (
	"context"
	"crypto/rand"
	"net/url"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"invoicebridge/db"
	"invoicebridge/internal/postgres"
	"invoicebridge/internal/tenantdb"
	"invoicebridge/internal/testdb"
)

// A database user that may make no roles is told the one statement that an administrator has to run, and needs no more.
func TestAnOrdinaryUserMigratesAndWorksOnceItMayActAsTheRole(t *testing.T) {
	t.Parallel()
	_ = testdb.ERP(t) // whose migration made the role
	dsn := testdb.Empty(t)
	admin := open(t, dsn)
	user := "user_" + strings.ToLower(rand.Text()[:10])
	exec(t, admin, "CREATE ROLE "+user+" LOGIN PASSWORD 'secret'")
	address, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	exec(t, admin, "ALTER DATABASE "+strings.TrimPrefix(address.Path, "/")+" OWNER TO "+user)
	t.Cleanup(func() {
		for _, sql := range []string{
			"ALTER DATABASE " + strings.TrimPrefix(address.Path, "/") + " OWNER TO CURRENT_USER", "REASSIGN OWNED BY " + user + " TO CURRENT_USER",
			"DROP OWNED BY " + user, "DROP ROLE " + user,
		} {
			if _, err := admin.Exec(context.Background(), sql); err != nil {
				t.Errorf("%s: %v", sql, err)
			}
		}
	})
	address.User = url.UserPassword(user, "secret")
	schema := postgres.Schema{Name: "erp", FS: db.ERPMigrations(), River: true, MigrateCommand: "erp-api migrate up"}

	_, err = postgres.Migrate(t.Context(), address.String(), schema, nil)
	if err == nil || !strings.Contains(err.Error(), "GRANT "+tenantdb.Role+" TO "+user) {
		t.Fatalf("without the role: %v", err)
	}
	exec(t, admin, "GRANT "+tenantdb.Role+" TO "+user)
	if _, err := postgres.Migrate(t.Context(), address.String(), schema, nil); err != nil {
		t.Fatal(err)
	}
	pool := open(t, address.String())
	if err := tenantdb.New(pool).Check(t.Context()); err != nil {
		t.Errorf("the owner: %v", err)
	}
	exec(t, pool, "INSERT INTO tenants (id, name) VALUES ('a', 'A'), ('b', 'B')")
	var seen string
	if err := tenantdb.New(pool).Of("b").QueryRow(t.Context(), "SELECT string_agg(id, ' ') FROM tenants").Scan(&seen); err != nil || seen != "b" {
		t.Errorf("b sees %q, %v", seen, err)
	}
	exec(t, admin, "REVOKE "+tenantdb.Role+" FROM "+user)
	if err := tenantdb.New(pool).Check(t.Context()); err == nil || !strings.Contains(err.Error(), "GRANT "+tenantdb.Role) {
		t.Errorf("the owner, who may not act as the role any more: %v", err)
	}
}

func open(t *testing.T, dsn string) *pgxpool.Pool {
	t.Helper()
	pool, err := postgres.OpenPool(t.Context(), postgres.PoolConfig{DSN: dsn, MaxConns: 2, MinConns: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}
