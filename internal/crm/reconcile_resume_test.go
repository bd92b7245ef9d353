package crm_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"invoicebridge/internal/crm"
	"invoicebridge/internal/idempotency"
	"invoicebridge/internal/invoice"

	"invoicebridge/internal/erpapi"
)

// A process that dies between two batches leaves a run that the next one goes on with: nothing is compared twice.
func TestARunThatWasCutOffGoesOnFromItsLastBatch(t *testing.T) {
	s := setupBothSides(t)
	s.opts.Batch = 2
	keys := s.invoiced(numbered("SO", 7)...)
	s.forgetInvoice(keys[3])
	s.issue("foreign", forOrder("SO-foreign")) // the newest: in the first batch
	for cut := 1; ; cut++ {
		ctx, kill := context.WithCancel(t.Context())
		books := &meddledBooks{Books: s.client}
		books.onList = func(context.Context) {
			if len(books.lists) == 2 { // one batch is written, the second one read
				kill()
			}
		}
		report, err := crm.NewReconciler(s.crm, books, s.opts).Run(ctx, deliverTenant, time.Time{})
		killed := ctx.Err() != nil
		kill()
		if cut > 1 && books.lists[0].Cursor == "" && books.lists[0].Role == "" {
			t.Errorf("run %d begins from the top", cut)
		}
		if !killed {
			if err != nil || report.Compared != 8 || report.Found != 2 {
				t.Errorf("report is %+v, %v", report, err)
			}
			break
		}
		if !errors.Is(err, context.Canceled) {
			t.Fatalf("cut off: %v", err)
		}
	}
	s.finds("missing_in_erp "+keys[3], "missing_in_crm foreign")
	if n := s.count(s.crm, "reconciliation_runs"); n != 1 {
		t.Errorf("there are %d runs", n)
	}
}

func TestAnEarlierWindowFollowsOnTheRunThatWasOpen(t *testing.T) {
	s := setupBothSides(t)
	s.issue("foreign", forOrder("SO-foreign"))
	s.plant(s.erp, "UPDATE invoices SET created_at = now() - interval '30 days'")
	ctx, kill := context.WithCancel(t.Context())
	books := &meddledBooks{Books: s.client, onList: func(context.Context) { kill() }}
	if _, err := crm.NewReconciler(s.crm, books, s.opts).Run(ctx, deliverTenant, time.Now().Add(-time.Hour)); !errors.Is(err, context.Canceled) {
		t.Fatalf("error is %v", err)
	}
	if _, err := s.reconciler().Run(t.Context(), deliverTenant, time.Now().AddDate(0, -2, 0)); err != nil {
		t.Fatal(err)
	}
	s.finds("missing_in_crm foreign")
	if n := s.count(s.crm, "reconciliation_runs WHERE finished_at IS NOT NULL"); n != 2 {
		t.Errorf("%d runs finished", n)
	}
}

// The end of any run is where the next one looks back from.
func TestALaterWindowLeavesNoGapBetweenRuns(t *testing.T) {
	s := setupBothSides(t)
	s.reconciles()
	s.plant(s.crm, `UPDATE reconciliation_runs SET window_from = window_from - interval '10 days',
		window_to = window_to - interval '10 days', finished_at = finished_at - interval '10 days'`)
	s.issue("foreign", forOrder("SO-foreign"))
	s.plant(s.erp, "UPDATE invoices SET created_at = now() - interval '5 days'")
	if _, err := s.reconciler().Run(t.Context(), deliverTenant, time.Now().Add(-time.Hour)); err != nil {
		t.Fatal(err)
	}
	s.reconciles()
	s.finds("missing_in_crm foreign")
}

// CASES O3: 250 invoices of one transaction share their time.
func TestInvoicesOfOneInstantAreEachVisitedOnce(t *testing.T) {
	s := setupBothSides(t)
	s.opts.Batch = 100
	const n = 250
	commands := make([]invoice.Command, n)
	var want []string
	for i, name := range numbered("key", n) {
		key, err := idempotency.ParseKey([]string{name})
		if err != nil {
			t.Fatal(err)
		}
		request, err := erpapi.DecodeInvoiceRequest([]byte(forOrder("SO-" + name)))
		if err != nil {
			t.Fatal(err)
		}
		commands[i] = invoice.Command{Tenant: deliverTenant, Caller: "test", Key: key, Request: request}
		want = append(want, "missing_in_crm "+name)
	}
	for _, result := range invoice.NewService(s.erp, invoice.Options{}).Issue(t.Context(), commands) {
		if result.Err != nil {
			t.Fatal(result.Err)
		}
	}
	if instants := s.count(s.erp, "(SELECT DISTINCT created_at FROM invoices) AS i"); instants != 1 {
		t.Fatalf("%d instants", instants)
	}
	if report := s.reconciles(); report.Compared != n || report.Found != n {
		t.Errorf("report is %+v", report)
	}
	s.finds(want...)
}

