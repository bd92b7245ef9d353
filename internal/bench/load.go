package bench

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

// script puts the next request of a client together in its buffer. It is called by one goroutine a client.
type script func(client int, random *rand.Rand, buffer []byte) []byte

// load is requests by clients of which each waits for its answer before it sends the next.
type load struct {
	addresses []string // the clients are dealt out to them
	clients   int
	next      script
	wanted    func(*answer) error
	// during, where given, is run beside the measured time and ended with it.
	during func(ctx context.Context)
}

// outcome is what came of a load.
type outcome struct {
	rate  float64         // of answers a second
	times []time.Duration // sorted
}

// closed runs a load for the warm-up and then for the window, which alone counts.
func (l *lab) closed(ctx context.Context, what load) (outcome, error) {
	warmUp, window := l.scale.warmUp, l.scale.window
	ctx, cancel := context.WithTimeout(ctx, warmUp+window+answerLimit)
	defer cancel()
	from := time.Now().Add(warmUp)
	until := from.Add(window)
	times := make([][]time.Duration, what.clients)
	group, ctx := errgroup.WithContext(ctx)
	for n := range what.clients {
		group.Go(func() (err error) {
			times[n], err = what.client(ctx, n, from, until)
			return err
		})
	}
	if what.during != nil {
		beside, end := context.WithDeadline(ctx, until)
		defer end()
		what.during(beside)
	}
	if err := group.Wait(); err != nil {
		return outcome{}, err
	}
	all := slices.Concat(times...)
	slices.Sort(all)
	return outcome{rate: float64(len(all)) / window.Seconds(), times: all}, nil
}

// times runs a load until so many requests have been put together, which next counts.
func (l *lab) times(ctx context.Context, what load, next *atomic.Int64, n int) error {
	ctx, cancel := context.WithTimeout(ctx, fillLimit)
	defer cancel()
	group, ctx := errgroup.WithContext(ctx)
	for client := range what.clients {
		group.Go(func() error {
			c, err := dial(ctx, what.addresses[client%len(what.addresses)])
			if err != nil {
				return err
			}
			defer c.close()
			for ctx.Err() == nil && next.Load() < int64(n) {
				c.buffer = what.next(client, nil, c.buffer[:0])
				got, err := c.do(ctx, c.buffer)
				if err == nil {
					err = what.wanted(got)
				}
				if err != nil {
					return err
				}
			}
			return ctx.Err()
		})
	}
	return group.Wait()
}

// fillLimit bounds how long the rows may take that a measurement needs to begin with.
const fillLimit = 2 * time.Minute

// client is one of a load. It gives the times of the answers that came in the window.
func (what load) client(ctx context.Context, n int, from, until time.Time) (times []time.Duration, err error) {
	c, err := dial(ctx, what.addresses[n%len(what.addresses)])
	if err != nil {
		return nil, err
	}
	defer c.close()
	random := rand.New(rand.NewPCG(uint64(n), uint64(from.UnixNano()))) //nolint:gosec // which order is next is no secret
	times = make([]time.Duration, 0, 1<<10)
	for sent := time.Now(); sent.Before(until); {
		c.buffer = what.next(n, random, c.buffer[:0])
		got, err := c.do(ctx, c.buffer)
		if err == nil {
			err = what.wanted(got)
		}
		if err != nil {
			return nil, fmt.Errorf("client %d: %w", n, err)
		}
		answered := time.Now()
		if answered.After(from) && answered.Before(until) {
			times = append(times, answered.Sub(sent))
		}
		sent = answered
	}
	return times, nil
}

// made wants the answer to a first request.
func made(a *answer) error {
	if a.status != 201 || a.replayed {
		return fmt.Errorf("not made: %d %.300s", a.status, a.body)
	}
	return nil
}

// replayed wants the answer to a repeated request.
func replayed(a *answer) error {
	if a.status != 201 || !a.replayed {
		return fmt.Errorf("not a replay: %d %.300s", a.status, a.body)
	}
	return nil
}
