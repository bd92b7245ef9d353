package invoice

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"invoicebridge/internal/problem"
	"invoicebridge/internal/tenantdb"
)

// remembering is a further service on e's database that keeps answers in memory.
func (e erp) remembering(bytes int64, opts Options) erp {
	opts.Replays = NewReplays(bytes)
	e.Service = NewService(e.pool, opts)
	return e
}

func (e erp) wantStats(what string, want ReplayStats) {
	e.t.Helper()
	got := e.replays.Stats()
	got.Bytes = 0
	if diff := cmp.Diff(want, got); diff != "" {
		e.t.Errorf("%s:\n%s", what, diff)
	}
}

func TestAReplayFromMemoryNeedsNoTableAndIsWhatTheDatabaseAnswers(t *testing.T) {
	t.Parallel()
	for name, front := range map[string]func(*Service) issuer{
		"alone":     func(s *Service) issuer { return s },
		"in groups": func(s *Service) issuer { return NewBatcher(s) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			plain := setup(t)
			cmds := []Command{command(t, "K", request(t))}
			made, found := front(plain.remembering(1<<20, Options{}).Service), front(plain.remembering(1<<20, Options{}).Service)
			if first := made.Issue(t.Context(), cmds)[0]; first.Err != nil || first.Answer.Replayed {
				t.Fatalf("%+v", first)
			}
			if second := found.Issue(t.Context(), cmds)[0]; second.Err != nil || !second.Answer.Replayed {
				t.Fatalf("%+v", second)
			}
			want := plain.Issue(t.Context(), cmds)[0]

			lock, err := plain.pool.Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = lock.Rollback(context.Background()) }()
			if _, err := lock.Exec(t.Context(), "LOCK TABLE invoices, idempotency_records IN ACCESS EXCLUSIVE MODE"); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			for after, s := range map[string]issuer{"its commit": made, "a look-up": found} {
				if diff := cmp.Diff(want, s.Issue(ctx, cmds)[0]); diff != "" {
					t.Errorf("kept after %s, not as the database answers:\n%s", after, diff)
				}
			}
		})
	}
}

func TestAnswersInMemoryAreForTheirRequestAlone(t *testing.T) {
	t.Parallel()
	e := setup(t, "t2").remembering(1<<20, Options{})
	first := e.mustIssue("K", request(t))
	wantRefused(t, e.issue("K", request(t, `"10.00"`, `"11.00"`)), problem.IdempotencyKeyReused)
	if n := e.count("SELECT count(*) FROM key_conflicts WHERE key = 'K'"); n != 1 {
		t.Errorf("%d conflicts are recorded, want 1", n)
	}
	foreign := command(t, "K", request(t))
	foreign.Tenant = "t2"
	if r := e.Issue(t.Context(), []Command{foreign})[0]; r.Err != nil || r.Answer.Replayed || r.Answer.InvoiceID == first.InvoiceID {
		t.Errorf("another tenant under the same key got %+v", r)
	}
	of2 := tenantdb.WithCaller(t.Context(), "t2")
	if r := e.Issue(of2, []Command{command(t, "K", request(t))})[0]; !errors.Is(r.Err, tenantdb.ErrForeign) || r.Answer != nil {
		t.Errorf("for a caller of another tenant: %+v", r)
	}
	e.wantStats("none of them was a replay", ReplayStats{Answers: 2})
}

func TestAnAnswerInMemoryIsGoneBeforeItsKeyExpires(t *testing.T) {
	t.Parallel()
	now := time.Now()
	plain := setup(t)
	e := plain.remembering(1<<20, Options{KeyRetention: 10 * time.Minute, Now: func() time.Time { return now }})
	e.mustIssue("K", request(t))
	now = now.Add(8 * time.Minute)
	e.mustIssue("K", request(t))
	e.wantStats("while the key is valid", ReplayStats{Answers: 1, FromMemory: 1})
	now = now.Add(2 * time.Minute)
	e.exec(`UPDATE idempotency_records SET first_seen_at = first_seen_at - interval '1 hour', expires_at = now() - interval '1 second'`)
	for range 2 {
		e.mustIssue("K", request(t))
	}
	e.wantStats("after it has expired", ReplayStats{FromMemory: 1, FromBase: 2})
	e.exec("DELETE FROM idempotency_records")
	if r := e.issue("K", request(t)); r.Err != nil || !r.Expires.IsZero() {
		t.Errorf("after the purge: %+v", r)
	}
	e.wantStats("after the purge", ReplayStats{FromMemory: 1, FromBase: 3})

	long := plain.remembering(1<<20, Options{Now: func() time.Time { return now }})
	long.mustIssue("L", orderOf(t, "SO-2"))
	now = now.Add(replayAge)
	long.mustIssue("L", orderOf(t, "SO-2"))
	long.wantStats("kept for long", ReplayStats{Answers: 1, FromBase: 1})
}

