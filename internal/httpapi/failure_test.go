package httpapi_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"invoicebridge/internal/httpapi"
	"invoicebridge/internal/invoice"
	"invoicebridge/internal/logctx"
	"invoicebridge/internal/problem"
	"invoicebridge/internal/testdb"
)

// outage shuts the test's database to everybody until end is called.
func (e erp) outage() (end func()) {
	e.t.Helper()
	config := e.pool.Config().ConnConfig.Copy()
	name := pgx.Identifier{config.Database}.Sanitize()
	config.Database = "postgres"
	admin, err := pgx.ConnectConfig(context.Background(), config)
	if err != nil {
		e.t.Fatal(err)
	}
	run := func(sql string, args ...any) {
		e.t.Helper()
		if _, err := admin.Exec(context.Background(), sql, args...); err != nil {
			e.t.Fatalf("%s: %v", sql, err)
		}
	}
	run("ALTER DATABASE " + name + " ALLOW_CONNECTIONS false")
	run("SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = $1", e.pool.Config().ConnConfig.Database)
	return func() {
		e.t.Helper()
		run("ALTER DATABASE " + name + " ALLOW_CONNECTIONS true")
		if err := admin.Close(context.Background()); err != nil {
			e.t.Error(err)
		}
		e.pool.Reset()
	}
}

func (a answer) wantRetryAfter() {
	a.t.Helper()
	if seconds, err := strconv.Atoi(a.header.Get("Retry-After")); err != nil || seconds < 1 {
		a.t.Errorf("Retry-After is %q, want whole seconds, at least 1", a.header.Get("Retry-After"))
	}
}

// D1 (a)
func TestDatabaseAwayIs503AndLeavesTheKeyFree(t *testing.T) {
	t.Parallel()
	e := startERP(t)
	end := e.outage()
	for range 3 {
		a := e.post("k-1", base)
		a.wantProblem(503, problem.Unavailable)
		a.wantRetryAfter()
	}
	e.get("reader", "/v1/invoices").wantProblem(503, problem.Unavailable)
	e.get("", "/readyz").wantProblem(503, problem.Unavailable)
	if a := e.get("", "/healthz"); a.status != 200 {
		t.Errorf("the process is alive, but /healthz says %d", a.status)
	}
	end()
	testdb.Await(t, "ready again", func() bool { return e.get("", "/readyz").status == 200 })
	e.wantStored(0)
	e.post("k-1", base).wantFirst()
	e.wantStored(1)
}

// standIn lets a test decide what happens where invoices are issued.
type standIn struct {
	httpapi.Invoices
	issue func(ctx context.Context, cmds []invoice.Command) []invoice.Result
}

func (s standIn) Issue(ctx context.Context, cmds []invoice.Command) []invoice.Result {
	return s.issue(ctx, cmds)
}

// D1 (d), B3 (c): the panic comes in the middle of the transaction, when the number is taken already.
func TestPanicIs500WithTheTransactionRolledBackAndLeavesTheKeyFree(t *testing.T) {
	t.Parallel()
	var log logBuffer
	tracer := &panicAfterNumber{}
	var pool *pgxpool.Pool
	e := serveERP(t, func(d *httpapi.ERPDeps) {
		pool = tracedPool(t, d.Pool, tracer)
		d.Invoices = invoice.NewBatcher(invoice.NewService(pool, invoice.Options{}))
		d.Logger = slog.New(logctx.Handler{Handler: slog.NewJSONHandler(&log, nil)})
	})
	a := e.post("k-1", base)
	d := a.wantProblem(500, problem.Internal)
	for _, secret := range []string{"panic", "thrown by the test", "goroutine", ".go", "INSERT"} {
		if strings.Contains(string(a.body), secret) {
			t.Errorf("the answer tells %q: %s", secret, a.body)
		}
	}
	if !tracer.done {
		t.Fatal("no number was taken: the test did not test anything")
	}
	e.wantStored(0)
	if got := strings.Count(log.String(), "thrown by the test"); got != 1 {
		t.Errorf("the cause was logged %d times, want once:\n%s", got, log.String())
	}
	if id := strings.TrimPrefix(d.Instance, "urn:uuid:"); !strings.Contains(log.String(), id) || !strings.Contains(log.String(), `"operation_key":"k-1"`) {
		t.Errorf("the log lacks the request's id or the key:\n%s", log.String())
	}
	// The pool closes a connection with an open transaction by itself, a moment later.
	testdb.Await(t, "no connection is held", func() bool { return pool.Stat().AcquiredConns() == 0 })
	if got := e.post("k-1", base).wantFirst().invoice().Number; got != "INV-2026-000001" {
		t.Errorf("the panic left a hole in the numbers: %s", got)
	}
}