func TestOperationsOfOneInstantAreEachVisitedOnce(t *testing.T) {
	s := setupBothSides(t)
	s.opts.Batch = 2
	keys := s.invoiced(numbered("SO", 5)...)
	var want []string
	for _, key := range keys {
		s.forgetInvoice(key)
		want = append(want, "missing_in_erp "+key)
	}
	books := &meddledBooks{Books: s.client}
	if _, err := crm.NewReconciler(s.crm, books, s.opts).Run(t.Context(), deliverTenant, time.Time{}); err != nil {
		t.Fatal(err)
	}
	s.finds(want...)
	if len(books.asked) != len(keys) {
		t.Errorf("%d questions by key, want one for each of %d operations", len(books.asked), len(keys))
	}
}

func TestOperationsThatWereMetInTheListAreNotAskedFor(t *testing.T) {
	s := setupBothSides(t)
	s.invoiced("SO-1", "SO-2", "SO-3")
	books := &meddledBooks{Books: s.client}
	if _, err := crm.NewReconciler(s.crm, books, s.opts).Run(t.Context(), deliverTenant, time.Time{}); err != nil {
		t.Fatal(err)
	}
	if len(books.asked) != 0 || len(books.lists) != 1 {
		t.Errorf("asked for keys %v, lists %+v", books.asked, books.lists)
	}
}

// CASES M2, and bytes that no program of ours wrote.
func TestABadRowDoesNotStopTheOthers(t *testing.T) {
	s := setupBothSides(t)
	keys := s.invoiced("SO-broken", "SO-form", "SO-request", "SO-future", "SO-past", "SO-lost", "SO-year", "SO-keyless")
	s.plant(s.erp, `UPDATE invoices SET document = '\x7b00' WHERE operation_key = $1`, keys[0])
	s.rewrite(keys[1], `"sequence":1`, `"sequence":"one"`)
	s.plant(s.crm, `UPDATE operations SET request = '\x00' WHERE key = $1`, keys[2])
	// Times that are infinite, or beyond the year 9999, are refused by constraints; these are as far as one can go.
	s.plant(s.crm, "UPDATE operations SET created_at = '9999-01-01' WHERE key = $1", keys[3])
	s.unlearn(keys[4])
	s.plant(s.crm, "UPDATE operations SET created_at = '0001-01-01', next_attempt_at = '9999-01-01' WHERE key = $1", keys[4])
	s.forgetInvoice(keys[5])
	s.plant(s.erp, "UPDATE invoices SET created_at = '9999-01-01' WHERE operation_key = $1", keys[6])
	s.rewrite(keys[7], `"operation_key"`, `"operation"`)
	s.issue("foreign", forOrder("SO-foreign"))
	report := s.reconciles()
	if report.Unanswered != 0 {
		t.Errorf("report is %+v", report)
	}
	broken := 0
	for name, d := range s.divergences(false) {
		if strings.HasPrefix(name, "status_differs document ") && strings.Contains(d.Theirs, "can't be read") {
			broken++
		}
	}
	if broken != 2 {
		t.Errorf("%d of 2 documents without a key are told", broken)
	}
	open := s.divergences(false)
	for _, name := range []string{
		"status_differs " + keys[1], "amount_differs " + keys[2], "missing_in_erp " + keys[5], "missing_in_crm foreign",
	} {
		if _, found := open[name]; !found {
			t.Errorf("%s is not found", name)
		}
	}
	if s.count(s.crm, "operations WHERE status = 'succeeded'") != len(keys) {
		t.Error("the operation with times from far away is not settled")
	}
	if report := s.reconciles(); report.Found != 0 {
		t.Errorf("second report is %+v: %v", report, s.divergences(false))
	}
}

func TestManyOperationsWithoutAnInvoiceAreAskedForInParts(t *testing.T) {
	s := setupBothSides(t)
	keys := s.invoiced(numbered("SO", 45)...)
	var want []string
	for _, key := range keys {
		want = append(want, "missing_in_erp "+key)
	}
	s.plant(s.erp, "DELETE FROM invoices")
	books := &meddledBooks{Books: s.client}
	report, err := crm.NewReconciler(s.crm, books, s.opts).Run(t.Context(), deliverTenant, time.Time{})
	if err != nil || report.Compared != 45 || len(books.asked) != 45 {
		t.Errorf("report is %+v, %v; %d questions", report, err, len(books.asked))
	}
	s.finds(want...)
	if second := s.reconciles(); second.Found != 0 {
		t.Errorf("second report is %+v", second)
	}
	s.finds(want...)
}
