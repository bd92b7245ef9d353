package crm_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgconn"

	"invoicebridge/internal/crm"
	"invoicebridge/internal/erpapi/erpsim"
	"invoicebridge/internal/testdb"
)

// beginnings are deliveries that begin together: all but the first, whose beginning is held until they wait.
type beginnings struct {
	d         *delivery
	deliverer *crm.Deliverer
	held      <-chan struct{}
	release   func()
	waiting   int
	ended     chan delivered
}

// delivered is what Deliver gave.
type delivered struct {
	id   uuid.UUID
	next crm.Next
	err  error
}

// holdBeginnings makes n operations, and has the first one's beginning held.
func (d *delivery) holdBeginnings(n int) (*beginnings, []uuid.UUID) {
	d.t.Helper()
	b := &beginnings{d: d, deliverer: d.deliverer(), ended: make(chan delivered, 2*n)}
	b.held, b.release = crm.HoldBeginning(b.deliverer)
	ids := make([]uuid.UUID, n)
	for i := range ids {
		ids[i] = d.operation(fmt.Sprint("SO-", i))
	}
	b.deliver(context.Background(), ids[0])
	<-b.held
	return b, ids
}

func (b *beginnings) deliver(ctx context.Context, id uuid.UUID) {
	go func() {
		next, err := b.deliverer.Deliver(ctx, id, nil)
		b.ended <- delivered{id, next, err}
	}()
}

// join has deliveries wait for the one that is held.
func (b *beginnings) join(ctx context.Context, ids ...uuid.UUID) {
	b.d.t.Helper()
	for _, id := range ids {
		b.deliver(ctx, id)
	}
	b.waiting += len(ids)
	testdb.Await(b.d.t, "those that wait", func() bool { return crm.WaitingToBegin(b.deliverer) == b.waiting })
}

// wantEnded waits for so many deliveries, which must not fail and must not be of the operation but.
func (b *beginnings) wantEnded(n int, but uuid.UUID) {
	b.d.t.Helper()
	for range n {
		if got := <-b.ended; got.err != nil || got.id == but {
			b.d.t.Errorf("delivery of operation %s: %+v", got.id, got)
		}
	}
}

// wantBegunTogether: one transaction began the only attempts at these operations.
func (b *beginnings) wantBegunTogether(ids ...uuid.UUID) {
	b.d.t.Helper()
	var attempts, transactions int
	err := b.d.pool.QueryRow(context.Background(),
		"SELECT count(*), count(DISTINCT started_at) FROM attempts WHERE operation_id = ANY ($1)", ids).Scan(&attempts, &transactions)
	if err != nil || attempts != len(ids) || transactions != 1 {
		b.d.t.Errorf("%d operations have %d attempts, begun in %d transactions: %v", len(ids), attempts, transactions, err)
	}
}

func TestAnOperationThatIsInAGroupTwiceBeginsOnce(t *testing.T) {
	d := setupDelivery(t)
	answer := make(chan struct{})
	d.erp.OnPost(func(c *erpsim.Call) {
		c.HoldUntil(answer)
		c.Send(c.Commit())
	})
	b, ids := d.holdBeginnings(3)
	twice, other := ids[1], ids[2]
	b.join(t.Context(), twice, twice, other)
	b.release()
	got := <-b.ended // while the others have no answer
	if lease := d.leaseOf(twice); got.id != twice || got.err != nil || got.next.Done || !got.next.At.Equal(lease) {
		t.Errorf("who comes second is told %+v, want the end of the attempt's lease, %v", got, lease)
	}
	close(answer)
	b.wantEnded(3, uuid.Nil)
	b.wantBegunTogether(twice, other)
	for _, id := range ids {
		d.wantState(id, "succeeded", "", "delivered")
	}
	if n := len(d.erp.Posts()); n != len(ids) {
		t.Errorf("%d requests for %d operations", n, len(ids))
	}
}

func TestALockedOperationHoldsUpNobodyThatBeginsWithIt(t *testing.T) {
	d := setupDelivery(t)
	b, ids := d.holdBeginnings(6)
	locked := ids[3]
	unlock := d.lock(locked)
	b.join(t.Context(), ids[1:]...)
	b.release()
	b.wantEnded(5, locked)
	b.wantBegunTogether(ids[1], ids[2], ids[4], ids[5])
	d.wantState(locked, "pending", "", "")
	unlock()
	b.wantEnded(1, uuid.Nil)
	for _, id := range ids {
		d.wantState(id, "succeeded", "", "delivered")
	}
}

func TestAnErrorOfOneCostsNobodyElseItsBeginning(t *testing.T) {
	d := setupDelivery(t)
	b, ids := d.holdBeginnings(6)
	wrong := ids[3]
	d.exec("INSERT INTO attempts (operation_id, number, worker) VALUES ($1, 1, 'nobody')", wrong) // the number that comes next
	b.join(t.Context(), ids[1:]...)
	b.release()
	for range ids {
		got := <-b.ended
		if got.id != wrong && got.err != nil {
			t.Errorf("delivery of operation %s: %v", got.id, got.err)
		}
		if answer := new(pgconn.PgError); got.id == wrong && (!errors.As(got.err, &answer) || answer.ConstraintName != "attempts_pkey") {
			t.Errorf("the one that is wrong is told %+v", got)
		}
	}
	for _, id := range ids {
		if id != wrong {
			d.wantState(id, "succeeded", "", "delivered")
		}
	}
	d.wantState(wrong, "pending", "", "sent")
	if n := strings.Count(strings.Join(d.log.lines(), "\n"), "beginning attempts failed, trying again one by one"); n != 1 {
		t.Errorf("%d groups failed, want the one", n)
	}
}

func TestADeliveryThatIsCalledOffWhileItWaitsBeginsNothing(t *testing.T) {
	d := setupDelivery(t)
	b, ids := d.holdBeginnings(4)
	ctx, callOff := context.WithCancel(t.Context())
	b.join(ctx, ids[1])
	b.join(t.Context(), ids[2:]...)
	callOff()
	if got := <-b.ended; got.id != ids[1] || !errors.Is(got.err, context.Canceled) {
		t.Errorf("while the others wait, there ended %+v", got)
	}
	b.release()
	b.wantEnded(3, ids[1])
	b.wantBegunTogether(ids[2:]...)
	d.wantState(ids[1], "pending", "", "")
}

func TestHowManyBeginTogetherIsCounted(t *testing.T) {
	d, seen := setupDelivery(t), newCounts()
	d.opts.Observer = seen
	b, ids := d.holdBeginnings(5)
	unlock := d.lock(ids[4])
	b.join(t.Context(), ids[1:]...)
	b.release()
	b.wantEnded(4, ids[4])
	unlock()
	b.wantEnded(1, uuid.Nil)
	b.deliver(t.Context(), ids[0]) // nothing is left to begin
	b.wantEnded(1, uuid.Nil)
	if diff := cmp.Diff([]int{1, 3, 1}, seen.groups[crm.GroupBegin]); diff != "" {
		t.Error(diff)
	}
}
