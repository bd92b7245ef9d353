package jobs

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"invoicebridge/internal/crm"
	"invoicebridge/internal/invoice"
	"invoicebridge/internal/testdb"
)

// wantFigures holds a scrape to these values, each by name and labels.
func wantFigures(t *testing.T, got, want map[string]float64) {
	t.Helper()
	for name, value := range want {
		if is, there := got[name]; !there || is != value {
			t.Errorf("%s is %v (there: %t), want %v", name, is, there, value)
		}
	}
}

// wantAge holds an age to what was set up, with room for the test itself.
func wantAge(t *testing.T, got map[string]float64, name string, seconds float64) {
	t.Helper()
	if age, there := got[name]; !there || age < seconds || age > seconds+600 {
		t.Errorf("%s is %v (there: %t), want about %v", name, age, there, seconds)
	}
}

func TestFiguresTellOperationsByStateWithTheirAges(t *testing.T) {
	b := setup(t)
	b.submit(0, 9)
	const sent = "attempt = 1, first_sent_at = now() - interval '1 day'"
	for order, change := range map[string]string{
		"SO-0": "created_at = now() - interval '2 hours', next_attempt_at = now() + interval '1 hour'",
		"SO-1": "created_at = now() - interval '3 hours', status = 'processing', next_attempt_at = NULL, lease_until = now() - interval '1 hour', " + sent,
		"SO-2": "created_at = now() - interval '4 hours', status = 'unknown', next_attempt_at = now() + interval '1 hour', " + sent,
		"SO-3": "created_at = now() - interval '9 days', status = 'unknown', reason = 'configuration', flagged_at = now() - interval '5 hours', " + sent,
		"SO-4": "created_at = now() - interval '9 days', status = 'pending', reason = 'a new word', flagged_at = now() - interval '1 hour', " + sent,
		"SO-5": "status = 'succeeded', invoice_id = gen_random_uuid(), invoice_number = 'X-1', next_attempt_at = NULL, finished_at = now(), " + sent,
		"SO-6": "status = 'failed', next_attempt_at = NULL, finished_at = now(), " + sent,
		"SO-7": "status = 'cancelled', next_attempt_at = NULL, finished_at = now()",
		"SO-8": "source = 'paused', created_at = now() - interval '9 days', next_attempt_at = now() - interval '9 days'",
	} {
		if order == "SO-8" {
			b.exec("INSERT INTO orders SELECT tenant_id, 'paused', order_id, version, status, content, content_hash FROM orders WHERE order_id = $1", order)
		}
		b.exec("UPDATE operations SET "+change+" WHERE order_id = $1", order)
	}
	b.exec("INSERT INTO source_pauses (tenant_id, source, paused_at, paused_by, reason) VALUES ($1, 'paused', now() - interval '2 days', 'x', 'y')", testTenant)

	got := gather(t, NewMetrics(b.pool, nil))
	wantFigures(t, got, map[string]float64{
		"crm_operations pending": 3, "crm_operations processing": 1, "crm_operations unknown": 2,
		"crm_operations succeeded": 1, "crm_operations failed": 1, "crm_operations cancelled": 1,
		"crm_operations_needing_attention configuration": 1, "crm_operations_needing_attention other": 1, "crm_operations_needing_attention no_answer": 0,
		"crm_paused_sources": 1,
	})
	wantAge(t, got, "crm_operations_oldest_seconds pending", 2*3600)
	wantAge(t, got, "crm_operations_oldest_seconds processing", 3*3600)
	wantAge(t, got, "crm_operations_oldest_seconds unknown", 4*3600) // not the one that is with an operator
	wantAge(t, got, "crm_oldest_open_operation_seconds", 4*3600)     // a pause is meant
	wantAge(t, got, "crm_operations_needing_attention_oldest_seconds", 5*3600)
	wantAge(t, got, "crm_operations_overdue_seconds", 3600) // and not the paused one
	wantAge(t, got, "crm_oldest_paused_operation_seconds", 9*86400)
	wantAge(t, got, "crm_oldest_pause_seconds", 2*86400)
}

