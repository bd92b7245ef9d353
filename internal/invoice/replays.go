package invoice

import (
	"container/list"
	"context"
	"sync"
	"time"

	"invoicebridge/internal/idempotency"
	"invoicebridge/internal/tenantdb"
)

const (
	// replayAge is how long an answer is kept in memory at most, and replayMargin how long before its key expires it is
	// dropped: what is between two clocks that tick.
	replayAge    = time.Hour
	replayMargin = time.Minute
	// replayWeight is what an answer takes in memory besides its document and its names, in bytes, roundly.
	replayWeight = 512
)

// Replays keeps finished answers in memory, those asked for last, so that the same request again need not go to the
// database. It knows nothing that the database does not: an answer is kept after the commit that made it or the look-up
// that found it, and never changes. Only the request that has the answer, by tenant, key and fingerprint, is given it;
// any other goes to the database, where conflicts are recorded.
//
// It is safe for concurrent use. nil keeps nothing.
type Replays struct {
	limit int64

	mu     sync.Mutex
	known  map[replayKey]*list.Element // of *replay
	recent *list.List                  // the one asked for last in front
	stats  ReplayStats
	era    int // goes up with Forget
}

// ReplayStats are what Replays hold, and what became of replays so far.
type ReplayStats struct {
	Answers, Bytes       int64 // held now
	FromMemory, FromBase int64 // replays answered so far, from here and by the database
}

type replayKey struct {
	tenant string
	key    idempotency.Key
}

type replay struct {
	replayKey
	fingerprint idempotency.Fingerprint
	body        Body // of the request that was answered last; zero: not known
	result      Result
	until       time.Time
	bytes       int64
}

// NewReplays makes Replays that take at most so many bytes; nil if that is none.
func NewReplays(bytes int64) *Replays {
	if bytes <= 0 {
		return nil
	}
	return &Replays{limit: bytes, known: map[replayKey]*list.Element{}, recent: list.New()}
}

// Forget drops everything, and what is being read meanwhile is not kept either. It is for when the database may be another
// than it was: whenever a connection is opened. A server that was restored, or has lost commits in a failover, is only
// reached by new ones.
func (r *Replays) Forget() {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.era++
	clear(r.known)
	r.recent.Init()
	r.stats.Answers, r.stats.Bytes = 0, 0
}

// Stats gives what there is to count.
func (r *Replays) Stats() ReplayStats {
	if r == nil {
		return ReplayStats{}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stats
}

// replayMark is the moment before the database is asked: an answer's time is counted from there, which is before the
// database has looked at its clock, and it is kept only if nothing was forgotten since.
type replayMark struct {
	at  time.Time
	era int
}

func (r *Replays) mark(now time.Time) replayMark {
	if r == nil {
		return replayMark{}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return replayMark{now, r.era}
}

// answer gives m the answer it would get from the database, if it is here.
func (r *Replays) answer(ctx context.Context, m *member, now time.Time) {
	if m.settled {
		return
	}
	result, known := r.find(ctx, replayKey{m.Tenant, m.Key}, now, func(kept *replay) bool {
		if kept.fingerprint != m.fingerprint {
			return false
		}
		if m.Body != (Body{}) {
			kept.body = m.Body
		}
		return true
	})
	if known {
		m.settle(result)
	}
}

// again gives the answer that the very same bytes have had. Same bytes are the same request: what decodes them and makes the
// fingerprint looks at nothing else.
func (r *Replays) again(ctx context.Context, key replayKey, body Body, now time.Time) (Result, bool) {
	return r.find(ctx, key, now, func(kept *replay) bool { return body != (Body{}) && kept.body == body })
}

// find gives the answer under a key, if it is here and the same request's.
func (r *Replays) find(ctx context.Context, key replayKey, now time.Time, same func(*replay) bool) (Result, bool) {
	if r == nil || tenantdb.Permits(ctx, key.tenant) != nil {
		return Result{}, false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.known[key]
	if e == nil {
		return Result{}, false
	}
	kept := e.Value.(*replay)
	if !now.Before(kept.until) {
		r.drop(e)
		return Result{}, false
	}
	if !same(kept) {
		return Result{}, false
	}
	r.recent.MoveToFront(e)
	r.stats.FromMemory++
	result, answer := kept.result, *kept.result.Answer
	result.Answer = &answer
	return result, true
}

// found keeps what a look-up has answered m with, asked by the database's clock.
func (r *Replays) found(mark replayMark, m *member, result Result, asked time.Time) {
	if r == nil {
		return
	}
	r.mu.Lock()
	r.stats.FromBase++
	r.mu.Unlock()
	r.keep(mark, m, result, asked)
}

// keep keeps a result with an answer that is committed, unless its key has expired, or nearly, or has no time to tell.
func (r *Replays) keep(mark replayMark, m *member, result Result, asked time.Time) {
	expires := tellable(&result.Expires)
	if r == nil || result.Expires.IsZero() || expires == nil {
		return
	}
	life := min(replayAge, result.Expires.Sub(asked)-replayMargin)
	answer := *result.Answer
	answer.Replayed = true
	kept := &replay{
		replayKey: replayKey{m.Tenant, m.Key}, fingerprint: m.fingerprint, body: m.Body, until: mark.at.Add(life),
		result: Result{Answer: &answer, FirstSeen: result.FirstSeen.UTC(), Expires: *expires},
		bytes:  int64(replayWeight + len(m.Tenant) + len(m.Key.String()) + cap(answer.Document)),
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if life <= 0 || mark.era != r.era || kept.bytes > r.limit {
		return
	}
	if e := r.known[kept.replayKey]; e != nil {
		r.drop(e)
	}
	r.known[kept.replayKey] = r.recent.PushFront(kept)
	r.stats.Answers++
	r.stats.Bytes += kept.bytes
	for r.stats.Bytes > r.limit {
		r.drop(r.recent.Back())
	}
}

func (r *Replays) drop(e *list.Element) {
	kept := r.recent.Remove(e).(*replay)
	delete(r.known, kept.replayKey)
	r.stats.Answers--
	r.stats.Bytes -= kept.bytes
}