// logBuffer keeps log lines; a request's last one is written when the caller has the answer already.
type logBuffer struct {
	mu    sync.Mutex
	lines bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.lines.Write(p)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.lines.String()
}

// panicAfterNumber throws once, after the database has taken a number.
type panicAfterNumber struct{ done bool }

var _ pgx.BatchTracer = (*panicAfterNumber)(nil)

func (*panicAfterNumber) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	return ctx
}
func (*panicAfterNumber) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

func (*panicAfterNumber) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	return ctx
}

func (p *panicAfterNumber) TraceBatchQuery(_ context.Context, _ *pgx.Conn, q pgx.TraceBatchQueryData) {
	if !p.done && q.Err == nil && strings.Contains(q.SQL, "INSERT INTO invoice_counters") {
		p.done = true
		panic("thrown by the test")
	}
}
func (*panicAfterNumber) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}

func tracedPool(t testing.TB, like *pgxpool.Pool, tracer pgx.QueryTracer) *pgxpool.Pool {
	t.Helper()
	config := like.Config()
	config.ConnConfig.Tracer = tracer
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

func TestUnexpectedErrorIsLoggedOnceAndNotTold(t *testing.T) {
	t.Parallel()
	var log logBuffer
	e := serveERP(t, func(d *httpapi.ERPDeps) {
		d.Logger = slog.New(slog.NewJSONHandler(&log, nil))
		d.Invoices = standIn{d.Invoices, func(context.Context, []invoice.Command) []invoice.Result {
			return []invoice.Result{{Err: fmt.Errorf("insert: %w", errors.New(`null value in column "secret_column"`))}}
		}}
	})
	a := e.post("k-1", base)
	a.wantProblem(500, problem.Internal)
	if strings.Contains(string(a.body), "secret_column") {
		t.Errorf("the cause is told: %s", a.body)
	}
	if got := strings.Count(log.String(), "secret_column"); got != 1 {
		t.Errorf("the cause was logged %d times, want once:\n%s", got, log.String())
	}
}

// A machine that slept in the middle of a transaction finds it ended (postgres.OpenPool asks for that).
func TestATransactionThatTheServerHasEndedMeanwhileIs503(t *testing.T) {
	t.Parallel()
	e := serveERP(t, func(*httpapi.ERPDeps) {})
	session, err := e.pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer session.Release()
	var pid int
	if err := session.QueryRow(t.Context(), "SELECT pg_backend_pid()").Scan(&pid); err != nil {
		t.Fatal(err)
	}
	if err := session.Conn().PgConn().Exec(t.Context(), "SET idle_in_transaction_session_timeout = 1; BEGIN").Close(); err != nil {
		t.Fatal(err)
	}
	testdb.Await(t, "the session is ended", func() bool {
		var there bool
		err := e.pool.QueryRow(t.Context(), "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE pid = $1)", pid).Scan(&there)
		return err == nil && !there
	})
	_, err = session.Exec(t.Context(), "SELECT 1")
	if err == nil {
		t.Fatal("the transaction goes on")
	}
	e = serveERP(t, func(d *httpapi.ERPDeps) {
		d.Invoices = standIn{d.Invoices, func(context.Context, []invoice.Command) []invoice.Result { return []invoice.Result{{Err: err}} }}
	})
	e.post("k-1", base).wantProblem(503, problem.Unavailable)
}

func TestRequestThatRunsIntoItsTimeLimitIs503(t *testing.T) {
	t.Parallel()
	e := serveERP(t, func(d *httpapi.ERPDeps) {
		d.RequestTimeout = 200 * time.Millisecond
		d.Invoices = standIn{d.Invoices, func(ctx context.Context, _ []invoice.Command) []invoice.Result {
			<-ctx.Done()
			return []invoice.Result{{Err: ctx.Err()}}
		}}
	})
	a := e.post("k-1", base)
	a.wantProblem(503, problem.Unavailable)
	a.wantRetryAfter()
}

func TestFirstRequestStillAtWorkIsOperationInProgress(t *testing.T) {
	t.Parallel()
	e := startERP(t)
	ctx := t.Context()
	other, err := e.pool.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Rollback(context.Background()) }()
	_, err = other.Exec(ctx, `INSERT INTO idempotency_records (tenant_id, operation, key, fingerprint_version, fingerprint,
		status, answer_status, resource_id, completed_at, expires_at)
		VALUES ('t1', 'issue_invoice', 'k-1', 1, sha256(''), 'succeeded', 201, gen_random_uuid(), now(), now() + interval '1 day')`)
	if err != nil {
		t.Fatal(err)
	}
	a := e.post("k-1", base)
	a.wantProblem(409, problem.OperationInProgress)
	a.wantRetryAfter()
	e.postAs("t2", "k-1", base).wantFirst() // another tenant's key is another key
	if err := other.Rollback(ctx); err != nil {
		t.Fatal(err)
	}
	e.post("k-1", base).wantFirst()
}