func TestFiguresTellRegistrationsByStateWithTheirAges(t *testing.T) {
	b := setupERP(t, nil)
	b.issue(4) // two targets: eight registrations
	const sent = "attempt = 1, first_sent_at = now() - interval '1 day', last_sent_at = now() - interval '1 day'"
	for i, change := range []string{
		"created_at = now() - interval '2 hours', next_attempt_at = now() + interval '1 hour'",
		"created_at = now() - interval '3 hours', status = 'processing', next_attempt_at = NULL, lease_until = now() - interval '1 hour', " + sent,
		"created_at = now() - interval '4 hours', status = 'unknown', reason = 'held', flagged_at = now() - interval '5 hours', next_attempt_at = now() + interval '1 hour', " + sent,
		"created_at = now() - interval '5 hours', status = 'unknown', reason = 'nothing_is_safe', flagged_at = now() - interval '1 hour', next_attempt_at = now() - interval '9 days', " + sent,
		"status = 'failed', reason = 'foreign_invoice', flagged_at = now() - interval '6 hours', next_attempt_at = NULL, finished_at = now(), " + sent,
		"status = 'succeeded', reference = 'R', next_attempt_at = NULL, finished_at = now(), " + sent,
	} {
		b.exec(fmt.Sprintf(`UPDATE registrations SET %s WHERE id = (SELECT r.id FROM registrations AS r
			JOIN targets AS t ON t.tenant_id = r.tenant_id AND t.id = r.target_id ORDER BY t.kind = 'ledger', r.id OFFSET %d LIMIT 1)`, change, i)) // the paused target's last
	}
	b.exec("UPDATE targets SET paused_at = now() - interval '2 days', paused_by = 'x', pause_reason = 'y' WHERE kind = 'ledger'")
	b.exec("UPDATE registrations SET created_at = now() - interval '9 days', next_attempt_at = now() - interval '9 days' WHERE status = 'pending' AND target_id IN (SELECT id FROM targets WHERE paused_at IS NOT NULL)")

	got := gather(t, NewERPMetrics(b.pool, nil))
	wantFigures(t, got, map[string]float64{
		"erp_registrations pending": 3, "erp_registrations processing": 1, "erp_registrations unknown": 2,
		"erp_registrations succeeded": 1, "erp_registrations failed": 1,
		"erp_registrations_needing_attention held": 1, "erp_registrations_needing_attention nothing_is_safe": 1,
		"erp_registrations_needing_attention foreign_invoice": 1, "erp_registrations_needing_attention no_answer": 0,
		"erp_paused_targets": 1,
	})
	wantAge(t, got, "erp_registrations_oldest_seconds pending", 2*3600)
	wantAge(t, got, "erp_registrations_oldest_seconds unknown", 5*3600)
	wantAge(t, got, "erp_oldest_open_registration_seconds", 5*3600)
	wantAge(t, got, "erp_registrations_needing_attention_oldest_seconds", 6*3600)
	if overdue := got["erp_registrations_overdue_seconds"]; overdue > 2*86400 {
		t.Errorf("the longest overdue is so for %v s: neither what nothing is safe for nor what is paused is waited for", overdue)
	}
	wantAge(t, got, "erp_oldest_paused_registration_seconds", 9*86400)
	wantAge(t, got, "erp_oldest_pause_seconds", 2*86400)
}

