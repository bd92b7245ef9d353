package crm_test

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"

	"invoicebridge/internal/audit"
	"invoicebridge/internal/crm"
	"invoicebridge/internal/erpapi"
	"invoicebridge/internal/problem"
)

// unanswered is an operation whose invoice the ERP has made, which nobody here knows.
func (s *bothSides) unanswered(order string) (key string, invoice erpapi.InvoiceLink) {
	s.t.Helper()
	key = s.invoiced(order)[0]
	op := s.operation(key)
	s.unlearn(key)
	return key, *op.Invoice
}

// absent is an operation that is unknown, and of which the ERP has nothing.
func (s *bothSides) absent(order string) (key string) {
	s.t.Helper()
	key = s.submitted(plainOrder(order))[0]
	s.unsure(key)
	return key
}

func applied(link erpapi.InvoiceLink) crm.Proposal {
	return crm.Proposal{Verdict: crm.VerdictApplied, Invoice: &link, Evidence: "Seen in the ERP's ledger, page 12."}
}

func notApplied() crm.Proposal {
	return crm.Proposal{Verdict: crm.VerdictNotApplied, Evidence: "The ERP's people have looked: there is none, and the request log is empty."}
}

func (s *bothSides) proposes(key string, p crm.Proposal, by audit.By) crm.Resolution {
	s.t.Helper()
	r, err := s.service.ProposeResolution(s.t.Context(), deliverTenant, key, p, by)
	if err != nil {
		s.t.Fatal(err)
	}
	return r
}

func (s *bothSides) approves(r crm.Resolution, by audit.By) crm.Resolution {
	s.t.Helper()
	r, err := s.service.ApproveResolution(s.t.Context(), deliverTenant, r.ID, by)
	if err != nil {
		s.t.Fatal(err)
	}
	return r
}

func anyInvoice() erpapi.InvoiceLink {
	return erpapi.InvoiceLink{ID: uuid.NewString(), Number: "INV-9"}
}

func TestTwoPeopleResolveAnUnknownThatWasApplied(t *testing.T) {
	s := setupOperator(t)
	key, invoice := s.unanswered("SO-1")
	if got := s.available(key); got != "resolve" {
		t.Errorf("available are %q", got)
	}
	r := s.proposes(key, applied(invoice), ann)
	if r.Status != crm.ResolutionOpen || r.ProposedBy != "ann" || *r.Invoice != invoice || r.OperationStatus != crm.StatusUnknown {
		t.Errorf("resolution is %+v", r)
	}
	if op := s.operation(key); op.Status != crm.StatusUnknown {
		t.Errorf("the proposal alone has changed it: %+v", op)
	}
	if got := s.available(key); got != "" {
		t.Errorf("available are %q", got)
	}
	r = s.approves(r, ben)
	if r.Status != crm.ResolutionApproved || r.DecidedBy != "ben" || !strings.Contains(r.ERPSaid, invoice.Number) {
		t.Errorf("resolution is %+v", r)
	}
	op := s.operation(key)
	if op.Status != crm.StatusSucceeded || *op.Invoice != invoice || op.Reason != crm.ReasonResolved || op.FlaggedAt != nil {
		t.Errorf("operation is %+v", op)
	}
	s.audited(1, "resolution.propose", key)
	s.audited(1, "resolution.approve", key)
	_, err := s.service.ProposeResolution(t.Context(), deliverTenant, key, notApplied(), ann)
	refused(t, err, problem.WrongState, "succeeded and stays so")
	s.reconciles()
	s.finds()
}

func TestWhatTwoPeopleSayWasNotAppliedIsRevised(t *testing.T) {
	s := setupOperator(t)
	key := s.absent("SO-1001")
	s.approves(s.proposes(key, notApplied(), ann), ben)
	op := s.operation(key)
	if op.Status != crm.StatusFailed || op.Reason != crm.ReasonResolvedNotApplied || s.available(key) != "revise" {
		t.Fatalf("operation is %+v", op)
	}
	revision, err := s.service.Revise(t.Context(), deliverTenant, key, request(t, base), ann)
	if err != nil {
		t.Fatal(err)
	}
	s.deliver(revision.Key)
	if op := s.operation(revision.Key); op.Status != crm.StatusSucceeded || s.count(s.erp, "invoices") != 1 {
		t.Errorf("operation is %+v", op)
	}
}

