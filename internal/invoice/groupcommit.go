package invoice

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"invoicebridge/internal/idempotency"
	"invoicebridge/internal/tenantdb"
	"invoicebridge/internal/tracectx"
)

const (
	// maxGroup and maxGroupBytes bound how many waiting requests go together. One of any size goes.
	maxGroup      = 128
	maxGroupBytes = 4 << 20
	// groupTime bounds a transaction of several callers, which no single caller's context ends.
	groupTime = lockPatience + 5*time.Second
	// groupsAtOnce is how many groups are at work at once: while one waits for its write to disk, the other computes.
	groupsAtOnce = 2
)

// Batcher is a Service with group commit in front of Issue: the requests of all tenants that wait when a transaction
// ends go together in the next one, and wait for one write to disk. A request that finds a transaction free goes at
// once, alone; nothing ever waits for company.
//
// A tenant has its members in one group at a time: two groups would meet at the counter of its series. What a group has to
// wait for, because somebody else holds a lock, it sets aside: the tenant's own matter then (see lane).
type Batcher struct {
	*Service

	mu    sync.Mutex
	lanes map[string]*lane // by tenant; there is a lane while a member of that tenant is on its way
	turns []*lane          // those with waiting members, whose turn is next first
	free  int              // groups that may begin

	aside     []*waiter // set aside, waiting for one of the few connections that may wait for a lock
	freeAside int
}

// lane is what is on its way of one tenant.
type lane struct {
	tenant  string
	waiting []*waiter
	inTurns bool
	keys    map[idempotency.Key]int // of all members that are on their way
	atWork  bool                    // a group has members of it
	aside   []*waiter               // set aside: who shares a key or an order with one of these stays behind it
	patient int                     // of those aside, how many are at it
	// closed: one member waits for the counter, alone. The others would wait for the same thing.
	closed bool
	// slow: something is set aside, or was until now. Then the tenant's groups are its own, so that others need not find
	// out again what blocks it.
	slow bool
}

// waiter is one request on its way. Its members are guarded by Batcher.mu.
type waiter struct {
	m      *member
	ctx    context.Context //nolint:containedctx // the caller's: what goes alone ends with it
	lane   *lane           // nil where it is on its way no more
	state  state
	joined bool // that it went at all: the caller's own knowledge
	// wake gets one signal when the key turns out to be in use, and one when the member is settled. It has room for
	// both: a caller that has gone holds up nobody.
	wake chan signal
	// shared is the span of the transaction that it shared with others (tracectx.Together), written before wake.
	shared string
}

// state is where a waiter is.
type state int

const (
	stateWaiting state = iota // in its lane
	stateTaken                // in a group that is at work, or at work alone
	stateAside                // among those that are set aside
	stateGone                 // its caller has left, though it was taken
)

// signal is what a waiter is told.
type signal int

const (
	signalSettled  signal = iota // its member has a result
	signalKeyInUse               // another transaction holds its key, so it waits for no longer than keyPatience
)

// NewBatcher puts group commit in front of s.
func NewBatcher(s *Service) *Batcher {
	return &Batcher{Service: s, lanes: map[string]*lane{}, free: groupsAtOnce, freeAside: max(2, s.connections/2)}
}

// patientPerTenant is how many members of one tenant may wait for locks at once, each on a connection: one for a
// counter, one for something else.
const patientPerTenant = 2

// Issue is Service.Issue. A command may share its transaction with others, of any tenants; then ctx ends the waiting but
// not the transaction, and the invoice may be committed though its caller has gone, as it may whenever a connection
// breaks. The same command again tells.
func (b *Batcher) Issue(ctx context.Context, cmds []Command) []Result {
	waiters := make([]*waiter, len(cmds))
	for i, cmd := range cmds {
		waiters[i] = &waiter{m: b.member(ctx, cmd), ctx: ctx, wake: make(chan signal, 2)}
		if err := tenantdb.Permits(ctx, cmd.Tenant); err != nil { // before it may be in a transaction with others
			waiters[i].m.settle(Result{Err: err})
		}
	}
	late := b.join(waiters)
	results := make([]Result, len(cmds))
	for i, w := range waiters {
		results[i] = b.await(w, late)
	}
	return results
}

// join puts waiters into their tenants' lanes and begins what can begin. A single one whose key is on its way already is
// told when to give up.
func (b *Batcher) join(waiters []*waiter) (late <-chan time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, w := range waiters {
		if w.m.settled {
			continue
		}
		l := b.lanes[w.m.Tenant]
		if l == nil {
			l = &lane{tenant: w.m.Tenant, keys: map[idempotency.Key]int{}}
			b.lanes[l.tenant] = l
		}
		if len(waiters) == 1 && l.keys[w.m.Key] > 0 {
			late = time.After(keyPatience)
		}
		w.lane, w.joined = l, true
		l.keys[w.m.Key]++
		b.enqueue(l, w)
	}
	b.begin()
	return late
}

func (b *Batcher) enqueue(l *lane, waiters ...*waiter) {
	if !l.inTurns {
		b.turns = append(b.turns, l)
		l.inTurns = true
	}
	l.waiting = append(l.waiting, waiters...)
}

