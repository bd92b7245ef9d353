package invoice

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"invoicebridge/internal/problem"
)

func TestTheSameRequestAgainGetsTheFirstAnswerByteForByte(t *testing.T) {
	t.Parallel()
	e := setup(t)
	first := e.issue("K1", request(t))
	if first.Err != nil || first.Answer.Replayed || first.Answer.Number != "INV-2026-000001" {
		t.Fatalf("first: %+v %+v", first, first.Answer)
	}
	again := e.replica().issue("K1", request(t))
	if again.Err != nil || !again.Answer.Replayed {
		t.Fatalf("again: %+v", again)
	}
	again.Answer.Replayed = false
	if diff := cmp.Diff(first, again); diff != "" {
		t.Errorf("the replay differs:\n%s", diff)
	}
	if got := first.Expires.Sub(first.FirstSeen); got != DefaultKeyRetention {
		t.Errorf("the key is kept for %v", got)
	}
	got := document(t, first.Answer)
	if got.Net != "20.00" || got.VAT != "3.80" || got.Gross != "23.80" || got.Payable != "23.80" || got.OperationKey != "K1" {
		t.Errorf("document: %s", first.Answer.Document)
	}
	if !got.CreatedAt.Equal(first.FirstSeen) {
		t.Errorf("created_at %v is not the transaction's time %v", got.CreatedAt, first.FirstSeen)
	}
}

func TestAUsedKeyWithAnotherRequestIsRefusedAndRecorded(t *testing.T) {
	t.Parallel()
	e := setup(t)
	e.mustIssue("K1", request(t))
	p := wantProblem(t, e.issue("K1", request(t, "10.00", "900.00")), problem.IdempotencyKeyReused)
	if diff := cmp.Diff([]string{"/lines/0/unit_price"}, p.Differences); diff != "" {
		t.Error(diff)
	}
	if n := e.count(`SELECT count(*) FROM key_conflicts WHERE tenant_id = 't1' AND key = 'K1' AND caller = 'test'
	                 AND operation = 'issue_invoice' AND differences = ARRAY['/lines/0/unit_price']`); n != 1 {
		t.Errorf("%d conflicts recorded", n)
	}
	if e.invoices() != 1 {
		t.Error("a second invoice")
	}
}
