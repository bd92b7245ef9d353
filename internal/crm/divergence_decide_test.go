package crm_test

import (
	"fmt"
	"sync"
	"testing"

	"invoicebridge/internal/crm"
	"invoicebridge/internal/problem"
)

// onlyOpen is the one divergence that counts as open.
func (s *bothSides) onlyOpen() crm.Divergence {
	s.t.Helper()
	page, _, err := s.service.ListDivergences(s.t.Context(), deliverTenant, crm.DivergenceFilter{Resolved: new(false), Accepted: new(false)})
	if err != nil || len(page) != 1 {
		s.t.Fatalf("open are %+v, %v", page, err)
	}
	return page[0]
}

// counted is how many count as open for the metric and the list.
func (s *bothSides) counted(want int) {
	s.t.Helper()
	standing, err := s.reconciler().Standing(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	got := int64(0)
	for _, n := range standing.Open {
		got += n
	}
	page, _, err := s.service.ListDivergences(s.t.Context(), deliverTenant, crm.DivergenceFilter{Resolved: new(false), Accepted: new(false)})
	if err != nil || got != int64(want) || len(page) != want {
		s.t.Errorf("%d count as open, %d are listed so, want %d, %v", got, len(page), want, err)
	}
}

func TestAnAcceptedDivergenceStaysAcceptedAsLongAsItIsTheSame(t *testing.T) {
	s := setupOperator(t)
	s.issue("by-hand-1", forOrder("SO-1"))
	s.reconciles()
	d := s.onlyOpen()
	accepted, err := s.service.AcceptDivergence(t.Context(), deliverTenant, d.ID, ann)
	if err != nil || accepted.AcceptedAt == nil || accepted.ResolvedAt != nil || accepted.DecidedBy != "ann" || accepted.DecisionReason != ann.Reason {
		t.Fatalf("%+v, %v", accepted, err)
	}
	s.audited(1, "divergence.accept", fmt.Sprint(d.ID))
	s.counted(0)
	s.reconciles()
	s.counted(0)
	if n := s.count(s.crm, "divergences"); n != 1 {
		t.Errorf("%d divergences", n)
	}
	_, err = s.service.AcceptDivergence(t.Context(), deliverTenant, d.ID, ben)
	refused(t, err, problem.WrongState, "accepted already, by ann")
	_, err = s.service.AcceptDivergence(t.Context(), "other", d.ID, ben)
	refused(t, err, problem.NotFound, "")

	s.exec("UPDATE divergences SET theirs = 'something else than what was accepted'")
	s.reconciles()
	s.counted(1)
}

func TestAnAcceptedDivergenceThatIsGoneIsResolved(t *testing.T) {
	s := setupOperator(t)
	s.issue("by-hand-1", forOrder("SO-1"))
	s.reconciles()
	d := s.onlyOpen()
	if _, err := s.service.AcceptDivergence(t.Context(), deliverTenant, d.ID, ann); err != nil {
		t.Fatal(err)
	}
	s.forgetInvoice("by-hand-1")
	s.reconciles()
	if d, err := s.service.GetDivergence(t.Context(), deliverTenant, d.ID); err != nil || d.ResolvedAt == nil {
		t.Errorf("%+v, %v", d, err)
	}
}

func TestAClosedDivergenceThatIsFoundAgainIsANewOne(t *testing.T) {
	s := setupOperator(t)
	s.issue("by-hand-1", forOrder("SO-1"))
	s.reconciles()
	d := s.onlyOpen()
	closed, err := s.service.CloseDivergence(t.Context(), deliverTenant, d.ID, ben)
	if err != nil || closed.ResolvedAt == nil || closed.DecidedBy != "ben" {
		t.Fatalf("%+v, %v", closed, err)
	}
	s.audited(1, "divergence.close", fmt.Sprint(d.ID))
	s.counted(0)
	_, err = s.service.CloseDivergence(t.Context(), deliverTenant, d.ID, ann)
	refused(t, err, problem.WrongState, "resolved")
	_, err = s.service.AcceptDivergence(t.Context(), deliverTenant, d.ID, ann)
	refused(t, err, problem.WrongState, "resolved")
	s.reconciles()
	if again := s.onlyOpen(); again.ID == d.ID || again.DecidedBy != "" {
		t.Errorf("found again is %+v", again)
	}
}

func TestOfManyWhoDecideADivergenceOneDoes(t *testing.T) {
	s := setupOperator(t)
	s.issue("by-hand-1", forOrder("SO-1"))
	s.reconciles()
	d := s.onlyOpen()
	errs := make([]error, 6)
	var all sync.WaitGroup
	for i := range errs {
		all.Go(func() { _, errs[i] = s.service.CloseDivergence(t.Context(), deliverTenant, d.ID, ann) })
	}
	all.Wait()
	done := 0
	for _, err := range errs {
		if err == nil {
			done++
		} else if !problem.Is(err, problem.WrongState) {
			t.Errorf("error is %v", err)
		}
	}
	if done != 1 {
		t.Errorf("%d closed it", done)
	}
	s.audited(1, "divergence.close", fmt.Sprint(d.ID))
}

func TestReconciliationIsStartedOnceAndWorkedOffByWhoeverComesFirst(t *testing.T) {
	s := setupOperator(t)
	key := s.invoiced("SO-1")[0]
	s.unlearn(key)
	errs := make([]error, 5)
	var all sync.WaitGroup
	for i := range errs {
		all.Go(func() { _, errs[i] = s.service.StartReconciliation(t.Context(), deliverTenant, ann) })
	}
	all.Wait()
	started := 0
	for _, err := range errs {
		if err == nil {
			started++
			continue
		}
		refused(t, err, problem.WrongState, "running already")
	}
	if n := s.count(s.crm, "river_job WHERE kind = 'reconcile_tenant' AND args->>'tenant' = 'acme'"); started != 1 || n != 1 {
		t.Errorf("%d started, %d jobs", started, n)
	}
	if n := s.count(s.crm, "audit_entries WHERE action = 'reconciliation.start' AND actor = 'ann'"); n != 1 {
		t.Errorf("%d audit entries", n)
	}
	page, err := s.service.ListReconciliations(t.Context(), deliverTenant, crm.PageQuery{})
	if err != nil || len(page.Items) != 1 || page.Items[0].FinishedAt != nil || page.Items[0].RequestedBy != "ann" {
		t.Fatalf("%+v, %v", page, err)
	}
	for range 2 { // the second has nothing to do
		if err := s.reconciler().Continue(t.Context(), deliverTenant); err != nil {
			t.Fatal(err)
		}
	}
	page, err = s.service.ListReconciliations(t.Context(), deliverTenant, crm.PageQuery{})
	if err != nil || len(page.Items) != 1 || page.Items[0].FinishedAt == nil || page.Items[0].Repaired != 1 {
		t.Errorf("%+v, %v", page, err)
	}
	if op := s.operation(key); op.Status != crm.StatusSucceeded {
		t.Errorf("operation is %+v", op)
	}
	s.reconciles()
	if page, err = s.service.ListReconciliations(t.Context(), deliverTenant, crm.PageQuery{}); err != nil || len(page.Items) != 2 || page.Items[0].RequestedBy != "" {
		t.Errorf("%+v, %v", page, err)
	}
}
