package invoice

import (
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// A session that was opened on an empty database keeps its plans until the tables are analysed. They must be good ones
// then, too: with a plan that reads all of a tenant's invoices every request is slower than the one before.
func TestTheLookUpReadsByKeyAndByClaimAlsoBeforeTheTablesAreAnalysed(t *testing.T) {
	t.Parallel()
	e := setup(t)
	config := e.pool.Config()
	config.MaxConns = 1 // whose counters are read below
	config.ConnConfig.RuntimeParams["plan_cache_mode"] = "force_generic_plan"
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
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

// To plan the look-up takes many times as long as to do it. It is planned anew with each request as long as the planner can see what is
// looked up: it then takes a plan for just that for a cheaper one.
func TestNoStatementOfIssuingIsPlannedAnewWithEachRequest(t *testing.T) {
	t.Parallel()
	e := setup(t)
	config := e.pool.Config()
	config.MaxConns = 1 // whose statements are looked at below
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
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
