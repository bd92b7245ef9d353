package verify

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// How much the checks of the contract do.
const (
	orders  = 20 // of each check
	repeats = 10
	atOnce  = 25

	inProgressPause = 100 * time.Millisecond
	inProgressTries = 100
)

// contract are the checks that need nothing but POST /v1/invoices at one or more replicas, so that they can be made of
// anybody's implementation. Orders and keys bear the run's name: a run meets nothing of an earlier one.
type contract struct {
	run      string
	replicas []endpoint
	// cut gives a way to replica n on which the answer is lost once the service begins to give it.
	cut  func(n int) (endpoint, error)
	seen seen
}

func (c contract) checks() []check {
	return []check{
		{"the same request several times", c.sameAgain},
		{"the same request several times at once", c.sameAtOnce},
		{"a key used again with other content", c.otherContent},
		{"the connection cut after the commit", c.answerLost},
		{"the same order by hand, under another key", c.byHand},
	}
}

// replica takes the replicas in turn.
func (c contract) replica(n int) endpoint { return c.replicas[n%len(c.replicas)] }

func (c contract) invoice(check string, n int) invoice {
	order := fmt.Sprintf("V-%s-%s-%d", c.run, check, n)
	return invoice{key: "verify-" + order, order: order, price: "10.00"}
}

func (c contract) sameAgain(ctx context.Context, f *findings) error {
	f.done("%d orders, each sent %d times to %d replicas in turn", orders, repeats, len(c.replicas))
	var tally tally
	for n := range orders {
		want := c.invoice("again", n)
		first := c.replica(n).issue(ctx, want)
		if !first.invoiced() || first.replayed {
			f.deviate("%s: the first answer is %s (marked as replayed: %t)", want.order, first, first.replayed)
			continue
		}
		tally.add(want.order, first)
		for again := 1; again < repeats; again++ {
			got := c.replica(n+again).issue(ctx, want)
			tally.add(want.order, got)
			c.wantReplay(f, want, first, got)
		}
	}
	return c.tell(ctx, f, &tally, orders)
}

// wantReplay holds a repeated request's answer to the first one.
func (c contract) wantReplay(f *findings, want invoice, first, got answer) {
	switch {
	case !first.same(got):
		f.deviate("%s: the repeat is answered otherwise than the first time: %s", want.order, got)
	case !got.replayed:
		f.deviate("%s: the repeat is not marked by Idempotent-Replayed: true", want.order)
	}
}

func (c contract) sameAtOnce(ctx context.Context, f *findings) error {
	f.done("%d orders, each sent %d times at once to %d replicas", orders, atOnce, len(c.replicas))
	var tally tally
	for n := range orders {
		want := c.invoice("once", n)
		answers := c.together(atOnce, func(i int) answer { return c.replica(i).issue(ctx, want) })
		var first []answer
		for _, got := range answers {
			tally.add(want.order, got)
			switch {
			case got.invoiced() && !got.replayed:
				first = append(first, got)
			case got.invoiced(), got.status == http.StatusConflict && got.problem() == "operation-in-progress":
			default:
				f.deviate("%s: one of those at once is answered %s", want.order, got)
			}
		}
		if len(first) != 1 {
			f.deviate("%s: %d answers say that they made the invoice", want.order, len(first))
			continue
		}
		for _, got := range answers {
			if got.invoiced() && !first[0].same(got) {
				f.deviate("%s: two answers to the same request differ: %s", want.order, got)
			}
		}
		c.wantReplay(f, want, first[0], c.settled(ctx, n, want))
	}
	return c.tell(ctx, f, &tally, orders)
}

// together calls do n times at once.
func (c contract) together(n int, do func(i int) answer) []answer {
	answers, start := make([]answer, n), make(chan struct{})
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			<-start
			answers[i] = do(i)
		})
	}
	close(start)
	all.Wait()
	return answers
}

// settled sends a request until it is answered with something else than "in progress".
func (c contract) settled(ctx context.Context, n int, want invoice) answer {
	got := c.replica(n).issue(ctx, want)
	for try := 1; try < inProgressTries && got.problem() == "operation-in-progress"; try++ {
		if !pause(ctx, inProgressPause) {
			return answer{err: ctx.Err()}
		}
		got = c.replica(n).issue(ctx, want)
	}
	return got
}