// The two were wrong: the ERP issues the invoice late. The revision meets it, and there is no second one.
func TestALateInvoiceAfterNotAppliedIsShownAndIsTheOnlyOne(t *testing.T) {
	s := setupOperator(t)
	key := s.absent("SO-1001")
	s.approves(s.proposes(key, notApplied(), ann), ben)
	s.issue(key, base) // what was sent arrives only now
	s.reconciles()
	s.finds("status_differs " + key)
	revision, err := s.service.Revise(t.Context(), deliverTenant, key, request(t, strings.Replace(base, `"10"`, `"11"`, 1)), ann)
	if err != nil {
		t.Fatal(err)
	}
	s.deliver(revision.Key)
	if op := s.operation(revision.Key); op.Status != crm.StatusFailed || op.Reason != crm.ReasonConflict {
		t.Errorf("operation is %+v", op)
	}
	if n := s.count(s.erp, "invoices"); n != 1 {
		t.Errorf("%d invoices", n)
	}
}

func TestALateOutcomeAfterAResolutionWritesNothing(t *testing.T) {
	s := setupOperator(t)
	key := s.absent("SO-1001")
	s.approves(s.proposes(key, notApplied(), ann), ben)
	before := s.operation(key)
	// What the deliverer does when the answer to attempt 1 comes after all.
	if next, err := s.deliverer.Deliver(t.Context(), s.id(key), nil); err != nil || !next.Done {
		t.Errorf("%+v, %v", next, err)
	}
	tag, err := s.crm.Exec(t.Context(), `UPDATE operations SET status = 'succeeded' WHERE key = $1 AND attempt = 1 AND status = 'processing'`, key)
	if err != nil || tag.RowsAffected() != 0 {
		t.Errorf("%v, %v", tag, err)
	}
	if after := s.operation(key); after.Status != before.Status || after.Attempts != before.Attempts {
		t.Errorf("operation is %+v", after)
	}
}

func TestAProposalIsDecidedByASecondPerson(t *testing.T) {
	s := setupOperator(t)
	key := s.absent("SO-1")
	r := s.proposes(key, notApplied(), ann)
	again := ann
	again.Actor = "ann's second name"
	for _, c := range []struct {
		by   audit.By
		says string
	}{{ann, "second person"}, {again, "second person"}, {machine, "needs a person"}} {
		_, err := s.service.ApproveResolution(t.Context(), deliverTenant, r.ID, c.by)
		refused(t, err, problem.Forbidden, c.says)
		_, err = s.service.DeclineResolution(t.Context(), deliverTenant, r.ID, c.by)
		refused(t, err, problem.Forbidden, c.says)
	}
	_, err := s.service.WithdrawResolution(t.Context(), deliverTenant, r.ID, ben)
	refused(t, err, problem.Forbidden, "Only who proposed")
	_, err = s.service.ApproveResolution(t.Context(), "other", r.ID, ben)
	refused(t, err, problem.NotFound, "")
	if op := s.operation(key); op.Status != crm.StatusUnknown {
		t.Fatalf("operation is %+v", op)
	}
	// The database holds them to it, whatever the code does.
	if _, err := s.crm.Exec(t.Context(), `UPDATE resolutions SET status = 'approved', decided_at = now(), decided_by = 'ann', decision_reason = 'r',
		decider_account = proposer_account WHERE id = $1`, r.ID); err == nil {
		t.Error("the database takes one person for two")
	}
	declined, err := s.service.DeclineResolution(t.Context(), deliverTenant, r.ID, ben)
	if err != nil || declined.Status != crm.ResolutionDeclined {
		t.Fatalf("%+v, %v", declined, err)
	}
	_, err = s.service.ApproveResolution(t.Context(), deliverTenant, r.ID, ben)
	refused(t, err, problem.WrongState, "declined already, by ben")

	r = s.proposes(key, notApplied(), machine) // a machine may propose
	_, err = s.service.WithdrawResolution(t.Context(), deliverTenant, r.ID, ann)
	refused(t, err, problem.Forbidden, "Only who proposed")
	if r, err = s.service.WithdrawResolution(t.Context(), deliverTenant, r.ID, machine); err != nil || r.Status != crm.ResolutionWithdrawn {
		t.Errorf("%+v, %v", r, err)
	}
	s.approves(s.proposes(key, notApplied(), machine), ann)
	page, err := s.service.ListResolutions(t.Context(), deliverTenant, crm.ResolutionFilter{PageQuery: crm.PageQuery{Limit: 2}})
	if err != nil || len(page.Items) != 2 || page.Items[0].Status != crm.ResolutionApproved || page.Next == "" {
		t.Errorf("%+v, %v", page, err)
	}
	page, err = s.service.ListResolutions(t.Context(), deliverTenant, crm.ResolutionFilter{PageQuery: crm.PageQuery{Limit: 2, Cursor: page.Next}})
	if err != nil || len(page.Items) != 1 || page.Items[0].Status != crm.ResolutionDeclined || page.Next != "" {
		t.Errorf("%+v, %v", page, err)
	}
}

