package jobs

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"invoicebridge/internal/crm"
	"invoicebridge/internal/retention"
	"invoicebridge/internal/testdb"
)

// purge gives the bench's clients a purge, with metrics of its own.
func (b *bench) purge() *PurgeMetrics {
	b.t.Helper()
	steps := crm.RetentionSteps(b.pool, crm.Keep{})
	metrics := NewPurgeMetrics("crm", steps, nil)
	b.cfg.Purge = Purge{
		Purger:   retention.NewPurger(steps, retention.Options{Pace: retention.Pace{Batch: 2}, RunTime: time.Minute, Observer: metrics}),
		Schedule: retention.Schedule{Interval: time.Hour},
	}
	return metrics
}

// passYears lets two years pass for everything.
func (b *bench) passYears() {
	b.t.Helper()
	b.exec("UPDATE operations SET finished_at = finished_at - interval '2 years', first_sent_at = first_sent_at - interval '2 years'")
	b.exec("UPDATE orders SET updated_at = updated_at - interval '2 years'")
	b.exec("UPDATE attempts SET started_at = started_at - interval '2 years', finished_at = finished_at - interval '2 years'")
	b.exec("UPDATE inbox_messages SET received_at = received_at - interval '2 years'")
}

func TestTheClientPurgesByItselfAndTellsHowMuch(t *testing.T) {
	b := setup(t)
	b.submit(0, 3)
	stop := b.startUntil(b.client())
	b.waitSucceeded(3)
	stop()
	b.passYears()
	metrics := b.purge()
	if before := gather(t, metrics); before["crm_purge_overdue_seconds operations"] < 300*24*3600 {
		t.Errorf("before: %v", before)
	}
	b.start()
	testdb.Await(b.t, "the purge", func() bool { return gather(t, metrics)["crm_purged_rows_total inbox_messages"] == 3 })
	testdb.Await(b.t, "the end of the run", func() bool {
		return b.count("river_job WHERE kind = $1 AND state = 'completed'", PurgeKind) == 1
	})
	got := gather(t, metrics)
	overdue := gather(t, b.purge()) // read just now, where got may have the one of a moment ago
	for name, want := range map[string]float64{
		"crm_purged_rows_total operations": 3, "crm_purged_rows_total orders": 3, "crm_purged_rows_total attempts": 3,
		"crm_purge_overdue_seconds operations": 0, "crm_purge_overdue_seconds orders": 0, "crm_purge_overdue_seconds attempts": 0,
		"crm_purge_overdue_seconds inbox_messages": 0, "crm_purge_refused_rows_total operations": 0,
	} {
		if _, there := overdue[name]; there && strings.HasPrefix(name, "crm_purge_overdue_seconds") {
			got[name] = overdue[name]
		}
		if value, there := got[name]; !there || value != want {
			t.Errorf("%s is %v, want %v", name, value, want)
		}
	}
}

func TestPurgeInterruptedByAShutdownIsNoFailure(t *testing.T) {
	b := setup(t)
	b.submit(0, 1)
	stop := b.startUntil(b.client())
	b.waitSucceeded(1)
	stop()
	b.passYears()
	started := make(chan struct{})
	b.cfg.SoftStopTimeout = time.Hour // which a stop is not to take
	b.cfg.Purge = Purge{
		Purger: retention.NewPurger(crm.RetentionSteps(b.pool, crm.Keep{}), retention.Options{
			RunTime: time.Minute, Pause: func(ctx context.Context, _ time.Duration) error {
				close(started)
				<-ctx.Done()
				return ctx.Err()
			},
		}),
		Schedule: retention.Schedule{Interval: time.Hour},
	}
	client := b.start()
	<-started
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if err := client.Stop(ctx); err != nil {
		t.Fatal(err)
	}
	if b.count("river_job WHERE kind = $1 AND state = 'completed'", PurgeKind) != 1 {
		t.Error("the job is not completed")
	}
}

// F1 (b): somebody revives the dead job of an operation that ended long ago.
func TestAnOldJobRevivedAfterThePurgeChangesNothing(t *testing.T) {
	b := setup(t)
	b.submit(0, 1)
	stop := b.startUntil(b.client())
	b.waitSucceeded(1)
	stop()
	const whole = `SELECT concat_ws(' ', id, key, status, attempt, invoice_id, invoice_number, encode(request_hash, 'hex'), minimised_at) FROM operations`
	b.passYears()
	b.purge()
	if _, err := b.cfg.Purge.Purger.Purge(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	var before, after string
	b.scan(&before, whole)
	posts := len(b.erp.Posts())

	b.exec("UPDATE river_job SET state = 'discarded', finalized_at = now() WHERE kind = $1", DeliverKind)
	b.exec("UPDATE river_job SET state = 'available', finalized_at = NULL, scheduled_at = now(), attempt = 0, max_attempts = 5 WHERE kind = $1", DeliverKind)
	var id uuid.UUID
	b.scan(&id, "SELECT id FROM operations")
	err := pgx.BeginFunc(t.Context(), b.pool, func(tx pgx.Tx) error { // and a second one beside it
		return b.inserter.InsertDeliveries(t.Context(), tx, []uuid.UUID{id}, time.Time{})
	})
	if err != nil {
		t.Fatal(err)
	}
	b.start()
	testdb.Await(b.t, "both jobs", func() bool {
		return b.count("river_job WHERE kind = $1 AND state = 'completed'", DeliverKind) == 2
	})
	b.scan(&after, whole)
	if before != after {
		t.Errorf("the operation was\n%s, is\n%s", before, after)
	}
	if n := len(b.erp.Posts()); n != posts || b.count("attempts") != 0 {
		t.Errorf("%d requests were sent", n-posts)
	}
	b.wantOneInvoiceEach(1)
}

// startUntil starts a client that the test stops itself.
func (b *bench) startUntil(client *Client) (stop func()) {
	b.t.Helper()
	if err := client.Start(context.Background()); err != nil {
		b.t.Fatal(err)
	}
	return func() {
		b.t.Helper()
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		if err := client.Stop(ctx); err != nil {
			b.t.Fatal(err)
		}
	}
}

func (b *bench) client() *Client {
	b.t.Helper()
	client, err := NewClient(b.pool, b.deps(), b.cfg)
	if err != nil {
		b.t.Fatal(err)
	}
	return client
}
