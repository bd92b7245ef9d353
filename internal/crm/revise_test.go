package crm_test

import (
	"strings"
	"sync"
	"testing"

	"invoicebridge/internal/audit"
	"invoicebridge/internal/crm"
	"invoicebridge/internal/erpapi"
	"invoicebridge/internal/problem"
)

var correctedBy = audit.By{Actor: "ann", Reason: "the reason was missing"}

// rejected takes an order in that the ERP refuses: its source computed another gross.
func (s *bothSides) rejected(order string) (key string) {
	s.t.Helper()
	o := plainOrder(order)
	o.ExpectedGross = new(erpapi.MustDecimal("1"))
	key = s.submitted(o)[0]
	s.deliver(key)
	if op := s.operation(key); op.Status != crm.StatusFailed || op.Reason != crm.ReasonRejected {
		s.t.Fatalf("operation is %+v", op)
	}
	return key
}

func request(t *testing.T, body string) *erpapi.InvoiceRequest {
	t.Helper()
	r, err := erpapi.DecodeInvoiceRequest([]byte(body))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestARejectedOperationIsRevisedUnderANewKeyAndInvoicedOnce(t *testing.T) {
	s := setupBothSides(t)
	old := s.rejected("SO-1001")
	op, err := s.service.Revise(t.Context(), deliverTenant, old, request(t, base), correctedBy)
	if err != nil {
		t.Fatal(err)
	}
	if op.Key == old || op.Status != crm.StatusPending || op.Source != "crm-1" || op.Order != "SO-1001" {
		t.Errorf("revision is %+v", op)
	}
	if n := s.count(s.crm, "operations n JOIN operations o ON n.supersedes_id = o.id WHERE o.superseded_at IS NOT NULL AND o.status = 'failed'"); n != 1 {
		t.Error("the revision does not name what it supersedes")
	}
	if n := s.count(s.crm, "audit_entries WHERE actor = 'ann' AND action = 'operation.revise' AND subject = '"+old+
		"' AND reason LIKE 'the reason was missing%"+op.Key+"%'"); n != 1 {
		t.Error("no audit entry says who and why")
	}
	if n := s.count(s.crm, "river_job WHERE args->>'operation_id' = '"+s.id(op.Key).String()+"'"); n != 1 {
		t.Errorf("%d jobs", n)
	}
	s.deliver(op.Key)
	if got := s.operation(op.Key); got.Status != crm.StatusSucceeded || s.count(s.erp, "invoices") != 1 {
		t.Errorf("operation is %+v", got)
	}
	s.refusesRevision(old, base)
	s.refusesRevision(op.Key, base)
	s.reconciles()
	s.finds()
}

func (s *bothSides) refusesRevision(key, body string) {
	s.t.Helper()
	before := s.count(s.crm, "operations")
	_, err := s.service.Revise(s.t.Context(), deliverTenant, key, request(s.t, body), correctedBy)
	if !problem.Is(err, problem.WrongState) {
		s.t.Errorf("error is %v", err)
	}
	if s.count(s.crm, "operations") != before {
		s.t.Error("an operation was made")
	}
}

// Only what is proven not applied makes room: a second operation beside any other could make a second document.
func TestNothingIsRevisedThatMayHaveBeenApplied(t *testing.T) {
	s := setupBothSides(t)
	key := s.submitted(plainOrder("SO-1001"))[0]
	s.refusesRevision(key, base) // pending
	s.deliver(key)
	s.refusesRevision(key, base) // succeeded
	s.unlearn(key)
	s.refusesRevision(key, base) // unknown
	s.plant(s.crm, "UPDATE operations SET flagged_at = now() WHERE key = $1", key)
	s.refusesRevision(key, base) // unknown, with an operator
	s.plant(s.crm, "UPDATE operations SET status = 'processing', next_attempt_at = NULL, lease_until = now() WHERE key = $1", key)
	s.refusesRevision(key, base) // processing, even where its worker is dead
	for _, reason := range []crm.Reason{crm.ReasonConflict, crm.ReasonRequestDamaged, ""} {
		s.plant(s.crm, "UPDATE operations SET status = 'failed', lease_until = NULL, finished_at = now(), reason = $2 WHERE key = $1", key, string(reason))
		s.refusesRevision(key, base)
	}
	s.plant(s.crm, "UPDATE operations SET status = 'failed', reason = 'rejected' WHERE key = $1", key)
	s.plant(s.crm, "UPDATE orders SET status = 'cancelled'")
	s.refusesRevision(key, base)
}

// What answered was no ERP: nothing was applied, and the same request may be sent, under another key.
func TestAnOperationThatMetNoERPIsRevised(t *testing.T) {
	s := setupBothSides(t)
	key := s.submitted(plainOrder("SO-1001"))[0]
	s.plant(s.crm, `UPDATE operations SET status = 'failed', reason = 'configuration', finished_at = now(), next_attempt_at = NULL,
	                attempt = 1, first_sent_at = now() WHERE key = $1`, key)
	if _, err := s.service.Revise(t.Context(), deliverTenant, key, request(t, base), correctedBy); err != nil {
		t.Errorf("error is %v", err)
	}
}

// Credit notes and corrections have the same guards as invoices.
func TestEveryRoleIsRevisedTheSameWay(t *testing.T) {
	s := setupBothSides(t)
	final := s.operation(s.invoiced("SO-1001")[0]).Invoice
	for _, role := range []erpapi.Role{erpapi.RoleCreditNote, erpapi.RoleCorrection, erpapi.RoleAdvance, erpapi.RolePartial} {
		o := plainOrder("SO-1001")
		sequence, version := int64(3), int64(0)
		if err := s.crm.QueryRow(t.Context(), "SELECT version + 1 FROM orders").Scan(&version); err != nil {
			t.Fatal(err)
		}
		wanted := crm.OrderInvoice{Role: role, Sequence: &sequence, Lines: o.Lines, ExpectedGross: new(erpapi.MustDecimal("1"))}
		corrects := ""
		if role.Corrects() {
			wanted.Corrects = final.Number
			corrects = `"corrects":"` + final.Number + `",`
		}
		o.Version, o.Invoices, o.Lines = &version, []crm.OrderInvoice{{Role: erpapi.RoleFinal, Lines: o.Lines}, wanted}, nil
		subs, err := s.service.Submit(t.Context(), deliverTenant, crm.ChannelAPI, []crm.Order{o}, crm.SubmitOptions{})
		if err != nil {
			t.Fatal(err)
		}
		var key string
		for _, op := range subs[0].Operations {
			if op.Role == role {
				key = op.Key
			}
		}
		body := strings.NewReplacer(`"role":"final"`, `"role":"`+string(role)+`"`, `"sequence":1`, corrects+`"sequence":3`).Replace(base)
		s.refusesRevision(key, body)
		s.deliver(key)
		if op := s.operation(key); op.Status != crm.StatusFailed {
			t.Fatalf("%s: operation is %+v", role, op)
		}
		op, err := s.service.Revise(t.Context(), deliverTenant, key, request(t, body), correctedBy)
		if err != nil {
			t.Errorf("%s: %v", role, err)
			continue
		}
		s.deliver(op.Key)
		if op := s.operation(op.Key); op.Status != crm.StatusSucceeded || op.Role != role || op.Sequence != 3 {
			t.Errorf("%s: operation is %+v", role, op)
		}
	}
}

func TestARevisionIsForTheSameInvoiceAndValid(t *testing.T) {
	s := setupBothSides(t)
	key := s.rejected("SO-1001")
	for body, pointer := range map[string]string{
		forOrder("SO-2"): "/order",
		strings.Replace(base, "crm-1", "crm-2", 1):                                               "/source",
		strings.Replace(base, `"role":"final"`, `"role":"partial"`, 1):                           "/role",
		strings.Replace(base, `"quantity":"2"`, `"quantity":"x"`, 1):                             "/lines/0/quantity",
		`{"source":"crm-1","order":"SO-1001"}`:                                                   "/lines",
		strings.Replace(base, `"role":"final","sequence":1`, `"role":"advance","sequence":2`, 1): "/sequence",
	} {
		_, err := s.service.Revise(t.Context(), deliverTenant, key, request(t, body), correctedBy)
		found := false
		if p := problem.As(err); p != nil && p.Type == problem.InvalidOrder {
			for _, e := range p.Errors {
				found = found || e.Pointer == pointer
			}
		}
		if !found {
			t.Errorf("%s: %v, want a finding at %s", body, err, pointer)
		}
	}
	left := strings.NewReplacer(`"source":"crm-1","order":"SO-1001","role":"final","sequence":1,`, "").Replace(base)
	if _, err := s.service.Revise(t.Context(), deliverTenant, key, request(t, left), correctedBy); err != nil {
		t.Errorf("what is left out is taken from the operation: %v", err)
	}
	for _, by := range []audit.By{{Actor: "ann"}, {Actor: "ann", Reason: " "}, {Actor: "ann", Reason: "a\x00"}, {Actor: "ann", Reason: strings.Repeat("x", 1001)}} {
		if _, err := s.service.Revise(t.Context(), deliverTenant, key, request(t, base), by); !problem.Is(err, problem.MalformedRequest) {
			t.Errorf("%+v: %v", by, err)
		}
	}
	if _, err := s.service.Revise(t.Context(), deliverTenant, "nobody's", request(t, base), correctedBy); !problem.Is(err, problem.NotFound) {
		t.Errorf("error is %v", err)
	}
	if _, err := s.service.Revise(t.Context(), "other", key, request(t, base), correctedBy); !problem.Is(err, problem.NotFound) {
		t.Errorf("another tenant: %v", err)
	}
}

func TestOfTwoRevisionsAtOnceOneIsMade(t *testing.T) {
	s := setupBothSides(t)
	key := s.rejected("SO-1001")
	errs := make([]error, 4)
	var all sync.WaitGroup
	for i := range errs {
		all.Go(func() {
			_, errs[i] = s.service.Revise(t.Context(), deliverTenant, key, request(t, base), correctedBy)
		})
	}
	all.Wait()
	made := 0
	for _, err := range errs {
		switch {
		case err == nil:
			made++
		case !problem.Is(err, problem.WrongState):
			t.Errorf("error is %v", err)
		}
	}
	if made != 1 || s.count(s.crm, "operations") != 2 {
		t.Errorf("%d made", made)
	}
}

// CASES J3: the second press does no harm and gets a clear answer.
func TestReplaySendsAFlaggedOperationAgainUnderItsKey(t *testing.T) {
	s := setupBothSides(t)
	key := s.invoiced("SO-1001")[0]
	number := s.operation(key).Invoice.Number
	s.unlearn(key)
	s.plant(s.crm, "UPDATE operations SET flagged_at = now() WHERE key = $1", key)
	s.plant(s.crm, "DELETE FROM river_job")
	op, err := s.service.Replay(t.Context(), deliverTenant, key, correctedBy)
	if err != nil || op.FlaggedAt != nil || op.Status != crm.StatusUnknown {
		t.Fatalf("operation is %+v, %v", op, err)
	}
	if s.count(s.crm, "river_job") != 1 || s.count(s.crm, "audit_entries WHERE action = 'operation.replay' AND actor = 'ann' AND subject = '"+key+"'") != 1 {
		t.Error("no job, or no audit entry")
	}
	if _, err := s.service.Replay(t.Context(), deliverTenant, key, correctedBy); !problem.Is(err, problem.WrongState) || !strings.Contains(err.Error(), "already queued") {
		t.Errorf("the second press: %v", err)
	}
	s.deliver(key)
	if op := s.operation(key); op.Status != crm.StatusSucceeded || op.Invoice.Number != number || s.count(s.erp, "invoices") != 1 {
		t.Errorf("operation is %+v", op)
	}
	if _, err := s.service.Replay(t.Context(), deliverTenant, key, correctedBy); !problem.Is(err, problem.WrongState) {
		t.Errorf("after the end: %v", err)
	}
	s.plant(s.crm, `UPDATE operations SET status = 'processing', finished_at = NULL, invoice_id = NULL, invoice_number = NULL,
	                lease_until = now() + interval '1 minute' WHERE key = $1`, key)
	if _, err := s.service.Replay(t.Context(), deliverTenant, key, correctedBy); !problem.Is(err, problem.WrongState) {
		t.Errorf("while it is worked on: %v", err)
	}
	if _, err := s.service.Replay(t.Context(), "other", key, correctedBy); !problem.Is(err, problem.NotFound) {
		t.Errorf("another tenant: %v", err)
	}
	if s.count(s.crm, "river_job") != 1 {
		t.Error("a refused replay made a job")
	}
}
