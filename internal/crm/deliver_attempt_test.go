package crm_test

import (
	"context"
	"errors"
	"net/http"
	"runtime"
	"strings"
	"sync"
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

// endLease makes the running attempt's lease a thing of the past.
func (d *delivery) endLease(id uuid.UUID) {
	d.t.Helper()
	d.exec("UPDATE operations SET lease_until = now() - interval '1 second' WHERE id = $1 AND status = 'processing'", id)
}

// row is everything the database has on an operation.
func (d *delivery) row(id uuid.UUID) string {
	d.t.Helper()
	var text string
	if err := d.pool.QueryRow(context.Background(), `
		SELECT to_jsonb(o)::text || (SELECT jsonb_agg(a ORDER BY number) FROM attempts AS a WHERE operation_id = o.id)::text
		FROM operations AS o WHERE id = $1`, id).Scan(&text); err != nil {
		d.t.Fatal(err)
	}
	return text
}

type result struct {
	next crm.Next
	err  error
}

// begin delivers in the background.
func (d *delivery) begin(ctx context.Context, id uuid.UUID) <-chan result {
	done := make(chan result, 1)
	deliverer := d.deliverer()
	go func() {
		next, err := deliverer.Deliver(ctx, id, nil)
		done <- result{next, err}
	}()
	return done
}

// CASES M3 c.
func TestNoTransactionIsOpenDuringTheCall(t *testing.T) {
	d := setupDelivery(t)
	release := make(chan struct{})
	d.erp.OnPost(func(c *erpsim.Call) { c.HoldUntil(release); c.Send(c.Commit()) })
	id := d.operation("SO-1001")
	done := d.begin(t.Context(), id)
	testdb.Await(t, "the call", func() bool { return len(d.erp.Posts()) == 1 })
	d.wantState(id, "processing", "", "sent")
	var open int
	if err := d.pool.QueryRow(t.Context(), `SELECT count(*) FROM pg_stat_activity
		WHERE datname = current_database() AND pid <> pg_backend_pid() AND xact_start IS NOT NULL`).Scan(&open); err != nil {
		t.Fatal(err)
	}
	if open != 0 || d.pool.Stat().AcquiredConns() != 0 {
		t.Errorf("%d transactions and %d connections are held during the call", open, d.pool.Stat().AcquiredConns())
	}
	close(release)
	if r := <-done; r.err != nil || !r.next.Done {
		t.Errorf("result is %+v", r)
	}
}

// CASES J3.
func TestAnOvertakenAttemptWritesNothing(t *testing.T) {
	d := setupDelivery(t)
	release := make(chan struct{})
	d.erp.OnPost(func(c *erpsim.Call) {
		if c.N == 1 {
			c.HoldUntil(release)
			c.Refuse(http.StatusUnprocessableEntity, problem.InvalidInvoice) // would end the operation as failed
			return
		}
		c.Send(c.Commit())
	})
	id := d.operation("SO-1001")
	first := d.begin(t.Context(), id)
	testdb.Await(t, "the first call", func() bool { return len(d.erp.Posts()) == 1 })
	d.endLease(id)
	d.deliver(id)
	d.wantState(id, "succeeded", "", "overtaken delivered")
	before := d.row(id)
	close(release)
	if r := <-first; r.err != nil || !r.next.Done {
		t.Errorf("the overtaken attempt ends with %+v", r)
	}
	if after := d.row(id); after != before {
		t.Errorf("the overtaken attempt wrote\n%s\nover\n%s", after, before)
	}
	d.wantOneKeyAndBody(id, 2)
	d.wantOneInvoice(id)
}

// The newer attempt is still running when the older one's answer comes at last.
func TestAnOvertakenAttemptWritesNothingOverARunningOne(t *testing.T) {
	d := setupDelivery(t)
	release := map[int]chan struct{}{1: make(chan struct{}), 2: make(chan struct{})}
	d.erp.OnPost(func(c *erpsim.Call) {
		c.HoldUntil(release[c.N])
		if c.N == 1 {
			c.Refuse(http.StatusUnprocessableEntity, problem.InvalidInvoice)
			return
		}
		c.Send(c.Commit())
	})
	id := d.operation("SO-1001")
	first := d.begin(t.Context(), id)
	testdb.Await(t, "the first call", func() bool { return len(d.erp.Posts()) == 1 })
	d.endLease(id)
	second := d.begin(t.Context(), id)
	testdb.Await(t, "the second call", func() bool { return len(d.erp.Posts()) == 2 })
	before := d.row(id)
	close(release[1])
	if r := <-first; r.err != nil || r.next.Done {
		t.Errorf("the overtaken attempt ends with %+v while another is running", r)
	}
	if after := d.row(id); after != before {
		t.Errorf("the overtaken attempt wrote\n%s\nover\n%s", after, before)
	}
	close(release[2])
	if r := <-second; r.err != nil || !r.next.Done {
		t.Errorf("the second attempt ends with %+v", r)
	}
	d.wantState(id, "succeeded", "", "overtaken delivered")
	d.wantOneInvoice(id)
}

// Somebody took the attempt for dead without making another.
func TestAnAttemptThatIsNotRunningAnyMoreWritesNothing(t *testing.T) {
	d := setupDelivery(t)
	release := make(chan struct{})
	d.erp.OnPost(func(c *erpsim.Call) { c.HoldUntil(release); c.Send(c.Commit()) })
	id := d.operation("SO-1001")
	done := d.begin(t.Context(), id)
	testdb.Await(t, "the call", func() bool { return len(d.erp.Posts()) == 1 })
	d.exec("UPDATE operations SET status = 'unknown', lease_until = NULL, next_attempt_at = now() WHERE id = $1", id)
	before := d.row(id)
	close(release)
	if r := <-done; r.err != nil || r.next.Done {
		t.Errorf("result is %+v", r)
	}
	if after := d.row(id); after != before {
		t.Errorf("it wrote\n%s\nover\n%s", after, before)
	}
}

func TestAnOvertakenAttemptDoesNotCompleteTheJob(t *testing.T) {
	d := setupDelivery(t)
	release := make(chan struct{})
	d.erp.OnPost(func(c *erpsim.Call) {
		answer := c.Commit()
		if c.N == 1 {
			c.HoldUntil(release)
		} else {
			answer.Status = http.StatusInternalServerError
		}
		c.Send(answer)
	})
	id := d.operation("SO-1001")
	completed := make(chan struct{}, 1)
	first := make(chan result, 1)
	deliverer := d.deliverer()
	go func() {
		next, err := deliverer.Deliver(context.Background(), id, jobOf(func(context.Context, pgx.Tx) error { completed <- struct{}{}; return nil }))
		first <- result{next, err}
	}()
	testdb.Await(t, "the first call", func() bool { return len(d.erp.Posts()) == 1 })
	d.endLease(id)
	d.deliver(id)
	close(release)
	if r := <-first; r.err != nil || r.next.Done {
		t.Errorf("the overtaken attempt ends with %+v, but the operation is still open", r)
	}
	if len(completed) != 0 {
		t.Error("the job was completed")
	}
	d.wantState(id, "unknown", "server_error", "overtaken lost")
}

func TestOnlyOneOfManyDeliversAtATime(t *testing.T) {
	d := setupDelivery(t)
	release := make(chan struct{})
	d.erp.OnPost(func(c *erpsim.Call) { c.HoldUntil(release); c.Send(c.Commit()) })
	id := d.operation("SO-1001")
	const racers = 8
	results := make(chan result, racers)
	for range racers {
		deliverer := d.deliverer()
		go func() {
			next, err := deliverer.Deliver(context.Background(), id, nil)
			results <- result{next, err}
		}()
	}
	var lease time.Time
	for range racers - 1 {
		r := <-results
		if r.err != nil || r.next.Done {
			t.Fatalf("a loser ends with %+v", r)
		}
		lease = r.next.At
	}
	if time.Until(lease) < d.client.AttemptTimeout {
		t.Errorf("losers are told to come back at %v, while the winner may still be at it", lease)
	}
	close(release)
	if r := <-results; r.err != nil || !r.next.Done {
		t.Errorf("the winner ends with %+v", r)
	}
	d.wantState(id, "succeeded", "", "delivered")
	d.wantOneKeyAndBody(id, 1)
}

// CASES J5.
func TestWaitsUseUpNoAttempt(t *testing.T) {
	d := setupDelivery(t)
	const waits = 200
	d.erp.OnPost(func(c *erpsim.Call) {
		switch {
		case c.N > waits:
			c.Send(c.Commit())
		case c.N%2 == 0:
			c.Refuse(http.StatusServiceUnavailable, problem.Unavailable)
		default:
			c.Refuse(http.StatusConflict, problem.OperationInProgress, "Retry-After", "0")
		}
	})
	id := d.operation("SO-1001")
	deliverer := d.deliverer()
	for range waits + 1 {
		if _, err := deliverer.Deliver(t.Context(), id, nil); err != nil {
			t.Fatal(err)
		}
		d.makeDue(id)
	}
	s := d.state(id)
	if s.Status != "succeeded" || s.Waits != waits || s.Attempt-s.Waits != 1 {
		t.Errorf("%s after %d attempts, %d of them waits", s.Status, s.Attempt, s.Waits)
	}
	d.wantOneInvoice(id)
}

// counts is a crm.DeliveryObserver.
type counts struct {
	mu       sync.Mutex
	attempts map[crm.AttemptOutcome]int
	flagged  map[crm.Reason]int
	groups   map[crm.GroupStep][]int // what each transaction brought further
}

func newCounts() *counts {
	return &counts{attempts: map[crm.AttemptOutcome]int{}, flagged: map[crm.Reason]int{}, groups: map[crm.GroupStep][]int{}}
}

func (c *counts) AttemptEnded(o crm.AttemptOutcome) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.attempts[o]++
}
func (c *counts) OperationFlagged(r crm.Reason) { c.mu.Lock(); defer c.mu.Unlock(); c.flagged[r]++ }
func (c *counts) Committed(s crm.GroupStep, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.groups[s] = append(c.groups[s], n)
}

