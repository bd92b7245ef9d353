package invoice

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"invoicebridge/internal/problem"
	"invoicebridge/internal/testdb"
)

// lined is a Batcher whose first request stands at the gate, so that whatever follows has to wait in the lane.
type lined struct {
	erp
	b     *Batcher
	gate  gate
	first func() Result
}

func lineUp(t *testing.T, e erp, s *Service) lined {
	t.Helper()
	l := lined{erp: e, b: NewBatcher(s), gate: e.closeGate()}
	l.first = l.send(t.Context(), command(t, "first", orderOf(t, "SO-first")))
	l.gate.awaitWaiting(1)
	return l
}

// send sends one request in the background. What it panics with becomes an error.
func (l lined) send(ctx context.Context, cmd Command) func() Result {
	done := make(chan Result, 1)
	go func() {
		r := Result{Err: errors.New("panicked")}
		defer func() {
			_ = recover() // told by r
			done <- r
		}()
		r = l.b.Issue(ctx, []Command{cmd})[0]
	}()
	return func() Result {
		l.t.Helper()
		select {
		case r := <-done:
			return r
		case <-time.After(30 * time.Second):
			l.t.Fatalf("the request with key %s does not end", cmd.Key)
			return Result{}
		}
	}
}

// queue sends n requests and waits until all of them wait in the lane.
func (l lined) queue(n int) (answers []func() Result) {
	l.t.Helper()
	for i := range n {
		answers = append(answers, l.send(l.t.Context(), command(l.t, fmt.Sprint("K", i), orderOf(l.t, fmt.Sprint("SO-", i)))))
		l.awaitQueued(i + 1)
	}
	return answers
}

func (l lined) awaitQueued(n int) {
	l.t.Helper()
	testdb.Await(l.t, fmt.Sprintf("%d requests wait", n), func() bool {
		l.b.mu.Lock()
		defer l.b.mu.Unlock()
		lane := l.b.lanes[tenant]
		return lane != nil && len(lane.waiting) == n
	})
}

// wantIdle waits for the last leader to hand its lane over, which it does after its group has its answers.
func (l lined) wantIdle() {
	l.t.Helper()
	testdb.Await(l.t, "no lane is left", func() bool {
		l.b.mu.Lock()
		defer l.b.mu.Unlock()
		return len(l.b.lanes) == 0
	})
}

// wantKeys checks whose keys are in the lane, waiting or at work.
func (l lined) wantKeys(want ...string) {
	l.t.Helper()
	l.b.mu.Lock()
	defer l.b.mu.Unlock()
	var keys []string
	if lane := l.b.lanes[tenant]; lane != nil {
		for key := range lane.keys {
			keys = append(keys, key.String())
		}
	}
	slices.Sort(keys)
	if diff := cmp.Diff(want, keys); diff != "" {
		l.t.Errorf("keys in the lane:\n%s", diff)
	}
}

func (l lined) wantIssued(answers ...func() Result) {
	l.t.Helper()
	for i, answer := range answers {
		if r := answer(); r.Err != nil || r.Answer.Replayed {
			l.t.Errorf("%d: %+v", i, r)
		}
	}
}

func TestWhatWaitsForATransactionGoesTogetherInTheNext(t *testing.T) {
	t.Parallel()
	e := setup(t)
	l := lineUp(t, e, e.Service)
	answers := l.queue(5)
	l.gate.open()
	l.wantIssued(append(answers, l.first)...)
	if n := e.count("SELECT count(DISTINCT xmin::text) FROM invoices"); n != 2 {
		t.Errorf("%d transactions", n)
	}
	e.wantNumbers(tenant, "INV", 6)
	l.wantIdle()
}

func TestACallerThatLeavesTheQueueIsNotIssuedAndHarmsNobody(t *testing.T) {
	t.Parallel()
	e := setup(t)
	l := lineUp(t, e, e.Service)
	ctx, cancel := context.WithCancel(t.Context())
	leaver := l.send(ctx, command(t, "leaver", orderOf(t, "SO-leaver")))
	l.awaitQueued(1)
	stays := l.send(t.Context(), command(t, "stays", orderOf(t, "SO-stays")))
	l.awaitQueued(2)
	cancel()
	if r := leaver(); !errors.Is(r.Err, context.Canceled) {
		t.Errorf("leaver: %+v", r)
	}
	l.wantKeys("first", "stays")
	l.gate.open()
	l.wantIssued(l.first, stays)
	if n := e.invoices(); n != 2 {
		t.Errorf("%d invoices", n)
	}
	l.wantIdle()
}