func (c contract) otherContent(ctx context.Context, f *findings) error {
	f.done("%d keys with another price afterwards, %d with both prices %d times at once", orders, orders, atOnce)
	var tally tally
	for n := range orders {
		want, other := c.invoice("reuse", n), c.invoice("reuse", n)
		other.price = "900.00"
		first := c.replica(n).issue(ctx, want)
		tally.add(want.order, first)
		got := c.replica(n+1).issue(ctx, other)
		tally.add(want.order, got)
		c.wantMismatch(f, want, got)
		c.wantReplay(f, want, first, c.replica(n).issue(ctx, want))
	}
	for n := range orders {
		c.bothAtOnce(ctx, f, &tally, n)
	}
	return c.tell(ctx, f, &tally, 2*orders)
}

func (c contract) wantMismatch(f *findings, want invoice, got answer) {
	switch {
	case got.status != http.StatusUnprocessableEntity || got.problem() != "idempotency-key-reused":
		f.deviate("%s: the key with another price is answered %s", want.order, got)
	case !strings.Contains(got.body, "/lines/0/unit_price"):
		f.deviate("%s: the refusal does not say which member differs: %s", want.order, got)
	}
}

// bothAtOnce sends two contents under one key at the same time: one of them wins, and its answer goes to nobody else.
func (c contract) bothAtOnce(ctx context.Context, f *findings, tally *tally, n int) {
	want := c.invoice("both", n)
	prices := []string{"10.00", "900.00"}
	answers := c.together(atOnce, func(i int) answer {
		mine := want
		mine.price = prices[i%2]
		return c.replica(i/2).issue(ctx, mine)
	})
	var winners []string
	for i, got := range answers {
		tally.add(want.order, got)
		switch {
		case got.invoiced():
			winners = append(winners, prices[i%2])
		case got.status == http.StatusConflict && got.problem() == "operation-in-progress":
		case got.status == http.StatusUnprocessableEntity && got.problem() == "idempotency-key-reused":
		default:
			f.deviate("%s: one of two contents at once is answered %s", want.order, got)
		}
	}
	slices.Sort(winners)
	if winners = slices.Compact(winners); len(winners) != 1 {
		f.deviate("%s: %d of two contents under one key were answered with an invoice", want.order, len(winners))
	}
}

func (c contract) answerLost(ctx context.Context, f *findings) error {
	f.done("%d orders whose answer was cut at its first byte, then sent again", orders)
	var tally tally
	for n := range orders {
		want := c.invoice("lost", n)
		broken, err := c.cut(n)
		if err != nil {
			return err
		}
		if got := broken.issue(ctx, want); got.err == nil {
			f.deviate("%s: the answer that was to be lost came: %s", want.order, got)
		}
		if err := c.seen.await(ctx, c.replica(n+1), want.order); err != nil {
			f.deviate("%s: %v", want.order, err)
		}
		got := c.settled(ctx, n+1, want)
		tally.add(want.order, got)
		if !got.invoiced() {
			f.deviate("%s: after the lost answer the repeat is answered %s", want.order, got)
			continue
		}
		if !got.replayed {
			// Without a list only this tells the first invoice from a second one.
			f.deviate("%s: after the lost answer the repeat is not marked by Idempotent-Replayed: true", want.order)
		}
		c.wantReplay(f, want, got, c.replica(n).issue(ctx, want))
	}
	return c.tell(ctx, f, &tally, orders)
}

func (c contract) byHand(ctx context.Context, f *findings) error {
	f.done("%d orders, each asked for again under a key of its own", orders)
	var tally tally
	for n := range orders {
		want := c.invoice("hand", n)
		first := c.replica(n).issue(ctx, want)
		tally.add(want.order, first)
		other := want
		other.key += "-by-hand"
		got := c.replica(n+1).issue(ctx, other)
		tally.add(want.order, got)
		if got.status != http.StatusConflict || got.problem() != "already-invoiced" {
			f.deviate("%s: the order under another key is answered %s", want.order, got)
		} else if !strings.Contains(got.body, first.id()) {
			f.deviate("%s: the refusal does not name the invoice there is: %s", want.order, got)
		}
	}
	return c.tell(ctx, f, &tally, orders)
}

// pause waits; false if ctx ended first.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
