package tenantdb_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"invoicebridge/internal/tenantdb"
	"invoicebridge/internal/testdb"
)

// databases are those of both services.
func databases() map[string]func(testing.TB) *pgxpool.Pool {
	return map[string]func(testing.TB) *pgxpool.Pool{"erp": testdb.ERP, "crm": testdb.CRM}
}

func exec(t *testing.T, pool *pgxpool.Pool, sql string, args ...any) {
	t.Helper()
	if _, err := pool.Exec(t.Context(), sql, args...); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

func list(t *testing.T, pool *pgxpool.Pool, sql string, args ...any) []string {
	t.Helper()
	rows, _ := pool.Query(t.Context(), sql, args...) // the error comes with the rows
	found, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return found
}

const (
	allTables = `SELECT c.oid::regclass::text FROM pg_class AS c WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') ORDER BY 1`
	tenants   = `SELECT c.oid::regclass::text FROM pg_class AS c WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p')
		AND EXISTS (SELECT FROM pg_attribute AS a WHERE a.attrelid = c.oid AND a.attname = 'tenant_id') ORDER BY 1`
	separated = `SELECT c.oid::regclass::text FROM pg_class AS c JOIN pg_policy AS p ON p.polrelid = c.oid
		WHERE c.relrowsecurity AND p.polname = 'of_the_tenants' AND p.polcmd = '*'
		  AND p.polroles = ARRAY['invoicebridge_tenant'::regrole::oid] ORDER BY 1`
)

// A table that is made later has its policy by the next run of the migrations, or the role has no right to it.
func TestEveryTableIsSeparatedOrOutOfReach(t *testing.T) {
	t.Parallel()
	for name, open := range databases() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := open(t)
			apart := list(t, pool, separated)
			for _, table := range list(t, pool, tenants) {
				if !slices.Contains(apart, table) {
					t.Errorf("%s has a tenant_id and no policy", table)
				}
			}
			for _, table := range list(t, pool, allTables) {
				rights := list(t, pool, `SELECT r FROM unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'REFERENCES']) AS r
					WHERE has_any_column_privilege($1, $2, r)
					UNION ALL SELECT r FROM unnest(ARRAY['DELETE', 'TRUNCATE', 'TRIGGER']) AS r WHERE has_table_privilege($1, $2, r)`, tenantdb.Role, table)
				switch {
				case table == "river_job": // which holds ids only
					slices.Sort(rights)
					if !slices.Equal(rights, []string{"INSERT", "SELECT"}) {
						t.Errorf("the role has %v on %s", rights, table)
					}
				case !slices.Contains(apart, table) && len(rights) > 0:
					t.Errorf("the role has %v on %s, which has no policy", rights, table)
				case slices.Contains(rights, "TRUNCATE"), slices.Contains(rights, "TRIGGER"), slices.Contains(rights, "REFERENCES"):
					t.Errorf("the role has %v on %s: policies hold for none of the last three", rights, table)
				}
			}
			if more := list(t, pool, `SELECT polrelid::regclass || ' ' || polname FROM pg_policy WHERE polname <> 'of_the_tenants'`); len(more) > 0 {
				t.Errorf("there are other policies, which add to what is seen: %v", more)
			}
		})
	}
}

// loosen takes away what makes a row hard to make up: all constraints, triggers and unique indexes. Policies stay.
func loosen(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	exec(t, pool, `DO $$
		DECLARE x record;
		BEGIN
			FOR x IN SELECT conrelid::regclass AS on, conname FROM pg_constraint WHERE connamespace = 'public'::regnamespace AND conrelid <> 0 LOOP
				EXECUTE format('ALTER TABLE %s DROP CONSTRAINT IF EXISTS %I CASCADE', x.on, x.conname);
			END LOOP;
			FOR x IN SELECT tgrelid::regclass AS on, tgname FROM pg_trigger AS g JOIN pg_class AS c ON c.oid = g.tgrelid
			         WHERE c.relnamespace = 'public'::regnamespace AND NOT tgisinternal LOOP
				EXECUTE format('DROP TRIGGER %I ON %s', x.tgname, x.on);
			END LOOP;
			FOR x IN SELECT indexrelid::regclass AS name FROM pg_index JOIN pg_class AS c ON c.oid = indrelid
			         WHERE c.relnamespace = 'public'::regnamespace AND indisunique LOOP
				EXECUTE format('DROP INDEX %s', x.name);
			END LOOP;
			FOR x IN SELECT attrelid::regclass AS on, attname FROM pg_attribute JOIN pg_class AS c ON c.oid = attrelid
			         WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r' AND attnum > 0 AND attnotnull AND attidentity = '' LOOP
				EXECUTE format('ALTER TABLE %s ALTER COLUMN %I DROP NOT NULL', x.on, x.attname);
			END LOOP;
		END $$`)
}

