package crm

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"invoicebridge/internal/crmdb"
)

// With a plan that a session keeps, too: what each page costs must not grow with the pages before it, and with what the run has seen.
func TestAPageOfTheWindowReadsNoOtherPage(t *testing.T) {
	s := setupSubmit(t)
	const all, page = 60, 10
	for i := range all {
		s.takes(anOrder(fmt.Sprint("SO-", i), "10.00"), OutcomeCreated)
	}
	run := uuid.New()
	s.exec(`INSERT INTO reconciliation_runs (id, tenant_id, scope, window_from, window_to, phase)
		VALUES ($1, $2, 'crm-erp', now() - interval '1 hour', now(), 'operations')`, run, testTenant)
	s.exec("INSERT INTO reconciliation_matches (run_id, operation_id) SELECT $1, id FROM operations", run)
	config := s.pool.Config()
	config.MaxConns = 1 // whose counters are read below
	for name, value := range map[string]string{"plan_cache_mode": "force_generic_plan", "enable_seqscan": "off", "enable_bitmapscan": "off", "enable_sort": "off"} {
		config.ConnConfig.RuntimeParams[name] = value // as in a table of which a page is a small part
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	arg := crmdb.ReconciliationListWindowParams{
		TenantID: testTenant, RunID: run, WindowFrom: time.Now().Add(-time.Hour), BeforeCreatedAt: time.Now().Add(time.Hour), MaxItems: page,
	}
	seen := map[uuid.UUID]bool{}
	for range all / page {
		rows, err := crmdb.New(pool).ReconciliationListWindow(t.Context(), arg)
		if err != nil || len(rows) != page {
			t.Fatalf("%d rows, %v", len(rows), err)
		}
		for _, row := range rows {
			if seen[row.ID] || !row.Matched {
				t.Errorf("%+v", row)
			}
			seen[row.ID] = true
			arg.BeforeCreatedAt, arg.BeforeID = row.CreatedAt, row.ID
		}
	}
	if rows, err := crmdb.New(pool).ReconciliationListWindow(t.Context(), arg); err != nil || len(rows) != 0 {
		t.Errorf("behind the last page there are %d, %v", len(rows), err)
	}
	if _, err := pool.Exec(t.Context(), "SELECT pg_stat_force_next_flush()"); err != nil {
		t.Fatal(err)
	}
	for _, index := range []string{"operations_created_at_idx", "reconciliation_matches_pkey"} {
		var read int
		if err := pool.QueryRow(t.Context(), "SELECT idx_tup_read FROM pg_stat_user_indexes WHERE indexrelname = $1", index).Scan(&read); err != nil || read != all {
			t.Errorf("%s: %d rows read of %d, %v", index, read, all, err)
		}
	}
}
