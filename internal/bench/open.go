package bench

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// arrivals is load that comes when it comes, however long the answers take: the times are counted from when a request was
// due, so that one which had to wait for the one before counts as late, too.
type arrivals struct {
	address     string
	rate        float64 // a second, on average; the gaps are those of independent callers
	burst       int     // so many come at once; 0: one
	duration    time.Duration
	connections int
	next        script
	order       func(client int) string // what next asked for last; may be nil
}

// arrived is what came of one request.
type arrived struct {
	due        time.Time
	waited     time.Duration // from when it was due to the answer
	took       time.Duration // from when it was sent
	status     int           // 0: no answer
	order      string
	retryAfter bool
}

// open sends requests as they are due. What is still unsent at the end is left out, and counted.
func (l *lab) open(ctx context.Context, what arrivals) (got []arrived, unsent int, err error) {
	ctx, cancel := context.WithTimeout(ctx, what.duration+answerLimit)
	defer cancel()
	due := make(chan time.Time, int(what.rate*what.duration.Seconds()*2)+1000)
	results := make([][]arrived, what.connections)
	callers := make([]*caller, what.connections)
	for n := range callers {
		if callers[n], err = dial(ctx, what.address); err != nil {
			return nil, 0, err
		}
		defer callers[n].close()
		// A server ends a connection that brings no first request for some seconds; one that has had a request it keeps for longer.
		if _, err := callers[n].do(ctx, []byte(sayHealthy)); err != nil {
			return nil, 0, err
		}
	}
	end := time.Now().Add(what.duration)
	var clients sync.WaitGroup
	for n, c := range callers {
		clients.Go(func() { results[n] = what.client(ctx, n, c, due) })
	}
	what.schedule(ctx, end, due)
	for len(due) > 0 { // nobody is held to a schedule that is over
		select {
		case <-due:
			unsent++
		default:
		}
	}
	close(due)
	clients.Wait()
	return slices.Concat(results...), unsent, ctx.Err()
}

// schedule says when requests are due, at those times.
func (what arrivals) schedule(ctx context.Context, end time.Time, due chan<- time.Time) {
	random := rand.New(rand.NewPCG(1, uint64(end.UnixNano()))) //nolint:gosec // when the next comes is no secret
	burst := max(1, what.burst)
	pace := newPace()
	defer pace.end()
	for at := time.Now(); ; {
		at = at.Add(time.Duration(random.ExpFloat64() * float64(burst) / what.rate * float64(time.Second)))
		if at.After(end) || ctx.Err() != nil {
			return
		}
		pace.until(at)
		for range burst {
			select {
			case due <- at:
			default: // as many are waiting as come in twice the time
				return
			}
		}
	}
}

func (what arrivals) client(ctx context.Context, n int, c *caller, due <-chan time.Time) (got []arrived) {
	random := rand.New(rand.NewPCG(uint64(n), uint64(time.Now().UnixNano()))) //nolint:gosec // which order is next is no secret
	for at := range due {
		c.buffer = what.next(n, random, c.buffer[:0])
		sent := time.Now()
		a, err := c.do(ctx, c.buffer)
		done := time.Now()
		one := arrived{due: at, waited: done.Sub(at), took: done.Sub(sent)}
		if err == nil {
			one.status, one.retryAfter = a.status, a.retryAfter
		}
		if what.order != nil {
			one.order = what.order(n)
		}
		got = append(got, one)
	}
	return got
}

// timesOf gives the sorted times of the requests with this status.
func timesOf(got []arrived, status int, of func(arrived) time.Duration) (times []time.Duration) {
	for _, a := range got {
		if a.status == status {
			times = append(times, of(a))
		}
	}
	return sorted(times)
}

func sorted(times []time.Duration) []time.Duration {
	slices.Sort(times)
	return times
}

func waited(a arrived) time.Duration { return a.waited }
func took(a arrived) time.Duration   { return a.took }
