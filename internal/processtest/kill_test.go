package processtest

import (
	"net/http"
	"testing"

	"invoicebridge/internal/fleet"
	"invoicebridge/internal/testdb"

	"github.com/jackc/pgx/v5/pgxpool"
)

func TestWorkerKilledAfterTheERPsCommitLeavesOneInvoiceAndItsNumber(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	erp := w.serveERP()
	held := make(chan struct{}, 1)
	rec := record(t, erp.URL(), func(_ http.ResponseWriter, r *http.Request, body []byte) bool {
		if r.Method != http.MethodPost {
			return false
		}
		if got := w.invoice(erp.URL(), r.Header.Get("Idempotency-Key"), "SO-1001"); got.status != http.StatusCreated {
			t.Errorf("the ERP answers %d %s", got.status, got.body)
		}
		held <- struct{}{} // the ERP has committed, and the answer never comes
		<-r.Context().Done()
		return true
	})
	worker := w.serveCRM(rec.URL, "ATTEMPT_TIMEOUT=60s")
	w.submit(worker.URL(), "SO-1001")
	<-held
	worker.Kill()
	w.wantInvoices(1)
	if n := number(t, w.crm, `SELECT count(*) FROM operations WHERE status = 'processing' AND attempt = 1`); n != 1 {
		t.Fatal("the books do not say that attempt 1 was being sent")
	}

	w.timePasses()
	rec2 := record(t, erp.URL(), func(w http.ResponseWriter, r *http.Request, _ []byte) bool {
		if r.Method == http.MethodPost {
			return false
		}
		w.WriteHeader(http.StatusServiceUnavailable) // or reconciliation would settle it by asking
		return true
	})
	w.serveCRM(rec2.URL)
	testdb.Await(t, "another worker has settled the operation", w.settled)
	w.wantInvoices(1)
	w.wantDelivered(1)
	if n := number(t, w.crm, `SELECT count(*) FROM attempts WHERE (number, outcome) IN ((1, 'overtaken'), (2, 'replayed'))`); n != 2 {
		t.Error("the attempts are not told as overtaken and replayed")
	}
	if first, second := rec.next(t), rec2.next(t); first != second {
		t.Errorf("the second worker sent something else:\n%+v\n%+v", first, second)
	}
}

// timePasses ends the leases of a dead worker: the operation's, and that of its job in the queue. What it had fetched and not begun
// has been due for long then, so that the sweep takes it up.
func (w *world) timePasses() {
	sqlExec(w.t, w.crm, `UPDATE operations SET next_attempt_at = next_attempt_at - interval '1 hour' WHERE next_attempt_at <= now()`)
	sqlExec(w.t, w.crm, `UPDATE operations SET lease_until = lease_until - interval '1 hour' WHERE status = 'processing'`)
	sqlExec(w.t, w.crm, `UPDATE river_job SET attempted_at = attempted_at - interval '1 hour' WHERE state = 'running'`)
}

// The last statements and COMMIT go to the database in one message, so it may commit what its dead client sent, or not. Either
// way the retry is answered with the one invoice there is.
func TestERPKilledInsideItsTransactionLeavesOneInvoiceOrNone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	erp := w.serveERP()
	release := holdInvoiceInserts(t, w.erp)
	ended := make(chan answer, 1)
	go func() { ended <- w.invoice(erp.URL(), "K1", "SO-1001") }()
	testdb.Await(t, "the insert of the invoice is held", func() bool { return heldInserts(t, w.erp) == 1 })
	erp.Kill()
	release()
	if got := <-ended; got.err == nil {
		t.Fatalf("an answer from a dead program: %d %s", got.status, got.body)
	}

	again := w.serveERP()
	got := w.invoice(again.URL(), "K1", "SO-1001")
	if got.status != http.StatusCreated {
		t.Fatalf("the retry is answered %d, replayed %q: %s", got.status, got.header.Get("Idempotent-Replayed"), got.body)
	}
	w.wantInvoices(1)
	if n := number(t, w.erp, `SELECT count(*) FROM idempotency_records`); n != 1 {
		t.Errorf("%d reservations", n)
	}
}

