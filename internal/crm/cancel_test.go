package crm_test

import (
	"fmt"
	"sync"
	"testing"

	"invoicebridge/internal/crm"
	"invoicebridge/internal/problem"
)

func TestCancelTakesBackWhatHasNeverLeft(t *testing.T) {
	s := setupOperator(t)
	key := s.submitted(plainOrder("SO-1"))[0]
	if got := s.available(key); got != "cancel" {
		t.Errorf("available are %q", got)
	}
	op, err := s.service.Cancel(t.Context(), deliverTenant, key, ann)
	if err != nil || op.Status != crm.StatusCancelled || op.Reason != crm.ReasonCancelledByHand {
		t.Fatalf("operation is %+v, %v", op, err)
	}
	s.audited(1, "operation.cancel", key)
	s.deliver(key) // its job is still in the queue
	if n := s.count(s.erp, "invoices"); n != 0 {
		t.Errorf("%d invoices", n)
	}
	_, err = s.service.Cancel(t.Context(), deliverTenant, key, ben)
	refused(t, err, problem.WrongState, "cancelled and stays so")
	_, err = s.service.Cancel(t.Context(), "other", key, ann)
	refused(t, err, problem.NotFound, "")
	_, err = s.service.Replay(t.Context(), deliverTenant, key, ann)
	refused(t, err, problem.WrongState, "cancelled and stays so")
	s.audited(1, "operation.cancel", key)
	if got := s.available(key); got != "" {
		t.Errorf("available are %q", got)
	}
}

func TestCancelTakesBackWhatNeverGotAsFarAsAConnection(t *testing.T) {
	s := setupOperator(t)
	key := s.submitted(plainOrder("SO-1"))[0]
	s.server.Close()
	s.deliver(key)
	if got := s.available(key); got != "cancel" {
		t.Errorf("available are %q", got)
	}
	if op, err := s.service.Cancel(t.Context(), deliverTenant, key, ann); err != nil || op.Status != crm.StatusCancelled || op.Attempts != 1 {
		t.Fatalf("operation is %+v, %v", op, err)
	}
}

func TestWhatMayHaveLeftIsNotCancelled(t *testing.T) {
	s := setupOperator(t)
	for state, says := range map[string]string{
		"status = 'unknown', next_attempt_at = now()":                                                                             "may have reached the ERP",
		"status = 'processing', next_attempt_at = NULL, lease_until = now() + interval '1 hour'":                                  "being worked on",
		"status = 'pending', next_attempt_at = now()":                                                                             "may have reached the ERP",
		"status = 'failed', reason = 'rejected', next_attempt_at = NULL, finished_at = now()":                                     "failed and stays so",
		"status = 'succeeded', next_attempt_at = NULL, finished_at = now(), invoice_id = gen_random_uuid(), invoice_number = 'I'": "succeeded and stays so",
	} {
		key := s.submitted(plainOrder(state[:20]))[0]
		s.exec("UPDATE operations SET attempt = 1, first_sent_at = now(), "+state+" WHERE key = $1", key)
		s.exec("INSERT INTO attempts (operation_id, number, worker, outcome, finished_at) VALUES ($1, 1, 'test', 'wait', now())", s.id(key))
		before := s.operation(key).Status
		_, err := s.service.Cancel(t.Context(), deliverTenant, key, ann)
		refused(t, err, problem.WrongState, says)
		if op := s.operation(key); op.Status != before {
			t.Errorf("from %s to %s", before, op.Status)
		}
		s.audited(0, "operation.cancel", key)
	}
}

