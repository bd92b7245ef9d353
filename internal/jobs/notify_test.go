package jobs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// A burst is quicker than any cooldown of River's clients, and each of its jobs is to be taken up at once.
func TestEveryTransactionThatInsertsJobsWakesTheWorkers(t *testing.T) {
	b := setup(t)
	heard := b.listen()
	const burst = 50
	for range burst {
		b.insertAt(time.Time{}, nil)
	}
	if got := heard(); len(got) != burst || slices.ContainsFunc(got, func(payload string) bool { return payload != `{"queue": "default"}` }) {
		t.Errorf("%d transactions: heard was %q", burst, got)
	}
}

func TestNobodyIsWokenForNothing(t *testing.T) {
	b := setup(t)
	heard := b.listen()
	b.insertAt(time.Now().Add(time.Hour), nil)
	b.insertAt(time.Time{}, errors.New("rolled back"))
	if got := heard(); len(got) != 0 {
		t.Errorf("heard was %q", got)
	}
	b.insertAt(time.Time{}, nil) // right after a transaction that has told nobody
	if got := heard(); len(got) != 1 {
		t.Errorf("heard was %q", got)
	}
}

// insertAt inserts jobs by two statements of one transaction that ends with this error.
func (b *bench) insertAt(at time.Time, end error) {
	b.t.Helper()
	err := pgx.BeginFunc(b.t.Context(), b.pool, func(tx pgx.Tx) error {
		for range 2 {
			if err := b.inserter.InsertDeliveries(b.t.Context(), tx, []uuid.UUID{uuid.New(), uuid.New()}, at); err != nil {
				return err
			}
		}
		return end
	})
	if !errors.Is(err, end) {
		b.t.Fatal(err)
	}
}

// listen listens as a worker does. heard gives what was notified before it is called.
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