// await gives a waiter's result, or the error with which it has left: at the end of its context, and where its key is in
// use for longer than keyPatience.
func (b *Batcher) await(w *waiter, late <-chan time.Time) Result {
	if !w.joined {
		return w.m.result
	}
	for {
		select {
		case told := <-w.wake:
			if told == signalSettled {
				tracectx.Link(w.ctx, w.shared)
				return w.m.result
			}
			late = time.After(w.m.giveUpAt.Sub(b.now()))
		case <-w.ctx.Done():
			if b.withdraw(w, true) { // and not m.result, which a group may be writing
				return b.failure(w.ctx, w.m, fmt.Errorf("wait for the transaction before: %w", w.ctx.Err()))
			}
		case <-late:
			if b.withdraw(w, false) {
				return b.failure(w.ctx, w.m, fmt.Errorf("wait for the transaction before: %w", idempotency.ErrInProgress))
			}
			late = nil
		}
	}
}

// withdraw takes w out of where it waits. What is taken is left only by who is not to be told what becomes of it; what is
// settled is not left.
func (b *Batcher) withdraw(w *waiter, taken bool) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case w.lane == nil, w.state == stateTaken && !taken:
		return false
	case w.state == stateTaken:
		w.state = stateGone
		return true
	case w.state == stateAside:
		b.aside = without(b.aside, w)
		b.noLongerAside(w)
	default:
		w.lane.waiting = without(w.lane.waiting, w)
	}
	b.leave(w)
	b.begin()
	return true
}

// leave ends w's way. Who reads its result is told after that.
func (b *Batcher) leave(w *waiter) {
	l := w.lane
	if l.keys[w.m.Key]--; l.keys[w.m.Key] == 0 {
		delete(l.keys, w.m.Key)
	}
	if len(l.keys) == 0 {
		delete(b.lanes, l.tenant)
	}
	w.lane = nil
	if w.m.settled && w.state != stateGone {
		w.wake <- signalSettled
	}
}

// begin begins all that can begin. Each group and each member that goes alone has a goroutine of its own, so no caller
// works for another.
func (b *Batcher) begin() {
	for b.free > 0 {
		group := b.take()
		if len(group) == 0 {
			break
		}
		b.free--
		go b.work(group)
	}
	for i := 0; i < len(b.aside) && b.freeAside > 0; {
		w := b.aside[i]
		if w.lane.patient >= patientPerTenant {
			i++
			continue
		}
		b.aside = without(b.aside, w)
		b.freeAside--
		w.lane.patient++
		w.state = stateTaken
		go b.workAlone(w)
	}
}

// work settles the members of a group, except those that would have to wait. A panic of one of several rolled back:
// each of them then meets it, or not, alone.
func (b *Batcher) work(group []*waiter) {
	defer b.end(group)
	defer b.survive(group)
	members := make([]*member, len(group))
	for i, w := range group {
		members[i] = w.m
		w.m.apart, w.m.keyBusy, w.m.counterBusy = false, false, false // of an earlier group
	}
	ctx := group[0].ctx
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

// workAlone settles a member that was set aside, with all the patience there is.
func (b *Batcher) workAlone(w *waiter) {
	defer b.endAlone(w)
	defer b.survive([]*waiter{w})
	b.settle(w.ctx, []*member{w.m}, false)
}

// survive makes a panic the result of whom it came from, if that is known; else it is written down here.
func (b *Batcher) survive(group []*waiter) {
	r := recover()
	if r == nil {
		return
	}
	stack := string(debug.Stack())
	if len(group) > 1 {
		b.logger.LogAttrs(group[0].ctx, slog.LevelError, "panic while issuing invoices together", slog.Int("members", len(group)),
			slog.Any("panic", r), slog.String("stack", stack))
	} else if m := group[0].m; !m.settled {
		m.settle(Result{Err: fmt.Errorf("issue invoice: panic: %v\n%s", r, stack)})
	}
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

// end ends a group: who is settled is told, who is not is set aside or waits on, and the next group begins.
func (b *Batcher) end(group []*waiter) {
	b.mu.Lock()
	defer b.mu.Unlock()
	unsettled := map[*lane][]*waiter{}
	for _, w := range group {
		l := w.lane
		l.atWork = false
		if _, known := unsettled[l]; !known {
			unsettled[l] = nil
		}
		if w.m.settled || w.state == stateGone {
			b.leave(w)
		} else {
			unsettled[l] = append(unsettled[l], w)
		}
	}
	for l, blocked := range unsettled {
		l.slow = len(blocked) > 0 || len(l.aside) > 0
		b.setAside(l, blocked)
	}
	b.free++
	b.begin()
}

// setAside sets aside what blocks a group. Of those that need a counter that is in use one goes on alone, and the others
// wait for it in their lane, where they stood.
func (b *Batcher) setAside(l *lane, blocked []*waiter) {
	var back []*waiter
	for _, w := range blocked {
		if w.m.counterBusy && l.closed {
			w.state = stateWaiting
			back = append(back, w)
			continue
		}
		l.closed = l.closed || w.m.counterBusy
		w.state = stateAside
		l.aside = append(l.aside, w)
		b.aside = append(b.aside, w)
		if w.m.keyBusy {
			w.wake <- signalKeyInUse
		}
	}
	if len(back) > 0 {
		behind := l.waiting
		l.waiting = nil
		b.enqueue(l, append(back, behind...)...)
	}
}

// endAlone ends what went alone.
func (b *Batcher) endAlone(w *waiter) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.freeAside++
	w.lane.patient--
	b.noLongerAside(w)
	b.leave(w)
	b.begin()
}

func (b *Batcher) noLongerAside(w *waiter) {
	w.lane.aside = without(w.lane.aside, w)
	if w.m.counterBusy {
		w.lane.closed = false
	}
}

func without(list []*waiter, w *waiter) []*waiter {
	for i, other := range list {
		if other == w {
			return append(list[:i:i], list[i+1:]...)
		}
	}
	return list
}
