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

// lookFirst has the next request looked up before it is written.
func (e erp) lookFirst() { e.repeats.Store(true) }

// lookedUp is how often a round was looked up on the one connection.
func (e erp) lookedUp() int {
	e.t.Helper()
	p := e.plans()["InvoiceListSettled"]
	return p.custom + p.generic
}

// Whether a round is looked up first is only about what it costs: the answers are the same.
func TestWhatIsNewIsNotLookedUpAndWhatCameBeforeIsAnsweredAllTheSame(t *testing.T) {
	t.Parallel()
	e := setup(t)
	pool := e.single("auto")
	e.pool, e.Service = pool, NewService(pool, Options{})
	step := func(what string, lookUps int, ask func()) {
		t.Helper()
		before := e.lookedUp()
		if ask(); e.lookedUp()-before != lookUps {
			t.Errorf("%s: looked up %d times, want %d", what, e.lookedUp()-before, lookUps)
		}
	}
	issue := func(key, order string) func() {
		return func() { e.mustIssue(key, orderOf(t, order)) }
	}
	replay := func(key, order string) func() {
		return func() {
			if a := e.mustIssue(key, orderOf(t, order)); !a.Replayed {
				t.Errorf("%s: %+v", key, a)
			}
		}
	}
	step("new", 0, func() { issue("K1", "SO-1")(); issue("K2", "SO-2")() })
	step("a repeat that nobody expects: after its try", 1, replay("K1", "SO-1"))
	step("another: before its try", 1, replay("K2", "SO-2"))
	step("new after repeats", 1, issue("K3", "SO-3"))
	step("new after new", 0, issue("K4", "SO-4"))
	step("another key for the same order", 1, func() { wantRefused(t, e.issue("K5", orderOf(t, "SO-4")), problem.AlreadyInvoiced) })
	step("new again", 1, issue("K5", "SO-5"))
	step("not valid, the key free", 1, func() { wantRefused(t, e.issue("K6", request(t, `"10.00"`, `"1e400"`)), problem.InvalidInvoice) })
	e.exec("DELETE FROM idempotency_records")
	step("a repeat whose reservation is gone", 1, replay("K1", "SO-1"))
	issue("K7", "SO-7")()
	step("many, a repeat among them", 1, func() {
		var cmds []Command
		for i := range 20 {
			cmds = append(cmds, command(t, fmt.Sprint("M", i), orderOf(t, fmt.Sprint("MO-", i))))
		}
		cmds[7] = command(t, "K7", orderOf(t, "SO-7"))
		for i, r := range e.Issue(t.Context(), cmds) {
			if r.Err != nil || r.Answer.Replayed != (i == 7) {
				t.Errorf("%d: %+v", i, r)
			}
		}
	})
	if n := e.count("SELECT count(*) FROM invoices"); n != 6+19 {
		t.Errorf("%d invoices", n)
	}
	if n := e.count("SELECT max(series_number) FROM invoices"); n != 6+19 {
		t.Errorf("the last number is %d: there are holes", n)
	}
}

// A session that was opened on an empty database keeps its plans until the tables are analysed. They must be good ones
// then, too: with a plan that reads all of a tenant's invoices every request is slower than the one before.
func TestTheLookUpReadsByKeyAndByClaimAlsoBeforeTheTablesAreAnalysed(t *testing.T) {
	t.Parallel()
	e := setup(t)
	pool := e.single("force_generic_plan")
	e.pool, e.Service = pool, NewService(pool, Options{})
	for i := range 20 {
		e.lookFirst()
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

// To plan the look-up takes many times as long as to do it, and PostgreSQL takes a plan for just what is looked up for a cheaper one. Among few
// rows that is as well: which index is the right one can't be told then.
func TestNoStatementOfIssuingIsPlannedAnewWithEachRequest(t *testing.T) {
	t.Parallel()
	e := setup(t)
	var cmds []Command
	for i := range 1200 {
		cmds = append(cmds, command(t, fmt.Sprint("B", i), orderOf(t, fmt.Sprint("BO-", i))))
	}
	for _, r := range e.Issue(t.Context(), cmds) {
		if r.Err != nil {
			t.Fatal(r.Err)
		}
	}
	e.exec("ANALYZE invoices")
	pool := e.single("auto")
	e.pool, e.Service = pool, NewService(pool, Options{})
	const requests = 30
	for i := range requests {
		e.lookFirst()
		e.mustIssue(fmt.Sprint("K", i), orderOf(t, fmt.Sprint("SO-", i)))
	}
	plans := e.plans()
	for _, name := range []string{"InvoiceListSettled", "IdempotencyRecordReserve", "OrderBalanceAdd", "InvoiceCounterTake", "InvoiceInsert", "InvoiceLineInsert"} {
		if p := plans[name]; p.custom > 5 || p.custom+p.generic != requests { // 5: after that the planner compares
			t.Errorf("%s was planned anew %d times and not %d times", name, p.custom, p.generic)
		}
	}
	if p := plans["InvoiceListSettled"]; p.custom != 0 {
		t.Errorf("the look-up was planned anew %d times", p.custom)
	}
}

func TestAmongFewInvoicesTheLookUpIsPlannedForWhatItLooksFor(t *testing.T) {
	t.Parallel()
	e := setup(t)
	pool := e.single("auto")
	e.pool, e.Service = pool, NewService(pool, Options{})
	for i := range 20 {
		e.lookFirst()
		e.mustIssue(fmt.Sprint("K", i), orderOf(t, fmt.Sprint("SO-", i)))
	}
	if p := e.plans()["InvoiceListSettled"]; p.custom != 20 || p.generic != 0 {
		t.Errorf("%+v", p)
	}
}

// planned is how often a statement was planned for its arguments, and how often it ran with a plan that is kept.
type planned struct{ custom, generic int }

// plans are those of the statements of the one connection.
func (e erp) plans() map[string]planned {
	e.t.Helper()
	rows, _ := e.pool.Query(e.t.Context(), `SELECT coalesce(substring(statement FROM '-- name: (\w+)'), statement), custom_plans, generic_plans
		FROM pg_prepared_statements`) // the error comes with the rows
	all := map[string]planned{}
	var name string
	var p planned
	if _, err := pgx.ForEachRow(rows, []any{&name, &p.custom, &p.generic}, func() error {
		all[name] = p
		return nil
	}); err != nil {
		e.t.Fatal(err)
	}
	return all
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
	e.pool = pool
	plans := e.plans()
	for _, name := range []string{"InvoiceList", "KeyConflictList", "AuditEntryList"} {
		if p := plans[name]; p.custom != 1 || p.generic != 0 {
			t.Errorf("%s has %d plans of its own and %d for all filters", name, p.custom, p.generic)
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
