package modeltest

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"invoicebridge/internal/crm"
	"invoicebridge/internal/erpapi"
)

// rush has new orders come in, and delivers them and all others at once, some more than once, by one worker or two. They share
// the transactions in which they begin and in which their outcomes are written, and each meets a fault of its own.
func (b *bridge) rush(rt *rapid.T) {
	b.submitMore(rt, rapid.IntRange(2, 4).Draw(rt, "new orders"))
	before, faults := map[uuid.UUID]operation{}, map[string]erpFault{}
	var at []uuid.UUID
	for _, o := range b.operations(rt) {
		before[o.ID], faults[o.Key] = o, rapid.SampledFrom(erpFaults()).Draw(rt, "the ERP")
		at = append(at, o.ID)
	}
	at = append(at, rapid.SliceOfN(rapid.SampledFrom(at), 0, 3).Draw(rt, "once more")...)
	workers := b.rushers[:rapid.IntRange(1, len(b.rushers)).Draw(rt, "workers")]
	b.weather.byKey(faults)
	defer b.weather.byKey(nil)
	release := b.holdBeginnings(rt, len(workers))
	failed := make([]error, len(at))
	var all sync.WaitGroup
	for i, id := range at {
		all.Go(func() { _, failed[i] = workers[i%len(workers)].Deliver(context.Background(), id, nil) })
	}
	release()
	all.Wait()
	for i, err := range failed {
		if err != nil {
			rt.Fatalf("deliver %s beside others: %v", at[i], err)
		}
	}
	for id, was := range before {
		if now := b.look(rt, id); b.paused && now != was {
			rt.Fatalf("its source is paused, and it was worked on\nbefore %+v\nafter  %+v", was, now)
		}
	}
}

// submitMore sends orders that nobody has sent before.
func (b *bridge) submitMore(rt *rapid.T, n int) {
	orders := make([]crm.Order, n)
	for i := range orders {
		b.rushes++
		orders[i] = orderAt(fmt.Sprint("SO-R", b.rushes), 10)
	}
	if _, err := b.service.Submit(context.Background(), b.tenant, crm.ChannelAPI, orders, crm.SubmitOptions{}); err != nil {
		rt.Fatal(err)
	}
}

// holdBeginnings holds the transactions in which attempts begin. release ends that once so many are held, one of each worker; the
// other deliveries wait behind them.
func (b *bridge) holdBeginnings(rt *rapid.T, workers int) (release func()) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	tx, err := b.pool.Begin(ctx)
	if err == nil {
		_, err = tx.Exec(ctx, "LOCK TABLE source_pauses IN ACCESS EXCLUSIVE MODE") // each beginning looks whether there is a pause
	}
	if err != nil {
		rt.Fatal(err)
	}
	return func() {
		defer cancel()
		for held := 0; held < workers; {
			err := tx.QueryRow(ctx, "SELECT count(*) FROM pg_locks WHERE relation = 'source_pauses'::regclass AND NOT granted").Scan(&held)
			if err != nil {
				rt.Fatalf("%d of %d workers begin: %v", held, workers, err)
			}
		}
		if err := tx.Rollback(ctx); err != nil {
			rt.Fatal(err)
		}
	}
}

// rushed is an ERP where each key has its fault.
type rushed struct {
	crm.ERP
	nowhere crm.ERP
	weather *weather
}

func (r rushed) CreateInvoice(ctx context.Context, token, key string, body []byte) erpapi.Exchange {
	if fault, _ := r.weather.of(key); fault == notThere {
		return r.nowhere.CreateInvoice(ctx, token, key, body)
	}
	return r.ERP.CreateInvoice(ctx, token, key, body)
}

// byKey sets what requests meet by their keys, until the next call.
func (w *weather) byKey(faults map[string]erpFault) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.faults = faults
}

func (w *weather) of(key string) (f erpFault, set bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f, set = w.faults[key]
	return f, set
}

// shared counts the transactions that were shared: it is a crm.DeliveryObserver.
type shared struct{ begins, ends atomic.Int64 }

func (*shared) AttemptEnded(crm.AttemptOutcome) {}
func (*shared) OperationFlagged(crm.Reason)     {}
func (s *shared) Committed(step crm.GroupStep, operations int) {
	switch {
	case operations < 2:
	case step == crm.GroupBegin:
		s.begins.Add(1)
	default:
		s.ends.Add(1)
	}
}
