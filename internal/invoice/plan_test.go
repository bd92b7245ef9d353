package invoice

import (
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"invoicebridge/internal/problem"
)

// single is a pool on the same database with one connection, whose statements and counters can be looked at.
func (e erp) single(planCacheMode string) *pgxpool.Pool {
	e.t.Helper()
	config := e.pool.Config()
	config.MaxConns = 1
	config.ConnConfig.RuntimeParams["plan_cache_mode"] = planCacheMode
	pool, err := pgxpool.NewWithConfig(e.t.Context(), config)
	if err != nil {
		e.t.Fatal(err)
	}
	e.t.Cleanup(pool.Close)
	return pool
}

// A session that was opened on an empty database keeps its plans until the tables are analysed. They must be good ones
// then, too: with a plan that reads all of a tenant's invoices every request is slower than the one before.
func TestTheLookUpReadsByKeyAndByClaimAlsoBeforeTheTablesAreAnalysed(t *testing.T) {
	t.Parallel()
	e := setup(t)
	pool := e.single("force_generic_plan")
	e.pool, e.Service = pool, NewService(pool, Options{})
	for i := range 20 {
		e.mustIssue(fmt.Sprint("K", i), orderOf(t, fmt.Sprint("SO-", i)))
	}
	e.exec(`SELECT pg_stat_force_next_flush()`)
	for index, used := range map[string]bool{
		"invoices_operation_key_key": true, "invoices_business_claim_key": true, "invoices_created_at_idx": false,
		"invoices_customer_search_idx": false, "invoices_order_search_idx": false,
	} {
		read := e.count(`SELECT idx_tup_read FROM pg_stat_user_indexes WHERE indexrelname = $1`, index)
		scans := e.count(`SELECT idx_scan FROM pg_stat_user_indexes WHERE indexrelname = $1`, index)
		if read != 0 { // no key and no claim came twice
			t.Errorf("%s: %d rows read that were not asked for", index, read)
		}
		if used != (scans > 0) {
			t.Errorf("%s was read %d times", index, scans)
		}
	}
}

// The same for what was issued before: its reservation is read by its key, and not by all that are there.
func TestTheLookUpOfARepeatReadsItsOwnReservationAlsoBeforeTheTablesAreAnalysed(t *testing.T) {
	t.Parallel()
	e := setup(t)
	pool := e.single("force_generic_plan")
	e.pool, e.Service = pool, NewService(pool, Options{})
	const repeats = 20
	for i := range repeats {
		e.mustIssue(fmt.Sprint("K", i), orderOf(t, fmt.Sprint("SO-", i)))
	}
	for i := range repeats {
		if a := e.mustIssue(fmt.Sprint("K", i), orderOf(t, fmt.Sprint("SO-", i))); !a.Replayed {
			t.Errorf("%+v", a)
		}
	}
	e.exec(`SELECT pg_stat_force_next_flush()`)
	if n := e.count(`SELECT idx_tup_read FROM pg_stat_user_indexes WHERE indexrelname = 'idempotency_records_pkey'`); n != repeats {
		t.Errorf("%d rows read of %d", n, repeats)
	}
	if n := e.count(`SELECT seq_tup_read FROM pg_stat_user_tables WHERE relname = 'idempotency_records'`); n != 0 {
		t.Errorf("%d rows read without an index", n)
	}
}

// To plan the look-up takes many times as long as to do it. It is planned anew with each request as long as the planner can see what is
// looked up: it then takes a plan for just that for a cheaper one.
func TestNoStatementOfIssuingIsPlannedAnewWithEachRequest(t *testing.T) {
	t.Parallel()
	e := setup(t)
	pool := e.single("auto")
	e.pool, e.Service = pool, NewService(pool, Options{})
	const requests = 30
	for i := range requests {
		e.mustIssue(fmt.Sprint("K", i), orderOf(t, fmt.Sprint("SO-", i)))
	}
	rows, err := pool.Query(t.Context(), `SELECT coalesce(substring(statement FROM '-- name: (\w+)'), statement), custom_plans, generic_plans
		FROM pg_prepared_statements WHERE custom_plans + generic_plans >= $1`, requests)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	var name string
	var custom, generic int
	if _, err := pgx.ForEachRow(rows, []any{&name, &custom, &generic}, func() error {
		seen[name] = true
		if custom > 5 { // after which the planner compares
			t.Errorf("%s was planned anew %d times and not %d times", name, custom, generic)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"InvoiceListSettled", "IdempotencyRecordReserve", "OrderBalanceAdd", "InvoiceCounterTake", "InvoiceInsert", "InvoiceLineInsert"} {
		if !seen[name] {
			t.Errorf("%s is not among the prepared statements %v", name, seen)
		}
	}
}

// Whatever a session has been asked before, a list is planned for the filters at hand: a plan for all of them reads all of a tenant's
// invoices to find one by its key.
func TestListsArePlannedForTheirFilters(t *testing.T) {
	t.Parallel()
	e := setup(t)
	e.mustIssue("K1", orderOf(t, "SO-1"))
	pool := e.single("force_generic_plan")
	service := NewService(pool, Options{})
	items, _, err := service.List(t.Context(), tenant, Filter{Key: "K1"}, Page{})
	if err != nil || len(items) != 1 {
		t.Errorf("%d invoices of the key, %v", len(items), err)
	}
	if _, err := service.ListConflicts(t.Context(), tenant, "K1", Walk{}); err != nil {
		t.Error(err)
	}
	if _, err := service.ListAudit(t.Context(), tenant, AuditFilter{Subject: "K1"}, Walk{}); err != nil {
		t.Error(err)
	}
	for _, name := range []string{"InvoiceList", "KeyConflictList", "AuditEntryList"} {
		var custom, generic int
		if err := pool.QueryRow(t.Context(), `SELECT custom_plans, generic_plans FROM pg_prepared_statements
			WHERE statement LIKE '-- name: ' || $1 || ' :%'`, name).Scan(&custom, &generic); err != nil || custom != 1 || generic != 0 {
			t.Errorf("%s has %d plans of its own and %d for all filters, %v", name, custom, generic, err)
		}
	}
}

func TestWhatNoInvoiceCanBeIsNotLookedFor(t *testing.T) {
	t.Parallel()
	e := setup(t)
	e.mustIssue("K1", orderOf(t, "SO-1"))
	pool := e.single("auto")
	service := NewService(pool, Options{})
	for _, f := range []Filter{{Status: "paid"}, {Role: "invoice"}, {Status: "issued", Role: "Final"}} {
		items, next, err := service.List(t.Context(), tenant, f, Page{})
		if err != nil || items == nil || len(items) != 0 || next != nil {
			t.Errorf("%+v: %v, %v, %v", f, items, next, err)
		}
		if _, _, err := service.List(t.Context(), tenant, f, Page{Limit: MaxPage + 1}); problem.As(err) == nil {
			t.Errorf("%+v with a wrong limit: %v", f, err)
		}
	}
	var asked int
	if err := pool.QueryRow(t.Context(), "SELECT count(*) FROM pg_prepared_statements WHERE statement LIKE '-- name: InvoiceList :%'").Scan(&asked); err != nil || asked != 0 {
		t.Errorf("the database was asked for it, %v", err)
	}
	if items, _, err := service.List(t.Context(), tenant, Filter{Status: "issued", Role: "final"}, Page{}); err != nil || len(items) != 1 {
		t.Errorf("%d invoices, %v", len(items), err)
	}
}
