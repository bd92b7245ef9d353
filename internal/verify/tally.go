package verify

import (
	"context"
	"errors"
	"sync"
	"time"
)

// tally knows the invoices that answers told of, by order.
type tally struct {
	mu  sync.Mutex
	ids map[string]map[string]bool
}

// add takes note of the invoice in an answer.
func (t *tally) add(order string, got answer) {
	if !got.invoiced() {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ids == nil {
		t.ids = map[string]map[string]bool{}
	}
	if t.ids[order] == nil {
		t.ids[order] = map[string]bool{}
	}
	t.ids[order][got.id()] = true
}

// tell counts the invoices there are: those of the list, or, where there is none, those that answers told of.
func (c contract) tell(ctx context.Context, f *findings, t *tally, expected int) error {
	perOrder := map[string]int{}
	for order, ids := range t.ids {
		n, known := c.replica(0).count(ctx, order)
		if !known {
			n = len(ids)
		} else if len(ids) > n {
			f.deviate("%s: answers tell of %d invoices, the list of %d", order, len(ids), n)
		}
		if n > 0 {
			perOrder[order] = n
		}
	}
	f.count(expected, perOrder)
	return nil
}

// seen waits for an invoice whose answer was lost: only then has "after the commit" been tried.
type seen struct {
	limit    time.Duration
	interval time.Duration
}

var errNotSeen = errors.New("the answer had begun, so the invoice was made; but it is not to be seen")

// await returns once the order has an invoice. Where there is no list there is nothing to wait for.
func (s seen) await(ctx context.Context, e endpoint, order string) error {
	ctx, cancel := context.WithTimeout(ctx, s.limit)
	defer cancel()
	for {
		n, known := e.count(ctx, order)
		switch {
		case ctx.Err() != nil:
			return errNotSeen
		case !known, n > 0:
			return nil
		}
		if !pause(ctx, s.interval) {
			return errNotSeen
		}
	}
}
