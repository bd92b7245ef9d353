package invoice

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"invoicebridge/internal/problem"
	"invoicebridge/internal/tenantdb"
	"invoicebridge/internal/testdb"
)

// gate stops every transaction that inserts an invoice until it is opened.
type gate struct {
	e    erp
	conn *pgxpool.Conn
}

const gateLock = 42 // of the test's own database

func (e erp) closeGate() gate {
	e.t.Helper()
	e.exec(fmt.Sprintf(`
		CREATE FUNCTION gate() RETURNS trigger LANGUAGE plpgsql AS $$
		BEGIN PERFORM pg_advisory_xact_lock_shared(%d); RETURN NEW; END $$;
		CREATE TRIGGER gate BEFORE INSERT ON invoices FOR EACH ROW EXECUTE FUNCTION gate()`, gateLock))
	conn, err := e.pool.Acquire(context.Background())
	if err != nil {
		e.t.Fatal(err)
	}
	e.t.Cleanup(conn.Release)
	if _, err := conn.Exec(context.Background(), "SELECT pg_advisory_lock($1)", gateLock); err != nil {
		e.t.Fatal(err)
	}
	return gate{e, conn}
}

func (g gate) open() {
	g.e.t.Helper()
	if _, err := g.conn.Exec(context.Background(), "SELECT pg_advisory_unlock($1)", gateLock); err != nil {
		g.e.t.Fatal(err)
	}
}

// awaitWaiting waits until n transactions stand at the gate.
func (g gate) awaitWaiting(n int) {
	g.e.t.Helper()
	g.e.await(n, "SELECT count(*) FROM "+atGate)
}

// atGate are the locks of those that wait at this database's gate: a server has the databases of many tests.
const atGate = `pg_locks WHERE locktype = 'advisory' AND NOT granted
	AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`

// await waits until a query answers n.
func (e erp) await(n int, sql string) {
	e.t.Helper()
	testdb.Await(e.t, fmt.Sprintf("%s gives %d", sql, n), func() bool { return e.count(sql) == n })
}

// awaitBlocked waits until n transactions wait for the end of another transaction.
func (e erp) awaitBlocked(n int) {
	e.t.Helper()
	e.await(n, "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock' "+
		"AND wait_event = 'transactionid'")
}

// background runs requests beside the test and gives their results when asked.
func (e erp) background(ctx context.Context, cmds ...Command) func() []Result {
	done := make(chan struct{})
	var results []Result
	go func() {
		defer close(done)
		results = e.Issue(ctx, cmds)
	}()
	return func() []Result {
		e.t.Helper()
		select {
		case <-done:
			return results
		case <-time.After(30 * time.Second):
			e.t.Fatal("Issue does not end")
			return nil
		}
	}
}

func TestARetryDuringTheFirstRequestIsToldToComeLaterAndThenReplays(t *testing.T) {
	t.Parallel()
	e := setup(t)
	g := e.closeGate()
	first := e.background(t.Context(), command(t, "K1", request(t)))
	g.awaitWaiting(1)
	p := wantProblem(t, e.replica().issue("K1", request(t)), problem.OperationInProgress)
	if p.RetryAfter <= 0 {
		t.Error("no Retry-After")
	}
	// Whether this other request reuses the key can't be seen yet.
	wantRefused(t, e.issue("K1", request(t, "10.00", "900.00")), problem.OperationInProgress)
	g.open()
	if r := first()[0]; r.Err != nil || r.Answer.Replayed {
		t.Fatalf("first: %+v", r)
	}
	if !e.mustIssue("K1", request(t)).Replayed {
		t.Error("the retry made an invoice")
	}
	wantRefused(t, e.issue("K1", request(t, "10.00", "900.00")), problem.IdempotencyKeyReused)
}

func TestARetryThatWaitsForTheFirstRequestGetsItsAnswer(t *testing.T) {
	t.Parallel()
	e := setup(t)
	g := e.closeGate()
	first := e.background(t.Context(), command(t, "K1", request(t)))
	g.awaitWaiting(1)
	second := e.background(t.Context(), command(t, "K1", request(t)))
	other := e.background(t.Context(), command(t, "K1", request(t, "10.00", "900.00")))
	e.awaitBlocked(2)
	g.open()
	want := first()[0]
	if r := second()[0]; r.Err != nil || !r.Answer.Replayed || string(r.Answer.Document) != string(want.Answer.Document) {
		t.Errorf("second: %+v", r)
	}
	wantRefused(t, other()[0], problem.IdempotencyKeyReused)
}

