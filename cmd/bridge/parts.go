package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// partStopLimit is the time each part has to stop in. The services give up their own requests before that.
const partStopLimit = 20 * time.Second

// parts are what runs beside the demo, in the order in which it was started. Each one that was started is stopped in
// the reverse order, whatever happens in between.
type parts struct {
	fail context.CancelCauseFunc // ends the program when a part ends by itself
	mu   sync.Mutex
	stop []func(context.Context) error
}

// start runs a part until it is stopped, and returns once it is ready: it gets the address the part told. If the part
// ends before that, its error is returned.
func (p *parts) start(ctx context.Context, name string, run func(ctx context.Context, ready func(addr string)) error) (string, error) {
	r := &running{name: name, ready: make(chan string, 1), ended: make(chan struct{})}
	r.ctx, r.cancel = context.WithCancel(context.WithoutCancel(ctx))
	go r.run(run, p.fail)
	p.onStop(r.stop)
	select {
	case addr := <-r.ready:
		return addr, nil
	case <-r.ended:
		return "", fmt.Errorf("start the %s: %w", name, orUnknown(r.err))
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// running is a part that was started.
type running struct {
	name     string
	ctx      context.Context // the part's own: it outlives what started it, until stop
	cancel   context.CancelFunc
	ready    chan string
	ended    chan struct{}
	err      error // how it ended, and whether before it was told to; to be read after ended
	bySelf   bool
	wasReady atomic.Bool
}

func (r *running) run(run func(ctx context.Context, ready func(addr string)) error, fail func(error)) {
	defer close(r.ended)
	r.err = run(r.ctx, func(addr string) {
		r.wasReady.Store(true)
		r.ready <- addr
	})
	r.bySelf = r.ctx.Err() == nil
	if r.bySelf && r.wasReady.Load() {
		fail(fmt.Errorf("the %s ended by itself: %w", r.name, orUnknown(r.err)))
	}
}

// stop waits for the part's end. What it ended with by itself was told already.
func (r *running) stop(ctx context.Context) error {
	r.cancel()
	select {
	case <-r.ended:
		if r.bySelf {
			return nil
		}
		return r.err
	case <-ctx.Done():
		return fmt.Errorf("the %s did not stop in time", r.name)
	}
}

func orUnknown(err error) error {
	if err == nil {
		return errors.New("without an error")
	}
	return err
}

// onStop adds something to be done at the end, before everything added earlier.
func (p *parts) onStop(f func(context.Context) error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stop = append(p.stop, f)
}

// stopAll stops all parts, the last one started first, also when ctx has ended.
func (p *parts) stopAll(ctx context.Context) error {
	p.mu.Lock()
	stops := p.stop
	p.stop = nil
	p.mu.Unlock()
	var errs []error
	for _, stop := range slices.Backward(stops) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), partStopLimit)
		errs = append(errs, stop(ctx))
		cancel()
	}
	return errors.Join(errs...)
}
