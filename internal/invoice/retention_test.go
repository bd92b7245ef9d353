package invoice

import (
	"bytes"
	"context"
	"maps"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"invoicebridge/internal/audit"
	"invoicebridge/internal/problem"
	"invoicebridge/internal/retention"
)

// purge runs to its end without pauses, and gives the rows removed of each table.
func (e erp) purge(keep Keep) map[string]int64 {
	e.t.Helper()
	purger := retention.NewPurger(RetentionSteps(e.pool, keep), retention.Options{
		Pace: retention.Pace{Batch: 2}, Pause: func(ctx context.Context, _ time.Duration) error { return ctx.Err() },
	})
	results, err := purger.Purge(e.t.Context(), nil)
	if err != nil {
		e.t.Fatal(err)
	}
	removed := map[string]int64{}
	for _, r := range results {
		if r.More {
			e.t.Errorf("the run ended before %s was done", r.Table)
		}
		if r.Rows > 0 {
			removed[r.Table] = r.Rows
		}
	}
	return removed
}

// age lets days pass for every reservation and conflict. (Invoices never change.)
func (e erp) age(days int) {
	e.t.Helper()
	e.exec("UPDATE idempotency_records SET first_seen_at = first_seen_at - $1 * interval '1 day', expires_at = expires_at - $1 * interval '1 day'", days)
	e.exec("UPDATE key_conflicts SET occurred_at = occurred_at - $1 * interval '1 day'", days)
}

// plantRegistration gives an invoice a registration in a status.
func (e erp) plantRegistration(a *Answer, set string) {
	e.t.Helper()
	e.exec(`INSERT INTO targets (tenant_id, id, kind, base_url, credential_ref, locatable) VALUES ($1, 'gov', 'einvoice', 'http://localhost', 'env:X', true)
	        ON CONFLICT DO NOTHING`, tenant)
	e.exec(`INSERT INTO registrations (id, tenant_id, invoice_id, target_id, key, status, next_attempt_at)
	        VALUES (gen_random_uuid(), $1, $2, 'gov', 'k', 'pending', now())`, tenant, a.InvoiceID)
	e.exec("UPDATE registrations SET "+set+" WHERE invoice_id = $1", a.InvoiceID)
}

const (
	finishedRegistration = "status = 'succeeded', next_attempt_at = NULL, finished_at = now(), reference = 'r'"
	failedRegistration   = "status = 'failed', next_attempt_at = NULL, finished_at = now()"
)

func TestAnExpiredKeyNeverMakesASecondInvoice(t *testing.T) {
	t.Parallel()
	e := setup(t)
	first := e.mustIssue("K1", request(t))
	e.age(91)
	if got := e.purge(Keep{}); got["idempotency_records"] != 1 {
		t.Fatalf("removed %v", got)
	}

	again := e.issue("K1", request(t))
	if again.Err != nil || !again.Answer.Replayed || !bytes.Equal(again.Answer.Document, first.Document) {
		t.Errorf("the late retry got %+v", again)
	}
	if again.FirstSeen.IsZero() || !again.Expires.IsZero() {
		t.Errorf("first seen %v, expires %v; the reservation is gone, the invoice remembers when it came", again.FirstSeen, again.Expires)
	}

	changed := request(t, `"10.00"`, `"11.00"`)
	reused := wantProblem(t, e.issue("K1", changed), problem.IdempotencyKeyReused)
	if diff := cmp.Diff([]string{"/lines/0/unit_price"}, reused.Differences); diff != "" {
		t.Error(diff)
	}

	same := wantProblem(t, e.issue("K2", request(t)), problem.AlreadyInvoiced)
	other := wantProblem(t, e.issue("K2", changed), problem.AlreadyInvoiced)
	if !same.SameContent || other.SameContent || same.Invoice.Number != first.Number || same.Invoice.OperationKey != "K1" {
		t.Errorf("another key is told %+v, with other content %+v", same, other)
	}

	op, err := e.Operation(t.Context(), tenant, "K1")
	if err != nil || op.Invoice == nil || op.Invoice.Number != first.Number || op.ExpiresAt != nil {
		t.Errorf("the operation is told as %+v, %v", op, err)
	}
	if n := e.invoices(); n != 1 {
		t.Errorf("%d invoices", n)
	}
}

func TestManyLateRetriesAtOnceGetTheOneInvoice(t *testing.T) {
	t.Parallel()
	e := setup(t)
	first := e.mustIssue("K1", request(t))
	e.age(91)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if r := e.issue("K1", request(t)); r.Err != nil || r.Answer.Number != first.Number {
				t.Errorf("got %+v", r)
			}
		})
	}
	e.purge(Keep{})
	wg.Wait()
	if n := e.invoices(); n != 1 {
		t.Errorf("%d invoices", n)
	}
}