func TestAnApprovalThatTheERPContradictsIsRefusedInTheERPsWords(t *testing.T) {
	s := setupOperator(t)
	there, invoice := s.unanswered("SO-1")
	other, _ := s.unanswered("SO-2")
	missing := s.absent("SO-3")
	foreign := s.absent("SO-4")
	byOther := s.issue("somebody-else's", forOrder("SO-4"))
	for _, c := range []struct {
		key  string
		p    crm.Proposal
		says string
	}{
		{there, notApplied(), "has invoice " + invoice.Number},
		{other, applied(invoice), "The ERP has invoice"},
		{missing, applied(anyInvoice()), "no invoice of this key"},
		{foreign, notApplied(), "has invoice " + byOther.Number},
		{foreign, applied(anyInvoice()), "has invoice " + byOther.Number},
	} {
		r := s.proposes(c.key, c.p, ann)
		_, err := s.service.ApproveResolution(t.Context(), deliverTenant, r.ID, ben)
		refused(t, err, problem.WrongState, c.says)
		if op := s.operation(c.key); op.Status != crm.StatusUnknown {
			t.Errorf("operation is %+v", op)
		}
		if _, err := s.service.DeclineResolution(t.Context(), deliverTenant, r.ID, ben); err != nil {
			t.Fatal(err)
		}
	}
	// Under another key, and just the invoice: that is what became of it.
	s.approves(s.proposes(foreign, applied(erpapi.InvoiceLink{ID: byOther.ID, Number: byOther.Number}), ann), ben)
}

func TestAnApprovalDoesNotNeedTheERPAndSaysSo(t *testing.T) {
	s := setupOperator(t)
	key, invoice := s.unanswered("SO-1")
	missing := s.absent("SO-2")
	s.server.Close()
	for key, p := range map[string]crm.Proposal{key: applied(invoice), missing: notApplied()} {
		if r := s.approves(s.proposes(key, p, ann), ben); !strings.HasPrefix(r.ERPSaid, "The ERP could not be asked: ") {
			t.Errorf("resolution is %+v", r)
		}
	}
}

