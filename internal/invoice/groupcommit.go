package invoice

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"invoicebridge/internal/idempotency"
	"invoicebridge/internal/tenantdb"
	"invoicebridge/internal/tracectx"
)

const (
	// maxGroup bounds how many waiting requests go together.
	maxGroup = 64
	// groupTime bounds a transaction of several callers, which no single caller's context ends.
	groupTime = lockPatience + 5*time.Second
)

// Batcher is a Service with group commit in front of Issue: the single requests of one tenant that are waiting when its
// last transaction ends go together in the next one. A request that finds nobody at work goes at once, alone; nothing
// ever waits for company. A tenant's requests would queue anyway, for the counter of their series, each across the
// other's write to disk; together they wait for one write.
//
// There is no goroutine of its own: the first request of a group leads it, and whoever has led hands over to the next.
type Batcher struct {
	*Service

	mu    sync.Mutex
	lanes map[string]*lane // by tenant; there is a lane while somebody of that tenant leads
}

// lane is the queue of one tenant.
type lane struct {
	waiting []*waiter
	keys    map[idempotency.Key]int // of those that wait and those that are at work
}

// waiter is one request in a lane. taken and group are guarded by Batcher.mu until it is taken.
type waiter struct {
	m *member
	// wake gets one role when the waiter is taken from the queue and its turn comes. It has room for it, so a waiter
	// that has left holds up nobody.
	wake  chan role
	taken bool
	group []*waiter // where it is to lead: itself first
	// shared is the span of the transaction that it shared with others (tracectx.Together), written before wake.
	shared string
}

// role is what a waiter does next.
type role int

const (
	roleDone   role = iota // nothing: its member is settled
	roleLeader             // settle its group
	roleAlone              // settle its own member, for which the group could not wait
)

// NewBatcher puts group commit in front of s.
func NewBatcher(s *Service) *Batcher { return &Batcher{Service: s, lanes: map[string]*lane{}} }

// Issue is Service.Issue. A single command may share its transaction with others of its tenant; then ctx ends the
// waiting but not the transaction, and the invoice may be committed though its caller has gone, as it may whenever a
// connection breaks. The same command again tells. Several commands are a group already.
func (b *Batcher) Issue(ctx context.Context, cmds []Command) []Result {
	if len(cmds) != 1 {
		return b.Service.Issue(ctx, cmds)
	}
	if err := tenantdb.Permits(ctx, cmds[0].Tenant); err != nil { // before it may be in a transaction with others
		return []Result{{Err: err}}
	}
	m := newMember(cmds[0])
	if m.settled {
		return []Result{m.result}
	}
	return []Result{b.issueOne(ctx, m)}
}

func (b *Batcher) issueOne(ctx context.Context, m *member) Result {
	w := &waiter{m: m, wake: make(chan role, 1)}
	next := roleLeader
	if leads, duplicate := b.join(w); !leads {
		var err error
		if next, err = b.await(ctx, w, duplicate); err != nil {
			return b.failure(ctx, m, err) // and not m.result, which a leader may be writing
		}
		tracectx.Link(ctx, w.shared)
	}
	if next == roleLeader {
		b.lead(ctx, w.group)
	}
	if !m.settled {
		b.settle(ctx, []*member{m}, false)
	}
	return m.result
}

// join puts w into its tenant's lane, and says whether it leads and whether its key is in the lane already.
func (b *Batcher) join(w *waiter) (leads, duplicate bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	l := b.lanes[w.m.Tenant]
	if l == nil {
		l = &lane{keys: map[idempotency.Key]int{}}
		b.lanes[w.m.Tenant] = l
		w.taken, w.group, leads = true, []*waiter{w}, true
	} else {
		l.waiting = append(l.waiting, w)
	}
	duplicate = l.keys[w.m.Key] > 0
	l.keys[w.m.Key]++
	return leads, duplicate
}

// await gives what w does next, or the error with which it has left. Whoever's context ends leaves, unless it leads:
// the others of its group rely on it. A key that is in the lane already is not waited for longer than keyPatience.
func (b *Batcher) await(ctx context.Context, w *waiter, duplicate bool) (role, error) {
	var late <-chan time.Time
	if duplicate {
		timer := time.NewTimer(keyPatience)
		defer timer.Stop()
		late = timer.C
	}
	for {
		select {
		case next := <-w.wake:
			return next, nil
		case <-ctx.Done():
			if b.withdraw(w) || w.group == nil {
				return roleDone, fmt.Errorf("wait for the transaction before: %w", ctx.Err())
			}
			return <-w.wake, nil // sent while it was made the leader
		case <-late:
			if b.withdraw(w) {
				return roleDone, fmt.Errorf("wait for the transaction before: %w", idempotency.ErrInProgress)
			}
			late = nil
		}
	}
}

// withdraw takes w out of the queue. It fails if w was taken for a group.
func (b *Batcher) withdraw(w *waiter) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if w.taken {
		return false
	}
	l := b.lanes[w.m.Tenant]
	l.waiting = slices.DeleteFunc(l.waiting, func(other *waiter) bool { return other == w })
	l.leave(w)
	return true
}

// lead settles the members of a group, except those that would have to wait, wakes them, and hands the lane over. It
// does so on a panic, too: it rolled back, and each of the others then meets it, or not, on its own.
func (b *Batcher) lead(ctx context.Context, group []*waiter) {
	defer b.handOver(group)
	members := make([]*member, len(group))
	for i, w := range group {
		members[i] = w.m
	}
	if len(group) > 1 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(tenantdb.Together(ctx)), groupTime)
		defer cancel()
		var end func()
		ctx, end = traceGroup(ctx, group)
		defer end()
	}
	b.settle(ctx, members, true)
}

// traceGroup traces what the members of a group have in common. Each keeps its own trace (Command.Trace); its span and the
// group's point to each other.
func traceGroup(ctx context.Context, group []*waiter) (_ context.Context, end func()) {
	traces := make([]string, len(group))
	for i, w := range group {
		traces[i] = w.m.Trace
	}
	ctx, shared, end := tracectx.Together(ctx, "issue invoices together", traces)
	for _, w := range group[1:] {
		w.shared = shared
	}
	return ctx, end
}

// handOver ends a group: its followers go on, and the next group gets its leader.
func (b *Batcher) handOver(group []*waiter) {
	for _, w := range group[1:] {
		if w.m.settled {
			w.wake <- roleDone
		} else {
			w.wake <- roleAlone
		}
	}
	tenant := group[0].m.Tenant
	b.mu.Lock()
	defer b.mu.Unlock()
	l := b.lanes[tenant]
	for _, w := range group {
		l.leave(w)
	}
	if len(l.waiting) == 0 {
		delete(b.lanes, tenant)
		return
	}
	next := l.take()
	next[0].group = next
	next[0].wake <- roleLeader
}

// take takes the next group from the queue: whoever can go together.
func (l *lane) take() (group []*waiter) {
	members := make([]*member, len(l.waiting))
	for i, w := range l.waiting {
		members[i] = w.m
	}
	round, _ := nextRound(members, maxGroup)
	l.waiting = slices.DeleteFunc(l.waiting, func(w *waiter) bool {
		w.taken = slices.Contains(round, w.m)
		if w.taken {
			group = append(group, w)
		}
		return w.taken
	})
	return group
}

func (l *lane) leave(w *waiter) {
	if l.keys[w.m.Key]--; l.keys[w.m.Key] == 0 {
		delete(l.keys, w.m.Key)
	}
}
