package crm_test

import (
	"testing"
	"time"

	"invoicebridge/internal/crm"
	"invoicebridge/internal/jobs"
)

// wakes is an Inserter that keeps how many jobs others see whenever the workers are woken.
type wakes struct {
	*jobs.Inserter
	s    *bothSides
	jobs []int
}

func (w *wakes) Wake() {
	w.jobs = append(w.jobs, w.s.count(w.s.crm, "river_job WHERE kind = 'deliver_operation'"))
}

// Who is woken before the commit finds nothing, and looks again only after a while.
func TestWhateverQueuesDeliveriesWakesTheWorkersAfterItsCommit(t *testing.T) {
	s := setupOperator(t)
	w := &wakes{Inserter: s.inserter(), s: s}
	s.service = crm.NewService(s.crm, w, crm.Options{Actions: w})
	step := func(what string, queued int, do func()) {
		t.Helper()
		before := s.count(s.crm, "river_job WHERE kind = 'deliver_operation'")
		w.jobs = nil
		do()
		if len(w.jobs) != 1 || w.jobs[0] != before+queued {
			t.Errorf("%s: of %d jobs that were there before, and %d new ones, the workers were woken for %v", what, before, queued, w.jobs)
		}
	}
	order := plainOrder("SO-1")
	step("orders", 2, func() { s.submitted(order, plainOrder("SO-2")) })
	w.jobs = nil
	s.submitted(order)
	bad := plainOrder("SO-3")
	bad.Order = ""
	if _, err := s.service.Submit(t.Context(), deliverTenant, crm.ChannelAPI, []crm.Order{bad, plainOrder("SO-4")}, crm.SubmitOptions{}); err == nil {
		t.Error("a wrong order is taken")
	}
	if len(w.jobs) != 0 {
		t.Errorf("a repeat and a refusal wake the workers %d times", len(w.jobs))
	}

	key := s.rejected("SO-5")
	step("a revision", 1, func() {
		if _, err := s.service.Revise(t.Context(), deliverTenant, key, request(t, forOrder("SO-5")), correctedBy); err != nil {
			t.Fatal(err)
		}
	})
	stuck := s.stuck("one", 1)[0]
	step("a replay", 1, func() {
		if _, err := s.service.Replay(t.Context(), deliverTenant, stuck, ann); err != nil {
			t.Fatal(err)
		}
	})
	s.stuck("many", 3)
	run := s.starts(crm.ReplayFilter{}, 3)
	step("a replay of many", 3, func() { s.works(run.ID) })
	s.paused("crm-1")
	s.exec("DELETE FROM river_job")
	due := s.count(s.crm, "operations WHERE status = 'pending' OR status = 'unknown'")
	step("a source that is resumed", due, func() {
		if _, err := s.service.ResumeSource(t.Context(), deliverTenant, "crm-1", ben); err != nil {
			t.Fatal(err)
		}
	})
	s.exec("DELETE FROM river_job")
	step("a sweep", due, func() {
		if _, err := jobs.NewSweeper(s.crm, w, s.deliverer, time.Nanosecond).Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}
