package modeltest

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/shopspring/decimal"
	"pgregory.net/rapid"

	"invoicebridge/internal/crm"
	"invoicebridge/internal/erpapi"
	"invoicebridge/internal/erpapi/erpsim"
	"invoicebridge/internal/problem"
	"invoicebridge/internal/testdb"
)

func TestWhateverHappensAnOrderHasOneInvoiceThatItsOperationKnows(t *testing.T) {
	t.Parallel()
	pool := testdb.CRM(t)
	sequences, together := 0, new(shared)
	rapid.Check(t, func(rt *rapid.T) {
		if sequences++; sequences%100 == 0 {
			tidy(rt, pool, "tenants, orders, operations, attempts, inbox_messages, resolutions, source_pauses, audit_entries")
		}
		b := newBridge(rt, pool, together)
		defer b.leave(rt)
		b.submit(rt)
		rt.Repeat(map[string]func(*rapid.T){
			"submit": b.submit, "deliver": b.deliver, "deliver again": b.deliver, "rush": b.rush, "crash": b.crash, "stall": b.stall,
			"advance": b.advance, "late commit": b.commitLate, "replay": b.replay, "sweep": b.sweep, "cancel": b.cancel,
			"pause or resume": b.pauseOrResume, "propose": b.propose, "decide": b.decide, "": b.check,
		})
		b.settle(rt)
	})
	if begins, ends := together.begins.Load(), together.ends.Load(); sequences >= 100 && (begins == 0 || ends == 0) {
		t.Errorf("in %d transactions attempts began together, in %d they ended together: a mistake there would not have shown", begins, ends)
	}
}

// bridge is one sequence's: a tenant of the CRM side with an ERP of its own.
type bridge struct {
	pool      *pgxpool.Pool
	tenant    string
	erp       *erpsim.Server
	service   *crm.Service
	deliverer *crm.Deliverer
	rushers   []*crm.Deliverer
	sweeper   *crm.Sweeper
	hooks     hooks
	weather   weather
	was       map[uuid.UUID]operation
	ids       []uuid.UUID
	proposals []proposal
	paused    bool // deliveries of the source
	deaf      bool // the ERP does not answer questions
	acts      int  // what people have done
	rushes    int  // orders that came in a rush
}

// weather is what the ERP's next request meets, and what is late. The ERP answers on goroutines of its own.
type weather struct {
	mu     sync.Mutex
	fault  erpFault
	faults map[string]erpFault // by key, in place of the next one
	late   []lateCommit
}

// lateCommit is one of a request that nobody waits for any more.
type lateCommit struct {
	key    string
	commit func()
}

// next sets what the next request meets, and gives what that was before.
func (w *weather) next(f erpFault) (before erpFault) {
	w.mu.Lock()
	defer w.mu.Unlock()
	before, w.fault = w.fault, f
	return before
}

func (w *weather) delay(key string, commit func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.late = append(w.late, lateCommit{key, commit})
}

// take takes a fault that is met before there is a connection.
func (w *weather) take(f erpFault) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	met := w.fault == f
	if met {
		w.fault = answered
	}
	return met
}

// waitingFor says whether a request under a key is late.
func (w *weather) waitingFor(key string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.ContainsFunc(w.late, func(l lateCommit) bool { return l.key == key })
}

func (w *weather) waiting() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.late)
}

func (w *weather) commitOldest() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.late[0].commit()
	w.late = w.late[1:]
}

// erpFault is what becomes of the next request at the ERP, or of its answer.
type erpFault string

const (
	answered   erpFault = "answered"
	notThere   erpFault = "no connection"
	lostAfter  erpFault = "answer lost"
	lostBefore erpFault = "request lost"
	lostLate   erpFault = "answer lost, committed later"
	badGateway erpFault = "502 after the commit"
	busy       erpFault = "503"
	refused    erpFault = "refused as invalid"
)

func erpFaults() []erpFault {
	return []erpFault{answered, notThere, lostAfter, lostBefore, lostLate, badGateway, busy, refused}
}

