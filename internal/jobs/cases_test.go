package jobs

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"invoicebridge/internal/crm"
	"invoicebridge/internal/erpapi/erpsim"
	"invoicebridge/internal/testdb"
)

// insert adds jobs for operations, beside those that are there.
func (b *bench) insert(ids ...uuid.UUID) {
	b.t.Helper()
	err := pgx.BeginFunc(b.t.Context(), b.pool, func(tx pgx.Tx) error {
		return b.inserter.InsertDeliveries(b.t.Context(), tx, ids, time.Time{})
	})
	if err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) operation(order string) (id uuid.UUID) {
	b.t.Helper()
	b.scan(&id, "SELECT id FROM operations WHERE order_id = $1", order)
	return id
}

// Case J6: the queue may hold a task twice, while it runs, after it has ended, or in a form that this build does not know.
// What is delivered is decided by the operation, not by the queue's uniqueness.
func TestHoweverOftenATaskIsQueuedItsOperationIsDeliveredOnce(t *testing.T) {
	b := setup(t)
	running, release := make(chan struct{}), make(chan struct{})
	b.erp.OnPost(func(c *erpsim.Call) {
		if c.N == 1 {
			close(running)
			<-release
		}
		c.Send(c.Commit())
	})
	b.submit(0, 1)
	b.submit(0, 1) // the same order again: the same operation, and no other job
	if n := b.count("river_job"); n != 1 {
		t.Errorf("%d jobs for one order that came twice, want 1", n)
	}
	id := b.operation("SO-0")
	b.start()
	<-running
	b.insert(id, id) // while it runs
	testdb.Await(t, "the copies have been at work and have left", func() bool {
		return b.count("river_job WHERE state IN ('completed', 'scheduled', 'retryable') AND attempt > 0 OR state = 'scheduled'") >= 2
	})
	close(release)
	b.waitSucceeded(1)
	b.insert(id) // after it has ended
	b.waitSucceeded(1)

	// A build that named the argument in another way, and one that wrote more than this one knows.
	b.submit(1, 2)
	b.exec(`INSERT INTO river_job (kind, args, max_attempts, state, queue, priority) VALUES
		($1, '{"operation":"x"}', 3, 'available', 'default', 1),
		($1, jsonb_build_object('operation_id', $2::text, 'trace', 'new'), 3, 'available', 'default', 1)`, DeliverKind, b.operation("SO-1").String())
	testdb.Await(t, "both orders delivered", func() bool { return b.count("operations WHERE status = 'succeeded'") == 3 })
	b.wantOneInvoiceEach(3)
	if n := len(b.erp.Posts()); n != 3 {
		t.Errorf("%d requests reached the ERP, want one for each order", n)
	}
}

// Case J8: a transaction that somebody left open, many tasks, and a queue that has removed its finished rows. The history is
// the operations', and the queue's rows are none of it.
func TestTasksEndBesideAnOldTransactionAndTheirHistoryOutlivesTheQueue(t *testing.T) {
	b := setup(t)
	old, err := b.pool.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = old.Rollback(context.Background()) }()
	var seen int
	if err := old.QueryRow(t.Context(), "SELECT count(*) FROM operations").Scan(&seen); err != nil || seen != 0 {
		t.Fatal(seen, err) // the snapshot is taken now
	}
	const orders, waiting = 200, 500
	b.submit(0, orders)
	b.submit(orders, waiting)
	b.exec("UPDATE river_job SET state = 'scheduled', scheduled_at = now() + interval '1 day' WHERE id > (SELECT min(id) + $1 FROM river_job)", orders-1)
	b.exec("UPDATE operations SET next_attempt_at = now() + interval '1 day' WHERE split_part(order_id, '-', 2)::int >= $1", orders)
	b.start()
	testdb.Await(t, "all that is due is delivered", func() bool { return b.count("operations WHERE status = 'succeeded'") == orders })
	if err := old.QueryRow(t.Context(), "SELECT count(*) FROM operations").Scan(&seen); err != nil || seen != 0 {
		t.Fatalf("the old transaction sees %d, %v", seen, err)
	}
	testdb.Await(t, "the queue has settled", func() bool { return b.count("river_job WHERE state = 'running'") == 0 })
	b.exec("DELETE FROM river_job") // as its cleaner does in time
	service := crm.NewService(b.pool, b.inserter, crm.Options{})
	found := 0
	for f := (crm.OperationFilter{Limit: 200}); ; {
		page, next, err := service.ListOperations(t.Context(), testTenant, f)
		if err != nil {
			t.Fatal(err)
		}
		found += len(page)
		if f.Cursor = next; next == "" {
			break
		}
	}
	if found != orders+waiting {
		t.Errorf("%d tasks are listed, want %d", found, orders+waiting)
	}
	if n := b.count("attempts WHERE outcome = 'delivered'"); n != orders {
		t.Errorf("%d attempts are on record, want %d", n, orders)
	}
}

