package jobs

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/rivertype"

	"invoicebridge/internal/erpapi/erpsim"
	"invoicebridge/internal/testdb"
)

// wrongClocks are those of CASES J9.
func wrongClocks() map[string]time.Duration {
	return map[string]time.Duration{"10 min ahead": 10 * time.Minute, "10 min behind": -10 * time.Minute}
}

// CASES J9: two machines whose clocks are wrong in opposite directions.
func TestWrongClocksMakeNoDoubles(t *testing.T) {
	b := setup(t)
	const orders = 20
	b.erp.OnPost(func(c *erpsim.Call) {
		answer := c.Commit()
		if c.N%3 == 0 {
			c.Reset()
			return
		}
		c.Send(answer)
	})
	b.run(b.skewedClient(10 * time.Minute))
	b.run(b.skewedClient(-10 * time.Minute))
	b.submit(0, orders)
	b.waitSucceeded(orders)
	b.wantOneInvoiceEach(orders)
}

// The leader makes snoozed jobs available for all clients.
func TestASnoozedJobRunsWhenItIsDueWhateverTheLeadersClockSays(t *testing.T) {
	for name, by := range wrongClocks() {
		t.Run(name, func(t *testing.T) {
			b := setup(t)
			b.submit(0, 2)
			b.exec("UPDATE river_job SET state = 'scheduled', scheduled_at = now() - interval '1 second'")
			b.exec("UPDATE river_job SET scheduled_at = now() + interval '5 minutes' WHERE id = (SELECT max(id) FROM river_job)")
			b.run(b.skewedClient(by))
			testdb.Await(b.t, "the job that is due", func() bool { return b.count("operations WHERE status = 'succeeded'") == 1 })
			if n := b.count("river_job WHERE kind = $1 AND state = 'scheduled' AND attempt = 0", DeliverKind); n != 1 {
				t.Error("the job that is not due yet does not wait any more")
			}
		})
	}
}

func TestAPauseIsOfTheStateThatTheDatabasesClockDemands(t *testing.T) {
	for name, by := range wrongClocks() {
		for state, pause := range map[rivertype.JobState]time.Duration{
			rivertype.JobStateAvailable: time.Millisecond, rivertype.JobStateScheduled: 10 * time.Minute,
		} {
			t.Run(name+", "+string(state), func(t *testing.T) {
				t.Parallel()
				pool := testdb.CRM(t)
				clock := skewed{by}
				p := &pilot{now: clock.Now}
				d := newDriver(pool, p)
				var id int64
				var now time.Time
				if err := pool.QueryRow(t.Context(), `INSERT INTO river_job (kind, args, max_attempts, state, attempt, attempted_at)
				        VALUES ('k', '{}', 2, 'running', 1, now()) RETURNING id, now()`).Scan(&id, &now); err != nil {
					t.Fatal(err)
				}
				at, attempt, wrong := now.Add(pause), 0, rivertype.JobStateScheduled
				if state == rivertype.JobStateScheduled {
					wrong = rivertype.JobStateAvailable
				}
				jobs, err := p.JobSetStateIfRunningMany(t.Context(), d.GetExecutor(), &riverdriver.JobSetStateIfRunningManyParams{
					ID: []int64{id}, Attempt: []*int{&attempt}, ErrData: [][]byte{nil}, FinalizedAt: []*time.Time{nil},
					MetadataDoMerge: []bool{true}, MetadataUpdates: [][]byte{[]byte(`{"snoozes":1}`)},
					ScheduledAt: []*time.Time{&at}, State: []rivertype.JobState{wrong},
				})
				if err != nil || len(jobs) != 1 {
					t.Fatalf("%d jobs, %v", len(jobs), err)
				}
				if jobs[0].State != state || !jobs[0].ScheduledAt.Equal(at) {
					t.Errorf("%s, due at %v, want %s and %v", jobs[0].State, jobs[0].ScheduledAt, state, at)
				}
			})
		}
	}
}

func TestAFailedRunIsRepeatedSoonWhateverTheWorkersClockSays(t *testing.T) {
	for name, by := range wrongClocks() {
		t.Run(name, func(t *testing.T) {
			b := setup(t)
			b.submit(0, 1)
			b.exec("ALTER TABLE attempts ADD CONSTRAINT nothing_goes CHECK (false) NOT VALID")
			b.run(b.skewedClient(by))
			testdb.Await(b.t, "a run that is repeated", func() bool {
				return b.count("river_job WHERE kind = $1 AND cardinality(errors) >= 2", DeliverKind) == 1
			})
			if n := b.count("river_job WHERE kind = $1 AND scheduled_at > now() + interval '5 minutes'", DeliverKind); n != 0 {
				t.Error("the job waits until the worker's clock is right")
			}
			b.exec("ALTER TABLE attempts DROP CONSTRAINT nothing_goes")
			b.waitSucceeded(1)
		})
	}
}

