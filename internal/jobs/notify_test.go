package jobs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"invoicebridge/internal/testdb"
)

func (w *waker) rests() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.atWork
}

// However many ask while a notification is on its way: there is one more, which begins after that. No commit is left out, and
// never are two on their way at once.
func TestWhoeverAsksDuringANotificationSharesTheNext(t *testing.T) {
	t.Parallel()
	begins, end := make(chan struct{}), make(chan struct{})
	var notifications atomic.Int64
	w := &waker{log: slog.New(slog.DiscardHandler), notify: func(context.Context) error {
		notifications.Add(1)
		begins <- struct{}{}
		<-end
		return nil
	}}
	for round := range int64(3) {
		w.wake()
		<-begins
		for range 50 {
			w.wake()
		}
		end <- struct{}{}
		<-begins
		end <- struct{}{}
		testdb.Await(t, "rest", w.rests)
		if n := notifications.Load(); n != 2*(round+1) {
			t.Fatalf("%d notifications after %d rounds", n, round+1)
		}
	}
}

func TestANotificationThatFailsKeepsNobodyFromTheNext(t *testing.T) {
	t.Parallel()
	var tries atomic.Int64
	w := &waker{log: slog.New(slog.DiscardHandler), notify: func(context.Context) error {
		tries.Add(1)
		return errors.New("the database is away")
	}}
	for range 2 {
		w.wake()
		testdb.Await(t, "rest", w.rests)
	}
	if n := tries.Load(); n != 2 {
		t.Errorf("%d tries, want 2", n)
	}
}

func TestWakeTellsThoseWhoListenForDeliveries(t *testing.T) {
	b := setup(t)
	heard := b.listen()
	b.insert(uuid.New(), uuid.New())
	if got := heard(); len(got) != 0 {
		t.Errorf("by its commit alone it is told of deliveries: %q", got)
	}
	b.inserter.Wake()
	testdb.Await(t, "rest", b.inserter.waker.rests)
	if diff := cmp.Diff([]string{`{"queue": "default"}`}, heard()); diff != "" {
		t.Error(diff)
	}
}

// The client looks for jobs by itself when it starts, and then once an hour.
func TestAWorkerThatIsWokenTakesUpAJobAtOnce(t *testing.T) {
	b := setup(t)
	b.submit(0, 1)
	config, err := riverConfig(b.pool, b.deps(), b.cfg, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	config.FetchPollInterval = time.Hour
	client, err := newClient(b.pool, config, crmKinds(), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	b.run(client)
	b.waitSucceeded(1) // so it has looked
	orders := 1
	testdb.Await(t, "a delivery", func() bool { // it may not listen from the first moment on
		b.submit(orders, 1)
		orders++
		return b.count("operations WHERE status = 'succeeded'") > 1
	})
}

// A burst is quicker than any cooldown of River's clients.
func TestJobsOfOtherQueuesWakeTheirWorkersByTheirCommit(t *testing.T) {
	b := setup(t)
	heard := b.listen()
	act := func(end error) {
		t.Helper()
		err := pgx.BeginFunc(t.Context(), b.pool, func(tx pgx.Tx) error {
			for range 2 {
				if err := b.inserter.InsertReplayRun(t.Context(), tx, uuid.New()); err != nil {
					return err
				}
			}
			return end
		})
		if !errors.Is(err, end) {
			t.Fatal(err)
		}
	}
	const burst = 20
	for range burst {
		act(nil)
		act(errors.New("rolled back"))
	}
	want := slices.Repeat([]string{fmt.Sprintf(`{"queue": %q}`, queueReplays)}, burst)
	if diff := cmp.Diff(want, heard()); diff != "" {
		t.Errorf("%d transactions: (-want +heard)\n%s", burst, diff)
	}
}

// listen listens as a worker does. heard gives what was notified since it was called last.
func (b *bench) listen() (heard func() []string) {
	b.t.Helper()
	var schema string
	b.scan(&schema, "SELECT current_schema()")
	topic := pgx.Identifier{fmt.Sprintf("%s.%s", schema, insertTopic)}.Sanitize()
	conn, err := b.pool.Acquire(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	listener := conn.Hijack()
	b.t.Cleanup(func() { _ = listener.Close(context.Background()) })
	if _, err := listener.Exec(b.t.Context(), "LISTEN "+topic); err != nil {
		b.t.Fatal(err)
	}
	return func() (payloads []string) {
		b.t.Helper()
		const last = "last" // notifications come in the order of the commits
		b.exec("SELECT pg_notify($1, $2)", schema+"."+insertTopic, last)
		for {
			n, err := listener.WaitForNotification(b.t.Context())
			if err != nil {
				b.t.Fatal(err)
			}
			if n.Payload == last {
				return payloads
			}
			payloads = append(payloads, n.Payload)
		}
	}
}