func TestAfterTheTotalTimeAnOperationIsFlaggedOnce(t *testing.T) {
	for name, tc := range map[string]struct {
		handle         func(*erpsim.Call)
		status, reason string
	}{
		"for ever in progress": {func(c *erpsim.Call) { c.Refuse(http.StatusConflict, problem.OperationInProgress) }, "pending", "waiting"},
		"for ever lost":        {(*erpsim.Call).Reset, "unknown", "no_answer"},
	} {
		t.Run(name, func(t *testing.T) {
			d := setupDelivery(t)
			seen := newCounts()
			d.opts.Observer = seen
			d.erp.OnPost(tc.handle)
			id := d.operation("SO-1001")
			d.deliver(id)
			d.exec("UPDATE operations SET first_sent_at = now() - interval '23 hours 59 minutes' WHERE id = $1", id)
			d.makeDue(id)
			if d.deliver(id).Done || d.state(id).Flagged {
				t.Fatal("flagged before the total time")
			}
			d.exec("UPDATE operations SET first_sent_at = now() - interval '24 hours' WHERE id = $1", id)
			d.makeDue(id)
			if !d.deliver(id).Done {
				t.Error("something is left to do after the total time")
			}
			flagged := d.state(id)
			if flagged.Status != tc.status || flagged.Reason != tc.reason || !flagged.Flagged {
				t.Errorf("state is %+v", flagged)
			}
			d.makeDue(id)
			if !d.deliver(id).Done {
				t.Error("a flagged operation has something left to do")
			}
			if again := d.state(id); again.Attempt != 3 || !again.FlaggedAt.Equal(*flagged.FlaggedAt) {
				t.Errorf("state is %+v after %+v", again, flagged)
			}
			if len(d.erp.Posts()) != 3 || seen.flagged[crm.Reason(tc.reason)] != 1 {
				t.Errorf("%d POSTs, flagged %v", len(d.erp.Posts()), seen.flagged)
			}
		})
	}
}