func TestFiguresTellTheQueueByQueueAndState(t *testing.T) {
	b := setup(t)
	b.submit(0, 4)
	b.exec("UPDATE river_job SET scheduled_at = now() - interval '1 hour' WHERE id = (SELECT min(id) FROM river_job)")
	b.exec("UPDATE river_job SET state = 'running', attempt = 1, attempted_by = '{w}', attempted_at = now() - interval '2 hours' WHERE id = (SELECT max(id) FROM river_job)")
	b.exec("UPDATE river_job SET state = 'completed', finalized_at = now() WHERE id = (SELECT max(id) - 1 FROM river_job)")
	b.exec("INSERT INTO river_job (kind, queue, state, args, max_attempts, finalized_at) VALUES ('x', 'a_new_queue', 'discarded', '{}', 1, now())")

	got := gather(t, NewMetrics(b.pool, nil))
	wantFigures(t, got, map[string]float64{
		"crm_jobs default available": 2, "crm_jobs default running": 1, "crm_jobs default discarded": 0, "crm_jobs retention available": 0,
		"crm_jobs a_new_queue discarded": 1, "crm_oldest_available_job_seconds maintenance": 0,
	})
	wantAge(t, got, "crm_oldest_available_job_seconds default", 3600)
	wantAge(t, got, "crm_oldest_running_job_seconds", 7200)
	if _, there := got["crm_jobs default completed"]; there {
		t.Error("completed jobs are counted")
	}
}

func TestFiguresTellWhatPeopleHaveDecided(t *testing.T) {
	b := setup(t)
	b.exec(`INSERT INTO divergences (tenant_id, kind, owner, subject, accepted_at, resolved_at) VALUES
		($1, 'number_differs', 'crm', 'a', now(), NULL), ($1, 'number_differs', 'crm', 'b', NULL, NULL), ($1, 'number_differs', 'crm', 'c', now(), now())`, testTenant)
	b.exec(`INSERT INTO reconciliation_runs (id, tenant_id, scope, window_from, window_to, phase, started_at)
		VALUES (gen_random_uuid(), $1, 'erp', now() - interval '1 day', now(), 'invoices', now() - interval '3 hours')`, testTenant)
	b.submit(0, 1)
	b.exec(`INSERT INTO resolutions (id, tenant_id, operation_id, attempt, verdict, evidence, reason, proposed_at, proposed_by)
		SELECT gen_random_uuid(), tenant_id, id, 0, 'not_applied', 'e', 'r', now() - interval '4 hours', 'x' FROM operations`)

	got := gather(t, NewMetrics(b.pool, nil))
	wantFigures(t, got, map[string]float64{
		"crm_accepted_divergences number_differs": 1, "crm_accepted_divergences amount_differs": 0, "crm_open_resolutions": 1, "crm_paused_sources": 0,
	})
	wantAge(t, got, "crm_reconciliation_open_run_seconds", 3*3600)
	wantAge(t, got, "crm_oldest_open_resolution_seconds", 4*3600)
}

// Every word has its 0 before it first happens: an increase from nothing is none to Prometheus.
func TestEveryFigureIsThereFromTheStart(t *testing.T) {
	b := setup(t)
	got := gather(t, NewMetrics(b.pool, nil))
	var want []string
	add := func(name string, words ...string) {
		for _, word := range words {
			want = append(want, name+" "+word)
		}
	}
	add("crm_delivery_attempts_total", texts(crm.AttemptOutcomes())...)
	add("crm_operations_flagged_total", texts(crm.Reasons())...)
	add("crm_operations_needing_attention", append(texts(crm.Reasons()), "other")...)
	add("crm_operations", "pending", "processing", "unknown", "succeeded", "failed", "cancelled")
	add("crm_operations_oldest_seconds", "pending", "processing", "unknown")
	add("crm_accepted_divergences", texts(crm.DivergenceKinds())...)
	for _, channel := range crm.Channels() {
		add("crm_submitted_orders_total "+string(channel), texts(crm.Outcomes())...)
	}
	want = append(want, "crm_sweep_enqueued_total", "crm_operations_needing_attention_oldest_seconds", "crm_oldest_open_operation_seconds",
		"crm_operations_overdue_seconds", "crm_oldest_running_job_seconds", "crm_paused_sources", "crm_oldest_pause_seconds", "crm_oldest_paused_operation_seconds", "crm_open_resolutions",
		"crm_oldest_open_resolution_seconds", "crm_reconciliation_open_run_seconds", "sessions_open")
	for _, name := range want {
		if value, there := got[name]; !there || value != 0 {
			t.Errorf("%s is %v (there: %t) in an empty database, want 0", name, value, there)
		}
	}
	if got["database_size_bytes"] <= 0 {
		t.Errorf("the database takes %v bytes", got["database_size_bytes"])
	}
}

