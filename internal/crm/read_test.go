package crm

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"invoicebridge/internal/problem"
)

func TestOrderIsReadWithAllOperationsItEverLedTo(t *testing.T) {
	s := setupSubmit(t)
	sent := s.takes(anOrder("SO-1", "10.00"), OutcomeCreated).Operations[0].Key
	send(t, s.pool, sent)
	s.exec(`INSERT INTO attempts (operation_id, number, worker, outcome, finished_at, http_status)
		SELECT id, 1, 'w-1', 'delivered', now(), 201 FROM operations`)
	s.succeed(sent)
	o := anOrder("SO-1", "10.00").inParts(1)
	o.Invoices[1].Role = ""
	s.takes(o, OutcomeChanged)                        // an advance more
	s.takes(anOrder("SO-1", "10.00"), OutcomeChanged) // the advance is cancelled
	got, err := s.GetOrder(t.Context(), testTenant, "crm-1\u00a0", " SO-1")
	if err != nil {
		t.Fatal(err)
	}
	if got.Version != 3 || len(got.Operations) != 2 || got.Operations[1].Status != StatusCancelled {
		t.Fatalf("order is %+v", got)
	}
	op := got.Operations[0]
	if op.Invoice == nil || op.Invoice.Number != "INV-2026-000001" || len(op.History) != 1 || op.History[0].Outcome != OutcomeDelivered {
		t.Errorf("operation is %+v", op)
	}
	single, err := s.GetOperation(t.Context(), testTenant, sent)
	if diff := cmp.Diff(op, single); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
}

func TestThingsOfAnotherTenantDoNotExist(t *testing.T) {
	s := setupSubmit(t)
	key := s.takes(anOrder("SO-1", "10.00"), OutcomeCreated).Operations[0].Key
	if _, err := s.GetOrder(t.Context(), "other", "crm-1", "SO-1"); !problem.Is(err, problem.NotFound) {
		t.Errorf("order: %v", err)
	}
	if _, err := s.GetOperation(t.Context(), "other", key); !problem.Is(err, problem.NotFound) {
		t.Errorf("operation: %v", err)
	}
	if page, _, err := s.ListOperations(t.Context(), "other", OperationFilter{}); err != nil || len(page) != 0 {
		t.Errorf("list: %+v, %v", page, err)
	}
}

// O3: operations of one call share their time.
func TestPagesShowEachOperationOnceWhileOthersComeIn(t *testing.T) {
	s := setupSubmit(t)
	s.submit(manyOrders(25)...)
	seen := map[string]int{}
	for cursor, pages := "", 0; pages == 0 || cursor != ""; pages++ {
		page, next, err := s.ListOperations(t.Context(), testTenant, OperationFilter{Limit: 10, Cursor: cursor, Status: StatusPending})
		if err != nil {
			t.Fatal(err)
		}
		for _, op := range page {
			seen[op.Key]++
		}
		s.takes(anOrder("new-"+string(rune('a'+pages)), "1.00"), OutcomeCreated)
		cursor = next
	}
	if len(seen) != 25 {
		t.Errorf("%d operations seen, want 25", len(seen))
	}
	for key, n := range seen {
		if n != 1 {
			t.Errorf("%s was shown %d times", key, n)
		}
	}
}

func TestWrongFilterIsRefused(t *testing.T) {
	s := setupSubmit(t)
	for _, f := range []OperationFilter{{Limit: -1}, {Limit: 201}, {Status: "done"}, {Cursor: "%"}, {Cursor: "eHg"}} {
		if _, _, err := s.ListOperations(t.Context(), testTenant, f); !problem.Is(err, problem.MalformedRequest) {
			t.Errorf("%+v: %v", f, err)
		}
	}
	if page, _, err := s.ListOperations(t.Context(), testTenant, OperationFilter{Status: StatusFailed}); err != nil || len(page) != 0 {
		t.Errorf("%+v, %v", page, err)
	}
}
