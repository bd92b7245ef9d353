package crm

import (
	"context"
	"slices"
	"sync"
	"time"
)

const (
	// maxTogether bounds how many deliveries go together.
	maxTogether = 128
	// togetherTime bounds the transaction of a group, which no single delivery's context ends. It waits for no operation's row,
	// so what remains of writeTimeLimit is enough for those that have to go alone.
	togetherTime = 3 * time.Second
)

// together has deliveries share transactions: whatever is waiting when the last transaction ends goes together in the next
// one. One that finds nobody at work goes at once, alone; nothing ever waits for company. There is no goroutine of its own:
// the first of a group leads it, and whoever has led hands over to the next.
//
// What M is has a place for its result. Whoever finds none there after join was passed over, or met an error, its own or
// another's, and goes alone: so no member fails its neighbours.
type together[M any] struct {
	// do is the transaction. It must not keep the group.
	do func(ctx context.Context, group []*M)

	mu      sync.Mutex
	led     bool
	waiting []*companion[M]
}

// companion is one that waits. taken and group are guarded by together.mu until it is taken.
type companion[M any] struct {
	m     *M
	wake  chan struct{} // closed when its group is done or, where it has a group itself, when it is to lead
	taken bool
	group []*companion[M]
}

// join returns when m has been through a transaction. It fails if ctx ends before that begins, and only then.
func (t *together[M]) join(ctx context.Context, m *M) error {
	w := &companion[M]{m: m, wake: make(chan struct{})}
	if !t.enter(w) {
		select {
		case <-w.wake:
		case <-ctx.Done():
			if t.withdraw(w) {
				return ctx.Err()
			}
			<-w.wake
		}
	}
	if w.group != nil {
		t.lead(ctx, w.group)
	}
	return nil
}

// enter says whether w leads, itself alone.
func (t *together[M]) enter(w *companion[M]) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.led {
		t.waiting = append(t.waiting, w)
		return false
	}
	t.led, w.taken, w.group = true, true, []*companion[M]{w}
	return true
}

// withdraw fails if w was taken for a group: the others may rely on it.
func (t *together[M]) withdraw(w *companion[M]) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !w.taken {
		t.waiting = slices.DeleteFunc(t.waiting, func(other *companion[M]) bool { return other == w })
	}
	return !w.taken
}

// lead hands over on a panic, too; then each of the others goes alone and meets it, or not, on its own.
func (t *together[M]) lead(ctx context.Context, group []*companion[M]) {
	defer t.handOver(group)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), togetherTime)
	defer cancel()
	members := make([]*M, len(group))
	for i, w := range group {
		members[i] = w.m
	}
	t.do(ctx, members)
}

func (t *together[M]) handOver(group []*companion[M]) {
	for _, w := range group[1:] {
		close(w.wake)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.led = len(t.waiting) > 0; !t.led {
		return
	}
	n := min(len(t.waiting), maxTogether)
	next := slices.Clone(t.waiting[:n])
	t.waiting = slices.Delete(t.waiting, 0, n)
	for _, w := range next {
		w.taken = true
	}
	next[0].group = next
	close(next[0].wake)
}