func TestAnswersInMemoryAreBoundedAndTheOldestGo(t *testing.T) {
	t.Parallel()
	const limit = 8 << 10
	e := setup(t).remembering(limit, Options{})
	const n = 20
	for i := range n {
		e.mustIssue(fmt.Sprint("K", i), orderOf(t, fmt.Sprint("SO-", i)))
		if s := e.replays.Stats(); s.Bytes <= 0 || s.Bytes > limit {
			t.Fatalf("%d bytes are held, the limit is %d", s.Bytes, limit)
		}
	}
	held := e.replays.Stats().Answers
	if held == 0 || held == n {
		t.Fatalf("%d of %d are held, the test shows nothing", held, n)
	}
	e.mustIssue("K19", orderOf(t, "SO-19"))
	e.wantStats("the last", ReplayStats{Answers: held, FromMemory: 1})
	e.mustIssue("K0", orderOf(t, "SO-0"))
	if s := e.replays.Stats(); s.FromBase != 1 {
		t.Errorf("the first: %+v", s)
	}
	if small := e.remembering(100, Options{}); small.mustIssue("K1", orderOf(t, "SO-1")) != nil {
		small.wantStats("one that is too large", ReplayStats{FromBase: 1})
	}
}

// A database that was restored is another: what is known of the one before, or is just being read from it, is not told.
func TestWhatWasForgottenIsReadAgain(t *testing.T) {
	t.Parallel()
	e := setup(t).remembering(1<<20, Options{})
	e.mustIssue("K", request(t))
	e.replays.Forget()
	e.wantStats("forgotten", ReplayStats{})
	if s := e.replays.Stats(); s.Bytes != 0 {
		t.Errorf("%d bytes are still held", s.Bytes)
	}
	mark := e.replays.mark(time.Now())
	r := e.issue("K", request(t))
	e.wantStats("read again", ReplayStats{Answers: 1, FromBase: 1})
	e.replays.Forget()
	e.replays.keep(mark, newMember(command(t, "K", request(t))), r, r.FirstSeen)
	e.wantStats("read before it was forgotten", ReplayStats{FromBase: 1})
}

func TestTheSameBytesAreKnownAgainUnderTheirKeyAlone(t *testing.T) {
	t.Parallel()
	now := time.Now()
	plain := setup(t, "t2")
	e := plain.remembering(1<<20, Options{Now: func() time.Time { return now }})
	body, reordered := NewBody([]byte("as sent")), NewBody([]byte("the same, in another order"))
	cmd := command(t, "K", request(t))
	again := func(ctx context.Context, tenant, key string, body Body) bool {
		_, known := e.Again(ctx, tenant, command(t, key, request(t)).Key, body)
		return known
	}
	cmd.Body = body
	if again(t.Context(), "t1", "K", body) {
		t.Error("known before it was there")
	}
	if r := e.Issue(t.Context(), []Command{cmd})[0]; r.Err != nil {
		t.Fatal(r.Err)
	}
	got, known := e.Again(t.Context(), "t1", cmd.Key, body)
	if diff := cmp.Diff(plain.Issue(t.Context(), []Command{cmd})[0], got); diff != "" || !known {
		t.Errorf("known %t, and not as the database answers:\n%s", known, diff)
	}
	e.wantStats("known again", ReplayStats{Answers: 1, FromMemory: 1})
	if again(t.Context(), "t1", "L", body) || again(t.Context(), "t2", "K", body) || again(t.Context(), "t1", "K", reordered) ||
		again(t.Context(), "t1", "K", Body{}) || again(tenantdb.WithCaller(t.Context(), "t2"), "t1", "K", body) {
		t.Error("given to another key, tenant, body or caller")
	}

	cmd.Body = reordered
	e.Issue(t.Context(), []Command{cmd})
	if !again(t.Context(), "t1", "K", reordered) {
		t.Error("what was sent last is not known")
	}
	cmd.Body = Body{}
	e.Issue(t.Context(), []Command{cmd})
	if !again(t.Context(), "t1", "K", reordered) || again(t.Context(), "t1", "K", Body{}) {
		t.Error("a request without bytes of its own, as in a batch, took what is known of the bytes")
	}
	e.mustIssue("without bytes", orderOf(t, "SO-2"))
	if again(t.Context(), "t1", "without bytes", Body{}) {
		t.Error("known by no bytes")
	}

	now = now.Add(replayAge)
	if again(t.Context(), "t1", "K", reordered) {
		t.Error("known for longer than it is kept")
	}
	cmd.Body = body
	e.Issue(t.Context(), []Command{cmd})
	if !again(t.Context(), "t1", "K", body) {
		t.Error("what a look-up found is not known")
	}
	e.replays.Forget()
	if again(t.Context(), "t1", "K", body) {
		t.Error("known though it was forgotten")
	}
}
