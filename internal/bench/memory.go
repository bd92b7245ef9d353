package bench

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// measureMemory carries a large number of orders through both services and looks at what memory they have on the way.
func (l *lab) measureMemory(ctx context.Context) error {
	return l.withERP(ctx, func(s *site, erp *program) error {
		worker, err := s.serveCRM(ctx, erp)
		if err != nil {
			return err
		}
		both := map[string]*program{"erp-api": erp, "crm-worker": worker}
		atRest := map[string]float64{}
		for name, p := range both {
			if atRest[name], err = p.resident(ctx); err != nil {
				return err
			}
		}
		watching, end := context.WithCancel(ctx)
		defer end()
		highest := map[string]chan float64{}
		for name, p := range both {
			most := make(chan float64, 1)
			highest[name] = most
			go func() { most <- p.watchMemory(watching) }()
		}
		begun := time.Now()
		done, err := s.soak(ctx, worker)
		if err != nil {
			return errors.Join(err, worker.failure(), erp.failure())
		}
		l.say("  %d operations in %s", done, time.Since(begun).Round(time.Second))
		end()
		for _, name := range []string{"erp-api", "crm-worker"} {
			after, err := both[name].resident(ctx)
			if err != nil {
				return err
			}
			for _, row := range []struct {
				when string
				mib  float64
			}{
				{"before", atRest[name]}, {"at most, under full load", <-highest[name]}, {fmt.Sprintf("after %d operations", done), after},
			} {
				l.tell(Series{What: "memory of " + name + " " + row.when, Unit: "MiB", All: []float64{row.mib}})
			}
		}
		return nil
	})
}

// soak submits orders in portions, so that the queue never runs dry, until all are delivered or the time is over. It gives
// how many operations were delivered.
func (s *site) soak(ctx context.Context, worker *program) (delivered int, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.lab.scale.soakLimit+time.Minute)
	defer cancel()
	portion := max(1, s.lab.scale.soak/20)
	until := time.Now().Add(s.lab.scale.soakLimit)
	for submitted, round := 0, 0; time.Now().Before(until); round++ {
		for submitted < s.lab.scale.soak && submitted < delivered+2*portion {
			n, err := s.submit(ctx, worker, fmt.Sprintf("M%d-%d-", round, submitted), portion)
			if err != nil {
				return delivered, err
			}
			submitted += n
		}
		if err := scan(ctx, s.crmDSN, `SELECT count(*) FROM operations WHERE status = 'succeeded'`, &delivered); err != nil {
			return delivered, err
		}
		if delivered >= s.lab.scale.soak {
			break
		}
		pause(ctx, 500*time.Millisecond)
	}
	return delivered, ctx.Err()
}