// children are the tables whose rows belong to a tenant by their parent's id.
func children() map[string][3]string {
	return map[string][3]string{ // column, parent, the parent's column
		"invoice_lines":         {"invoice_id", "invoices", "id"},
		"registration_attempts": {"registration_id", "registrations", "id"},
		"attempts":              {"operation_id", "operations", "id"},
		"replay_items":          {"operation_id", "operations", "id"},
	}
}

// fill puts a row of tenant a and one of tenant b into every table that has a policy, and gives the column that tells them apart.
func fill(t *testing.T, pool *pgxpool.Pool) map[string][3]string {
	t.Helper()
	loosen(t, pool)
	const ofA, ofB = "'00000000-0000-0000-0000-00000000000a'", "'00000000-0000-0000-0000-00000000000b'"
	apart := map[string][3]string{} // column, a's value, b's value
	for _, table := range list(t, pool, separated) {
		child, isChild := children()[table]
		switch {
		case table == "tenants":
			apart[table] = [3]string{"id", "'a'", "'b'"}
		case isChild:
			apart[table] = [3]string{child[0], ofA, ofB}
		default:
			apart[table] = [3]string{"tenant_id", "'a'", "'b'"}
		}
		by := apart[table]
		exec(t, pool, fmt.Sprintf("INSERT INTO %s (%s) VALUES (%s), (%s)", table, by[0], by[1], by[2]))
	}
	for table, child := range children() {
		if _, there := apart[table]; there {
			exec(t, pool, fmt.Sprintf("UPDATE %s SET %s = CASE tenant_id WHEN 'a' THEN %s ELSE %s END::uuid", child[1], child[2], ofA, ofB))
		}
	}
	return apart
}

func TestStatementsThatForgetTheTenantReachNothingOfOthers(t *testing.T) {
	t.Parallel()
	for name, open := range databases() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := open(t)
			apart := fill(t, pool)
			db := tenantdb.New(pool)
			for _, table := range slices.Sorted(maps.Keys(apart)) {
				by := apart[table]
				for _, look := range []struct {
					scope      tenantdb.Scope
					all, ofBs  int
					permission string
				}{
					{db.Of("a"), 1, 0, "a's"}, {db.Of("a", "b"), 2, 1, "both"}, {db.Of(), 0, 0, "nobody's"}, {db.Of("a,b"), 0, 0, "a strange name"},
					{db.Of("a', 'b"), 0, 0, "a quoted name"}, {db.Unscoped(), 2, 1, "the service's own"},
				} {
					var all, ofBs int
					err := look.scope.QueryRow(t.Context(), fmt.Sprintf("SELECT count(*), count(*) FILTER (WHERE %s = %s) FROM %s", by[0], by[2], table)).Scan(&all, &ofBs)
					if err != nil || all != look.all || ofBs != look.ofBs {
						t.Errorf("%s, %s: %d rows, %d of them b's, want %d and %d: %v", table, look.permission, all, ofBs, look.all, look.ofBs, err)
					}
				}
				a := db.Of("a")
				for _, change := range []string{
					fmt.Sprintf("UPDATE %s SET %s = %[2]s WHERE %[2]s = %s", table, by[0], by[2]),
					fmt.Sprintf("UPDATE %s SET %s = %s", table, by[0], by[2]),
					fmt.Sprintf("DELETE FROM %s WHERE %s = %s", table, by[0], by[2]),
					fmt.Sprintf("INSERT INTO %s (%s) VALUES (%s)", table, by[0], by[2]),
				} {
					tag, err := a.Exec(t.Context(), change)
					if !refused(err) && (err != nil || tag.RowsAffected() != 0) {
						t.Errorf("a: %s: %s, %v", change, tag, err)
					}
				}
			}
			for _, table := range slices.Sorted(maps.Keys(apart)) {
				by := apart[table]
				var ofBs int
				if err := pool.QueryRow(t.Context(), fmt.Sprintf("SELECT count(*) FROM %s WHERE %s = %s", table, by[0], by[2])).Scan(&ofBs); err != nil || ofBs != 1 {
					t.Errorf("%s: b has %d rows afterwards, %v", table, ofBs, err)
				}
			}
		})
	}
}