// A migration, or whoever else, has the table. The scrape comes back without its figures, and says so.
func TestALockedTableHoldsUpNoScrape(t *testing.T) {
	b := setup(t)
	tx, err := b.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(t.Context()) }()
	if _, err := tx.Exec(t.Context(), "LOCK TABLE operations IN ACCESS EXCLUSIVE MODE"); err != nil {
		t.Fatal(err)
	}
	metrics := NewMetrics(b.pool, nil)
	got := gather(t, metrics) // the lock is held until after it
	if _, there := got["crm_operations pending"]; there {
		t.Error("operations were counted under somebody else's lock")
	}
	wantFigures(t, got, map[string]float64{"crm_figures_timestamp_seconds open": 0, "crm_figures_timestamp_seconds final": 0, "crm_jobs default available": 0})
	if got["crm_figures_timestamp_seconds queue"] == 0 {
		t.Error("the queue's figures, which nobody locks, were not read")
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	testdb.Await(t, "the figures, once the lock is gone", func() bool { _, there := gather(t, metrics)["crm_operations pending"]; return there })
}

func TestFiguresThatCanNoLongerBeReadStandAndSayHowOldTheyAre(t *testing.T) {
	t.Parallel()
	desc := prometheus.NewDesc("test_figure", "For this test.", nil, nil)
	away := false
	read := func(context.Context) (float64, error) {
		if away {
			return 0, errors.New("away")
		}
		return 3, nil
	}
	tell := func(n float64, metrics chan<- prometheus.Metric) { gauge(metrics, desc, n) }
	group := newFigureGroup("crm", "test", time.Nanosecond, 0, nil, read, tell, desc)
	first := gather(t, group)
	away = true
	testdb.Await(t, "a reading that fails", func() bool { return gather(t, group)["crm_figures_failures_total test"] > 0 })
	wantFigures(t, gather(t, group), map[string]float64{
		"test_figure": 3, "crm_figures_timestamp_seconds test": first["crm_figures_timestamp_seconds test"],
	})
}

// The lists in crm and invoice that metrics show at 0 from the start have every word that the code knows.
func TestNoWordOfAVocabularyIsForgotten(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		dir, typ string
		listed   []string
	}{
		{"crm", "Reason", texts(crm.Reasons())},
		{"crm", "AttemptOutcome", texts(crm.AttemptOutcomes())},
		{"crm", "Outcome", texts(crm.Outcomes())},
		{"crm", "Channel", texts(crm.Channels())},
		{"invoice", "RegistrationReason", texts(invoice.RegistrationReasons())},
		{"invoice", "registrationOutcome", invoice.RegistrationOutcomes()},
	} {
		declared := constants(t, filepath.Join("..", tc.dir), tc.typ)
		slices.Sort(tc.listed)
		if diff := cmp.Diff(declared, tc.listed); diff != "" {
			t.Errorf("%s.%s: declared - listed +\n%s", tc.dir, tc.typ, diff)
		}
	}
}

// constants are the values, other than "", of a package's constants of a type.
func constants(t *testing.T, dir, typ string) (values []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok {
				return true
			}
			if name, ok := spec.Type.(*ast.Ident); !ok || name.Name != typ {
				return true
			}
			for _, value := range spec.Values {
				if text, ok := value.(*ast.BasicLit); ok && text.Value != `""` {
					unquoted, err := strconv.Unquote(text.Value)
					if err != nil {
						t.Fatal(err)
					}
					values = append(values, unquoted)
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(values)
	return values
}