func TestOneInvoiceIsNotGivenToTwoOperations(t *testing.T) {
	s := setupOperator(t)
	owner := s.invoiced("SO-1")[0]
	invoice := *s.operation(owner).Invoice
	s.server.Close() // or it would say so itself
	r := s.proposes(s.absent("SO-2"), applied(invoice), ann)
	_, err := s.service.ApproveResolution(t.Context(), deliverTenant, r.ID, ben)
	refused(t, err, problem.WrongState, "belongs to operation "+owner)

	same := anyInvoice()
	var rs [2]crm.Resolution
	for i, order := range []string{"SO-3", "SO-4"} {
		rs[i] = s.proposes(s.absent(order), applied(same), ann)
	}
	var errs [2]error
	var both sync.WaitGroup
	for i := range rs {
		both.Go(func() { _, errs[i] = s.service.ApproveResolution(t.Context(), deliverTenant, rs[i].ID, ben) })
	}
	both.Wait()
	if (errs[0] == nil) == (errs[1] == nil) {
		t.Fatalf("%v, %v", errs[0], errs[1])
	}
	for _, err := range errs {
		if err != nil {
			refused(t, err, problem.WrongState, "belongs to operation")
		}
	}
	if n := s.count(s.crm, "operations WHERE invoice_id = '"+same.ID+"'"); n != 1 {
		t.Errorf("%d operations have it", n)
	}
}

func TestAnApprovalIsRefusedIfTheOperationHasMovedOn(t *testing.T) {
	s := setupOperator(t)
	key := s.absent("SO-1001")
	r := s.proposes(key, notApplied(), ann)
	s.exec("UPDATE operations SET status = 'processing', attempt = 2, next_attempt_at = NULL, lease_until = now() + interval '1 minute' WHERE key = $1", key)
	_, err := s.service.ApproveResolution(t.Context(), deliverTenant, r.ID, ben)
	refused(t, err, problem.WrongState, "processing")
	s.exec("UPDATE operations SET status = 'unknown', next_attempt_at = now(), lease_until = NULL, flagged_at = NULL WHERE key = $1", key)
	_, err = s.service.ApproveResolution(t.Context(), deliverTenant, r.ID, ben)
	refused(t, err, problem.WrongState, "tried again since")
	s.deliver(key)
	_, err = s.service.ApproveResolution(t.Context(), deliverTenant, r.ID, ben)
	refused(t, err, problem.WrongState, "succeeded by now")
	if _, err := s.service.DeclineResolution(t.Context(), deliverTenant, r.ID, ben); err != nil {
		t.Errorf("it can't be closed: %v", err)
	}
}

// An invoice that is there stays there: an attempt in between takes nothing from what was seen.
func TestAppliedIsApprovedAlsoAfterAnotherAttempt(t *testing.T) {
	s := setupOperator(t)
	key, invoice := s.unanswered("SO-1")
	r := s.proposes(key, applied(invoice), ann)
	s.exec("UPDATE operations SET attempt = attempt + 1 WHERE key = $1", key)
	s.approves(r, ben)
}

func TestAnOperationHasOneOpenProposal(t *testing.T) {
	s := setupOperator(t)
	key := s.absent("SO-1")
	var errs [5]error
	var all sync.WaitGroup
	for i := range errs {
		all.Go(func() { _, errs[i] = s.service.ProposeResolution(t.Context(), deliverTenant, key, notApplied(), ann) })
	}
	all.Wait()
	made := 0
	for _, err := range errs {
		if err == nil {
			made++
			continue
		}
		refused(t, err, problem.WrongState, "ann has proposed a resolution already")
	}
	if made != 1 {
		t.Errorf("%d were made", made)
	}
	s.audited(1, "resolution.propose", key)
	pending := s.submitted(plainOrder("SO-2"))[0]
	_, err := s.service.ProposeResolution(t.Context(), deliverTenant, pending, notApplied(), ann)
	refused(t, err, problem.WrongState, "Nothing about it is unknown")
	_, err = s.service.ProposeResolution(t.Context(), deliverTenant, "no such key", notApplied(), ann)
	refused(t, err, problem.NotFound, "")
}