// The group stands at the gate itself; then its leader, or a follower, goes away.
func TestACallerThatLeavesItsGroupHarmsNobody(t *testing.T) {
	t.Parallel()
	for leaver, who := range []string{"leader", "follower"} {
		t.Run(who, func(t *testing.T) {
			t.Parallel()
			e := setup(t)
			tx, err := e.pool.Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = tx.Rollback(context.Background()) }()
			const lockCounter = `INSERT INTO invoice_counters VALUES ('t1', 'INV', 2027, 0 + 1)`
			if _, err := tx.Exec(t.Context(), lockCounter); err != nil {
				t.Fatal(err)
			}
			l := lineUp(t, e, e.Service)
			var answers []func() Result
			var cancels []context.CancelFunc
			for i := range 2 { // dated 2027, whose counter is locked
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				cancels = append(cancels, cancel)
				r := request(t, "SO-1001", fmt.Sprint("SO-", i), "2026-03-02", "2027-03-02")
				answers = append(answers, l.send(ctx, command(t, fmt.Sprint("K", i), r)))
				l.awaitQueued(i + 1)
			}
			l.gate.open()
			e.awaitBlocked(1) // the group, by the counter
			cancels[leaver]()
			if who == "follower" {
				if r := answers[leaver](); !errors.Is(r.Err, context.Canceled) { // while the group is at work
					t.Errorf("%+v", r)
				}
			}
			if err := tx.Rollback(t.Context()); err != nil {
				t.Fatal(err)
			}
			l.wantIssued(l.first, answers[1-leaver])
			e.await(3, "SELECT count(*) FROM invoices") // the transaction is not the leaver's alone
			l.wantIdle()
		})
	}
}

func TestAKeyAtWorkIsNotWaitedForInTheQueueForLong(t *testing.T) {
	t.Parallel()
	e := setup(t)
	l := lineUp(t, e, e.Service)
	again := l.send(t.Context(), command(t, "first", orderOf(t, "SO-first")))
	p := wantProblem(t, again(), problem.OperationInProgress)
	if p.RetryAfter <= 0 {
		t.Error("no Retry-After")
	}
	l.wantKeys("first") // the first is at work still
	l.gate.open()
	l.wantIssued(l.first)
	if r := l.b.Issue(t.Context(), []Command{command(t, "first", orderOf(t, "SO-first"))})[0]; r.Err != nil || !r.Answer.Replayed {
		t.Errorf("%+v", r)
	}
	l.wantIdle()
}

func TestASecondRequestWithAKeyInTheQueueGetsTheAnswerOfTheFirst(t *testing.T) {
	t.Parallel()
	e := setup(t)
	l := lineUp(t, e, e.Service)
	again := l.send(t.Context(), command(t, "first", orderOf(t, "SO-first")))
	l.awaitQueued(1)
	other := l.send(t.Context(), command(t, "first", orderOf(t, "SO-other")))
	l.awaitQueued(2)
	l.gate.open()
	l.wantIssued(l.first)
	if r := again(); r.Err != nil || !r.Answer.Replayed {
		t.Errorf("%+v", r)
	}
	wantRefused(t, other(), problem.IdempotencyKeyReused)
	l.wantIdle()
}

func TestABlockedMemberLeavesItsGroupAndTheLane(t *testing.T) {
	t.Parallel()
	e := setup(t)
	tx, err := e.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.Background()) }()
	if _, err := tx.Exec(t.Context(), `INSERT INTO order_balances VALUES ('t1', 'crm-1', 'SO-0', 'EUR', 0, 0)`); err != nil {
		t.Fatal(err)
	}
	l := lineUp(t, e, e.Service)
	answers := l.queue(3)
	l.gate.open()
	l.wantIssued(answers[1], answers[2], l.first) // while the order of the first in the group, its leader, is busy
	later := l.send(t.Context(), command(t, "later", orderOf(t, "SO-later")))
	l.wantIssued(later)
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	l.wantIssued(answers[0])
	l.wantIdle()
}

