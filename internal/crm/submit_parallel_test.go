package crm

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"invoicebridge/internal/problem"
	"invoicebridge/internal/tenantdb"
	"invoicebridge/internal/testdb"
)

func TestCopiesInParallelAreOneOrderOneOperationOneJob(t *testing.T) {
	s := setupSubmit(t)
	var wg sync.WaitGroup
	outcomes := make([]Outcome, 20)
	for i := range outcomes {
		wg.Go(func() {
			o := anOrder("SO-1", "10.00")
			if i%2 == 0 {
				o = o.as("m-1") // half of them with one message id, half without
			}
			outcomes[i] = s.takesOrReports(o).Outcome
		})
	}
	wg.Wait()
	s.counts(1, 1, 1)
	slices.Sort(outcomes)
	want := append(slices.Repeat([]Outcome{OutcomeAlreadyThere}, len(outcomes)-1), OutcomeCreated)
	if !slices.Equal(outcomes, want) {
		t.Errorf("outcomes are %v", outcomes)
	}
}

func TestVersionsInParallelLeaveTheNewest(t *testing.T) {
	s := setupSubmit(t)
	var wg sync.WaitGroup
	for v := int64(1); v <= 20; v++ {
		wg.Go(func() { s.takesOrReports(anOrder("SO-1", fmt.Sprint(v)).at(v)) })
	}
	wg.Wait()
	s.counts(1, 1, 1)
	if s.count("orders WHERE version = 20") != 1 || s.count("operations WHERE order_version = 20") != 1 {
		t.Error("an older version is left")
	}
}

func TestOverlappingCallsInOppositeOrderDoNotDeadlock(t *testing.T) {
	s := setupSubmit(t)
	for round := range 3 {
		orders := manyOrders(400)
		for i := range orders {
			orders[i] = orders[i].at(int64(round + 1)).as("")
			orders[i].Note = fmt.Sprint(round) // from the second round on the calls change what is there
		}
		backwards := slices.Clone(orders)
		slices.Reverse(backwards)
		var wg sync.WaitGroup
		for _, call := range [][]Order{orders[:300], backwards[:300], orders[100:], backwards} {
			wg.Go(func() {
				if _, err := s.submitOnce(context.Background(), testTenant, ChannelImport, prepare(call), SubmitOptions{}); err != nil {
					t.Errorf("round %d: %v", round, err) // submitOnce: a deadlock would not be run again
				}
			})
		}
		wg.Wait()
	}
	s.counts(400, 400, 400)
}

func TestTransactionBrokenOffByTheDatabaseIsRunAgainWhole(t *testing.T) {
	s := setupSubmit(t)
	s.breakOff(submitTries - 1)
	s.takes(anOrder("SO-1", "10.00"), OutcomeCreated)
	s.counts(1, 1, 1)
}

func TestTransactionBrokenOffAgainAndAgainIsUnavailable(t *testing.T) {
	s := setupSubmit(t)
	s.breakOff(submitTries)
	_, err := s.Submit(t.Context(), testTenant, ChannelAPI, []Order{anOrder("SO-1", "10.00")}, SubmitOptions{})
	if p := problem.As(err); p == nil || p.Type != problem.Unavailable || p.RetryAfter <= 0 {
		t.Errorf("error is %v", err)
	}
	s.counts(0, 0, 0)
}

// breakOff lets the database end the next n transactions at their COMMIT, as it does on a serialization failure.
func (s *submitSetup) breakOff(n int) {
	s.t.Helper()
	s.exec("CREATE SEQUENCE broken_off; GRANT USAGE ON SEQUENCE broken_off TO " + tenantdb.Role) // counts on although the transactions are rolled back
	s.exec(fmt.Sprintf(`CREATE FUNCTION break_off() RETURNS trigger LANGUAGE plpgsql AS $$
		BEGIN
			IF nextval('broken_off') <= %d THEN RAISE EXCEPTION 'broken off' USING ERRCODE = 'serialization_failure'; END IF;
			RETURN NULL;
		END $$`, n))
	s.exec(`CREATE CONSTRAINT TRIGGER break_off AFTER INSERT ON orders DEFERRABLE INITIALLY DEFERRED
		FOR EACH ROW EXECUTE FUNCTION break_off()`)
}

func TestOtherErrorsOfTheDatabaseAreNotRunAgain(t *testing.T) {
	for code, want := range map[string]bool{"40001": true, "40P01": true, "23505": false, "53300": false} {
		if got := brokenOff(fmt.Errorf("step: %w", &pgconn.PgError{Code: code})); got != want {
			t.Errorf("%s: %v", code, got)
		}
	}
}

func TestTenThousandOrdersInOneCall(t *testing.T) {
	s := setupSubmit(t)
	orders := manyOrders(10_000)
	for _, sub := range s.submit(orders...) {
		if sub.Outcome != OutcomeCreated {
			t.Fatalf("%s is %s", sub.Order, sub.Outcome)
		}
	}
	s.counts(10_000, 10_000, 10_000)
	for i, sub := range s.submit(orders...) {
		if sub.Outcome != OutcomeAlreadyThere || len(sub.Operations) != 1 {
			t.Fatalf("repeat of %s is %s", orders[i].Order, sub.Outcome)
		}
	}
	for i := range orders {
		orders[i].Note, orders[i].MessageID = "changed", ""
	}
	for _, sub := range s.submit(orders...) {
		if sub.Outcome != OutcomeChanged {
			t.Fatalf("change of %s is %s", sub.Order, sub.Outcome)
		}
	}
	s.counts(10_000, 10_000, 10_000)
	if s.count("operations WHERE order_version = 2 AND sha256(request) = request_hash") != 10_000 {
		t.Error("not every unsent request was changed")
	}
}

// untilSomebodyWaitsForALock returns when a session of this test's database is blocked.
func (s *submitSetup) untilSomebodyWaitsForALock() {
	s.t.Helper()
	testdb.Await(s.t, "somebody waits for a lock", func() bool {
		return s.count("pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'") > 0
	})
}