// What a person took back comes again only when its order wants it otherwise, or when a person wants it again.
func TestAfterACancellationOnlyAChangedOrderMakesANewOperation(t *testing.T) {
	s := setupOperator(t)
	order := plainOrder("SO-1")
	key := s.submitted(order)[0]
	if _, err := s.service.Cancel(t.Context(), deliverTenant, key, ann); err != nil {
		t.Fatal(err)
	}
	submit := func(o crm.Order) crm.Submission {
		t.Helper()
		subs, err := s.service.Submit(t.Context(), deliverTenant, crm.ChannelAPI, []crm.Order{o}, crm.SubmitOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return subs[0]
	}
	wantNone := func(sub crm.Submission, outcome crm.Outcome) {
		t.Helper()
		if sub.Outcome != outcome || len(sub.Operations) != 0 || s.count(s.crm, "operations") != 1 {
			t.Errorf("submission is %+v", sub)
		}
	}
	wantNone(submit(order), crm.OutcomeAlreadyThere)
	again := order
	again.Version = new(int64(2))
	wantNone(submit(again), crm.OutcomeChanged)

	// Another part of the order is wanted as well: the one that was taken back is wanted just as it was.
	more := order
	more.Version, more.Lines = new(int64(3)), nil
	more.Invoices = []crm.OrderInvoice{{Role: "final", Lines: order.Lines}, {Role: "advance", Lines: order.Lines}}
	sub := submit(more)
	if sub.Outcome != crm.OutcomeChanged || len(sub.Operations) != 1 || sub.Operations[0].Role != "advance" || sub.Detail == "" {
		t.Errorf("submission is %+v", sub)
	}

	other := more
	other.Version, other.IssueDate = new(int64(4)), "2026-03-03"
	sub = submit(other)
	if sub.Outcome != crm.OutcomeChanged || len(sub.Operations) != 2 {
		t.Fatalf("submission is %+v", sub)
	}
	for _, op := range sub.Operations {
		if op.Key == key {
			t.Error("the cancelled operation is live again")
		}
		s.deliver(op.Key)
	}
	if op := s.operation(key); op.Status != crm.StatusCancelled || s.count(s.erp, "invoices") != 2 {
		t.Errorf("operation is %+v", op)
	}
}

func TestWhatWasCancelledByHandIsWantedAgainByHand(t *testing.T) {
	s := setupOperator(t)
	order := plainOrder("SO-1")
	key := s.submitted(order)[0]
	if _, err := s.service.Cancel(t.Context(), deliverTenant, key, ann); err != nil {
		t.Fatal(err)
	}
	sub, err := s.service.SubmitByHand(t.Context(), deliverTenant, order, ben)
	if err != nil || sub.Outcome != crm.OutcomeChanged || len(sub.Operations) != 1 || sub.Operations[0].Key == key {
		t.Fatalf("submission is %+v, %v", sub, err)
	}
	if twice, err := s.service.SubmitByHand(t.Context(), deliverTenant, order, ben); err != nil || twice.Outcome != crm.OutcomeAlreadyThere {
		t.Errorf("submission is %+v, %v", twice, err)
	}
	s.deliver(sub.Operations[0].Key)
	s.audited(1, "order.submit", "crm-1/SO-1")
	if n := s.count(s.erp, "invoices"); n != 1 {
		t.Errorf("%d invoices", n)
	}
}

// The worker's press and the person's, at once: one of them has it, and both are told.
func TestACancellationBesideAnAttemptEndsInOneOfTheTwo(t *testing.T) {
	s := setupOperator(t)
	cancelled := 0
	for i := range 30 {
		key := s.submitted(plainOrder(fmt.Sprintf("SO-%d", i)))[0]
		id := s.id(key)
		var err, delivered error
		var both sync.WaitGroup
		both.Go(func() { _, err = s.service.Cancel(t.Context(), deliverTenant, key, ann) })
		both.Go(func() { _, delivered = s.deliverer.Deliver(t.Context(), id, nil) })
		both.Wait()
		if delivered != nil {
			t.Fatal(delivered)
		}
		op := s.operation(key)
		invoices := s.count(s.erp, "invoices WHERE operation_key = '"+key+"'")
		switch {
		case err == nil && op.Status == crm.StatusCancelled && op.Attempts == 0 && invoices == 0:
			cancelled++
		case problem.Is(err, problem.WrongState) && op.Status == crm.StatusSucceeded && invoices == 1:
		default:
			t.Errorf("cancel said %v, operation is %s, %d invoices", err, op.Status, invoices)
		}
	}
	t.Logf("%d of 30 cancelled", cancelled)
}

// A newer version beside the cancellation sees the operation as it was before, or as it is after.
func TestACancellationBesideANewerVersionLeavesNothingInBetween(t *testing.T) {
	s := setupOperator(t)
	for i := range 20 {
		order := plainOrder(fmt.Sprintf("SO-%d", i))
		key := s.submitted(order)[0]
		newer := order
		newer.Version, newer.IssueDate = new(int64(2)), "2026-03-03"
		var err, submitted error
		var subs []crm.Submission
		var both sync.WaitGroup
		both.Go(func() { _, err = s.service.Cancel(t.Context(), deliverTenant, key, ann) })
		both.Go(func() {
			subs, submitted = s.service.Submit(t.Context(), deliverTenant, crm.ChannelAPI, []crm.Order{newer}, crm.SubmitOptions{})
		})
		both.Wait()
		if err != nil || submitted != nil || subs[0].Outcome != crm.OutcomeChanged {
			t.Fatalf("cancel: %v, submit: %v, %+v", err, submitted, subs)
		}
		if op := s.operation(key); op.Status != crm.StatusCancelled || op.ChangedAfterDeliveryVersion != nil {
			t.Errorf("operation is %+v", op)
		}
	}
}
