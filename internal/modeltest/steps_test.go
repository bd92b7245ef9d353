package modeltest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"

	"invoicebridge/internal/erpapi"
	"invoicebridge/internal/idempotency"
	"invoicebridge/internal/invoice"
	"invoicebridge/internal/problem"
	"invoicebridge/internal/target/targetsim"
)

// What may happen to each kind of request. After the dangerous ones an absence, a refusal or the end of a key's window
// would be believed too early.
func sendings() []targetsim.Fault {
	dangerous := []targetsim.Fault{targetsim.AcceptLate, targetsim.Hidden, targetsim.ResetAfter}
	return slices.Concat(dangerous, dangerous, dangerous, []targetsim.Fault{
		targetsim.None, targetsim.ResetBefore, targetsim.HalfAnswer, targetsim.DuplicateOwn, targetsim.DuplicateBare,
		targetsim.DuplicateForeign, targetsim.Held, targetsim.Error, targetsim.RejectedLater, targetsim.Warnings,
		targetsim.Reject, targetsim.Busy, targetsim.Throttled, targetsim.BadGateway, targetsim.HTML, targetsim.Redirect,
		targetsim.Unauthorised,
	})
}

func postings() []targetsim.Fault {
	return []targetsim.Fault{targetsim.None, targetsim.PostLost, targetsim.PostBadGateway, targetsim.PostReject}
}

func lookings() []targetsim.Fault {
	return []targetsim.Fault{
		targetsim.None, targetsim.None, targetsim.None, targetsim.LookupHTML404, targetsim.LookupError, targetsim.LookupNonsense,
	}
}

// pauses end just before and after the moments at which something changes.
func pauses() []time.Duration {
	return []time.Duration{
		time.Second, lease + time.Second, late - time.Minute, settle + 30*time.Second, held, window - 2*time.Hour, window - 20*time.Second,
	}
}

func (w *world) actions() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"issue": w.issue, "register": w.register, "register again": w.register, "crash": w.crash, "stall": w.stall, "dawdle": w.dawdle,
		"late outcome": w.lateOutcome, "advance": w.advance, "replay": w.replay, "sweep": w.sweep, "purge": w.purge,
		"resolve": w.resolve, "acknowledge": w.acknowledge, "pause or resume": w.pauseOrResume,
	}
}

// issue sends a request of the CRM side: new, the same again, under another key, or with another price.
func (w *world) issue(rt *rapid.T) {
	order := rapid.SampledFrom([]string{"SO-1", "SO-2"}).Draw(rt, "order")
	key := rapid.SampledFrom([]string{"K1", "K1", "K1", "K2"}).Draw(rt, "key") + "-" + order
	price := rapid.SampledFrom([]int{10, 10, 10, 11}).Draw(rt, "price")
	parsed, err := idempotency.ParseKey([]string{key})
	if err != nil {
		rt.Fatal(err)
	}
	request, err := erpapi.DecodeInvoiceRequest(requestBody(order, price))
	if err != nil {
		rt.Fatal(err)
	}
	got := w.service.Issue(context.Background(), []invoice.Command{{Tenant: w.tenant, Caller: "model", Key: parsed, Request: request}})[0]
	w.answered(rt, order, issued{key, price, got.Answer}, got.Err)
}

// answered: the first request of a claim makes its invoice, and every later one is answered by that.
func (w *world) answered(rt *rapid.T, order string, now issued, err error) {
	first, there := w.issued[order]
	switch {
	case !there && err == nil && !now.answer.Replayed:
		w.issued[order] = now
	case there && first.key == now.key && first.price == now.price:
		if err != nil || !now.answer.Replayed || !bytes.Equal(now.answer.Document, first.answer.Document) {
			rt.Fatalf("the same request again is answered %+v, %v; the first was %+v", now.answer, err, first.answer)
		}
	case there && first.key == now.key && problem.Is(err, problem.IdempotencyKeyReused):
	case there && first.key != now.key && problem.Is(err, problem.AlreadyInvoiced):
	default:
		rt.Fatalf("order %s, issued before as %+v: a request %+v is answered %v", order, first, now, err)
	}
}

