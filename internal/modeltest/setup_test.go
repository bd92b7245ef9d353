package modeltest

import (
	"context"
	"fmt"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"pgregory.net/rapid"

	"invoicebridge/internal/audit"
	"invoicebridge/internal/backoff"
	"invoicebridge/internal/invoice"
	"invoicebridge/internal/retention"
	"invoicebridge/internal/target"
	"invoicebridge/internal/target/einvoice"
	"invoicebridge/internal/target/ledger"
	"invoicebridge/internal/target/targetsim"
)

const (
	// patience of one request to a target; the longest call is two. Only calls that are stalled on purpose come near it.
	patience       = 20 * time.Second
	longestRequest = 2 * patience
	lease          = 30 * time.Second
	settle         = time.Hour
	window         = 24 * time.Hour
	// What the simulator lets happen late does so only just before the absence may be believed: what is late, and the
	// longest call before it, are within the settle time.
	late   = settle - longestRequest - 10*time.Second
	hidden = late
	held   = 5 * time.Hour
)

// promise is a kind of target and what it promises.
type promise struct {
	name string
	kind string
	can  target.Capabilities
}

// promises are the three kinds of capabilities that there are rules for, and what lies between them.
func promises() []promise {
	authoritative := target.Capabilities{Locatable: true, AbsenceAuthoritative: true, SettleTime: settle}
	keyed := authoritative
	keyed.Keyed, keyed.KeyWindow = true, window
	return []promise{
		{"keyed, can be asked", einvoice.Kind, keyed},
		{"keyed, can't be asked", einvoice.Kind, target.Capabilities{Keyed: true, KeyWindow: window}},
		{"gateway whose absence proves something", einvoice.Kind, authoritative},
		{"ledger whose absence proves something", ledger.Kind, authoritative},
		{"ledger whose absence proves nothing", ledger.Kind, target.Capabilities{Locatable: true}},
		{"promises nothing", einvoice.Kind, target.Capabilities{}},
	}
}

const targetID = "target"

// world is one sequence's: a tenant of its own with one target, a simulator of its own behind it, and what the model
// remembers.
type world struct {
	pool      *pgxpool.Pool
	tenant    string
	promise   promise
	sim       *targetsim.Sim
	service   *invoice.Service
	registrar *invoice.Registrar
	sweeper   *invoice.Sweeper
	purger    *retention.Purger
	queue     *queue
	hooks     hooks
	paused    bool // the target
	acts      int  // what people have done

	issued map[string]issued      // by order
	was    map[uuid.UUID]standing // what the last check has seen
	ids    []uuid.UUID            // of the registrations, in the order of their invoices
	log    func(string, ...any)   // rapid's
}

// issued is the invoice that a claim has, for ever.
type issued struct {
	key    string
	price  int
	answer *invoice.Answer
}

// tidy removes what the sequences before have left dead, and has statements planned for the tables as they are: else each
// sequence would be slower than the one before.
func tidy(rt *rapid.T, pool *pgxpool.Pool, tables string) {
	if _, err := pool.Exec(context.Background(), "VACUUM ANALYZE "+tables); err != nil {
		rt.Fatal(err)
	}
}

// newWorld makes the world of a sequence in the test's one database.
func newWorld(t *testing.T, rt *rapid.T, pool *pgxpool.Pool) *world {
	w := &world{
		pool: pool, tenant: "t-" + uuid.NewString(), queue: &queue{},
		promise: rapid.SampledFrom(promises()).Draw(rt, "target"),
		issued:  map[string]issued{}, was: map[uuid.UUID]standing{}, log: rt.Logf,
	}
	var err error
	w.sim, err = targetsim.Open(targetsim.Config{
		Token: "hush", KeyWindow: window, Late: late, Held: held, Hidden: hidden, Slow: time.Millisecond,
		Now: func() time.Time { return time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC) }, // Advance alone moves it
	})
	if err != nil {
		rt.Fatal(err)
	}
	server := httptest.NewServer(w.sim)
	w.registrar = invoice.NewRegistrar(pool, invoice.RegistrarOptions{
		Kinds: w.kinds(), Worker: "model", Lease: lease, HeldTime: 4 * time.Hour, TotalTime: 24 * time.Hour,
		Credential: func(string) (target.Secret, error) {
			run(w.hooks.takeOpening())
			return target.NewSecret("hush"), nil
		},
		// No pauses but those that the target asks for: nothing may rest on them.
		BackOff: backoff.BackOff{Base: time.Nanosecond, Cap: time.Nanosecond, Slow: time.Nanosecond},
		Jitter:  func() float64 { return 0 },
	})
	rt.Cleanup(func() {
		w.registrar.Close()
		w.sim.EndWaiting()
		server.Close()
		_ = w.sim.Close()
	})
	w.service = invoice.NewService(pool, invoice.Options{Registrations: w.queue})
	w.sweeper = invoice.NewSweeper(pool, w.queue, invoice.SweeperOptions{JobKind: "model", JobTimeout: time.Hour, Margin: time.Nanosecond})
	w.purger = retention.NewPurger(invoice.RetentionSteps(pool, invoice.Keep{}), retention.Options{
		Pause: func(context.Context, time.Duration) error { return nil },
	})
	w.enter(rt, server.URL)
	return w
}