func TestAnOperationThatWaitedLongForItsFirstAttemptIsStillTried(t *testing.T) {
	d := setupDelivery(t)
	id := d.operation("SO-1001")
	d.exec("UPDATE operations SET created_at = now() - interval '3 days', next_attempt_at = now() - interval '3 days' WHERE id = $1", id)
	d.deliver(id)
	d.wantState(id, "succeeded", "", "delivered")
}

func TestNothingIsSentBeforeItIsDue(t *testing.T) {
	d := setupDelivery(t)
	id := d.operation("SO-1001")
	d.exec("UPDATE operations SET next_attempt_at = now() + interval '1 hour' WHERE id = $1", id)
	next := d.deliver(id)
	if next.Done || time.Until(next.At) < 59*time.Minute {
		t.Errorf("next is %+v", next)
	}
	d.wantState(id, "pending", "", "")
	d.wantOneKeyAndBody(id, 0)
}

func TestAnOperationCancelledBeforeItWasSentIsNotSent(t *testing.T) {
	d := setupDelivery(t)
	id := d.operation("SO-1001")
	d.exec("UPDATE operations SET status = 'cancelled', finished_at = now(), next_attempt_at = NULL WHERE id = $1", id)
	if !d.deliver(id).Done {
		t.Error("a cancelled operation has something left to do")
	}
	d.wantState(id, "cancelled", "", "")
	d.wantOneKeyAndBody(id, 0)
}