// one draws a registration; a step without one is no step.
func (w *world) one(rt *rapid.T) uuid.UUID {
	if len(w.ids) == 0 {
		rt.Skip("nothing is issued yet")
	}
	return rapid.SampledFrom(w.ids).Draw(rt, "registration")
}

// weather lays down what the next requests with a registration's reference meet.
func (w *world) weather(rt *rapid.T, id uuid.UUID) {
	faults := []targetsim.Fault{
		rapid.SampledFrom(sendings()).Draw(rt, "sending"),
		rapid.SampledFrom(postings()).Draw(rt, "posting"),
		rapid.SampledFrom(lookings()).Draw(rt, "looking"),
	}
	if err := w.sim.Script(w.was[id].Key, faults...); err != nil {
		rt.Fatal(err)
	}
}

func (w *world) register(rt *rapid.T) {
	id := w.one(rt)
	w.weather(rt, id)
	w.attempt(rt, id)
}

// moment is when a worker dies, after its attempt is on record.
type moment string

const (
	never         moment = "never"
	beforeRequest moment = "before its request"
	afterAnswer   moment = "after the answer"
	beforeCommit  moment = "before the commit of the outcome"
)

// crash has a worker die. Nothing of it comes later; its lease goes on.
func (w *world) crash(rt *rapid.T) {
	id := w.one(rt)
	w.weather(rt, id)
	w.die(rt, id, rapid.SampledFrom([]moment{beforeRequest, afterAnswer, beforeCommit}).Draw(rt, "dies"))
}

// crashed is what a worker that dies panics with.
type crashed struct{}

func (w *world) die(rt *rapid.T, id uuid.UUID, at moment) {
	die := func() { panic(crashed{}) }
	complete := func(context.Context, pgx.Tx) error { return nil }
	switch at {
	case beforeRequest:
		w.hooks.before = die
	case afterAnswer:
		w.hooks.after = die
	case beforeCommit:
		complete = func(context.Context, pgx.Tx) error { return errConnectionLost }
	case never:
	}
	defer func() {
		w.hooks = hooks{}
		if r := recover(); r != nil && r != any(crashed{}) {
			panic(r)
		}
	}()
	if _, err := w.registrar.Register(context.Background(), id, complete); err != nil && !errors.Is(err, errConnectionLost) {
		rt.Fatalf("register %s: %v", id, err)
	}
}

var errConnectionLost = errors.New("the database's connection is lost")

// stall has a worker stop between the record of its attempt and its request, for less than the longest request takes.
// Its lease may end and others may go on meanwhile; then its request leaves after all.
func (w *world) stall(rt *rapid.T) {
	id := w.one(rt)
	w.weather(rt, id)
	by := rapid.SampledFrom([]time.Duration{time.Second, lease + time.Second, longestRequest - time.Second}).Draw(rt, "by")
	others := w.drawOthers(rt)
	w.meanwhile(rt, id, &w.hooks.before, func() {
		w.pass(rt, by)
		w.operate(rt)
		others(id)
	})
}

// drawOthers draws what other workers do: some attempts, and one more that may be going on, or have died.
func (w *world) drawOthers(rt *rapid.T) func(uuid.UUID) {
	attempts := rapid.IntRange(0, 2).Draw(rt, "others")
	last := rapid.SampledFrom([]moment{never, beforeRequest, afterAnswer}).Draw(rt, "the last of them dies")
	return func(id uuid.UUID) {
		for range attempts {
			w.attempt(rt, id)
		}
		if last != never {
			w.die(rt, id, last)
		}
	}
}

