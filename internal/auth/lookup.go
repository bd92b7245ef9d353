package auth

import (
	"context"
	"fmt"
	"sync"
	"time"

	"invoicebridge/internal/tracectx"
)

const (
	// lookUpsAtOnce is how many look-ups are at the database at once, before those that come wait for each other.
	lookUpsAtOnce = 2
	// lookUpPatience is how long a caller waits for the look-ups before, which are hanging then, until it goes alone.
	lookUpPatience = time.Second
	// lookUpTime bounds a look-up for several, which no single caller's context ends.
	lookUpTime = 5 * time.Second
)

// lookUps finds tokens. Whoever comes while others are looked up waits until one of those look-ups has ended, and goes then
// in one query with all that have come meanwhile. So a query always begins after those it is for have come, and sees
// whatever was committed by then; what an earlier one has read is given to nobody.
type lookUps struct {
	store Store

	mu      sync.Mutex
	free    int
	waiting *lookUp // nil: nobody waits
}

// lookUp is one query for several callers. What stands below done is written before done is closed.
type lookUp struct {
	ctx     context.Context //nolint:containedctx // the first caller's: its values are the query's, its end is not
	callers int
	ids     map[string]struct{}
	traces  []string

	done   chan struct{}
	tokens map[string]Token
	err    error
	shared string // the span of the query (tracectx.Together)
}

func newLookUps(store Store) *lookUps { return &lookUps{store: store, free: lookUpsAtOnce} }

// token is Store.TokenByID, alone or together with others. An error of a query for several is nobody's yet: each of them asks
// again alone.
func (l *lookUps) token(ctx context.Context, id string) (Token, error) {
	together := l.join(ctx, id)
	if together == nil {
		defer l.next()
		return l.store.TokenByID(ctx, id)
	}
	select {
	case <-together.done:
	case <-time.After(lookUpPatience):
		return l.store.TokenByID(ctx, id)
	case <-ctx.Done():
		return Token{}, fmt.Errorf("wait for the look-up before: %w", ctx.Err())
	}
	tracectx.Link(ctx, together.shared)
	if together.err != nil {
		return l.store.TokenByID(ctx, id)
	}
	token, known := together.tokens[id]
	if !known {
		return Token{}, ErrTokenUnknown
	}
	return token, nil
}

// join gives the look-up to wait for, or nil: the caller may go at once, and calls next when it is done.
func (l *lookUps) join(ctx context.Context, id string) *lookUp {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.free > 0 {
		l.free--
		return nil
	}
	if l.waiting == nil {
		l.waiting = &lookUp{ctx: ctx, ids: map[string]struct{}{}, done: make(chan struct{})}
	}
	l.waiting.callers++
	l.waiting.ids[id] = struct{}{}
	l.waiting.traces = append(l.waiting.traces, tracectx.Of(ctx))
	return l.waiting
}

// next begins the look-up of those that wait, which nobody can join from then on.
func (l *lookUps) next() {
	l.mu.Lock()
	defer l.mu.Unlock()
	together := l.waiting
	if together == nil {
		l.free++
		return
	}
	l.waiting = nil
	go l.run(together)
}

func (l *lookUps) run(together *lookUp) {
	defer l.next()
	defer close(together.done)
	defer func() {
		if r := recover(); r != nil { // who asks alone meets it, where it is told
			together.err = fmt.Errorf("panic: %v", r)
		}
	}()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(together.ctx), lookUpTime)
	defer cancel()
	var end func()
	ctx, together.shared, end = tracectx.Together(ctx, "look up tokens together", together.traces)
	defer end()
	together.tokens, together.err = l.read(ctx, together.ids)
}

func (l *lookUps) read(ctx context.Context, wanted map[string]struct{}) (map[string]Token, error) {
	ids := make([]string, 0, len(wanted))
	for id := range wanted {
		ids = append(ids, id)
	}
	found, err := l.store.TokensByID(ctx, ids)
	if err != nil {
		return nil, err
	}
	tokens := make(map[string]Token, len(found))
	for _, t := range found {
		tokens[t.ID] = t
	}
	return tokens, nil
}