func TestAJobWithoutItsOperationIsDone(t *testing.T) {
	d := setupDelivery(t)
	if !d.deliver(uuid.Must(uuid.NewV7())).Done {
		t.Error("not done")
	}
}

func TestDamagedBytesAreNotSent(t *testing.T) {
	d := setupDelivery(t)
	id := d.operation("SO-1001")
	d.exec("UPDATE operations SET request = convert_to(replace(convert_from(request, 'UTF8'), '10', '90'), 'UTF8') WHERE id = $1", id)
	if !d.deliver(id).Done {
		t.Error("not done")
	}
	if s := d.wantState(id, "pending", "request_damaged", "not_sent"); !s.Flagged {
		t.Error("not flagged")
	}
	d.wantOneKeyAndBody(id, 0)
}

func TestAnInterruptedAttemptIsLostAndSoonRepeated(t *testing.T) {
	d := setupDelivery(t)
	d.opts.BackOff = crm.DefaultBackOff()
	d.erp.OnPost(func(c *erpsim.Call) {
		answer := c.Commit()
		if c.N == 1 {
			c.Hold()
			return
		}
		c.Send(answer)
	})
	id := d.operation("SO-1001")
	ctx, cancel := context.WithCancel(t.Context())
	done := d.begin(ctx, id)
	testdb.Await(t, "the call", func() bool { return len(d.erp.Invoices()) == 1 })
	cancel()
	if r := <-done; r.err != nil || r.next.Done {
		t.Errorf("result is %+v", r)
	}
	d.wantState(id, "unknown", "interrupted", "lost")
	d.deliver(id) // due at once
	d.wantState(id, "succeeded", "", "lost replayed")
	d.wantOneInvoice(id)
}

func TestNothingBeginsAfterTheShutdown(t *testing.T) {
	d := setupDelivery(t)
	id := d.operation("SO-1001")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := d.deliverer().Deliver(ctx, id, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v", err)
	}
	d.wantState(id, "pending", "", "")
	d.wantOneKeyAndBody(id, 0)
}

// dying is an ERP on which the calling process dies: nothing of it runs any more, before or after the call.
type dying struct {
	*erpapi.Client
	afterCall bool
}

func (e dying) CreateInvoice(ctx context.Context, token, key string, body []byte) erpapi.Exchange {
	if e.afterCall {
		_ = e.Client.CreateInvoice(ctx, token, key, body)
	}
	runtime.Goexit()
	panic("not reached")
}

// The crash points between the commits of a delivery.
func TestADeathBetweenTheCommitsLosesAndDoublesNothing(t *testing.T) {
	for name, tc := range map[string]struct {
		afterCall bool
		outcomes  string
		posts     int
	}{
		"before the call": {false, "overtaken delivered", 1},
		"after the call":  {true, "overtaken replayed", 2},
	} {
		t.Run(name, func(t *testing.T) {
			d := setupDelivery(t)
			id := d.operation("SO-1001")
			client, err := erpapi.NewClient(d.client)
			if err != nil {
				t.Fatal(err)
			}
			dead := make(chan struct{})
			go func() {
				defer close(dead)
				_, _ = crm.NewDeliverer(d.pool, dying{client, tc.afterCall}, d.opts).Deliver(context.Background(), id, nil)
			}()
			<-dead
			d.wantState(id, "processing", "", "sent")
			if next := d.deliver(id); next.Done || time.Until(next.At) <= 0 {
				t.Errorf("while the lease lasts, next is %+v", next)
			}
			d.endLease(id)
			d.deliver(id)
			d.wantState(id, "succeeded", "", tc.outcomes)
			d.wantOneKeyAndBody(id, tc.posts)
			d.wantOneInvoice(id)
		})
	}
}

// terminate ends the session of the transaction that it is called in.
func terminate(ctx context.Context, tx pgx.Tx) error {
	_, err := tx.Exec(ctx, "SELECT pg_terminate_backend(pg_backend_pid())")
	return err
}