// meanwhile makes an attempt during which other things happen. If they have overtaken it, it writes nothing.
func (w *world) meanwhile(rt *rapid.T, id uuid.UUID, hook *func(), happens func()) {
	var left standing
	overtaken := false
	*hook = func() {
		number := w.look(rt, id).Attempt
		happens()
		left = w.look(rt, id)
		overtaken = left.Attempt != number || left.Status != "processing"
	}
	w.attempt(rt, id)
	w.hooks = hooks{}
	if now := w.look(rt, id); overtaken && now != left {
		rt.Fatalf("an attempt was overtaken, and wrote all the same\nbefore %+v\nafter  %+v", left, now)
	}
}

// dawdle has a worker stop between planning its attempt and recording it, for any time. Others may go on meanwhile.
func (w *world) dawdle(rt *rapid.T) {
	id := w.one(rt)
	w.weather(rt, id)
	by := rapid.SampledFrom(pauses()).Draw(rt, "by")
	others := rapid.IntRange(0, 1).Draw(rt, "others")
	w.hooks.opening = func() {
		w.pass(rt, by)
		w.operate(rt)
		for range others {
			w.attempt(rt, id)
		}
	}
	w.attempt(rt, id)
	w.hooks = hooks{}
}

// lateOutcome has a worker be taken for dead after its answer came and before its outcome is written, while others go on.
func (w *world) lateOutcome(rt *rapid.T) {
	id := w.one(rt)
	w.weather(rt, id)
	by := rapid.SampledFrom(pauses()).Draw(rt, "by")
	swept := rapid.Bool().Draw(rt, "swept")
	others := w.drawOthers(rt)
	w.meanwhile(rt, id, &w.hooks.after, func() {
		w.pass(rt, by)
		w.operate(rt)
		if swept {
			w.sweep(rt)
		}
		others(id)
	})
}

func (w *world) advance(rt *rapid.T) { w.pass(rt, rapid.SampledFrom(pauses()).Draw(rt, "by")) }

// pass lets time pass, here and at the target.
func (w *world) pass(rt *rapid.T, by time.Duration) {
	if err := w.sim.Advance(by); err != nil {
		rt.Fatal(err)
	}
	w.exec(rt, `WITH r AS (
		UPDATE registrations SET first_sent_at = first_sent_at - $2::interval, last_sent_at = last_sent_at - $2::interval,
			tried_since = tried_since - $2::interval, next_attempt_at = next_attempt_at - $2::interval,
			lease_until = lease_until - $2::interval
		WHERE tenant_id = $1)
		UPDATE idempotency_records SET first_seen_at = first_seen_at - $2::interval, expires_at = expires_at - $2::interval
		WHERE tenant_id = $1`, w.tenant, fmt.Sprintf("%d seconds", int(by.Seconds())))
}

// sweep finds every attempt that nobody makes any more, and whatever is due.
func (w *world) sweep(rt *rapid.T) {
	if _, err := w.sweeper.Sweep(context.Background()); err != nil {
		rt.Fatal(err)
	}
	var left int
	err := w.pool.QueryRow(context.Background(), `SELECT count(*) FROM registrations WHERE tenant_id = $1 AND (
		status = 'processing' AND lease_until <= now() - interval '1 second'
		OR status IN ('pending', 'unknown') AND next_attempt_at <= now() - interval '1 second' AND NOT id = ANY ($2)
			AND NOT $3 AND NOT (flagged_at IS NOT NULL AND reason = 'nothing_is_safe'))`,
		w.tenant, w.queue.ids(), w.paused).Scan(&left)
	if err != nil {
		rt.Fatal(err)
	}
	if left > 0 {
		rt.Fatalf("a sweep has left %d registrations that nobody works on", left)
	}
}

func (q *queue) ids() []uuid.UUID {
	ids := []uuid.UUID{}
	for id := range q.enqueued {
		ids = append(ids, id)
	}
	return ids
}

// purge lets every key's retention end and removes what may go.
func (w *world) purge(rt *rapid.T) {
	w.exec(rt, `UPDATE idempotency_records SET first_seen_at = first_seen_at - interval '100 days', expires_at = least(expires_at, now())
		WHERE tenant_id = $1`, w.tenant)
	if _, err := w.purger.Purge(context.Background(), nil); err != nil {
		rt.Fatal(err)
	}
}
