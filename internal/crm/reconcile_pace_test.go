package crm_test

import (
	"context"
	"errors"
	"testing"
	"time"
)

func TestTheServicesComparisonLeavesBothSidesToOthersInBetween(t *testing.T) {
	s := setupBothSides(t)
	now := time.Unix(0, 0)
	s.opts.Now = func() time.Time { // each batch takes a second
		now = now.Add(time.Second)
		return now
	}
	var pauses []time.Duration
	s.opts.Pause = func(ctx context.Context, d time.Duration) error {
		pauses = append(pauses, d)
		return ctx.Err()
	}
	s.opts.PauseFactor = 2.5
	if err := s.reconciler().RunAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(pauses) != 4 { // one batch in each phase
		t.Errorf("%d pauses", len(pauses))
	}
	for _, d := range pauses {
		if d != 2500*time.Millisecond {
			t.Errorf("a pause of %v after a batch of a second", d)
		}
	}
	pauses = nil
	if s.reconciles(); len(pauses) > 0 {
		t.Errorf("who asks for it waits for %d pauses", len(pauses))
	}
}

func TestAComparisonThatEndsInAPauseIsGoneOnWith(t *testing.T) {
	s := setupBothSides(t)
	ctx, cancel := context.WithCancel(t.Context())
	s.opts.PauseFactor = 1
	s.opts.Pause = func(ctx context.Context, _ time.Duration) error {
		cancel()
		return ctx.Err()
	}
	if err := s.reconciler().RunAll(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("it ends with %v", err)
	}
	s.reconciles()
	if n := s.count(s.crm, "reconciliation_runs"); n != 1 {
		t.Errorf("%d runs, want the one that was begun", n)
	}
}
