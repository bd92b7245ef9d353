package bench

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
)

// measureSubmit holds orders that come in by the thousand to orders that come one at a time, by one client each. Nothing is
// delivered meanwhile.
func (l *lab) measureSubmit(ctx context.Context) error {
	return l.withERP(ctx, func(s *site, erp *program) error {
		if err := execute(ctx, s.crmDSN, pauseQueue); err != nil {
			return err
		}
		worker, err := s.serveCRM(ctx, erp)
		if err != nil {
			return err
		}
		bulk := s.submitting(worker, fmt.Sprintf("bulk submit over HTTP, %d orders a call, 1 client", l.scale.submitted), l.scale.submitted)
		if err := l.compare(ctx, "bulk_submit", 12, bulk, s.submitting(worker, "submit over HTTP, one order a call, 1 client", 1)); err != nil {
			return err
		}
		return l.profiled(ctx, "bulk_submit", bulk, worker)
	})
}

// submitting measures orders a second, so many in each call.
func (s *site) submitting(worker *program, what string, perCall int) measure {
	ids := make([]string, perCall)
	of := load{addresses: []string{worker.address}, clients: 1, wanted: taken, next: func(_ int, random *rand.Rand, b []byte) []byte {
		for i := range ids {
			ids[i] = "S" + strconv.FormatInt(s.lab.orders.used.Add(1), 10)
		}
		return submit(b, head("/v1/orders", s.lab.tokens.crm[random.IntN(s.lab.scale.tenants)]), ids...)
	}}
	return measure{what, "orders/s", func(ctx context.Context) (float64, error) {
		got, err := s.lab.closed(ctx, of)
		return got.rate * float64(perCall), err
	}}
}
