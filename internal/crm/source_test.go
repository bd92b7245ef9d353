package crm_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"invoicebridge/internal/crm"
	"invoicebridge/internal/erpapi/erpsim"
	"invoicebridge/internal/jobs"
	"invoicebridge/internal/problem"
)

func (s *bothSides) paused(source string) {
	s.t.Helper()
	if _, err := s.service.PauseSource(s.t.Context(), deliverTenant, source, ann); err != nil {
		s.t.Fatal(err)
	}
}

func (s *bothSides) sweeps() int {
	s.t.Helper()
	n, err := jobs.NewSweeper(s.crm, s.inserter(), s.deliverer, time.Nanosecond).Sweep(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	return n
}

func TestOfAPausedSourceNothingIsSentUntilItIsResumed(t *testing.T) {
	s := setupOperator(t)
	before := s.submitted(plainOrder("SO-1"))[0]
	s.paused("crm-1")
	during := s.submitted(plainOrder("SO-2"))[0] // orders go on being taken
	for _, key := range []string{before, during} {
		next, err := s.deliverer.Deliver(t.Context(), s.id(key), nil)
		if err != nil || !next.Done {
			t.Errorf("its job goes on: %+v, %v", next, err)
		}
		if op := s.operation(key); op.Status != crm.StatusPending || op.Attempts != 0 {
			t.Errorf("operation is %+v", op)
		}
	}
	s.exec("DELETE FROM river_job")
	if n := s.sweeps(); n != 0 {
		t.Errorf("the sweep enqueued %d", n)
	}
	queued, err := s.service.ResumeSource(t.Context(), deliverTenant, "crm-1", ben)
	if err != nil || queued != 2 || s.jobsOf(before) != 1 || s.jobsOf(during) != 1 {
		t.Fatalf("queued %d, %v", queued, err)
	}
	s.deliver(before)
	s.deliver(during)
	if n := s.count(s.erp, "invoices"); n != 2 {
		t.Errorf("%d invoices", n)
	}
	s.audited(1, "source.pause", "crm-1")
	s.audited(1, "source.resume", "crm-1")
}

func TestAPauseHoldsBackOneSourceOfOneTenant(t *testing.T) {
	s := setupOperator(t)
	s.exec("INSERT INTO tenants (id, name) VALUES ('other', 'Other')")
	s.paused(" crm-2 ") // compared as orders' sources are
	if _, err := s.service.PauseSource(t.Context(), "other", "crm-1", ann); err != nil {
		t.Fatal(err)
	}
	key := s.submitted(plainOrder("SO-1"))[0]
	order := plainOrder("SO-2")
	order.Source = "crm-2"
	held := s.submitted(order)[0]
	s.deliver(key)
	s.deliver(held)
	if op := s.operation(key); op.Status != crm.StatusSucceeded {
		t.Errorf("operation is %+v", op)
	}
	if op := s.operation(held); op.Attempts != 0 {
		t.Errorf("operation is %+v", op)
	}
	view, err := s.service.ViewOperation(t.Context(), deliverTenant, held)
	if err != nil || view.Pause == nil || view.Pause.PausedBy != "ann" {
		t.Errorf("view is %+v, %v", view, err)
	}
	sources, err := s.service.ListSources(t.Context(), deliverTenant)
	if err != nil {
		t.Fatal(err)
	}
	for i := range sources {
		if sources[i].Pause != nil {
			sources[i].Pause.PausedAt = time.Time{}
		}
	}
	want := []crm.Source{{Source: "crm-1"}, {Source: "crm-2", Pending: 1, Pause: &crm.SourcePause{PausedBy: "ann", Reason: ann.Reason}}}
	if diff := cmp.Diff(want, sources); diff != "" {
		t.Errorf("sources (-want +got):\n%s", diff)
	}
}

// An attempt that runs when its source is paused ends as it would have; the pause tears nothing.
func TestARunningAttemptEndsNormallyWhileItsSourceIsPaused(t *testing.T) {
	d := setupDelivery(t)
	inserter, err := jobs.NewInserter(d.pool, nil)
	if err != nil {
		t.Fatal(err)
	}
	service := crm.NewService(d.pool, inserter, crm.Options{})
	id := d.operation("SO-1")
	d.erp.OnPost(func(c *erpsim.Call) {
		if _, err := service.PauseSource(context.Background(), deliverTenant, "crm-1", ann); err != nil {
			t.Error(err)
		}
		c.Send(c.Commit())
	})
	d.deliver(id)
	d.wantState(id, "succeeded", "", "delivered")
	d.wantOneInvoice(id)
}

func TestOfManyWhoPauseOrResumeOneDoesAndTheOthersAreTold(t *testing.T) {
	s := setupOperator(t)
	s.submitted(plainOrder("SO-1"))
	press := func(do func() error, says string) {
		t.Helper()
		errs := make([]error, 6)
		var all sync.WaitGroup
		for i := range errs {
			all.Go(func() { errs[i] = do() })
		}
		all.Wait()
		done := 0
		for _, err := range errs {
			if err == nil {
				done++
				continue
			}
			refused(t, err, problem.WrongState, says)
		}
		if done != 1 {
			t.Errorf("%d did it", done)
		}
	}
	press(func() error { _, err := s.service.PauseSource(t.Context(), deliverTenant, "crm-1", ann); return err }, "paused already")
	press(func() error { _, err := s.service.ResumeSource(t.Context(), deliverTenant, "crm-1", ben); return err }, "not paused")
	s.audited(1, "source.pause", "crm-1")
	s.audited(1, "source.resume", "crm-1")
	if n := s.count(s.crm, "river_job WHERE kind = 'deliver_operation'"); n != 2 { // one of the order, one of the resumption
		t.Errorf("%d jobs", n)
	}
}

func TestAPauseWantsAReasonAndASource(t *testing.T) {
	s := setupOperator(t)
	nobody := ann
	nobody.Reason = " "
	_, err := s.service.PauseSource(t.Context(), deliverTenant, "crm-1", nobody)
	refused(t, err, problem.MalformedRequest, "reason")
	_, err = s.service.PauseSource(t.Context(), deliverTenant, "", ann)
	refused(t, err, problem.MalformedRequest, "source")
	if n := s.count(s.crm, "source_pauses"); n != 0 {
		t.Errorf("%d pauses", n)
	}
}