// holdInvoiceInserts makes every insert of an invoice wait until release.
func holdInvoiceInserts(t testing.TB, pool *pgxpool.Pool) (release func()) {
	t.Helper()
	const lock = 4711
	sqlExec(t, pool, `CREATE FUNCTION hold() RETURNS trigger LANGUAGE plpgsql AS
		$$ BEGIN PERFORM pg_advisory_xact_lock_shared(4711); RETURN NEW; END $$`)
	sqlExec(t, pool, `CREATE TRIGGER hold BEFORE INSERT ON invoices FOR EACH ROW EXECUTE FUNCTION hold()`)
	conn, err := pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(t.Context(), `SELECT pg_advisory_lock($1)`, lock); err != nil {
		t.Fatal(err)
	}
	return func() {
		defer conn.Release()
		if _, err := conn.Exec(t.Context(), `SELECT pg_advisory_unlock($1)`, lock); err != nil {
			t.Fatal(err)
		}
	}
}

// heldInserts counts what waits because of holdInvoiceInserts.
func heldInserts(t testing.TB, pool *pgxpool.Pool) int {
	t.Helper()
	return number(t, pool, `SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted
		AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`)
}

func TestGracefulStopEndsWithStatusZeroAndLeavesNoAttemptRunning(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	erp := w.serveERP("ERP_SHUTDOWN_TIMEOUT=5s")
	arrived := make(chan struct{}, 1)
	rec := record(t, erp.URL(), func(_ http.ResponseWriter, r *http.Request, _ []byte) bool {
		arrived <- struct{}{}
		<-r.Context().Done() // silence
		return true
	})
	worker := w.serveCRM(rec.URL, "ATTEMPT_TIMEOUT=60s", "SHUTDOWN_TIMEOUT=2s")
	w.submit(worker.URL(), "SO-1001")
	<-arrived
	if code := worker.Stop(); code != 0 {
		t.Errorf("the worker ends with status %d", code)
	}
	if code := erp.Stop(); code != 0 {
		t.Errorf("the ERP ends with status %d", code)
	}
	// Nobody knows whether the request was applied, and the books say so.
	if n := number(t, w.crm, `SELECT count(*) FROM operations WHERE status = 'unknown' AND next_attempt_at < now() + interval '1 minute'`); n != 1 {
		t.Error("the interrupted operation is not unknown and due soon")
	}
	if n := number(t, w.crm, `SELECT count(*) FROM attempts WHERE outcome = 'lost'`); n != 1 {
		t.Error("the interrupted attempt is not told as lost")
	}
}

func TestServiceRefusesASchemaItDoesNotKnowAndSaysWhatToRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	sqlExec(t, w.erp, `DELETE FROM schema_version WHERE version_id = (SELECT max(version_id) FROM schema_version)`)
	got := refused(t, "erp-api", "ERP_LISTEN=127.0.0.1:0", "ERP_DATABASE_URL="+w.erpDSN)
	wantText(t, got, "erp-api migrate up")
}

func TestSettingsAreCheckedAsAWholeAndEachMistakeNamesItsVariable(t *testing.T) {
	t.Parallel()
	got := refused(t, "crm-worker", "CRM_LISTEN=nowhere", "CRM_DATABASE_URL=", "ERP_URL=ftp://x", "ATTEMPT_TIMEOUT=1ms")
	for _, variable := range []string{"CRM_LISTEN", "CRM_DATABASE_URL", "ERP_URL", "ATTEMPT_TIMEOUT"} {
		wantText(t, got, variable)
	}
}

func TestLinesAboutAnOperationBearItsKeyAndTenant(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	erp := w.serveERP()
	worker := w.serveCRM(erp.URL())
	w.submit(worker.URL(), "SO-1001")
	testdb.Await(t, "the order is invoiced", w.settled)
	var key string
	if err := w.crm.QueryRow(t.Context(), `SELECT key FROM operations`).Scan(&key); err != nil {
		t.Fatal(err)
	}
	for name, p := range map[string]*fleet.Process{"erp-api": erp, "crm-worker": worker} {
		if code := p.Stop(); code != 0 {
			t.Errorf("%s ends with status %d", name, code)
		}
		if lines := p.LinesWith(`"tenant":"acme"`, `"operation_key":"`+key+`"`); lines == 0 {
			t.Errorf("no line of %s bears the key and the tenant:\n%s", name, p.Log())
		}
	}
}