func TestOnlyWhatIsCompleteAndExpiredGoes(t *testing.T) {
	t.Parallel()
	e := setup(t)
	held := map[string]string{ // key to what keeps it
		"pending":    "status = 'pending'",
		"processing": "status = 'processing', next_attempt_at = NULL, lease_until = now() - interval '40 days'",
		"unknown":    "status = 'unknown', next_attempt_at = now() - interval '40 days'",
		"flagged":    "status = 'unknown', flagged_at = now()",
	}
	states := maps.Clone(held)
	states["registered"], states["rejected"], states["plain"] = finishedRegistration, failedRegistration, ""
	issued := map[string]*Answer{}
	for key := range states {
		issued[key] = e.mustIssue(key, orderOf(t, "SO-"+key))
	}
	for key, set := range states {
		if set != "" {
			e.plantRegistration(issued[key], set)
		}
	}
	for _, status := range []string{"processing", "unknown"} {
		e.exec(`INSERT INTO idempotency_records (tenant_id, operation, key, fingerprint_version, fingerprint, status, expires_at)
		        VALUES ($1, 'other', $2, 1, decode(repeat('00', 32), 'hex'), $2, now() + interval '1 day')`, tenant, status)
	}
	e.age(130)
	e.mustIssue("young", orderOf(t, "SO-young"))

	if got := e.purge(Keep{}); got["idempotency_records"] != 3 {
		t.Errorf("removed %v, want the registered, the rejected and the plain one", got)
	}
	var left []string
	rows, _ := e.pool.Query(t.Context(), "SELECT operation || ' ' || key FROM idempotency_records ORDER BY 1")
	for rows.Next() {
		var key string
		if err := rows.Scan(&key); err != nil {
			t.Fatal(err)
		}
		left = append(left, key)
	}
	want := []string{
		"issue_invoice flagged", "issue_invoice pending", "issue_invoice processing", "issue_invoice unknown",
		"issue_invoice young", "other processing", "other unknown",
	}
	if diff := cmp.Diff(want, left); diff != "" {
		t.Error(diff)
	}

	e.exec("UPDATE registrations SET lease_until = NULL, flagged_at = NULL, " + finishedRegistration + " WHERE status NOT IN ('succeeded', 'failed')")
	if got := e.purge(Keep{}); got["idempotency_records"] != 4 {
		t.Errorf("removed %v once the registrations had ended", got)
	}
}

func TestAFlagKeepsTheReservationOfWhatHasEndedUntilItIsAcknowledged(t *testing.T) {
	t.Parallel()
	e := setup(t)
	e.plantRegistration(e.mustIssue("K1", request(t)), finishedRegistration+", flagged_at = now(), reason = 'registered_twice'")
	e.age(130)
	if got := e.purge(Keep{}); got["idempotency_records"] != 0 {
		t.Errorf("removed %v before anybody has looked", got)
	}
	var id uuid.UUID
	if err := e.pool.QueryRow(t.Context(), "SELECT id FROM registrations").Scan(&id); err != nil {
		t.Fatal(err)
	}
	if err := e.AcknowledgeRegistration(t.Context(), tenant, id, audit.By{Actor: "a", Reason: "cancelled there"}); err != nil {
		t.Fatal(err)
	}
	if got := e.purge(Keep{}); got["idempotency_records"] != 1 {
		t.Errorf("removed %v once a person had dealt with it", got)
	}
}

func TestAReservationThatARequestHoldsIsLeft(t *testing.T) {
	t.Parallel()
	e := setup(t)
	e.mustIssue("K1", request(t))
	e.mustIssue("K2", orderOf(t, "SO-2"))
	e.age(91)
	tx, err := e.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(context.Background()) //nolint:errcheck // the test's own lock
	if _, err := tx.Exec(t.Context(), "SELECT FROM idempotency_records WHERE key = 'K1' FOR UPDATE"); err != nil {
		t.Fatal(err)
	}
	if got := e.purge(Keep{}); got["idempotency_records"] != 1 {
		t.Errorf("removed %v", got)
	}
	if n := e.count("SELECT count(*) FROM idempotency_records WHERE key = 'K1'"); n != 1 {
		t.Error("the locked reservation is gone")
	}
}

