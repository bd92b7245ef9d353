package jobs

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"invoicebridge/internal/crm"
	"invoicebridge/internal/erpapi"
	"invoicebridge/internal/erpapi/erpsim"
	"invoicebridge/internal/problem"
	"invoicebridge/internal/testdb"
)

func TestOrdersBecomeOneInvoiceEachWhateverHappensToTheAnswers(t *testing.T) {
	b := setup(t)
	const orders = 60
	b.erp.OnPost(func(c *erpsim.Call) {
		answer := c.Commit()
		switch c.N % 5 {
		case 0:
			c.Reset()
		case 1:
			c.Refuse(http.StatusBadGateway, problem.Internal)
		case 2:
			c.Raw("HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n")
		default:
			c.Send(answer)
		}
	})
	b.start()
	b.start() // two processes
	b.submit(0, orders)
	b.waitSucceeded(orders)
	b.wantOneInvoiceEach(orders)
	if n := b.count("river_job WHERE kind = $1 AND (attempt <> 1 OR errors IS NOT NULL)", DeliverKind); n != 0 {
		t.Errorf("%d jobs used up attempts of River's", n)
	}
}

func TestAPauseIsASnoozeToATimeOfTheDatabase(t *testing.T) {
	for name, by := range map[string]time.Duration{"right clock": 0, "10 min ahead": 10 * time.Minute, "10 min behind": -10 * time.Minute} {
		t.Run(name, func(t *testing.T) {
			b := setup(t)
			b.backOff = crm.BackOff{Base: 3 * time.Hour, Cap: 3 * time.Hour, Slow: time.Hour}
			b.erp.OnPost((*erpsim.Call).Reset)
			b.run(b.skewedClient(by))
			b.submit(0, 1)
			testdb.Await(b.t, "the pause", func() bool {
				return b.count("operations WHERE status = 'unknown'") == 1 &&
					b.count("river_job WHERE kind = $1 AND state = 'scheduled'", DeliverKind) == 1
			})
			var off float64
			b.scan(&off, `SELECT abs(extract(epoch FROM j.scheduled_at - o.next_attempt_at))::float8
			              FROM river_job AS j, operations AS o WHERE j.kind = $1`, DeliverKind)
			if off > 1 {
				t.Errorf("the job is due %v s off the operation", off)
			}
			if n := b.count("river_job WHERE kind = $1 AND attempt = 0 AND errors IS NULL", DeliverKind); n != 1 {
				t.Error("the pause used up an attempt of River's")
			}
			var pause float64
			b.scan(&pause, "SELECT extract(epoch FROM next_attempt_at - now())::float8 FROM operations")
			if pause > 3*3600 || pause < 3600 {
				t.Errorf("the pause is %v s by the database's clock", pause)
			}
		})
	}
}

// CASES J1: a client died with its jobs running.
func TestJobsOfADeadClientEnd(t *testing.T) {
	b := setup(t)
	const orders = 100
	b.submit(0, orders)
	b.exec(`UPDATE river_job SET state = 'running', attempt = 1, attempted_at = now() - interval '1 hour', attempted_by = '{dead}'`)
	b.exec(`UPDATE operations SET status = 'processing', attempt = 1, first_sent_at = now() - interval '1 hour',
	        next_attempt_at = NULL, lease_until = now() - interval '58 minutes'`)
	b.exec(`INSERT INTO attempts (operation_id, number, worker, started_at) SELECT id, 1, 'dead', now() - interval '1 hour' FROM operations`)
	b.start()
	b.waitSucceeded(orders)
	b.wantOneInvoiceEach(orders)
	if n := b.count("attempts WHERE number = 1 AND outcome <> 'overtaken'"); n != 0 {
		t.Errorf("%d attempts of the dead client are not overtaken", n)
	}
}

func TestAllJobsOfADeadProcessAreTakenUpWithinTenMinutes(t *testing.T) {
	t.Parallel()
	client := func(timeout time.Duration) error {
		erp, err := erpapi.NewClient(erpapi.ClientConfig{BaseURL: "http://127.0.0.1:1", AttemptTimeout: timeout})
		if err != nil {
			t.Fatal(err)
		}
		config, err := riverConfig(nil, Deps{Deliverer: crm.NewDeliverer(nil, erp, crm.DelivererOptions{})}, Config{}, time.Now)
		if err != nil {
			return err
		}
		if config.JobTimeout <= 2*timeout || config.RescueStuckJobsAfter <= config.JobTimeout || config.RescueStuckJobsAfter > rescueLimit {
			t.Errorf("%v per attempt: jobs end after %v, are rescued after %v", timeout, config.JobTimeout, config.RescueStuckJobsAfter)
		}
		return nil
	}
	for _, timeout := range []time.Duration{time.Second, erpapi.DefaultAttemptTimeout, 3 * time.Minute} {
		if err := client(timeout); err != nil {
			t.Errorf("%v per attempt: %v", timeout, err)
		}
	}
	if err := client(5 * time.Minute); err == nil {
		t.Error("a time limit that keeps the jobs of a dead process for too long is taken")
	}
}

