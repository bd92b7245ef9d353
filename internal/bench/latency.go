package bench

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// Rates of an open loop that leaves the service idle nearly all of the time.
const (
	idleRate  = 20.0 // invoices a second
	orderRate = 10.0 // orders a second, and bursts besides
	burst     = 10   // orders at once
	burstRate = 5.0  // orders a second that come in bursts: one burst every 2 s on average
)

// measureLatency holds the slowest creates at half the maximum rate to a usual one at idle, in an open loop.
func (l *lab) measureLatency(ctx context.Context) error {
	return l.withERP(ctx, func(s *site, erp *program) error {
		idle50, idle99 := milliseconds("create at idle, p50"), milliseconds("create at idle, p99")
		half50, half99 := milliseconds("create at half the maximum rate, p50"), milliseconds("create at half the maximum rate, p99")
		limit := milliseconds("3 times the p50 at idle")
		half := Series{What: "half the maximum rate, as sent", Unit: "/s"}
		for range l.scale.rounds {
			most, err := l.closed(ctx, s.creating(l.scale.clients, erp))
			if err != nil {
				return err
			}
			times, err := s.createTimes(ctx, erp, idleRate)
			if err != nil {
				return err
			}
			idle50.add(ms(quantile(times, 0.5)))
			idle99.add(ms(quantile(times, 0.99)))
			limit.add(3 * ms(quantile(times, 0.5)))
			if times, err = s.createTimes(ctx, erp, most.rate/2); err != nil {
				return err
			}
			half50.add(ms(quantile(times, 0.5)))
			half99.add(ms(quantile(times, 0.99)))
			half.add(float64(len(times)) / l.scale.idle.Seconds())
			l.say("  idle p50 %.2f ms, p99 %.2f ms; at %.0f/s p50 %.2f ms, p99 %.2f ms", last(idle50), last(idle99), most.rate/2, last(half50), last(half99))
		}
		l.figure(inverse("create_p99_at_half_rate", 1, half99, limit))
		for _, row := range []Series{idle50, idle99, half50, half99, half} {
			l.tell(row)
		}
		return nil
	})
}

func milliseconds(what string) Series { return Series{What: what, Unit: "ms"} }

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func last(s Series) float64 { return s.All[len(s.All)-1] }

// createTimes are the sorted times of new invoices that are asked for at a rate, counted from when they were due.
func (s *site) createTimes(ctx context.Context, erp *program, rate float64) ([]time.Duration, error) {
	got, unsent, err := s.lab.open(ctx, arrivals{
		address: erp.address, rate: rate, duration: s.lab.scale.idle, connections: min(s.lab.scale.connections, 256), next: s.requests.create(),
	})
	if err != nil {
		return nil, err
	}
	times := timesOf(got, 201, waited)
	if len(times) == 0 || len(times) < len(got) || unsent > 0 {
		return nil, fmt.Errorf("at %.0f/s %d requests were made, %d failed, and %d were never sent", rate, len(times), len(got)-len(times), unsent)
	}
	return times, nil
}

// measureArrival measures from an order's being due to its invoice, with both services idle but for a few orders, some of
// which come together. The invoice's moment is that in which the CRM side writes down that it has it, which is later than
// its commit.
func (l *lab) measureArrival(ctx context.Context) error {
	return l.withERP(ctx, func(s *site, erp *program) error {
		worker, err := s.serveCRM(ctx, erp)
		if err != nil {
			return err
		}
		if _, err := s.arrive(ctx, worker); err != nil { // to warm up
			return fmt.Errorf("warm up: %w", err)
		}
		p50, p99 := milliseconds("order due -> invoice at idle, bursts included, p50"), milliseconds("order due -> invoice at idle, bursts included, p99")
		limit50, limit99 := milliseconds("limit"), milliseconds("limit")
		for range l.scale.rounds {
			times, err := s.arrive(ctx, worker)
			if err != nil {
				return errors.Join(err, worker.failure())
			}
			p50.add(ms(quantile(times, 0.5)))
			p99.add(ms(quantile(times, 0.99)))
			limit50.add(5)
			limit99.add(15)
			l.say("  %d orders: p50 %.2f ms, p99 %.2f ms", len(times), last(p50), last(p99))
		}
		l.figure(inverse("order_to_invoice_p50", 1, p50, limit50))
		l.figure(inverse("order_to_invoice_p99", 1, p99, limit99))
		return nil
	})
}

// arrive submits single orders and bursts of them for a while, and gives the sorted times until their invoices.
func (s *site) arrive(ctx context.Context, worker *program) ([]time.Duration, error) {
	single, bursts := s.ordering(worker, orderRate, 1), s.ordering(worker, burstRate, burst)
	var both sync.WaitGroup
	var failed [2]error
	var got [2][]arrived
	for i, of := range []arrivals{single, bursts} {
		both.Go(func() { got[i], _, failed[i] = s.lab.open(ctx, of) })
	}
	both.Wait()
	if err := errors.Join(failed[0], failed[1]); err != nil {
		return nil, err
	}
	due := map[string]time.Time{}
	for _, a := range append(got[0], got[1]...) {
		if a.status/100 != 2 {
			return nil, fmt.Errorf("an order was answered %d", a.status)
		}
		due[a.order] = a.due
	}
	if err := s.delivered(ctx, 20*time.Millisecond); err != nil {
		return nil, err
	}
	return s.untilInvoiced(ctx, due)
}

func (s *site) ordering(worker *program, rate float64, burst int) arrivals {
	last := make([]string, 32)
	return arrivals{
		address: worker.address, rate: rate, burst: burst, duration: 2 * s.lab.scale.idle, connections: len(last),
		order: func(client int) string { return last[client] },
		next: func(client int, random *rand.Rand, b []byte) []byte {
			last[client] = "A" + strconv.FormatInt(s.lab.orders.used.Add(1), 10)
			return submit(b, head("/v1/orders", s.lab.tokens.crm[random.IntN(s.lab.scale.tenants)]), last[client])
		},
	}
}

// untilInvoiced gives the sorted times from when orders were due until their operations had succeeded.
func (s *site) untilInvoiced(ctx context.Context, due map[string]time.Time) ([]time.Duration, error) {
	conn, err := pgx.Connect(ctx, s.crmDSN)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	rows, err := conn.Query(ctx, `SELECT order_id, finished_at FROM operations WHERE status = 'succeeded' AND order_id LIKE 'A%'`)
	if err != nil {
		return nil, err
	}
	var times []time.Duration
	var order string
	var finished time.Time
	_, err = pgx.ForEachRow(rows, []any{&order, &finished}, func() error {
		if at, ours := due[order]; ours {
			times = append(times, finished.Sub(at))
		}
		return nil
	})
	if err == nil && (len(times) == 0 || len(times) != len(due)) {
		err = fmt.Errorf("%d of %d orders have their invoice", len(times), len(due))
	}
	return sorted(times), err
}