// Somebody elsewhere holds the counter, and the key of one member of a group. That member is told to come later when its
// own time is over, and not only after those before it have waited for the counter in vain.
func TestAKeyInUseIsToldThoughItsGroupWaitsForTheCounter(t *testing.T) {
	t.Parallel()
	e := setup(t)
	tx, err := e.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.Background()) }()
	if _, err := tx.Exec(t.Context(), `
		WITH counter AS (INSERT INTO invoice_counters VALUES ('t1', 'INV', 2026, 7))
		INSERT INTO idempotency_records (tenant_id, operation, key, fingerprint_version, fingerprint, status, expires_at)
		VALUES ('t1', 'issue_invoice', 'in use', 1, sha256(''), 'processing', 'tomorrow')`); err != nil {
		t.Fatal(err)
	}
	l := lined{erp: e, b: NewBatcher(e.Service)}
	ctx, cancel := context.WithCancel(t.Context())
	first := l.send(ctx, command(t, "first", orderOf(t, "SO-first")))
	e.awaitBlocked(1)
	others := l.queue(4)
	late := l.send(t.Context(), command(t, "in use", orderOf(t, "SO-in-use")))
	l.awaitQueued(5)
	cancel() // the lane goes to the group
	if r := first(); r.Err == nil {
		t.Errorf("first: %+v", r.Answer)
	}
	wantRefused(t, late(), problem.OperationInProgress)
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	l.wantIssued(others...)
	l.wantIdle()
}

// A group that panics rolls back; its members then go alone, and who panics again has that as its own result.
func TestAPanicOfAGroupIsOfNobodyElse(t *testing.T) {
	t.Parallel()
	e := setup(t)
	s, tracer, pool := e.panicking("OrderBalanceAdd")
	l := lineUp(t, e, s)
	answers := l.queue(3)
	tracer.times.Store(2)
	l.gate.open()
	l.wantIssued(l.first)
	failed := 0
	for i, answer := range answers {
		if r := answer(); r.Err != nil && problem.As(r.Err) == nil && strings.Contains(r.Err.Error(), "as told") {
			failed++
		} else if r.Err != nil || r.Answer.Replayed {
			t.Errorf("%d: %+v", i, r)
		}
	}
	if failed != 1 {
		t.Errorf("%d requests failed by the two panics", failed)
	}
	l.wantIdle()
	e.wantNumbers(tenant, "INV", 3)
	// The pool closes a connection with an open transaction by itself, a moment later.
	testdb.Await(t, "no connection is lost", func() bool { return pool.Stat().AcquiredConns() == 0 })
}

func TestALaneIsOfOneTenant(t *testing.T) {
	t.Parallel()
	e := setup(t, "t2")
	tx, err := e.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.Background()) }()
	if _, err := tx.Exec(t.Context(), `INSERT INTO invoice_counters VALUES ('t1', 'INV', 2026, 1)`); err != nil {
		t.Fatal(err)
	}
	l := lined{erp: e, b: NewBatcher(e.Service)}
	busy := l.send(t.Context(), command(t, "K1", request(t)))
	e.awaitBlocked(1)
	other := command(t, "K1", request(t))
	other.Tenant = "t2"
	l.wantIssued(l.send(t.Context(), other))
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	l.wantIssued(busy)
}

// atGateTwice is a Batcher both of whose groups stand at the gate, one of tenant g1 and one of g2.
func atGateTwice(t *testing.T, e erp) lined {
	t.Helper()
	l := lined{erp: e, b: NewBatcher(e.Service), gate: e.closeGate()}
	for i, name := range []string{"g1", "g2"} {
		answer := l.send(context.Background(), commandOf(t, name, "gate")) // looked at after the test's own context has ended
		l.gate.awaitWaiting(i + 1)
		t.Cleanup(func() { l.wantIssued(answer) })
	}
	return l
}

func commandOf(t testing.TB, tenant, key string) Command {
	t.Helper()
	cmd := command(t, key, orderOf(t, "SO-"+key))
	cmd.Tenant = tenant
	return cmd
}

// sendOf sends a request of a tenant and waits until it waits.
func (l lined) sendOf(tenant, key string) func() Result {
	l.t.Helper()
	cmd := commandOf(l.t, tenant, key)
	answer := l.send(l.t.Context(), cmd)
	testdb.Await(l.t, key+" of "+tenant+" waits", func() bool {
		l.b.mu.Lock()
		defer l.b.mu.Unlock()
		lane := l.b.lanes[tenant]
		return lane != nil && lane.keys[cmd.Key] > 0
	})
	return answer
}

