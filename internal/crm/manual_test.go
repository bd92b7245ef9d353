package crm_test

import (
	"sync"
	"testing"

	"invoicebridge/internal/crm"
	"invoicebridge/internal/problem"
)

func TestAnOrderWrittenByHandIsTheSameOrderWhenItsSourceSendsIt(t *testing.T) {
	s := setupOperator(t)
	sub, err := s.service.SubmitByHand(t.Context(), deliverTenant, plainOrder("SO-1"), ann)
	if err != nil || sub.Outcome != crm.OutcomeCreated || len(sub.Operations) != 1 {
		t.Fatalf("%+v, %v", sub, err)
	}
	s.audited(1, "order.submit", "crm-1/SO-1")
	if n := s.count(s.crm, "inbox_messages WHERE channel = 'manual'"); n != 1 {
		t.Errorf("%d messages", n)
	}
	s.deliver(sub.Operations[0].Key)
	if keys := s.submitted(plainOrder("SO-1")); keys[0] != sub.Operations[0].Key {
		t.Errorf("another operation: %v", keys)
	}
	again, err := s.service.SubmitByHand(t.Context(), deliverTenant, plainOrder("SO-1"), ben)
	if err != nil || again.Outcome != crm.OutcomeAlreadyThere {
		t.Errorf("%+v, %v", again, err)
	}
	s.audited(1, "order.submit", "crm-1/SO-1")
	if n := s.count(s.erp, "invoices"); n != 1 {
		t.Errorf("%d invoices", n)
	}
}

func TestWhatIsWrongWithAnOrderWrittenByHandIsToldAndNothingIsStored(t *testing.T) {
	s := setupOperator(t)
	order := plainOrder("SO-1")
	order.Lines[0].Quantity = nil
	_, err := s.service.SubmitByHand(t.Context(), deliverTenant, order, ann)
	refused(t, err, problem.InvalidOrder, "")
	if p := problem.As(err); p == nil || len(p.Errors) == 0 || p.Errors[0].Pointer != "/lines/0/quantity" {
		t.Errorf("problem is %+v", p)
	}
	silent := ann
	silent.Reason = ""
	_, err = s.service.SubmitByHand(t.Context(), deliverTenant, plainOrder("SO-1"), silent)
	refused(t, err, problem.MalformedRequest, "reason")
	if orders, entries := s.count(s.crm, "orders"), s.count(s.crm, "audit_entries"); orders != 0 || entries != 0 {
		t.Errorf("%d orders, %d audit entries", orders, entries)
	}
}

func TestADoublePressBesideTheSourceMakesOneInvoice(t *testing.T) {
	s := setupOperator(t)
	var all sync.WaitGroup
	outcomes := make([]crm.Outcome, 6)
	for i := range outcomes {
		all.Go(func() {
			var sub crm.Submission
			var err error
			if i%2 == 0 {
				sub, err = s.service.SubmitByHand(t.Context(), deliverTenant, plainOrder("SO-1"), ann)
			} else {
				var subs []crm.Submission
				if subs, err = s.service.Submit(t.Context(), deliverTenant, crm.ChannelAPI, []crm.Order{plainOrder("SO-1")}, crm.SubmitOptions{}); err == nil {
					sub = subs[0]
				}
			}
			if err != nil {
				t.Error(err)
			}
			outcomes[i] = sub.Outcome
		})
	}
	all.Wait()
	created := 0
	for _, outcome := range outcomes {
		if outcome == crm.OutcomeCreated {
			created++
		} else if outcome != crm.OutcomeAlreadyThere {
			t.Errorf("outcome is %s", outcome)
		}
	}
	if operations := s.count(s.crm, "operations"); created != 1 || operations != 1 {
		t.Errorf("%d created, %d operations", created, operations)
	}
}