func TestAProposalThatIsNotWholeIsRefused(t *testing.T) {
	s := setupOperator(t)
	key := s.absent("SO-1")
	link := anyInvoice()
	for _, p := range []crm.Proposal{
		{Verdict: "perhaps", Evidence: "e"}, {Verdict: crm.VerdictApplied, Evidence: "e"},
		{Verdict: crm.VerdictNotApplied, Invoice: &link, Evidence: "e"}, {Verdict: crm.VerdictNotApplied, Evidence: " "},
		{Verdict: crm.VerdictApplied, Evidence: "e", Invoice: &erpapi.InvoiceLink{ID: "7", Number: "INV-1"}},
		{Verdict: crm.VerdictApplied, Evidence: "e", Invoice: &erpapi.InvoiceLink{ID: link.ID}},
		{Verdict: crm.VerdictNotApplied, Evidence: strings.Repeat("e", 5000)}, {Verdict: crm.VerdictNotApplied, Evidence: "a\x00b"},
	} {
		_, err := s.service.ProposeResolution(t.Context(), deliverTenant, key, p, ann)
		refused(t, err, problem.MalformedRequest, "not whole")
	}
	if n := s.count(s.crm, "resolutions"); n != 0 {
		t.Errorf("%d proposals", n)
	}
}

// Approve, decline, withdraw and a worker at once: one has it, and nothing is half done.
func TestOfSeveralWhoDecideAtOnceOneDoes(t *testing.T) {
	s := setupOperator(t)
	for _, order := range numbered("SO", 15) {
		key := s.absent(order)
		r := s.proposes(key, notApplied(), ann)
		s.exec("UPDATE operations SET flagged_at = NULL, next_attempt_at = now() WHERE key = $1", key)
		id := s.id(key)
		decisions := []func(context.Context, string, uuid.UUID, audit.By) (crm.Resolution, error){
			s.service.ApproveResolution, s.service.DeclineResolution, s.service.ApproveResolution,
		}
		errs := make([]error, len(decisions)+2)
		var all sync.WaitGroup
		for i, decide := range decisions {
			all.Go(func() { _, errs[i] = decide(t.Context(), deliverTenant, r.ID, ben) })
		}
		all.Go(func() { _, errs[3] = s.service.WithdrawResolution(t.Context(), deliverTenant, r.ID, ann) })
		all.Go(func() {
			if _, err := s.deliverer.Deliver(t.Context(), id, nil); err != nil {
				t.Error(err)
			}
		})
		all.Go(func() { _, errs[4] = s.service.ProposeResolution(t.Context(), deliverTenant, key, notApplied(), ben) })
		all.Wait()
		decided := 0
		for _, err := range errs[:4] {
			if err == nil {
				decided++
			} else if !problem.Is(err, problem.WrongState) {
				t.Errorf("error is %v", err)
			}
		}
		if errs[4] != nil && !problem.Is(errs[4], problem.WrongState) {
			t.Errorf("error is %v", errs[4])
		}
		after, err := s.service.GetResolution(t.Context(), deliverTenant, r.ID)
		if err != nil {
			t.Fatal(err)
		}
		invoices := s.count(s.erp, "invoices WHERE operation_key = '"+key+"'")
		failed := s.operation(key).Status == crm.StatusFailed
		if decided != 1 || after.Status == crm.ResolutionOpen || (after.Status == crm.ResolutionApproved) != failed || failed == (invoices == 1) {
			t.Errorf("%d decided, it is %s, operation %s, %d invoices", decided, after.Status, s.operation(key).Status, invoices)
		}
	}
}

// The person waits for the ERP for a while, and for nothing that stands in a transaction.
func TestWhileTheERPIsAskedNoTransactionIsOpen(t *testing.T) {
	s := setupOperator(t)
	key := s.absent("SO-1")
	r := s.proposes(key, notApplied(), ann)
	open := -1
	books := &meddledBooks{Books: s.client, onList: func(context.Context) {
		open = s.count(s.crm, "pg_stat_activity WHERE datname = current_database() AND state LIKE 'idle in transaction%'")
	}}
	service := crm.NewService(s.crm, s.inserter(), crm.Options{ERP: books, Token: func(string) string { return s.reader }})
	if _, err := service.ApproveResolution(t.Context(), deliverTenant, r.ID, ben); err != nil || open != 0 {
		t.Errorf("%d transactions are open, %v", open, err)
	}
}
