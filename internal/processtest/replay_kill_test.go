package processtest

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"

	"invoicebridge/internal/testdb"
)

// A run hands back 50 operations a transaction. The second batch is stopped half-way by a lock, and the worker killed there:
// half of the batch is handed back in a transaction that will never be committed, and the first batch is on its way.
func TestWorkerKilledInTheMiddleOfAReplayOfManyLeavesNoneOutAndHandsNoneBackTwice(t *testing.T) {
	t.Parallel()
	const operations, batch, stopsAt = 120, 50, 75
	w := newWorld(t)
	erp := w.serveERP()
	var answers atomic.Bool
	rec := record(t, erp.URL(), func(to http.ResponseWriter, r *http.Request, body []byte) bool {
		if r.URL.Path == "/v1/invoices" && r.Method == http.MethodGet && answers.Load() {
			to.WriteHeader(http.StatusServiceUnavailable) // or the next worker's reconciliation settles operations before their attempt
			return true
		}
		if r.Method != http.MethodPost || answers.Load() {
			return false
		}
		if len(body)%2 == 0 { // some are applied, and nobody learns of it
			w.send(erp.URL(), r.URL.Path, w.erpToken, r.Header.Get("Idempotency-Key"), string(body))
		}
		panic(http.ErrAbortHandler)
	})
	killed := w.serveCRM(rec.URL, "TOTAL_TIME=1s", "ATTEMPT_TIMEOUT=60s")
	operator := w.newOperator(killed.URL())
	testdb.Await(t, "the reconciliation that begins with the service is over: it would settle operations", func() bool {
		return number(t, w.crm, `SELECT count(*) FROM reconciliation_runs WHERE finished_at IS NOT NULL`) > 0
	})
	names := make([]string, operations)
	for i := range names {
		names[i] = fmt.Sprintf("SO-%d", i)
	}
	w.submit(killed.URL(), names...)
	testdb.Await(t, "all are left to people", func() bool {
		return number(t, w.crm, `SELECT count(*) FROM operations WHERE status = 'unknown' AND flagged_at IS NOT NULL`) == operations
	})
	attempts := number(t, w.crm, `SELECT count(*) FROM attempts`)
	var key string
	if err := w.crm.QueryRow(t.Context(), `SELECT key FROM operations ORDER BY id OFFSET $1 LIMIT 1`, stopsAt-1).Scan(&key); err != nil {
		t.Fatal(err)
	}

	answers.Store(true)
	release := w.holdOperation(key)
	run := operator.startReplays(operations)
	w.awaitReplaysWaiting(1)
	killed.Kill()
	release()
	testdb.Await(t, "the dead worker's transactions are gone", func() bool {
		return number(t, w.crm, `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name LIKE 'crm-worker%'`) == 0
	})
	for what, query := range map[string]string{
		"operations have a result":    `SELECT count(*) FROM replay_items WHERE result = 'queued'`,
		"operations were handed back": `SELECT count(*) FROM audit_entries WHERE action = 'operation.replay'`,
	} {
		if n := number(t, w.crm, query); n != batch {
			t.Fatalf("%d %s, want those of the first batch, %d", n, what, batch)
		}
	}

	w.timePasses()
	sqlExec(t, w.crm, `UPDATE replay_runs SET updated_at = updated_at - interval '1 hour'`)
	operator.base = w.serveCRM(rec.URL, "ATTEMPT_TIMEOUT=60s").URL()
	testdb.Await(t, "another worker has brought the replay to its end", func() bool { return operator.run(run).Waiting == 0 })
	testdb.Await(t, "every operation is attempted again and settled", func() bool {
		return number(t, w.crm, `SELECT count(*) FROM attempts`) >= attempts+operations && w.settled()
	})
	if r := operator.run(run); r != (replayRun{Total: operations, Queued: operations}) {
		t.Errorf("the replay ends as %+v", r)
	}
	if n := number(t, w.crm, `SELECT count(*) FROM replay_items WHERE result <> 'queued' OR done_at IS NULL`); n != 0 {
		t.Errorf("%d operations of the replay have no result", n)
	}
	handedBack := `SELECT count(*) FROM (SELECT subject FROM audit_entries WHERE action = 'operation.replay' GROUP BY subject HAVING count(*) = 1) AS once`
	if n := number(t, w.crm, handedBack); n != operations {
		t.Errorf("%d operations were handed back once, want %d", n, operations)
	}
	again := number(t, w.crm, `SELECT count(*) FROM attempts`) - attempts
	overtaken := number(t, w.crm, `SELECT count(*) FROM attempts WHERE outcome = 'overtaken'`) // in flight when the worker died
	if again != operations+overtaken {
		t.Errorf("%d attempts were made by the replay, want one each, and %d for those that died", again, overtaken)
	}
	w.wantInvoices(operations)
	w.wantDelivered(operations)
	rec.wantOneBodyPerKey(t)
}
