package jobs

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// wakeTime bounds one notification. A database that takes longer has other work than to be asked for more.
const wakeTime = 5 * time.Second

// waker notifies the workers, at most one notification at a time: those who ask while one is on its way share the next one, which
// begins after all of their commits. However many transactions insert jobs, the workers are told no more often than telling takes.
//
// A notification that fails, or that the end of the process cuts off, is not repeated: the workers look for jobs once a second by
// themselves.
type waker struct {
	notify func(ctx context.Context) error
	log    *slog.Logger

	mu      sync.Mutex
	atWork  bool
	another bool // somebody has asked since the notification that is on its way began
}

// wake returns at once.
func (w *waker) wake() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.atWork {
		w.another = true
		return
	}
	w.atWork = true
	go w.work()
}

// work notifies until nobody asks any more. So there is no goroutine to be stopped.
func (w *waker) work() {
	for again := true; again; again = w.next() {
		ctx, cancel := context.WithTimeout(context.Background(), wakeTime)
		if err := w.notify(ctx); err != nil {
			w.log.DebugContext(ctx, "the workers were not told of jobs, they will find them", "error", err)
		}
		cancel()
	}
}

func (w *waker) next() (again bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	again, w.another = w.another, false
	w.atWork = again
	return again
}