// refused says whether a policy or the lack of a right stopped a statement.
func refused(err error) bool {
	var answer *pgconn.PgError
	return errors.As(err, &answer) && answer.Code == "42501" // insufficient_privilege
}

// What the console searches in are views, which no policy holds: they hold themselves.
func TestViewsShowTheTenantsRowsOnly(t *testing.T) {
	t.Parallel()
	for name, open := range databases() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := open(t)
			fill(t, pool)
			views := list(t, pool, `SELECT oid::regclass::text FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('v', 'm')
				AND has_any_column_privilege('invoicebridge_tenant', oid, 'SELECT')`)
			if len(views) != 1 {
				t.Errorf("the views are %v", views)
			}
			for _, view := range views {
				var all, ofBs int
				err := tenantdb.New(pool).Of("a").QueryRow(t.Context(), "SELECT count(*), count(*) FILTER (WHERE tenant_id = 'b') FROM "+view).Scan(&all, &ofBs)
				if err != nil || all != 1 || ofBs != 0 {
					t.Errorf("%s: %d rows, %d of them b's, %v", view, all, ofBs, err)
				}
			}
		})
	}
}

func TestInACallersContextNoOtherTenantIsReached(t *testing.T) {
	t.Parallel()
	db := tenantdb.New(testdb.ERP(t))
	ctx := tenantdb.WithCaller(t.Context(), "a")
	for name, scope := range map[string]tenantdb.Scope{"another's": db.Of("b"), "another's beside": db.Of("a", "b"), "all": db.Unscoped()} {
		if _, err := scope.Begin(ctx); !errors.Is(err, tenantdb.ErrForeign) {
			t.Errorf("%s: a transaction: %v", name, err)
		}
		if _, err := scope.Exec(ctx, "SELECT 1"); !errors.Is(err, tenantdb.ErrForeign) {
			t.Errorf("%s: a statement: %v", name, err)
		}
		if err := scope.QueryRow(ctx, "SELECT 1").Scan(new(int)); !errors.Is(err, tenantdb.ErrForeign) {
			t.Errorf("%s: a row: %v", name, err)
		}
		if _, err := scope.Exec(tenantdb.Together(ctx), "SELECT 1"); err != nil {
			t.Errorf("%s: what several share: %v", name, err)
		}
	}
	var user, seen string
	const who = "SELECT current_user, current_setting('invoicebridge.tenants')"
	if err := db.AsCaller(ctx).QueryRow(ctx, who).Scan(&user, &seen); err != nil || user != tenantdb.Role || seen != "a" {
		t.Errorf("the caller's scope is %s of %q, %v", user, seen, err)
	}
	if err := errors.Join(tenantdb.Permits(ctx, "a"), tenantdb.Permits(t.Context(), "b")); err != nil {
		t.Error(err)
	}
	if err := tenantdb.Permits(ctx, "b"); !errors.Is(err, tenantdb.ErrForeign) {
		t.Errorf("b in a's context: %v", err)
	}
}

