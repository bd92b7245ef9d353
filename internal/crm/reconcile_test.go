package crm_test

import (
	"context"
	"encoding/base64"
	"errors"
	"strings"
	"testing"
	"time"

	"invoicebridge/internal/crm"
	"invoicebridge/internal/crmdb"
	"invoicebridge/internal/erpapi"
	"invoicebridge/internal/problem"
)

func TestEqualBooksHaveNoDivergence(t *testing.T) {
	s := setupBothSides(t)
	s.opts.Batch = 2
	s.invoiced("SO-1", "SO-2", "SO-3")
	s.submitted(plainOrder("SO-4")) // not sent yet
	if report := s.reconciles(); report.Compared != 3 || report.Found != 0 || report.Repaired != 0 {
		t.Errorf("report is %+v", report)
	}
	s.finds()
	if n := s.count(s.crm, "reconciliation_matches"); n != 0 {
		t.Errorf("%d rows of scratch are left", n)
	}
}

// Issue 3, section 3: each type, made by SQL, is found within one run; a second finds nothing new.
func TestPlantedDivergencesOfEachKindAreFoundInOneRun(t *testing.T) {
	s := setupBothSides(t)
	s.opts.Batch = 3
	s.opts.Settle = time.Nanosecond
	k := s.invoiced("SO-same", "SO-lost", "SO-price", "SO-customer", "SO-number", "SO-failed", "SO-unknown", "SO-dead", "SO-flagged",
		"SO-credited", "SO-total", "SO-gone")
	lost, price, customer, number, failed, unknown, dead, flagged, total, gone := k[1], k[2], k[3], k[4], k[5], k[6], k[7], k[8], k[10], k[11]
	s.forgetInvoice(lost)
	s.rewrite(price, `"unit_price":"10"`, `"unit_price":"11"`)
	s.rewrite(customer, "XX000000001", "XX000000002")
	s.plant(s.crm, "UPDATE operations SET invoice_number = 'INV-0' WHERE key = $1", number)
	s.plant(s.crm, "UPDATE operations SET status = 'failed', reason = 'rejected', invoice_id = NULL, invoice_number = NULL WHERE key = $1", failed)
	s.unlearn(unknown)
	s.plant(s.crm, `UPDATE operations SET status = 'processing', finished_at = NULL, invoice_id = NULL, invoice_number = NULL,
	                lease_until = now() - interval '1 minute' WHERE key = $1`, dead)
	s.unlearn(flagged)
	s.plant(s.crm, "UPDATE operations SET flagged_at = now() WHERE key = $1", flagged)
	s.rewrite(total, `"gross":"23.80"`, `"gross":"32.80"`)
	s.unlearn(gone)
	s.forgetInvoice(gone)
	foreign := s.issue("foreign-key", forOrder("SO-foreign"))
	credited := s.operation(k[9]).Invoice
	note := s.issue("note-key", strings.NewReplacer("SO-1001", "SO-credited", `"role":"final"`, `"role":"credit_note"`,
		`"lines"`, `"corrects":"`+credited.Number+`","lines"`).Replace(base))

	report := s.reconciles()
	open := s.finds("missing_in_erp "+lost, "missing_in_erp "+gone, "missing_in_crm foreign-key", "amount_differs "+price,
		"customer_differs "+customer, "status_differs "+failed, "order_credited crm-1/SO-credited", "amount_differs "+total)
	repaired := s.divergences(true)
	for name, action := range map[string]string{
		"number_differs " + number:    "took over " + s.operation(number).Invoice.Number,
		"unknown_resolved " + unknown: "succeeded with " + s.operation(unknown).Invoice.Number,
		"unknown_resolved " + dead:    "succeeded with " + s.operation(dead).Invoice.Number,
		"unknown_resolved " + flagged: "succeeded with " + s.operation(flagged).Invoice.Number,
	} {
		if repaired[name].Action != action || repaired[name].ResolvedAt == nil {
			t.Errorf("%s is %+v", name, repaired[name])
		}
	}
	if report.Found != 12 || report.Repaired != 4 || len(repaired) != 4 {
		t.Errorf("report is %+v; %d are resolved", report, len(repaired))
	}
	for name, want := range map[string][2]string{
		"amount_differs " + price:          {`/lines/0/unit_price "10"`, `/lines/0/unit_price "11"`},
		"customer_differs " + customer:     {`/customer/vat_id "XX000000001"`, `/customer/vat_id "XX000000002"`},
		"amount_differs " + total:          {"gross 23.8 by its lines", `gross "32.80"`},
		"status_differs " + failed:         {"is failed (rejected)", "invoice INV-2026-"},
		"missing_in_erp " + lost:           {"is succeeded, invoice INV-2026-", "no invoice of this key or business claim"},
		"missing_in_crm foreign-key":       {"no operation of this key", foreign.Number},
		"order_credited crm-1/SO-credited": {"version 1 is confirmed", credited.Number + " of 23.80 EUR is credited with 23.8 by " + note.Number},
		"missing_in_erp " + gone:           {"is unknown", "no invoice of this key or business claim"},
	} {
		d := open[name]
		if !strings.Contains(d.Ours, want[0]) || !strings.Contains(d.Theirs, want[1]) {
			t.Errorf("%s: ours %q, theirs %q; want %q, %q in them", name, d.Ours, d.Theirs, want[0], want[1])
		}
		if d.Owner == "" || d.Action == "" || d.LastSeenAt.IsZero() || d.ResolvedAt != nil {
			t.Errorf("%s is %+v", name, d)
		}
	}
	if d := open["missing_in_erp "+gone]; !strings.Contains(d.Action, "sent again") {
		t.Errorf("what is done about it: %q", d.Action)
	}

	second := s.reconciles()
	if second.Found != 0 || second.Repaired != 0 {
		t.Errorf("second report is %+v", second)
	}
	for name, d := range s.divergences(false) {
		if first := open[name]; d.ID != first.ID || !d.FirstSeenAt.Equal(first.FirstSeenAt) || !d.LastSeenAt.After(first.LastSeenAt) {
			t.Errorf("%s was %+v and is %+v", name, first, d)
		}
	}
}