func TestUnknownKindsAreKept(t *testing.T) {
	b := setup(t)
	b.exec(`INSERT INTO river_job (kind, args, max_attempts, state, queue, priority)
	        VALUES ('kind_of_the_next_version', '{}', 1, 'available', 'default', 1)`)
	b.exec(`INSERT INTO river_job (kind, args, max_attempts, state, queue, priority, attempt, attempted_at, attempted_by)
	        VALUES ('kind_of_the_next_version', '{}', 1, 'running', 'default', 1, 1, now() - interval '1 day', '{dead}')`)
	b.submit(0, 2)
	// One of the two is stuck as well, behind the unknown one: once it is done, the rescuer has been there.
	b.exec(`UPDATE river_job SET state = 'running', attempt = 1, attempted_at = now() - interval '1 day', attempted_by = '{dead}'
	        WHERE id = (SELECT max(id) FROM river_job)`)
	b.start()
	b.waitSucceeded(2)
	if n := b.count("river_job WHERE kind = 'kind_of_the_next_version' AND state IN ('available', 'running') AND errors IS NULL"); n != 2 {
		var states string
		b.scan(&states, "SELECT string_agg(state::text, ' ') FROM river_job WHERE kind = 'kind_of_the_next_version'")
		t.Errorf("jobs of an unknown kind are now %s", states)
	}
}

// An operation and its job end in one transaction; a job that is not River's any more does not hold that up.
func TestALostJobDoesNotCostTheOutcome(t *testing.T) {
	b := setup(t)
	b.erp.OnPost(func(c *erpsim.Call) {
		b.exec("DELETE FROM river_job WHERE kind = $1", DeliverKind)
		c.Send(c.Commit())
	})
	b.start()
	b.submit(0, 1)
	b.waitSucceeded(1)
	b.wantOneInvoiceEach(1)
}

func TestStopInterruptsWhatDoesNotEndByItself(t *testing.T) {
	b := setup(t)
	b.cfg.SoftStopTimeout = 50 * time.Millisecond
	b.erp.OnPost(func(c *erpsim.Call) {
		answer := c.Commit()
		if c.N == 1 {
			c.Hold()
			return
		}
		c.Send(answer)
	})
	first := b.skewedClient(10 * time.Minute) // whose jobs must not wait until its clock is right
	b.run(first)
	b.submit(0, 1)
	testdb.Await(b.t, "the call", func() bool { return len(b.erp.Invoices()) == 1 })
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if err := first.Stop(ctx); err != nil {
		t.Fatal(err)
	}
	if n := b.count("operations WHERE status = 'unknown' AND reason = 'interrupted'"); n != 1 {
		t.Error("the interrupted operation is not unknown")
	}
	if n := b.count("river_job WHERE kind = $1 AND state = 'available'", DeliverKind); n != 1 {
		t.Error("its job does not wait for the next client")
	}
	b.start()
	b.waitSucceeded(1)
	b.wantOneInvoiceEach(1)
}

func TestInsertedJobsLiveAndDieWithTheTransaction(t *testing.T) {
	b := setup(t)
	ids := []uuid.UUID{uuid.New(), uuid.New(), uuid.New()}
	rollback := errors.New("rolled back")
	err := pgx.BeginFunc(t.Context(), b.pool, func(tx pgx.Tx) error {
		return errors.Join(b.inserter.InsertDeliveries(t.Context(), tx, ids, time.Time{}), rollback)
	})
	if !errors.Is(err, rollback) || b.count("river_job") != 0 {
		t.Errorf("%v, %d jobs", err, b.count("river_job"))
	}
	for _, tc := range []struct {
		at    time.Time
		state string
	}{
		{time.Time{}, "available"}, {time.Now().Add(-time.Minute), "available"}, {time.Now().Add(time.Hour), "scheduled"},
	} {
		err := pgx.BeginFunc(t.Context(), b.pool, func(tx pgx.Tx) error {
			return b.inserter.InsertDeliveries(t.Context(), tx, ids, tc.at)
		})
		if err != nil {
			t.Fatal(err)
		}
		where := fmt.Sprintf("river_job WHERE kind = $1 AND state = '%s' AND max_attempts = $2", tc.state)
		if n := b.count(where, DeliverKind, maxAttempts); n != len(ids) {
			t.Errorf("%d jobs are %s", n, tc.state)
		}
		b.exec("DELETE FROM river_job")
	}
}