func (w *world) enter(rt *rapid.T, url string) {
	w.exec(rt, "INSERT INTO tenants (id, name) VALUES ($1, 'Model')", w.tenant)
	err := invoice.NewTargetAdmin(w.pool, w.kinds()).Set(context.Background(), invoice.TargetSettings{
		Tenant: w.tenant, ID: targetID, Kind: w.promise.kind, BaseURL: url + "/" + w.promise.kind, CredentialRef: "env:TOKEN", Can: w.promise.can,
	}, false, audit.By{Actor: "model"})
	if err != nil {
		rt.Fatal(err)
	}
}

// leave ends a sequence: what it has left open is no work for the sweeps and purges of the next ones.
func (w *world) leave(rt *rapid.T) {
	w.exec(rt, `WITH r AS (
		UPDATE registrations SET next_attempt_at = CASE WHEN next_attempt_at IS NOT NULL THEN '9999-01-01'::timestamptz END,
			lease_until = CASE WHEN lease_until IS NOT NULL THEN '9999-01-01'::timestamptz END
		WHERE tenant_id = $1 AND status IN ('pending', 'processing', 'unknown'))
		UPDATE idempotency_records SET expires_at = '9999-01-01' WHERE tenant_id = $1`, w.tenant)
}

func (w *world) kinds() invoice.TargetKinds {
	return invoice.TargetKinds{LongestRequest: longestRequest, Kinds: map[string]invoice.TargetKind{
		einvoice.Kind: {
			Open: func(base string, secret target.Secret) (invoice.Target, error) {
				c, err := einvoice.New(einvoice.Config{BaseURL: base, Token: secret, Timeout: patience, Now: time.Now})
				return hooked{c, &w.hooks}, err
			},
			Check: einvoice.CheckCapabilities,
		},
		ledger.Kind: {
			Open: func(base string, secret target.Secret) (invoice.Target, error) {
				c, err := ledger.New(ledger.Config{BaseURL: base, Token: secret, Timeout: patience, Now: time.Now})
				return hooked{c, &w.hooks}, err
			},
			Check: ledger.CheckCapabilities,
		},
	}}
}

func (w *world) exec(rt *rapid.T, sql string, args ...any) {
	if _, err := w.pool.Exec(context.Background(), sql, args...); err != nil {
		rt.Fatalf("%s: %v", sql, err)
	}
}

// hooks are what happens before the next attempt is on record (but after it was planned), and around its call; each once.
type hooks struct{ opening, before, after func() }

func (h *hooks) takeOpening() func() {
	opening := h.opening
	h.opening = nil
	return opening
}

func (h *hooks) takeCall() hooks {
	taken := hooks{before: h.before, after: h.after}
	h.before, h.after = nil, nil
	return taken
}

// hooked is a client of a target with hooks around its calls.
type hooked struct {
	invoice.Target
	hooks *hooks
}

func (h hooked) Send(ctx context.Context, s target.Submission) target.Sent {
	around := h.hooks.takeCall()
	run(around.before)
	sent := h.Target.Send(ctx, s)
	run(around.after)
	return sent
}

func (h hooked) Locate(ctx context.Context, q target.Query) target.Located {
	around := h.hooks.takeCall()
	run(around.before)
	located := h.Target.Locate(ctx, q)
	run(around.after)
	return located
}

func run(hook func()) {
	if hook != nil {
		hook()
	}
}

// queue forgets every job: that a registration is worked on must not rest on it.
type queue struct{ enqueued map[uuid.UUID]bool }

func (q *queue) InsertRegistrations(_ context.Context, _ pgx.Tx, ids []uuid.UUID, _ time.Time) error {
	q.enqueued = map[uuid.UUID]bool{}
	for _, id := range ids {
		q.enqueued[id] = true
	}
	return nil
}

func (*queue) Wake() {}

func (*queue) RegistrationIsQueued(context.Context, pgx.Tx, uuid.UUID) (bool, error) {
	return false, nil
}

// requestBody is an order that is invoiced in full.
func requestBody(order string, price int) []byte {
	return fmt.Appendf(nil, `{"source":"crm-1","order":%q,"role":"final","currency":"EUR","issue_date":"2026-03-02",
		"customer":{"name":"A","country":"DE"},
		"lines":[{"sku":"P-1","quantity":"2","unit_price":"%d.00","vat_rate":"19","vat_category":"S"}]}`, order, price)
}
