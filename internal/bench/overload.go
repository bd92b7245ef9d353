package bench

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// overloaded is what one round of overload shows.
type overloaded struct {
	most, rate         float64 // invoices a second, at most and under overload
	excess, turnedAway float64 // how many were too many, and how many of these were told so, with when to come again
	refusal            time.Duration
	memory, fullMemory float64
	before, after      time.Duration // p50 at idle
}

// measureOverload asks for three times as many invoices as there can be, and looks at what is made, what the others are told
// and when, at memory, and at how it is right afterwards.
func (l *lab) measureOverload(ctx context.Context) error {
	return l.withERP(ctx, func(s *site, erp *program) error {
		rate, most := Series{What: fmt.Sprintf("invoices at %g times the maximum rate", l.scale.overload), Unit: "/s"}, Series{What: "the maximum rate", Unit: "/s"}
		away, excess := Series{What: "excess that got 503 with Retry-After", Unit: "/s"}, Series{What: "the excess", Unit: "/s"}
		refusal, refusalLimit := milliseconds("a refusal, from when the request was sent, p99"), milliseconds("limit")
		memory, memoryLimit := Series{What: "erp-api's memory under overload", Unit: "MiB"}, Series{What: "twice that under full load", Unit: "MiB"}
		after, before := milliseconds("create at idle right after, p50"), milliseconds("before")
		for range l.scale.rounds {
			o, err := s.overload(ctx, erp)
			if err != nil {
				return errors.Join(err, erp.failure())
			}
			rate.add(o.rate)
			most.add(o.most)
			away.add(o.turnedAway)
			excess.add(o.excess)
			refusal.add(ms(o.refusal))
			refusalLimit.add(50)
			memory.add(o.memory)
			memoryLimit.add(2 * o.fullMemory)
			after.add(ms(o.after))
			before.add(ms(o.before))
			l.say("  %.0f/s of at most %.0f/s; %.0f/s too many, %.0f/s told so, p99 %.1f ms; %.0f MiB; idle p50 %.2f ms, before %.2f ms",
				o.rate, o.most, o.excess, o.turnedAway, ms(o.refusal), o.memory, ms(o.after), ms(o.before))
		}
		l.figure(newFigure("overload_throughput", 0.9, rate, most))
		l.figure(newFigure("overload_excess_told_so", 0.99, away, excess))
		l.figure(inverse("overload_503_p99", 1, refusal, refusalLimit))
		l.figure(inverse("overload_memory", 1, memory, memoryLimit))
		l.figure(inverse("overload_idle_right_after", 0.8, after, before))
		return nil
	})
}

func (s *site) overload(ctx context.Context, erp *program) (o overloaded, err error) {
	l := s.lab
	full := s.creating(l.scale.clients, erp)
	full.during = func(ctx context.Context) { o.fullMemory = erp.watchMemory(ctx) }
	most, err := l.closed(ctx, full)
	if err != nil {
		return o, err
	}
	o.most = most.rate
	if o.before, err = s.idleMedian(ctx, erp); err != nil {
		return o, err
	}
	watching, end := context.WithCancel(ctx)
	highest := make(chan float64, 1)
	go func() { highest <- erp.watchMemory(watching) }()
	got, unsent, err := l.open(ctx, arrivals{
		address: erp.address, rate: o.most * l.scale.overload, duration: l.scale.window, connections: l.scale.connections, next: s.requests.create(),
	})
	end()
	o.memory = <-highest
	if err != nil {
		return o, err
	}
	seconds := l.scale.window.Seconds()
	refusals := sorted(append(timesOf(got, 503, took), timesOf(got, 429, took)...))
	told := 0
	for _, a := range got {
		if a.status == 503 && a.retryAfter {
			told++
		}
	}
	made := len(timesOf(got, 201, took))
	o.rate, o.excess, o.turnedAway, o.refusal = float64(made)/seconds, float64(len(got)-made)/seconds, float64(told)/seconds, quantile(refusals, 0.99)
	if len(refusals) == 0 {
		return o, fmt.Errorf("nothing was refused: %d invoices made, %d other answers, %d requests never sent", made, len(got)-made, unsent)
	}
	if unsent > 0 {
		l.say("  (the generator was late: it did not send %d requests)", unsent)
	}
	o.after, err = s.idleMedian(ctx, erp)
	return o, err
}

// idleMedian is the p50 of creates at idle, in the next moment.
func (s *site) idleMedian(ctx context.Context, erp *program) (time.Duration, error) {
	got, _, err := s.lab.open(ctx, arrivals{
		address: erp.address, rate: 2 * idleRate, duration: s.lab.scale.idle / 3, connections: 8, next: s.requests.create(),
	})
	if err != nil {
		return 0, err
	}
	times := timesOf(got, 201, waited)
	if len(times) < len(got) || len(times) == 0 {
		return 0, fmt.Errorf("at idle %d of %d requests were refused", len(got)-len(times), len(got))
	}
	return quantile(times, 0.5), nil
}