// B1
func TestParallelRequestsWithOneKeyIssueOneInvoice(t *testing.T) {
	t.Parallel()
	e := startERP(t)
	replicas := []erp{e, e.replica()}
	for round := range 10 {
		key, body := fmt.Sprintf("k-%d", round), forOrder(fmt.Sprintf("SO-%d", round))
		answers := make([]answer, 50)
		var group sync.WaitGroup
		for i := range answers {
			group.Go(func() { answers[i] = replicas[i%2].post(key, body) })
		}
		group.Wait()
		firsts := 0
		last := e.post(key, body)
		for _, a := range answers {
			switch {
			case a.status == http.StatusCreated && a.header.Get("Idempotent-Replayed") == "":
				firsts++
				last.wantSame(a)
			case a.status == http.StatusCreated:
				a.wantSame(last)
			default:
				a.wantProblem(409, problem.OperationInProgress)
			}
		}
		if firsts != 1 {
			t.Errorf("round %d: %d first answers, want 1", round, firsts)
		}
	}
	e.wantStored(10)
}

// M3 (a), B3 (d)
func TestRequestsWhoseCallersGoAwayLeaveNothingBehind(t *testing.T) {
	t.Parallel()
	var pool *pgxpool.Pool
	e := serveERP(t, func(d *httpapi.ERPDeps) { pool = d.Pool })
	random := rand.New(rand.NewPCG(1, 2))
	var group sync.WaitGroup
	slots := make(chan struct{}, 20)
	for i := range 1000 {
		patience := time.Duration(random.IntN(8000)) * time.Microsecond
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			r := e.postRequest("writer", fmt.Sprintf("k-%d", i), []byte(forOrder(fmt.Sprintf("SO-%d", i)))).WithContext(ctx)
			if response, err := http.DefaultTransport.RoundTrip(r); err == nil {
				_, _ = io.Copy(io.Discard, response.Body)
				response.Body.Close()
			}
		})
	}
	group.Wait()
	testdb.Await(t, "all connections given back", func() bool { return pool.Stat().AcquiredConns() == 0 })
	testdb.Await(t, "no transaction left open", func() bool {
		return e.count("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND state LIKE 'idle in transaction%'") == 0
	})
	e.post("healthy", forOrder("healthy")).wantFirst()
	issued := e.count("SELECT count(*) FROM invoices")
	if last := e.count("SELECT last_number FROM invoice_counters"); last != issued {
		t.Errorf("%d invoices, but the last number is %d: there is a hole", issued, last)
	}
	e.wantStored(issued)
	t.Logf("%d of 1000 requests were carried out before their callers went away", issued-1)
}