// The next user of the connection must not find anybody's role, however the one before has left it.
func TestAScopeEndsWithItsTransaction(t *testing.T) {
	t.Parallel()
	config := testdb.ERP(t).Config()
	config.MaxConns = 1
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	scope := tenantdb.New(pool).Of("a")
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for name, use := range map[string]func() error{
		"commit": func() error { return pgx.BeginFunc(t.Context(), scope, held(t, scope)) },
		"read only": func() error {
			return pgx.BeginTxFunc(t.Context(), scope, pgx.TxOptions{AccessMode: pgx.ReadOnly, IsoLevel: pgx.RepeatableRead}, held(t, scope))
		},
		"rollback": func() error {
			_ = pgx.BeginFunc(t.Context(), scope, func(pgx.Tx) error { return errors.New("changed my mind") })
			return nil
		},
		"failed statement": func() error { _, _ = scope.Exec(t.Context(), "SELECT 1 / 0"); return nil },
		"wrong statement":  func() error { _, _ = scope.Exec(t.Context(), "SELECT nothing"); return nil },
		"no row":           func() error { return notFound(scope.QueryRow(t.Context(), "SELECT 1 WHERE false").Scan(new(int))) },
		"unread rows": func() error {
			rows, err := scope.Query(t.Context(), "SELECT generate_series(1, 100000)")
			if err == nil {
				rows.Close()
			}
			return errors.Join(err, rows.Err())
		},
		"ended context": func() error { _, _ = scope.Exec(gone, "SELECT 1"); return nil },
	} {
		if err := use(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		var user, seen string
		err := pool.QueryRow(t.Context(), "SELECT current_user, coalesce(current_setting('invoicebridge.tenants', true), '')").Scan(&user, &seen)
		if err != nil || user == tenantdb.Role || seen != "" {
			t.Errorf("after %s the connection is %s's, of tenants %q, %v", name, user, seen, err)
		}
	}
}

func held(t *testing.T, _ tenantdb.Scope) func(pgx.Tx) error {
	return func(tx pgx.Tx) error {
		var user, seen string
		err := tx.QueryRow(t.Context(), "SELECT current_user, current_setting('invoicebridge.tenants')").Scan(&user, &seen)
		if err == nil && (user != tenantdb.Role || seen != "a") {
			err = fmt.Errorf("within it is %s's, of tenants %q", user, seen)
		}
		return err
	}
}

func notFound(err error) error {
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	return fmt.Errorf("want no rows, got %w", err)
}

func TestAScopeThatIsPlannedAnewIsSoUntilItsTransactionEnds(t *testing.T) {
	t.Parallel()
	config := testdb.ERP(t).Config()
	config.MaxConns = 1
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	scope := tenantdb.New(pool).Of("a").PlannedAnew()
	const who = "SELECT concat_ws(' ', current_user, current_setting('invoicebridge.tenants', true), current_setting('plan_cache_mode'))"
	look := func(name string, from interface {
		QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
	}, want string) {
		t.Helper()
		var got string
		if err := from.QueryRow(t.Context(), who).Scan(&got); err != nil || got != want {
			t.Errorf("%s: %q, %v, want %q", name, got, err, want)
		}
	}
	const within = tenantdb.Role + " a force_custom_plan"
	look("a statement", scope, within)
	if err := pgx.BeginFunc(t.Context(), scope, func(tx pgx.Tx) error {
		look("a transaction", tx, within)
		return nil
	}); err != nil {
		t.Error(err)
	}
	once := tenantdb.New(pool).Of("a")
	look("planned once, of a table nobody has analysed", once.PlannedOnce("tenants"), tenantdb.Role+" a auto")
	look("planned once, of no table", once.PlannedOnce("none"), tenantdb.Role+" a auto")
	exec(t, pool, "INSERT INTO tenants (id, name) SELECT 't' || n, 'T' FROM generate_series(1, 1000) AS n")
	exec(t, pool, "ANALYZE tenants")
	look("planned once, of a thousand rows", once.PlannedOnce("tenants"), tenantdb.Role+" a force_generic_plan")
	look("another scope", tenantdb.New(pool).Of("a"), tenantdb.Role+" a auto")
	look("the connection afterwards", pool, config.ConnConfig.User+"  auto")
}