func TestWhatIsPutRightIsResolvedHoweverOldItIs(t *testing.T) {
	s := setupBothSides(t)
	s.opts.Overlap = time.Nanosecond // the second run's window holds nothing
	k := s.invoiced("SO-price", "SO-customer")
	s.rewrite(k[0], `"unit_price":"10"`, `"unit_price":"11"`)
	s.rewrite(k[1], "Test Customer A", "Test Customer B")
	s.issue("foreign", forOrder("SO-foreign"))
	s.reconciles()
	s.finds("amount_differs "+k[0], "customer_differs "+k[1], "missing_in_crm foreign")
	s.rewrite(k[0], `"unit_price":"11"`, `"unit_price":"10"`)
	s.forgetInvoice("foreign")
	if report := s.reconciles(); report.Found != 0 {
		t.Errorf("report is %+v", report)
	}
	s.finds("customer_differs " + k[1])
	for _, name := range []string{"amount_differs " + k[0], "missing_in_crm foreign"} {
		if d := s.divergences(true)[name]; d.ResolvedAt == nil || d.Action != "gone: both sides agree" {
			t.Errorf("%s is %+v", name, d)
		}
	}
}

// A request may still be at work at the ERP: its "not found" proves nothing then.
func TestNotFoundIsBelievedOnlyWhenNothingCanBeOnItsWay(t *testing.T) {
	s := setupBothSides(t)
	k := s.invoiced("SO-just-sent", "SO-processing")
	s.unlearn(k[0])
	s.plant(s.crm, `UPDATE operations SET status = 'processing', finished_at = NULL, invoice_id = NULL, invoice_number = NULL,
	                lease_until = now() + interval '1 minute' WHERE key = $1`, k[1])
	s.forgetInvoice(k[0])
	s.forgetInvoice(k[1])
	s.reconciles()
	s.finds()
	s.opts.Settle = time.Nanosecond
	s.reconciles()
	s.finds("missing_in_erp " + k[0]) // an attempt may be running at the other one
}

func TestAnAttemptThatIsRunningIsLeftAlone(t *testing.T) {
	s := setupBothSides(t)
	key := s.invoiced("SO-1")[0]
	s.plant(s.crm, `UPDATE operations SET status = 'processing', finished_at = NULL, invoice_id = NULL, invoice_number = NULL,
	                lease_until = now() + interval '1 minute' WHERE key = $1`, key)
	s.reconciles()
	s.finds()
	if op := s.operation(key); op.Status != crm.StatusProcessing {
		t.Errorf("operation is %+v", op)
	}
}