func TestTheClientSweepsByItselfWhateverItsClockSays(t *testing.T) {
	for name, by := range wrongClocks() {
		t.Run(name, func(t *testing.T) {
			b := setup(t)
			b.submit(0, 3)
			b.exec("UPDATE operations SET next_attempt_at = now() - interval '1 hour'")
			b.exec("DELETE FROM river_job")
			b.run(b.skewedClient(by))
			b.waitSucceeded(3)
		})
	}
}

// River's driver takes the inserting machine's clock for jobs without a time.
func TestAnInsertedJobIsDueByTheDatabasesClock(t *testing.T) {
	b := setup(t)
	for name, tc := range map[string]struct {
		after time.Duration // the database's now
		state rivertype.JobState
	}{
		"now": {0, rivertype.JobStateAvailable}, "past": {-time.Hour, rivertype.JobStateAvailable}, "future": {time.Hour, rivertype.JobStateScheduled},
	} {
		var now, at time.Time
		err := pgx.BeginFunc(t.Context(), b.pool, func(tx pgx.Tx) error {
			if err := tx.QueryRow(t.Context(), "SELECT now()").Scan(&now); err != nil {
				return err
			}
			return b.inserter.InsertDeliveries(t.Context(), tx, []uuid.UUID{uuid.New()}, now.Add(tc.after))
		})
		if err != nil {
			t.Fatal(err)
		}
		b.scan(&at, "SELECT scheduled_at FROM river_job WHERE state = $1", tc.state)
		if want := now.Add(max(tc.after, 0)); !at.Equal(want) {
			t.Errorf("%s: due at %v, want %v", name, at, want)
		}
		b.exec("DELETE FROM river_job")
	}
	var now, at time.Time
	err := pgx.BeginFunc(t.Context(), b.pool, func(tx pgx.Tx) error {
		if err := tx.QueryRow(t.Context(), "SELECT now()").Scan(&now); err != nil {
			return err
		}
		return b.inserter.InsertDeliveries(t.Context(), tx, []uuid.UUID{uuid.New()}, time.Time{})
	})
	if err != nil {
		t.Fatal(err)
	}
	b.scan(&at, "SELECT scheduled_at FROM river_job WHERE state = 'available'")
	if !at.Equal(now) {
		t.Errorf("without a time: due at %v, want the database's %v", at, now)
	}
}

// The rescuer reads its machine's clock directly, so what it asks of the pilot is asked here.
func TestOnlyJobsThatAreDeadByTheDatabasesClockAreRescued(t *testing.T) {
	const rescueAfter = 2 * time.Minute
	for name, by := range wrongClocks() {
		t.Run(name, func(t *testing.T) {
			b := setup(t)
			p := &pilot{kinds: crmKinds(), rescueAfter: rescueAfter, now: time.Now}
			exec := newDriver(b.pool, p).GetExecutor()
			var dead, live int64
			const run = `INSERT INTO river_job (kind, args, max_attempts, state, attempt, attempted_at)
			             VALUES ($1, '{}', 5, 'running', 1, now() - make_interval(mins => $2)) RETURNING id`
			b.scan(&dead, run, DeliverKind, 3)
			b.scan(&live, run, DeliverKind, 1)
			wrong := time.Now().Add(by)
			horizon := wrong.Add(-rescueAfter)

			stuck, err := p.JobGetStuck(t.Context(), exec, &riverdriver.JobGetStuckParams{Max: 10, StuckHorizon: horizon})
			if err != nil {
				t.Fatal(err)
			}
			if len(stuck) != 1 || stuck[0].ID != dead {
				t.Fatalf("%d jobs are stuck, want just the dead one", len(stuck))
			}
			if age := wrong.Sub(*stuck[0].AttemptedAt); age < 2*time.Minute || age > 8*time.Minute {
				t.Errorf("the rescuer sees a run of %v", age)
			}
			_, err = p.JobRescueMany(t.Context(), exec, &riverdriver.JobRescueManyParams{
				ID: []int64{dead, live}, Error: [][]byte{[]byte(`{}`), []byte(`{}`)}, FinalizedAt: []*time.Time{nil, nil},
				ScheduledAt: []time.Time{wrong, wrong}, State: []string{"retryable", "retryable"}, StuckHorizon: horizon,
			})
			if err != nil {
				t.Fatal(err)
			}
			if n := b.count("river_job WHERE id = $1 AND state = 'retryable' AND scheduled_at BETWEEN now() - interval '1 minute' AND now()", dead); n != 1 {
				t.Error("the dead job is not to be repeated at once")
			}
			if n := b.count("river_job WHERE id = $1 AND state = 'running'", live); n != 1 {
				t.Error("the live job is taken for dead")
			}
		})
	}
}