func TestABrokenConnectionDoesNotCostAKnownOutcome(t *testing.T) {
	d := setupDelivery(t)
	id := d.operation("SO-1001")
	tries := 0
	next, err := d.deliverer().Deliver(t.Context(), id, jobOf(func(ctx context.Context, tx pgx.Tx) error {
		if tries++; tries == 1 {
			return terminate(ctx, tx)
		}
		return nil
	}))
	if err != nil || !next.Done || tries != 2 {
		t.Errorf("%+v, %v after %d tries", next, err, tries)
	}
	d.wantState(id, "succeeded", "", "delivered")
	d.wantOneKeyAndBody(id, 1)
}

func TestOutcomeAndJobAreWrittenTogetherOrNotAtAll(t *testing.T) {
	d := setupDelivery(t)
	d.exec("CREATE TABLE completions (operation_id uuid)")
	id := d.operation("SO-1001")
	complete := func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, "INSERT INTO completions VALUES ($1)", id)
		return err
	}
	_, err := d.deliverer().Deliver(t.Context(), id, jobOf(func(ctx context.Context, tx pgx.Tx) error {
		if err := complete(ctx, tx); err != nil {
			return err
		}
		return terminate(ctx, tx)
	}))
	if err == nil {
		t.Error("no error")
	}
	completions := func() (n int) {
		if err := d.pool.QueryRow(t.Context(), "SELECT count(*) FROM completions").Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	d.wantState(id, "processing", "", "sent")
	if n := completions(); n != 0 {
		t.Errorf("%d completions without an outcome", n)
	}
	d.endLease(id)
	if _, err := d.deliverer().Deliver(t.Context(), id, jobOf(complete)); err != nil {
		t.Fatal(err)
	}
	d.wantState(id, "succeeded", "", "overtaken replayed")
	if n := completions(); n != 1 {
		t.Errorf("%d completions", n)
	}
	d.wantOneInvoice(id)
}

// Invariant 8: neither our paths nor a hand in the database leave succeeded.
func TestSucceededIsLeftByNoPath(t *testing.T) {
	d := setupDelivery(t)
	id := d.operation("SO-1001")
	d.deliver(id)
	before := d.row(id)
	for range 3 {
		if !d.deliver(id).Done {
			t.Error("something is left to do")
		}
	}
	for _, status := range []string{"pending", "unknown", "failed", "processing", "cancelled"} {
		if _, err := d.pool.Exec(t.Context(), "UPDATE operations SET status = $2 WHERE id = $1", id, status); err == nil {
			t.Errorf("the database lets succeeded become %s", status)
		}
	}
	if after := d.row(id); after != before {
		t.Errorf("changed to\n%s\nfrom\n%s", after, before)
	}
	d.wantOneKeyAndBody(id, 1)
}

func TestEveryLogLineNamesTenantAndKeyAndNoSecret(t *testing.T) {
	d := setupDelivery(t)
	d.erp.OnPost(func(c *erpsim.Call) {
		if c.N == 1 {
			c.Reset()
			return
		}
		c.Send(erpsim.Answer{Status: http.StatusUnauthorized, Type: "application/problem+json",
			Body: []byte(`{"type":"/problems/unauthenticated","detail":"No such token: ` + deliverToken + `\u0000"}`)})
	})
	id := d.operation("SO-1001")
	for range 2 {
		d.deliver(id)
		d.makeDue(id)
	}
	d.exec("UPDATE operations SET flagged_at = now() WHERE id = $1", id)
	d.deliver(id)
	lines := d.log.lines()
	if len(lines) < 5 {
		t.Errorf("only %d lines", len(lines))
	}
	for _, line := range lines {
		if !strings.Contains(line, "tenant="+deliverTenant) || !strings.Contains(line, "key="+keyOf(id)) {
			t.Errorf("without tenant or key: %s", line)
		}
		if strings.Contains(line, deliverToken) {
			t.Errorf("with the token: %s", line)
		}
	}
	if strings.Contains(d.row(id), deliverToken) {
		t.Error("the token is in the database")
	}
}

func TestBackOffGrowsToItsCapWithJitterBelow(t *testing.T) {
	t.Parallel()
	b := crm.BackOff{Base: time.Second, Cap: time.Minute}
	for n, want := range map[int]time.Duration{0: time.Second, 1: time.Second, 2: 2 * time.Second, 4: 8 * time.Second, 7: time.Minute, 30_000: time.Minute} {
		if got := b.Pause(n, 0); got != want {
			t.Errorf("pause %d is %v, want %v", n, got, want)
		}
		if got := b.Pause(n, 0.999); got <= want/2-time.Millisecond || got > want*51/100 {
			t.Errorf("pause %d is at least %v, want half of %v", n, got, want)
		}
	}
}