func TestOneBadRowKeepsNoOther(t *testing.T) {
	t.Parallel()
	e := setup(t)
	for _, key := range []string{"K1", "bad", "K3", "K4", "K5"} {
		e.mustIssue(key, orderOf(t, "SO-"+key))
	}
	e.exec(`CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
	        BEGIN IF OLD.key = 'bad' THEN RAISE EXCEPTION 'this row is bad'; END IF; RETURN OLD; END $$`)
	e.exec("CREATE TRIGGER refuse BEFORE DELETE ON idempotency_records FOR EACH ROW EXECUTE FUNCTION refuse()")
	e.age(91)
	if got := e.purge(Keep{}); got["idempotency_records"] != 4 {
		t.Errorf("removed %v", got)
	}
	if n := e.count("SELECT count(*) FROM idempotency_records"); n != 1 {
		t.Errorf("%d reservations left", n)
	}
}

func TestNoRowHasAnAgeThatNobodyCanTell(t *testing.T) {
	t.Parallel()
	e := setup(t)
	e.mustIssue("K1", request(t))
	_ = wantProblem(t, e.issue("K1", request(t, `"10.00"`, `"11.00"`)), problem.IdempotencyKeyReused)
	for _, time := range []string{"infinity", "-infinity"} {
		if _, err := e.pool.Exec(t.Context(), "UPDATE idempotency_records SET expires_at = '"+time+"'"); err == nil {
			t.Errorf("accepted: a reservation until %s", time)
		}
	}
	for _, time := range []string{"infinity", "-infinity", "10000-01-01", "0001-01-01 BC"} {
		for _, change := range []string{
			"UPDATE key_conflicts SET occurred_at = '" + time + "'",
			"UPDATE idempotency_records SET first_seen_at = '" + time + "'",
		} {
			if _, err := e.pool.Exec(t.Context(), change); err == nil {
				t.Errorf("accepted: %s", change)
			}
		}
	}
}

func TestConflictsAndResolvedDivergencesGoAfterTheirTime(t *testing.T) {
	t.Parallel()
	e := setup(t)
	e.mustIssue("K1", request(t))
	_ = wantProblem(t, e.issue("K1", request(t, `"10.00"`, `"11.00"`)), problem.IdempotencyKeyReused)
	e.exec(`INSERT INTO divergences (tenant_id, kind, owner, subject, first_seen_at, last_seen_at, resolved_at)
	        SELECT $1, 'amount_differs', 'crm', n::text, now() - interval '90 days', now() - interval '90 days',
	               CASE n WHEN 1 THEN now() - interval '40 days' WHEN 2 THEN now() END
	        FROM generate_series(1, 3) AS n`, tenant)
	day := 24 * time.Hour
	e.age(40)
	if diff := cmp.Diff(map[string]int64{}, e.purge(Keep{Conflicts: 50 * day, Divergences: 50 * day})); diff != "" {
		t.Error(diff)
	}
	want := map[string]int64{"key_conflicts": 1, "divergences": 1}
	if diff := cmp.Diff(want, e.purge(Keep{Conflicts: 30 * day, Divergences: 30 * day})); diff != "" {
		t.Error(diff)
	}
	if n := e.count("SELECT count(*) FROM divergences WHERE subject IN ('2', '3')"); n != 2 {
		t.Error("a divergence that is open, or was just resolved, is gone")
	}
}

func TestADryRunCountsAndRemovesNothing(t *testing.T) {
	t.Parallel()
	e := setup(t)
	for _, key := range []string{"K1", "K2", "K3"} {
		e.mustIssue(key, orderOf(t, "SO-"+key))
	}
	e.age(92)
	purger := retention.NewPurger(RetentionSteps(e.pool, Keep{}), retention.Options{Pace: retention.Pace{Batch: 2}})
	overdue, err := purger.Overdue(t.Context())
	if err != nil || overdue[0].Table != "idempotency_records" || overdue[0].By < 47*time.Hour || overdue[0].By > 49*time.Hour {
		t.Errorf("overdue: %v, %v", overdue, err)
	}
	results, err := purger.DryRun(t.Context(), nil)
	if err != nil || results[0].Rows != 3 {
		t.Errorf("%+v, %v", results, err)
	}
	if n := e.count("SELECT count(*) FROM idempotency_records"); n != 3 {
		t.Errorf("%d reservations left", n)
	}
	if got := e.purge(Keep{}); got["idempotency_records"] != 3 {
		t.Errorf("removed %v", got)
	}
	if overdue, err = purger.Overdue(t.Context()); err != nil || overdue[0].By != 0 {
		t.Errorf("overdue: %v, %v", overdue, err)
	}
}