func TestTwoKeysForOneClaimMakeOneInvoice(t *testing.T) {
	t.Parallel()
	for name, limited := range map[string][]string{
		"":                                   nil,
		"that is all its order has room for": {`"role"`, `"order_total":"23.80","role"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			twoKeysForOneClaim(t, limited...)
		})
	}
}

func twoKeysForOneClaim(t *testing.T, limited ...string) {
	e := setup(t)
	g := e.closeGate()
	first := e.background(t.Context(), command(t, "K1", request(t, limited...)))
	g.awaitWaiting(1)
	same := e.background(t.Context(), command(t, "K2", request(t, limited...)))
	dearer := e.background(t.Context(), command(t, "K3", request(t, append(limited, "10.00", "900.00")...)))
	e.awaitBlocked(2) // by the lock of the order
	g.open()
	issued := first()[0].Answer
	for _, c := range []struct {
		result Result
		same   bool
	}{{same()[0], true}, {dearer()[0], false}} {
		p := wantProblem(t, c.result, problem.AlreadyInvoiced)
		want := problem.InvoiceRef{ID: issued.InvoiceID.String(), Number: issued.Number, OperationKey: "K1"}
		if p.SameContent != c.same || *p.Invoice != want {
			t.Errorf("%+v, invoice %+v", p, p.Invoice)
		}
	}
	// The refused keys are as good as new.
	if n := e.count("SELECT count(*) FROM idempotency_records"); n != 1 {
		t.Errorf("%d reservations", n)
	}
	if got := e.mustIssue("K2", orderOf(t, "SO-2")).Number; got != "INV-2026-000002" {
		t.Errorf("a refused invoice left a hole: %s", got)
	}
}

func TestAKilledConnectionLeavesNothingAndTheRetryIssues(t *testing.T) {
	t.Parallel()
	e := setup(t)
	g := e.closeGate()
	first := e.background(t.Context(), command(t, "K1", request(t)))
	g.awaitWaiting(1)
	e.exec("SELECT pg_terminate_backend(pid) FROM " + atGate)
	p := wantProblem(t, first()[0], problem.Unavailable)
	if p.RetryAfter <= 0 {
		t.Error("no Retry-After")
	}
	e.wantNothingStored()
	g.open()
	if a := e.mustIssue("K1", request(t)); a.Replayed || a.Number != "INV-2026-000001" {
		t.Errorf("retry: %+v", a)
	}
}

func TestACallerThatGoesAwayLeavesNothingAndTheRetryIssues(t *testing.T) {
	t.Parallel()
	e := setup(t)
	g := e.closeGate()
	ctx, cancel := context.WithCancel(t.Context())
	first := e.background(ctx, command(t, "K1", request(t)))
	g.awaitWaiting(1)
	cancel()
	if r := first()[0]; !errors.Is(r.Err, context.Canceled) {
		t.Errorf("got %+v", r)
	}
	g.awaitWaiting(0) // the server has let go of the key, though the gate is closed
	e.wantNothingStored()
	g.open()
	if e.mustIssue("K1", request(t)).Replayed {
		t.Error("the retry is a replay")
	}
}

func TestARequestOutOfTimeLeavesNothingAndIsToComeAgain(t *testing.T) {
	t.Parallel()
	e := setup(t)
	g := e.closeGate()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	wantRefused(t, e.background(ctx, command(t, "K1", request(t)))()[0], problem.Unavailable)
	g.awaitWaiting(0)
	e.wantNothingStored()
	g.open()
	if e.mustIssue("K1", request(t)).Replayed {
		t.Error("the retry is a replay")
	}
}

// panicky panics as often as it is told when a statement is about to be sent.
type panicky struct {
	at    string
	times atomic.Int32
}

var _ pgx.BatchTracer = (*panicky)(nil)

func (p *panicky) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	return ctx
}
func (*panicky) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

func (p *panicky) TraceBatchStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceBatchStartData) context.Context {
	for _, q := range data.Batch.QueuedQueries {
		if strings.Contains(q.SQL, p.at) && p.times.Add(-1) >= 0 {
			panic("as told")
		}
	}
	return ctx
}
func (*panicky) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}
func (*panicky) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData)     {}

// panicking is a service on e's database whose connections panic at a statement.
func (e erp) panicking(at string) (*Service, *panicky, *pgxpool.Pool) {
	e.t.Helper()
	cfg, err := pgxpool.ParseConfig(testdb.DSN(e.t, e.pool))
	if err != nil {
		e.t.Fatal(err)
	}
	tracer := &panicky{at: at}
	cfg.ConnConfig.Tracer = tracer
	pool, err := pgxpool.NewWithConfig(e.t.Context(), cfg)
	if err != nil {
		e.t.Fatal(err)
	}
	e.t.Cleanup(pool.Close)
	return NewService(pool, Options{}), tracer, pool
}

func TestAPanicRollsBackAndTheRetryIssues(t *testing.T) {
	t.Parallel()
	e := setup(t)
	s, tracer, pool := e.panicking("InvoiceLineInsert") // the locks are taken already, the commit has not begun
	tracer.times.Store(1)
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic was swallowed")
			}
		}()
		s.Issue(t.Context(), []Command{command(t, "K1", request(t))})
	}()
	e.wantNothingStored()
	// The pool closes a connection with an open transaction by itself, a moment later.
	testdb.Await(t, "no connection is lost", func() bool { return pool.Stat().AcquiredConns() == 0 })
	if a := e.mustIssue("K1", request(t)); a.Replayed || a.Number != "INV-2026-000001" {
		t.Errorf("retry: %+v", a)
	}
}

func TestADatabaseThatIsAwayIsUnavailable(t *testing.T) {
	t.Parallel()
	pool, err := pgxpool.New(t.Context(), "postgres://nobody@127.0.0.1:1/none")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	s := NewService(pool, Options{})
	for _, r := range s.Issue(t.Context(), []Command{command(t, "K1", request(t)), command(t, "K2", orderOf(t, "SO-2"))}) {
		if p := wantProblem(t, r, problem.Unavailable); p.RetryAfter <= 0 || strings.Contains(p.Detail, "127.0.0.1") {
			t.Errorf("%+v", p)
		}
	}
	if _, _, err := s.List(t.Context(), tenant, Filter{}, Page{}); !problem.Is(err, problem.Unavailable) {
		t.Errorf("list: %v", err)
	}
}

func (e erp) wantNothingStored() {
	e.t.Helper()
	for _, table := range []string{
		"invoices", "invoice_lines", "idempotency_records", "invoice_counters", "order_balances", "key_conflicts",
	} {
		if n := e.count("SELECT count(*) FROM " + table); n != 0 {
			e.t.Errorf("%d rows in %s", n, table)
		}
	}
}

// failTries makes the first n transactions that insert an invoice fail with a SQLSTATE, at the insert or at COMMIT.
func (e erp) failTries(n int, sqlstate, timing string) {
	e.t.Helper()
	e.exec("CREATE SEQUENCE tries; GRANT USAGE ON SEQUENCE tries TO " + tenantdb.Role) // a sequence counts on through rollbacks
	e.exec(fmt.Sprintf(`
		CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$
		BEGIN
			IF nextval('tries') <= %d THEN RAISE EXCEPTION 'as told' USING ERRCODE = '%s'; END IF;
			RETURN NULL;
		END $$`, n, sqlstate))
	e.exec("CREATE CONSTRAINT TRIGGER fail AFTER INSERT ON invoices " + timing + " FOR EACH ROW EXECUTE FUNCTION fail()")
}

const (
	atOnce   = "NOT DEFERRABLE"
	atCommit = "DEFERRABLE INITIALLY DEFERRED"
)

// Case M7.
func TestAFailedSerializationRunsTheWholeTransactionAgain(t *testing.T) {
	t.Parallel()
	for _, sqlstate := range []string{serializationFailure, deadlockDetected} {
		for _, timing := range []string{atOnce, atCommit} {
			t.Run(sqlstate+" "+timing, func(t *testing.T) {
				t.Parallel()
				e := setup(t)
				e.failTries(maxTries-1, sqlstate, timing)
				if a := e.mustIssue("K1", request(t)); a.Replayed || a.Number != "INV-2026-000001" {
					t.Errorf("%+v", a)
				}
				if n := e.count("SELECT last_value FROM tries"); n != maxTries {
					t.Errorf("%d tries", n)
				}
				if e.invoices() != 1 {
					t.Error("not one invoice")
				}
			})
		}
	}
}

func TestAfterTheLastTryTheCallerIsToComeAgain(t *testing.T) {
	t.Parallel()
	e := setup(t)
	e.failTries(maxTries, serializationFailure, atCommit)
	p := wantProblem(t, e.issue("K1", request(t)), problem.Unavailable)
	if p.RetryAfter <= 0 {
		t.Error("no Retry-After")
	}
	e.wantNothingStored()
	if a := e.mustIssue("K1", request(t)); a.Replayed || a.Number != "INV-2026-000001" {
		t.Errorf("%+v", a)
	}
}

func TestAFailedGroupGoesOneByOne(t *testing.T) {
	t.Parallel()
	e := setup(t)
	e.failTries(1, deadlockDetected, atOnce)
	for i, r := range e.Issue(t.Context(), []Command{
		command(t, "K1", orderOf(t, "SO-1")), command(t, "K2", orderOf(t, "SO-2")), command(t, "K3", orderOf(t, "SO-3")),
	}) {
		if r.Err != nil || r.Answer.Number != fmt.Sprintf("INV-2026-%06d", i+1) {
			t.Errorf("%d: %+v", i, r)
		}
	}
}

// Each call touches the same two orders, half of them in the opposite sequence: without one order of locks they would
// wait for each other.
func TestOrdersInOppositeSequenceDoNotDeadlock(t *testing.T) {
	t.Parallel()
	e := setup(t)
	replicas := []erp{e, e.replica()}
	part := func(order string, sequence int) Command {
		r := request(t, `"role":"final"`, fmt.Sprintf(`"role":"partial","sequence":%d`, sequence), "SO-1001", order)
		return command(t, fmt.Sprintf("%s-%d", order, sequence), r)
	}
	var wait sync.WaitGroup
	for i := 1; i <= 50; i++ {
		cmds := []Command{part("A", i), part("B", i)}
		if i%2 == 0 {
			cmds[0], cmds[1] = cmds[1], cmds[0]
		}
		wait.Go(func() {
			for _, r := range replicas[i%2].Issue(context.Background(), cmds) {
				if r.Err != nil {
					t.Error(r.Err)
				}
			}
		})
	}
	wait.Wait()
	e.wantNumbers(tenant, "INV", 100)
	if n := e.count("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"); n != 0 {
		t.Errorf("%d deadlocks", n)
	}
}

// wantNumbers checks that a series of 2026 is 1 to n without a hole or a double.
func (e erp) wantNumbers(tenant, prefix string, n int) {
	e.t.Helper()
	got := e.count(`SELECT count(*) FROM invoices i JOIN generate_series(1, $3::bigint) AS s ON i.series_number = s
		WHERE tenant_id = $1 AND series_prefix = $2 AND series_year = 2026
		  AND number = $2 || '-2026-' || lpad(s::text, 6, '0')`, tenant, prefix, n)
	all := e.count("SELECT count(*) FROM invoices WHERE tenant_id = $1 AND series_prefix = $2", tenant, prefix)
	if got != n || all != n {
		e.t.Errorf("series %s of %s: %d of %d numbers, %d invoices", prefix, tenant, got, n, all)
	}
}

// A key or an order that is busy must not hold up the others of its group.
func TestABlockedMemberDoesNotHoldUpItsGroup(t *testing.T) {
	t.Parallel()
	for name, block := range map[string]string{
		"its key": `INSERT INTO idempotency_records VALUES ('t1', 'issue_invoice', 'K1', 1, sha256(''), 'processing', NULL, NULL,
			now(), NULL, now() + interval '1 day')`,
		"its order": `INSERT INTO order_balances VALUES ('t1', 'crm-1', 'SO-1', 'EUR', 0, 0)`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := setup(t)
			tx, err := e.pool.Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = tx.Rollback(context.Background()) }()
			if _, err := tx.Exec(t.Context(), block); err != nil {
				t.Fatal(err)
			}
			results := e.background(t.Context(), command(t, "K1", orderOf(t, "SO-1")),
				command(t, "K2", orderOf(t, "SO-2")), command(t, "K3", orderOf(t, "SO-3")))
			e.await(2, "SELECT count(*) FROM invoices") // while the block lasts
			if err := tx.Rollback(t.Context()); err != nil {
				t.Fatal(err)
			}
			for i, want := range []string{"INV-2026-000003", "INV-2026-000001", "INV-2026-000002"} {
				if r := results()[i]; r.Err != nil || r.Answer.Number != want {
					t.Errorf("%d: %+v, want %s", i, r, want)
				}
			}
		})
	}
}

// A waiting request says at each step how long it is willing to wait: short for its key, longer for the rest.
func TestPatienceForAKeyDoesNotLimitTheWaitForOrderAndCounter(t *testing.T) {
	t.Parallel()
	e := setup(t)
	e.exec("CREATE TABLE patience (at text, lock_timeout text); GRANT INSERT ON patience TO " + tenantdb.Role)
	e.exec(`CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$
		BEGIN INSERT INTO patience VALUES (TG_TABLE_NAME, current_setting('lock_timeout')); RETURN NULL; END $$`)
	for _, table := range []string{"idempotency_records", "order_balances", "invoice_counters"} {
		e.exec("CREATE TRIGGER note AFTER INSERT ON " + table + " FOR EACH ROW EXECUTE FUNCTION note()")
	}
	e.mustIssue("K1", request(t))
	for table, want := range map[string]string{
		"idempotency_records": "2s", "order_balances": "10s", "invoice_counters": "10s",
	} {
		if n := e.count("SELECT count(*) FROM patience WHERE at = $1 AND lock_timeout = $2", table, want); n != 1 {
			t.Errorf("%s does not wait %s", table, want)
		}
	}
}
