package crm_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"invoicebridge/internal/crm"
	"invoicebridge/internal/erpapi/erpsim"
	"invoicebridge/internal/testdb"
)

// groups is a crm.JobCompleter that keeps what was completed together. The first transaction of all waits until it is released.
type groups struct {
	mu      sync.Mutex
	held    chan struct{}
	release chan struct{}
	all     [][]int64
	fail    func(ids []int64) error
}

func newGroups() *groups { return &groups{held: make(chan struct{}), release: make(chan struct{})} }

func (g *groups) CompleteJobs(_ context.Context, _ pgx.Tx, ids []int64) error {
	g.mu.Lock()
	g.all = append(g.all, slices.Clone(ids))
	first, fail := len(g.all) == 1, g.fail
	g.mu.Unlock()
	if first {
		close(g.held)
		<-g.release
	}
	if fail != nil {
		return fail(ids)
	}
	return nil
}

// together delivers operations so that all but the first write their outcomes while the transaction of the first is held.
// meanwhile runs when all of them have their answer and the first is held.
func (d *delivery) together(g *groups, n int, meanwhile func(ids []uuid.UUID)) []uuid.UUID {
	d.t.Helper()
	answer := make(chan struct{})
	d.erp.OnPost(func(c *erpsim.Call) {
		if c.N > 1 {
			c.HoldUntil(answer)
		}
		c.Send(c.Commit())
	})
	deliverer := d.deliverer()
	ids := make([]uuid.UUID, n)
	var all sync.WaitGroup
	for i := range ids {
		ids[i] = d.operation(fmt.Sprint("SO-", i))
		all.Go(func() {
			if _, err := deliverer.Deliver(context.Background(), ids[i], &crm.Job{ID: int64(i + 1), Completer: g}); err != nil {
				d.t.Errorf("operation %d: %v", i, err)
			}
		})
		if i == 0 {
			<-g.held
		}
	}
	testdb.Await(d.t, "the calls", func() bool { return len(d.erp.Posts()) == n })
	meanwhile(ids)
	close(answer)
	testdb.Await(d.t, "the answers", func() bool { return len(d.erp.Invoices()) == n })
	testdb.Await(d.t, "those that wait", func() bool { return crm.WaitingToEnd(deliverer) == n-1 })
	close(g.release)
	all.Wait()
	return ids
}

func TestOutcomesThatWaitAreWrittenTogether(t *testing.T) {
	d, g := setupDelivery(t), newGroups()
	for _, id := range d.together(g, 8, func([]uuid.UUID) {}) {
		d.wantState(id, "succeeded", "", "delivered")
	}
	if len(g.all) != 2 || len(g.all[1]) != 7 {
		t.Errorf("jobs were completed as %v", g.all)
	}
}

func TestHowManyOutcomesAreWrittenTogetherIsCounted(t *testing.T) {
	d, g, seen := setupDelivery(t), newGroups(), newCounts()
	d.opts.Observer = seen
	d.together(g, 5, func([]uuid.UUID) {})
	if diff := cmp.Diff([]int{1, 4}, seen.groups[crm.GroupEnd]); diff != "" {
		t.Error(diff)
	}
}

func TestAnOvertakenAttemptFailsNobodyOfItsGroup(t *testing.T) {
	d, g := setupDelivery(t), newGroups()
	ids := d.together(g, 6, func(ids []uuid.UUID) {
		d.exec("UPDATE operations SET attempt = attempt + 1 WHERE id = $1", ids[3])
		d.exec("INSERT INTO attempts (operation_id, number, worker) VALUES ($1, 2, 'other')", ids[3])
	})
	for i, id := range ids {
		if i == 3 {
			d.wantState(id, "processing", "", "sent sent")
			continue
		}
		d.wantState(id, "succeeded", "", "delivered")
	}
	if slices.Contains(slices.Concat(g.all...), 4) {
		t.Errorf("the overtaken attempt's job was completed: %v", g.all)
	}
}

func TestALockedOperationHoldsUpNobodyOfItsGroup(t *testing.T) {
	d, g := setupDelivery(t), newGroups()
	var tx pgx.Tx
	done := make(chan []uuid.UUID, 1)
	locked := make(chan []uuid.UUID, 1)
	go func() {
		done <- d.together(g, 6, func(ids []uuid.UUID) {
			var err error
			if tx, err = d.pool.Begin(context.Background()); err == nil {
				_, err = tx.Exec(context.Background(), "SELECT FROM operations WHERE id = $1 FOR NO KEY UPDATE", ids[3])
			}
			if err != nil {
				t.Error(err)
			}
			locked <- ids
		})
	}()
	ids := <-locked
	testdb.Await(t, "the others", func() bool {
		succeeded := 0
		for _, id := range ids {
			if d.state(id).Status == "succeeded" {
				succeeded++
			}
		}
		return succeeded == len(ids)-1
	})
	d.wantState(ids[3], "processing", "", "sent")
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-done
	d.wantState(ids[3], "succeeded", "", "delivered")
}

func TestAnErrorOfAGroupCostsNoOutcome(t *testing.T) {
	d, g := setupDelivery(t), newGroups()
	g.fail = func(ids []int64) error {
		if len(ids) > 1 {
			return errors.New("not together")
		}
		return nil
	}
	for _, id := range d.together(g, 6, func([]uuid.UUID) {}) {
		d.wantState(id, "succeeded", "", "delivered")
	}
	if len(g.all) != 7 { // the first, the group, and its five one by one
		t.Errorf("jobs were completed as %v", g.all)
	}
}