func TestWhatWaitsGoesTogetherWhateverTenantsItIsOf(t *testing.T) {
	t.Parallel()
	e := setup(t, "g1", "g2", "a", "b", "c")
	l := atGateTwice(t, e)
	answers := []func() Result{l.sendOf("a", "K1"), l.sendOf("b", "K1"), l.sendOf("c", "K1"), l.sendOf("a", "K2")}
	l.gate.open()
	l.wantIssued(answers...)
	if n := e.count("SELECT count(DISTINCT xmin::text) FROM invoices WHERE tenant_id IN ('a', 'b', 'c')"); n != 1 {
		t.Errorf("%d transactions", n)
	}
	for tenant, n := range map[string]int{"a": 2, "b": 1, "c": 1} {
		e.wantNumbers(tenant, "INV", n)
	}
}

func TestATenantWhoseCounterIsBlockedDoesNotHoldUpOthers(t *testing.T) {
	t.Parallel()
	e := setup(t, "g1", "g2", "a", "b", "c")
	tx, err := e.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.Background()) }()
	if _, err := tx.Exec(t.Context(), `INSERT INTO invoice_counters VALUES ('b', 'INV', 2026, 1)`); err != nil {
		t.Fatal(err)
	}
	l := atGateTwice(t, e)
	others := []func() Result{l.sendOf("a", "K1"), l.sendOf("c", "K1")}
	blocked := []func() Result{l.sendOf("b", "K1"), l.sendOf("b", "K2"), l.sendOf("b", "K3")}
	l.gate.open()
	l.wantIssued(others...)
	l.wantIssued(l.send(t.Context(), commandOf(t, "a", "K2")), l.send(t.Context(), commandOf(t, "c", "K2")))
	if n := e.count("SELECT count(*) FROM invoices WHERE tenant_id = 'b'"); n != 0 {
		t.Errorf("b has %d invoices though its counter is blocked", n)
	}
	testdb.Await(t, "one of b waits alone, the others in their lane", func() bool {
		l.b.mu.Lock()
		defer l.b.mu.Unlock()
		lane := l.b.lanes["b"]
		return lane.closed && len(lane.aside) == 1 && len(lane.waiting) == 2 && l.b.free == groupsAtOnce
	})
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	l.wantIssued(blocked...)
	e.wantNumbers("b", "INV", 3)
}

func TestATenantWithManyWaitingLeavesRoomForOthers(t *testing.T) {
	t.Parallel()
	e := setup(t)
	b := NewBatcher(e.Service)
	b.free = 0 // nothing begins: only what would be taken is looked at
	var many []*waiter
	for i := range 3 * maxGroup {
		many = append(many, &waiter{m: newMember(command(t, fmt.Sprint("K", i), orderOf(t, fmt.Sprint("SO-", i)))), ctx: t.Context()})
	}
	b.join(many)
	late := &waiter{m: newMember(commandOf(t, "later", "K1")), ctx: t.Context()}
	b.join([]*waiter{late})
	b.mu.Lock()
	defer b.mu.Unlock()
	if first := b.take(); len(first) != maxGroup || !slices.Contains(first, late) {
		t.Errorf("the first group is of %d, the one that came last among them: %t", len(first), slices.Contains(first, late))
	}
}

func TestGroupCommitUnderLoadIssuesEachOrderOnceWithoutHoles(t *testing.T) {
	t.Parallel()
	e := setup(t)
	batchers := []*Batcher{NewBatcher(e.Service), NewBatcher(e.replica().Service)}
	const orders = 100
	firsts := atomic.Int32{}
	together(4*orders, func(i int) { // each order twice at each replica
		order := i % orders
		cmd := command(t, fmt.Sprint("K", order), orderOf(t, fmt.Sprint("SO-", order)))
		r := batchers[i/orders%2].Issue(context.Background(), []Command{cmd})[0]
		switch {
		case r.Err != nil && !problem.Is(r.Err, problem.OperationInProgress):
			t.Error(r.Err)
		case r.Err == nil && !r.Answer.Replayed:
			firsts.Add(1)
		}
	})
	if firsts.Load() != orders {
		t.Errorf("%d first answers", firsts.Load())
	}
	e.wantNumbers(tenant, "INV", orders)
	for _, b := range batchers {
		lined{erp: e, b: b}.wantIdle()
	}
}