// Case P1: what is committed late, or never, keeps nothing else up and is neither skipped nor wanted twice: nobody reads by
// growing numbers.
func TestWhatIsCommittedLateIsDeliveredAndWhatIsRolledBackHoldsNobodyUp(t *testing.T) {
	b := setup(t)
	b.start()
	service := crm.NewService(b.pool, b.inserter, crm.Options{})
	// Each transaction waits at the gate after it has its numbers and its rows, just before its commit.
	b.exec(`CREATE FUNCTION gate() RETURNS trigger LANGUAGE plpgsql AS $$
		BEGIN
			IF NEW.order_id = 'SO-late' THEN PERFORM pg_advisory_xact_lock_shared(7); END IF;
			IF NEW.order_id = 'SO-never' THEN PERFORM pg_advisory_xact_lock_shared(8); RAISE EXCEPTION 'rolled back'; END IF;
			RETURN NEW;
		END $$`)
	b.exec("CREATE CONSTRAINT TRIGGER gate AFTER INSERT ON operations DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION gate()")
	holder, err := b.pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer holder.Release()
	if _, err := holder.Exec(t.Context(), "SELECT pg_advisory_lock(7), pg_advisory_lock(8)"); err != nil {
		t.Fatal(err)
	}
	submit := func(order string) <-chan error {
		ended := make(chan error, 1)
		go func() {
			_, err := service.Submit(context.Background(), testTenant, crm.ChannelAPI, []crm.Order{testOrder(order)}, crm.SubmitOptions{})
			ended <- err
		}()
		return ended
	}
	late, never := submit("SO-late"), submit("SO-never")
	testdb.Await(t, "both wait before their commit", func() bool {
		return b.count("pg_locks WHERE locktype = 'advisory' AND NOT granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database())") == 2
	})
	b.submit(0, 20) // with later numbers, committed earlier
	b.waitSucceeded(20)
	if _, err := holder.Exec(t.Context(), "SELECT pg_advisory_unlock(7), pg_advisory_unlock(8)"); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(<-late); err != nil {
		t.Fatal(err)
	}
	if err := <-never; err == nil {
		t.Error("what was rolled back is told as stored")
	}
	b.exec("ALTER SEQUENCE river_job_id_seq RESTART WITH 100000") // as after a restore
	b.submit(20, 5)
	b.waitSucceeded(26)
	b.wantOneInvoiceEach(26)
	if n := b.count("operations WHERE order_id = 'SO-never'"); n != 0 {
		t.Errorf("%d operations of what was rolled back", n)
	}
}

// Case P2: a task that can never work is told and blocks nobody. Here the queue's rows are such that no worker can read them;
// what comes in and can't be read is turned away at the door (TestAPoisonedMessageIsToldAndKeepsNoOtherOut).
func TestJobsThatCanNeverWorkKeepNoOtherUp(t *testing.T) {
	b := setup(t)
	b.exec(`INSERT INTO river_job (kind, args, max_attempts, state, queue, priority)
		SELECT $1, x, 2, 'available', 'default', 1 FROM unnest(ARRAY['{}', '{"operation_id":"no id"}', '{"operation_id":null}', '[1]',
			'{"operation_id":"0198d000-0000-7000-8000-000000000000"}']::jsonb[]) AS x`, DeliverKind)
	b.submit(0, 100)
	b.start()
	testdb.Await(t, "the good ones are delivered", func() bool { return b.count("operations WHERE status = 'succeeded'") == 100 })
	b.wantOneInvoiceEach(100)
	if n := b.count("river_job WHERE state = 'completed' AND errors IS NOT NULL"); n != 0 {
		t.Errorf("%d jobs that could not be read are called completed", n)
	}
}