// M3 (b), (d)
func TestNeitherCreatesAsManyAsConnectionsNorRefusalsKeepOne(t *testing.T) {
	t.Parallel()
	var pool *pgxpool.Pool
	e := serveERP(t, func(d *httpapi.ERPDeps) {
		pool = d.Pool
		d.Invoices = invoice.NewService(pool, invoice.Options{}) // a transaction for each: none shares one
	})
	most, issued := int(pool.Config().MaxConns), 0
	for round, n := range []int{most, most + 1} {
		var group sync.WaitGroup
		for i := range n {
			group.Go(func() { e.post(fmt.Sprint(round, "-", i), forOrder(fmt.Sprint(round, "-", i))).wantFirst() })
		}
		group.Wait()
		issued += n
	}
	e.wantStored(issued)
	var group sync.WaitGroup
	slots := make(chan struct{}, 50)
	for i := range 500 {
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			e.post("0-0", forOrder(fmt.Sprint("other ", i))).wantProblem(422, problem.IdempotencyKeyReused)
		})
	}
	group.Wait()
	testdb.Await(t, "all connections given back", func() bool { return pool.Stat().AcquiredConns() == 0 })
	if n := e.count("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND state LIKE 'idle in transaction%'"); n != 0 {
		t.Errorf("%d transactions are left open", n)
	}
	e.post("healthy", forOrder("healthy")).wantFirst()
	e.wantStored(issued + 1)
}

func TestCallerThatGoesAwayIsNotCountedAsAFailureOfTheService(t *testing.T) {
	t.Parallel()
	entered := make(chan struct{})
	e := serveERP(t, func(d *httpapi.ERPDeps) {
		d.Invoices = standIn{d.Invoices, func(ctx context.Context, _ []invoice.Command) []invoice.Result {
			close(entered)
			<-ctx.Done()
			return []invoice.Result{{Err: ctx.Err()}}
		}}
	})
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		<-entered
		cancel()
	}()
	if response, err := http.DefaultTransport.RoundTrip(e.postRequest("writer", "k-1", []byte(base)).WithContext(ctx)); err == nil {
		response.Body.Close()
		t.Fatalf("an answer came: %d", response.StatusCode)
	}
	counted := `http_requests_total{method="POST",route="/v1/invoices",status="499"} 1`
	testdb.Await(t, counted, func() bool { return strings.Contains(string(e.get("metrics", "/metrics").body), counted) })
	if metrics := string(e.get("metrics", "/metrics").body); !strings.Contains(metrics, `http_problems_total{type="unavailable"} 0`) {
		t.Error("the service counts itself as unavailable")
	}
}

// Half a connection is enough to read an answer, and an empty 200 would be taken for one.
func TestCallerThatOnlyStopsSendingIsNeverToldAnEmptySuccess(t *testing.T) {
	t.Parallel()
	e := serveERP(t, func(d *httpapi.ERPDeps) {
		d.Invoices = standIn{d.Invoices, func(ctx context.Context, _ []invoice.Command) []invoice.Result {
			<-ctx.Done() // net/http takes the end of the sending half for the end of the caller
			return []invoice.Result{{Err: ctx.Err()}}
		}}
	})
	conn := e.dial()
	defer conn.Close()
	fmt.Fprintf(conn, "POST /v1/invoices HTTP/1.1\r\nHost: erp\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\n"+
		"Idempotency-Key: k-1\r\nContent-Length: %d\r\n\r\n%s", e.tokens["writer"], len(base), base)
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return // nothing at all is an honest answer, too
	}
	defer response.Body.Close()
	if response.StatusCode < 500 {
		t.Errorf("got %s for a request that was not carried out", response.Status)
	}
}