func newBridge(rt *rapid.T, pool *pgxpool.Pool, together *shared) *bridge {
	b := &bridge{pool: pool, tenant: "t-" + uuid.NewString(), erp: erpsim.Start(), was: map[uuid.UUID]operation{}}
	client, err := erpapi.NewClient(erpapi.ClientConfig{BaseURL: b.erp.URL, AttemptTimeout: patience})
	if err != nil {
		rt.Fatal(err)
	}
	nowhere, err := erpapi.NewClient(erpapi.ClientConfig{BaseURL: "http://127.0.0.1:1", AttemptTimeout: patience}) // nothing listens there
	if err != nil {
		rt.Fatal(err)
	}
	rt.Cleanup(func() {
		client.CloseIdleConnections()
		b.erp.Close()
	})
	b.erp.OnPost(b.meet)
	token := func(string) string { return "hush" }
	b.service = crm.NewService(pool, noQueue{}, crm.Options{ERP: books{b, client}, Token: token})
	b.sweeper = crm.NewSweeper(pool, noQueue{}, crm.SweeperOptions{JobKind: "model", JobTimeout: time.Hour, Margin: time.Nanosecond})
	options := crm.DelivererOptions{
		Token: token, Worker: "model", Jitter: func() float64 { return 0 }, Observer: together,
		BackOff: crm.BackOff{Base: time.Nanosecond, Cap: time.Nanosecond, Slow: time.Nanosecond},
	}
	b.deliverer = crm.NewDeliverer(pool, hookedERP{client, nowhere, b}, options)
	for range 2 {
		b.rushers = append(b.rushers, crm.NewDeliverer(pool, rushed{client, nowhere, &b.weather}, options))
	}
	b.exec(rt, "INSERT INTO tenants (id, name) VALUES ($1, 'Model')", b.tenant)
	return b
}

// meet lets a request meet its fault.
func (b *bridge) meet(c *erpsim.Call) {
	fault, set := b.weather.of(c.Key)
	if !set {
		fault = b.weather.next(answered)
	}
	_, issued := b.erp.Invoices()[c.Key]
	switch {
	case fault == lostAfter:
		c.Commit()
		c.Reset()
	case fault == lostBefore:
		c.Reset()
	case fault == lostLate:
		b.weather.delay(c.Key, func() { c.Commit() })
		c.Reset()
	case fault == badGateway:
		c.Commit()
		c.Raw("HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n")
	case fault == busy:
		c.Refuse(http.StatusServiceUnavailable, problem.Unavailable, "Retry-After", "1")
	case fault == refused && !issued && b.weather.waiting() == 0: // the ERP does not lie
		c.Refuse(http.StatusUnprocessableEntity, problem.InvalidInvoice)
	default:
		c.Send(c.Commit())
	}
}

type hookedERP struct {
	crm.ERP
	nowhere crm.ERP
	b       *bridge
}

func (h hookedERP) CreateInvoice(ctx context.Context, token, key string, body []byte) erpapi.Exchange {
	around := h.b.hooks.takeCall()
	run(around.before)
	erp := h.ERP
	if h.b.weather.take(notThere) {
		erp = h.nowhere
	}
	x := erp.CreateInvoice(ctx, token, key, body)
	run(around.after)
	return x
}

// noQueue loses every job.
type noQueue struct{}

func (noQueue) InsertDeliveries(context.Context, pgx.Tx, []uuid.UUID, time.Time) error { return nil }
func (noQueue) Wake()                                                                  {}

func (b *bridge) exec(rt *rapid.T, sql string, args ...any) {
	if _, err := b.pool.Exec(context.Background(), sql, args...); err != nil {
		rt.Fatalf("%s: %v", sql, err)
	}
}

func (b *bridge) leave(rt *rapid.T) {
	b.exec(rt, `UPDATE operations SET next_attempt_at = CASE WHEN next_attempt_at IS NOT NULL THEN '9999-01-01'::timestamptz END,
		lease_until = CASE WHEN lease_until IS NOT NULL THEN '9999-01-01'::timestamptz END
		WHERE tenant_id = $1 AND status IN ('pending', 'processing', 'unknown')`, b.tenant)
}

// submit sends an order: new, the same again, changed, or cancelled.
func (b *bridge) submit(rt *rapid.T) {
	order := orderAt(rapid.SampledFrom([]string{"SO-1", "SO-2"}).Draw(rt, "order"),
		rapid.SampledFrom([]int64{10, 10, 11, 12, 0}).Draw(rt, "price, 0: cancelled"))
	_, err := b.service.Submit(context.Background(), b.tenant, crm.ChannelAPI, []crm.Order{order}, crm.SubmitOptions{})
	if err != nil && problem.As(err) == nil {
		rt.Fatal(err)
	}
}

