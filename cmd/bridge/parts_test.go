package main

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPartsStopInReverseOrderEachAfterTheOther(t *testing.T) {
	t.Parallel()
	p := &parts{fail: func(error) {}}
	var ended []string // no lock: stopAll waits for each part before it stops the next
	for _, name := range []string{"first", "second", "third"} {
		addr, err := p.start(t.Context(), name, func(ctx context.Context, ready func(string)) error {
			ready("addr of " + name)
			<-ctx.Done()
			ended = append(ended, name)
			return nil
		})
		if err != nil || addr != "addr of "+name {
			t.Fatalf("start: %q, %v", addr, err)
		}
	}
	if err := p.stopAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"third", "second", "first"}, ended); diff != "" {
		t.Error(diff)
	}
}

func TestPartThatEndsByItselfEndsTheProgram(t *testing.T) {
	t.Parallel()
	ctx, fail := context.WithCancelCause(t.Context())
	p := &parts{fail: fail}
	broken := errors.New("broken")
	end := make(chan struct{})
	_, err := p.start(ctx, "ERP", func(_ context.Context, ready func(string)) error {
		ready("")
		<-end
		return broken
	})
	if err != nil {
		t.Fatal(err)
	}
	close(end)
	<-ctx.Done()
	if cause := context.Cause(ctx); !errors.Is(cause, broken) || !strings.Contains(cause.Error(), "the ERP ended by itself") {
		t.Errorf("cause: %v", cause)
	}
}

func TestPartThatNeverBecomesReadyIsAnError(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	p := &parts{fail: func(error) {}}
	_, err := p.start(t.Context(), "ERP", func(context.Context, func(string)) error { return broken })
	if !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = p.start(ctx, "CRM", func(ctx context.Context, _ func(string)) error { <-ctx.Done(); return nil })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if err := p.stopAll(t.Context()); err != nil {
		t.Errorf("stopAll tells again what start told: %v", err)
	}
}