func TestAnOpenOperationIsNotSettledWithAnInvoiceOfOtherContent(t *testing.T) {
	s := setupBothSides(t)
	key := s.invoiced("SO-1")[0]
	s.unlearn(key)
	s.rewrite(key, `"quantity":"2"`, `"quantity":"3"`)
	s.reconciles()
	s.finds("amount_differs " + key)
	if op := s.operation(key); op.Status != crm.StatusUnknown {
		t.Errorf("operation is %+v", op)
	}
}

func TestAnInvoiceOfTheSameClaimAndContentUnderAnotherKeySettles(t *testing.T) {
	s := setupBothSides(t)
	key := s.invoiced("SO-1")[0]
	s.forgetInvoice(key)
	s.plant(s.erp, "DELETE FROM idempotency_records")
	s.unlearn(key)
	other := s.issue("another-key", forOrder("SO-1"))
	s.reconciles()
	s.finds()
	op := s.operation(key)
	if op.Status != crm.StatusSucceeded || op.Invoice.Number != other.Number || op.Reason != crm.ReasonAlreadyInvoiced {
		t.Errorf("operation is %+v", op)
	}
	if report := s.reconciles(); report.Found != 0 {
		t.Errorf("second report is %+v", report)
	}
}

// CASES A3 (a).
func TestACreditedOrderIsListedAsCreditedAndMakesNoTask(t *testing.T) {
	s := setupBothSides(t)
	key := s.invoiced("SO-1002")[0]
	s.issue("note", strings.NewReplacer("SO-1001", "SO-1002", `"role":"final"`, `"role":"credit_note"`,
		`"lines"`, `"corrects":"`+s.operation(key).Invoice.ID+`","lines"`).Replace(base))
	jobsBefore := s.count(s.crm, "river_job")
	s.reconciles()
	again, err := s.service.Submit(t.Context(), deliverTenant, crm.ChannelAPI, []crm.Order{plainOrder("SO-1002")}, crm.SubmitOptions{})
	if err != nil || again[0].Outcome != crm.OutcomeAlreadyThere {
		t.Errorf("the same order again: %+v, %v", again, err)
	}
	s.reconciles()
	s.finds("order_credited crm-1/SO-1002")
	if n := s.count(s.crm, "operations"); n != 1 {
		t.Errorf("there are %d operations", n)
	}
	if n := s.count(s.crm, "river_job"); n != jobsBefore {
		t.Errorf("there are %d jobs, %d before", n, jobsBefore)
	}
	if n := s.count(s.erp, "invoices"); n != 2 {
		t.Errorf("there are %d invoices", n)
	}
}

func TestWhatWasNeverSentIsEnqueued(t *testing.T) {
	s := setupBothSides(t)
	s.submitted(plainOrder("SO-1"))
	s.plant(s.crm, "DELETE FROM river_job")
	s.plant(s.crm, "UPDATE operations SET next_attempt_at = now() - interval '1 hour'")
	inserter := s.inserter()
	s.opts.Enqueue = crm.NewSweeper(s.crm, inserter, crm.SweeperOptions{JobKind: "deliver_operation", JobTimeout: time.Minute}).Sweep
	if report := s.reconciles(); report.Repaired != 1 || s.count(s.crm, "river_job") != 1 {
		t.Errorf("report is %+v, jobs %d", report, s.count(s.crm, "river_job"))
	}
	s.finds()
}

func TestWithoutATokenNothingIsCompared(t *testing.T) {
	s := setupBothSides(t)
	s.opts.Token = nil
	if _, err := s.reconciler().Run(t.Context(), deliverTenant, time.Time{}); !problem.Is(err, problem.Forbidden) {
		t.Errorf("error is %v", err)
	}
	s.opts.Token = func(string) string { return "ibt_wrong_token" }
	_, err := s.reconciler().Run(t.Context(), deliverTenant, time.Time{})
	if !problem.Is(err, problem.Forbidden) || strings.Contains(err.Error(), "ibt_wrong_token") {
		t.Errorf("error is %v", err)
	}
}