// orderAt is an order at a price; at 0 it is cancelled.
func orderAt(id string, price int64) crm.Order {
	order := crm.Order{Source: source, Order: id}
	if price == 0 {
		order.Status = crm.OrderCancelled
		return order
	}
	order.Currency, order.IssueDate = "EUR", "2026-03-02"
	order.Customer = erpapi.Customer{Name: "A", Country: "DE"}
	order.Lines = []erpapi.Line{{
		SKU: "P-1", Quantity: exactly(2), UnitPrice: exactly(price), VATRate: exactly(19), VATCategory: "S",
	}}
	return order
}

func (b *bridge) one(rt *rapid.T) uuid.UUID {
	if len(b.ids) == 0 {
		rt.Skip("there is no operation yet")
	}
	b.weather.next(rapid.SampledFrom(erpFaults()).Draw(rt, "the ERP"))
	return rapid.SampledFrom(b.ids).Draw(rt, "operation")
}

func (b *bridge) deliver(rt *rapid.T) { b.attempt(rt, b.one(rt)) }

// attempt delivers. While the source is paused none begins.
func (b *bridge) attempt(rt *rapid.T, id uuid.UUID) {
	before, paused := b.look(rt, id), b.paused
	if _, err := b.deliverer.Deliver(context.Background(), id, nil); err != nil {
		rt.Fatalf("deliver %s: %v", id, err)
	}
	if after := b.look(rt, id); paused && after != before {
		rt.Fatalf("its source is paused, and it was worked on\nbefore %+v\nafter  %+v", before, after)
	}
}

// crash has a worker die before its request or after the answer.
func (b *bridge) crash(rt *rapid.T) {
	b.die(rt, b.one(rt), rapid.SampledFrom([]moment{beforeRequest, afterAnswer}).Draw(rt, "dies"))
}

func (b *bridge) die(rt *rapid.T, id uuid.UUID, at moment) {
	die := func() { panic(crashed{}) }
	if at == beforeRequest {
		b.hooks.before = die
	} else {
		b.hooks.after = die
	}
	defer func() {
		b.hooks = hooks{}
		if r := recover(); r != nil && r != any(crashed{}) {
			panic(r)
		}
	}()
	b.attempt(rt, id)
}

// stall has a worker stop before its request, for less than its lease, or before its outcome, for any time. Meanwhile the
// order changes, and others go on or die. If they have overtaken it, it writes nothing.
func (b *bridge) stall(rt *rapid.T) {
	id := b.one(rt)
	hook, by := &b.hooks.before, b.deliverer.Lease()-time.Second
	if rapid.Bool().Draw(rt, "after the answer") {
		hook, by = &b.hooks.after, 25*time.Hour
	}
	others := rapid.SliceOfN(rapid.SampledFrom([]moment{never, never, beforeRequest, afterAnswer}), 0, 2).Draw(rt, "others die")
	var left operation
	overtaken := false
	*hook = func() {
		fault, number := b.weather.next(answered), b.look(rt, id).Attempt
		b.pass(rt, by)
		b.submit(rt)
		b.operate(rt)
		for _, dies := range others {
			b.weather.next(rapid.SampledFrom(erpFaults()).Draw(rt, "the ERP, for another"))
			if dies == never {
				b.attempt(rt, id)
			} else {
				b.die(rt, id, dies)
			}
		}
		b.weather.next(fault)
		left = b.look(rt, id)
		overtaken = left.Attempt != number || left.Status != "processing"
	}
	b.attempt(rt, id)
	b.hooks = hooks{}
	if now := b.look(rt, id); overtaken && now != left {
		rt.Fatalf("an attempt was overtaken, and wrote all the same\nbefore %+v\nafter  %+v", left, now)
	}
}

func (b *bridge) advance(rt *rapid.T) {
	b.pass(rt, rapid.SampledFrom([]time.Duration{time.Second, 2 * time.Minute, 25 * time.Hour}).Draw(rt, "by"))
}

func (b *bridge) pass(rt *rapid.T, by time.Duration) {
	b.exec(rt, `UPDATE operations SET next_attempt_at = next_attempt_at - $2::interval, lease_until = lease_until - $2::interval
		WHERE tenant_id = $1`, b.tenant, fmt.Sprintf("%d seconds", int(by.Seconds())))
}

func (b *bridge) commitLate(rt *rapid.T) {
	if b.weather.waiting() == 0 {
		rt.Skip("nothing is late")
	}
	b.weather.commitOldest()
}

func (b *bridge) sweep(rt *rapid.T) {
	if _, err := b.sweeper.Sweep(context.Background()); err != nil {
		rt.Fatal(err)
	}
}

func exactly(n int64) *erpapi.Decimal {
	d := erpapi.DecimalOf(decimal.NewFromInt(n))
	return &d
}