func TestTheERPAwayLeavesTheRunOpenForTheNext(t *testing.T) {
	s := setupBothSides(t)
	s.invoiced("SO-1")
	away, err := erpapi.NewClient(erpapi.ClientConfig{BaseURL: "http://127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := crm.NewReconciler(s.crm, away, s.opts).Run(t.Context(), deliverTenant, time.Time{}); !problem.Is(err, problem.Unavailable) {
		t.Errorf("error is %v", err)
	}
	s.reconciles()
	if n := s.count(s.crm, "reconciliation_runs"); n != 1 {
		t.Errorf("%d runs, want the one that was begun", n)
	}
}

func TestOneTenantsFailureDoesNotStopTheOthers(t *testing.T) {
	s := setupBothSides(t)
	for _, tenant := range []string{"aaa", "zzz"} {
		s.plant(s.crm, "INSERT INTO tenants (id, name) VALUES ($1, $1)", tenant)
	}
	s.issue("foreign", forOrder("SO-foreign"))
	s.opts.Token = func(tenant string) string {
		return map[string]string{"aaa": "ibt_wrong_token", deliverTenant: s.reader}[tenant]
	}
	err := s.reconciler().RunAll(t.Context())
	if err == nil || !strings.Contains(err.Error(), "tenant aaa") || strings.Contains(err.Error(), "zzz") {
		t.Errorf("error is %v", err)
	}
	s.finds("missing_in_crm foreign")
}

func TestTheSecondRunLooksBackByTheOverlap(t *testing.T) {
	s := setupBothSides(t)
	first := s.reconciles()
	second := s.reconciles()
	if got := first.To.Sub(second.From); got != crm.DefaultReconcileOverlap {
		t.Errorf("the second window begins %v before the first one's end", got)
	}
	since := time.Now().AddDate(0, 0, -3).Truncate(time.Microsecond)
	third, err := s.reconciler().Run(t.Context(), deliverTenant, since)
	if err != nil || !third.From.Equal(since) {
		t.Errorf("window begins at %v, want %v; %v", third.From, since, err)
	}
}

func TestAWrongFilterOfDivergencesIsMalformed(t *testing.T) {
	s := setupBothSides(t)
	for _, f := range []crm.DivergenceFilter{{Kind: "nonsense"}, {Limit: -1}, {Limit: 201}, {Cursor: "!"}, {Cursor: "bm9uc2Vuc2U"},
		{Cursor: base64.RawURLEncoding.EncodeToString([]byte("2026-03-02T10:00:00+01:00 12"))}} { // of no list: those have UTC
		if _, _, err := s.service.ListDivergences(t.Context(), deliverTenant, f); !problem.Is(err, problem.MalformedRequest) {
			t.Errorf("%+v: %v", f, err)
		}
	}
}

func TestOvertakenRunsWriteNothing(t *testing.T) {
	s := setupBothSides(t)
	s.issue("foreign", forOrder("SO-foreign"))
	books := &meddledBooks{Books: s.client}
	books.onList = func(context.Context) {
		books.onList = nil
		s.reconciles() // another process, to the end of the same run
	}
	_, err := crm.NewReconciler(s.crm, books, s.opts).Run(t.Context(), deliverTenant, time.Time{})
	if !errors.Is(err, crm.ErrOvertaken) {
		t.Errorf("error is %v", err)
	}
	if n := s.count(s.crm, "reconciliation_runs WHERE finished_at IS NOT NULL AND compared = 1 AND found = 1"); n != 1 {
		t.Errorf("the run is not what the faster one made of it")
	}
}

// What retention has dropped of a request does not look like a difference, and hides none.
func TestAMinimisedRequestIsStillCompared(t *testing.T) {
	s := setupBothSides(t)
	k := s.invoiced("SO-same", "SO-price", "SO-customer")
	s.plant(s.crm, "UPDATE operations SET request = without_personal_data(request), minimised_at = now()")
	s.rewrite(k[1], `"unit_price":"10"`, `"unit_price":"11"`)
	s.rewrite(k[2], "Test Customer A", "Test Customer B")
	s.reconciles()
	open := s.finds("amount_differs "+k[1], "customer_differs "+k[2])
	if d := open["amount_differs "+k[1]]; d.Ours != `/lines/0/unit_price "10"` {
		t.Errorf("divergence is %+v", d)
	}
	if d := open["customer_differs "+k[2]]; !strings.Contains(d.Ours, "no longer kept") {
		t.Errorf("divergence is %+v", d)
	}
}

func TestStandingTellsWhatIsOpenAndTheAgeOfTheNewestRun(t *testing.T) {
	s := setupBothSides(t)
	standing, err := s.reconciler().Standing(t.Context())
	if err != nil || standing.Ran || len(standing.Open) != len(crm.DivergenceKinds()) {
		t.Errorf("standing is %+v, %v", standing, err)
	}
	s.issue("foreign", forOrder("SO-foreign"))
	s.reconciles()
	s.plant(s.crm, "UPDATE reconciliation_runs SET finished_at = now() - interval '1 hour'")
	standing, err = s.reconciler().Standing(t.Context())
	if err != nil || !standing.Ran || standing.Age < time.Hour || standing.Open[crm.DivergenceMissingInCRM] != 1 || standing.Open[crm.DivergenceMissingInERP] != 0 {
		t.Errorf("standing is %+v, %v", standing, err)
	}
}

// What can't be compared right now is not taken for gone.
func TestADivergenceThatCannotBeLookedAtStaysOpen(t *testing.T) {
	s := setupBothSides(t)
	k := s.invoiced("SO-running", "SO-broken", "SO-recent")
	s.unlearn(k[0])
	s.rewrite(k[0], `"quantity":"2"`, `"quantity":"3"`)
	s.rewrite(k[1], `"quantity":"2"`, `"quantity":"3"`)
	s.unlearn(k[2])
	s.forgetInvoice(k[2])
	s.opts.Settle = time.Nanosecond
	s.reconciles()
	s.finds("amount_differs "+k[0], "amount_differs "+k[1], "missing_in_erp "+k[2])
	s.plant(s.crm, "UPDATE operations SET status = 'processing', next_attempt_at = NULL, lease_until = now() + interval '1 minute' WHERE key = $1", k[0])
	s.rewrite(k[1], `"sequence":1`, `"sequence":"one"`)
	s.opts.Settle = time.Hour
	s.reconciles()
	s.finds("amount_differs "+k[0], "amount_differs "+k[1], "missing_in_erp "+k[2], "status_differs "+k[1])
}

// DESIGN 4.8: what has moved on since it was compared is left to who moved it.
func TestSettlingIsGuardedByTheAttempt(t *testing.T) {
	s := setupBothSides(t)
	key := s.invoiced("SO-1")[0]
	number, invoiceID := "INV-X", s.id(key)
	settle := func(attempt int32) int64 {
		t.Helper()
		n, err := crmdb.New(s.crm).ReconciliationSettle(t.Context(), crmdb.ReconciliationSettleParams{
			ID: s.id(key), Attempt: attempt, InvoiceID: &invoiceID, InvoiceNumber: &number,
		})
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	if settle(1) != 0 {
		t.Error("a succeeded operation was settled")
	}
	s.plant(s.crm, `UPDATE operations SET status = 'processing', attempt = 2, finished_at = NULL, invoice_id = NULL, invoice_number = NULL,
	                lease_until = now() + interval '1 minute'`)
	if settle(2) != 0 {
		t.Error("an operation was settled while its attempt may be running")
	}
	s.plant(s.crm, "UPDATE operations SET lease_until = now() - interval '1 minute'")
	if settle(1) != 0 {
		t.Error("an operation was settled whose attempt is a newer one")
	}
	s.plant(s.crm, "INSERT INTO attempts (operation_id, number, worker) SELECT id, 2, 'dead' FROM operations")
	if settle(2) != 1 || s.count(s.crm, "attempts WHERE number = 2 AND outcome = 'overtaken'") != 1 {
		t.Error("a dead attempt's operation is not settled, or its attempt is not told to be overtaken")
	}
	if settle(2) != 0 {
		t.Error("it was settled twice")
	}
}

func TestRunsOfLongAgoAreForgottenSaveTheNewest(t *testing.T) {
	s := setupBothSides(t)
	s.reconciles()
	s.plant(s.crm, "UPDATE reconciliation_runs SET window_to = window_to - interval '40 days', window_from = '2000-01-01', finished_at = finished_at - interval '40 days'")
	if run := s.reconciles(); time.Since(run.From) < 40*24*time.Hour {
		t.Errorf("the window begins at %v: the run of 40 days ago is forgotten", run.From)
	}
	if n := s.count(s.crm, "reconciliation_runs"); n != 2 {
		t.Errorf("%d runs, want 2", n)
	}
	s.reconciles()
	if n := s.count(s.crm, "reconciliation_runs WHERE finished_at < now() - interval '30 days'"); n != 0 {
		t.Errorf("%d runs of long ago", n)
	}
}
