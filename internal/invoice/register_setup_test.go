package invoice_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"invoicebridge/internal/audit"
	"invoicebridge/internal/backoff"
	"invoicebridge/internal/erpapi"
	"invoicebridge/internal/idempotency"
	"invoicebridge/internal/invoice"
	"invoicebridge/internal/target"
	"invoicebridge/internal/target/einvoice"
	"invoicebridge/internal/target/ledger"
	"invoicebridge/internal/target/targetsim"
	"invoicebridge/internal/testdb"
)

const (
	regTenant = "acme"
	regToken  = "hush"
	// patience of one request to a target, where nothing is to be lost by waiting.
	patience = 20 * time.Second
	settle   = time.Hour
	window   = 24 * time.Hour
)

// bench is an ERP with one target of a simulator. Pauses are nothing but what the target asks for; time passes by pass.
type bench struct {
	t       *testing.T
	pool    *pgxpool.Pool
	sim     *targetsim.Sim
	url     string
	service *invoice.Service
	queue   *recordingQueue
	opts    invoice.RegistrarOptions
	flags   *flags
	reg     *invoice.Registrar
	id      uuid.UUID // of the registration of issue
}

// Capabilities of targets.
var (
	keyed       = target.Capabilities{Keyed: true, KeyWindow: window, Locatable: true, AbsenceAuthoritative: true, SettleTime: settle}
	locatable   = target.Capabilities{Locatable: true, AbsenceAuthoritative: true, SettleTime: settle}
	onlyAsked   = target.Capabilities{Locatable: true}
	onlyKeyed   = target.Capabilities{Keyed: true, KeyWindow: window}
	neitherCaps = target.Capabilities{}
)

func setupRegister(t *testing.T, kind string, can target.Capabilities) *bench {
	t.Helper()
	t.Parallel()
	b := &bench{t: t, pool: testdb.ERP(t), queue: &recordingQueue{}, flags: &flags{}}
	var err error
	b.sim, err = targetsim.Open(targetsim.Config{Token: regToken, KeyWindow: window, Slow: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(b.sim)
	t.Cleanup(func() {
		b.sim.EndWaiting()
		server.Close()
		if err := b.sim.Close(); err != nil {
			t.Error(err)
		}
	})
	b.url = server.URL
	b.service = invoice.NewService(b.pool, invoice.Options{Registrations: b.queue})
	b.opts = invoice.RegistrarOptions{
		Kinds: kinds(patience), Worker: "test", Observer: b.flags,
		Credential: func(string) (target.Secret, error) { return target.NewSecret(regToken), nil },
		BackOff:    backoff.BackOff{Base: time.Nanosecond, Cap: time.Nanosecond, Slow: time.Nanosecond},
		Jitter:     func() float64 { return 0 },
	}
	b.reg = b.registrar()
	b.exec("INSERT INTO tenants (id, name) VALUES ($1, 'Acme')", regTenant)
	b.target(kind, kind, can)
	return b
}

func kinds(timeout time.Duration) invoice.TargetKinds {
	return invoice.TargetKinds{
		LongestRequest: 2 * timeout,
		Kinds: map[string]invoice.TargetKind{
			einvoice.Kind: {
				Open: func(base string, secret target.Secret) (invoice.Target, error) {
					return einvoice.New(einvoice.Config{BaseURL: base, Token: secret, Timeout: timeout, Now: time.Now})
				},
				Check: einvoice.CheckCapabilities,
			},
			ledger.Kind: {
				Open: func(base string, secret target.Secret) (invoice.Target, error) {
					return ledger.New(ledger.Config{BaseURL: base, Token: secret, Timeout: timeout, Now: time.Now})
				},
				Check: ledger.CheckCapabilities,
			},
		},
	}
}

// target sets a target as the command does.
func (b *bench) target(id, kind string, can target.Capabilities) {
	b.t.Helper()
	err := invoice.NewTargetAdmin(b.pool, b.opts.Kinds).Set(context.Background(), invoice.TargetSettings{
		Tenant: regTenant, ID: id, Kind: kind, BaseURL: b.url + "/" + kind, CredentialRef: "env:TARGET_TOKEN", Can: can,
	}, false, audit.By{Actor: "test"})
	if err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) registrar() *invoice.Registrar {
	r := invoice.NewRegistrar(b.pool, b.opts)
	b.t.Cleanup(r.Close)
	return r
}

const regKey = "op-1"

// issue issues the invoice that is to be registered.
func (b *bench) issue() {
	b.t.Helper()
	b.issueAs(regKey, "SO-1")
	b.scan(&b.id, "SELECT id FROM registrations")
}

func (b *bench) issueAs(key, order string) {
	b.t.Helper()
	if r := b.tryIssue(key, order); r.Err != nil {
		b.t.Fatal(r.Err)
	}
}

func (b *bench) tryIssue(key, order string) invoice.Result {
	b.t.Helper()
	parsed, err := idempotency.ParseKey([]string{key})
	if err != nil {
		b.t.Fatal(err)
	}
	request, err := erpapi.DecodeInvoiceRequest([]byte(`{"source":"crm-1","order":"` + order + `","role":"final","currency":"EUR",
		"issue_date":"2026-03-02","customer":{"name":"A","country":"DE"},
		"lines":[{"sku":"P-1","quantity":"2","unit_price":"10.00","vat_rate":"19","vat_category":"S"}]}`))
	if err != nil {
		b.t.Fatal(err)
	}
	return b.service.Issue(context.Background(), []invoice.Command{{Tenant: regTenant, Caller: "test", Key: parsed, Request: request}})[0]
}

func (b *bench) script(faults ...targetsim.Fault) {
	b.t.Helper()
	if err := b.sim.Script(regKey, faults...); err != nil {
		b.t.Fatal(err)
	}
}

// try makes the next attempt, whenever it is due, and gives what is left to do.
func (b *bench) try() invoice.Next {
	b.t.Helper()
	b.exec("UPDATE registrations SET next_attempt_at = now() - interval '1 second' WHERE id = $1 AND next_attempt_at > now()", b.id)
	next, err := b.reg.Register(context.Background(), b.id, nil)
	if err != nil {
		b.t.Fatalf("register: %v", err)
	}
	return next
}

// pass lets time pass, here and at the target.
func (b *bench) pass(by time.Duration) {
	b.t.Helper()
	if err := b.sim.Advance(by); err != nil {
		b.t.Fatal(err)
	}
	b.exec(`UPDATE registrations SET first_sent_at = first_sent_at - $1::interval, last_sent_at = last_sent_at - $1::interval,
		tried_since = tried_since - $1::interval, next_attempt_at = next_attempt_at - $1::interval, lease_until = lease_until - $1::interval`,
		fmt.Sprintf("%d seconds", int(by.Seconds())))
}

// state is where the registration stands.
type state struct {
	Status, Reason, Reference string
	Flagged                   bool
}

func (b *bench) state() (s state) {
	b.t.Helper()
	err := b.pool.QueryRow(context.Background(), "SELECT status, reason, reference, flagged_at IS NOT NULL FROM registrations WHERE id = $1", b.id).
		Scan(&s.Status, &s.Reason, &s.Reference, &s.Flagged)
	if err != nil {
		b.t.Fatal(err)
	}
	return s
}

func (b *bench) want(want state) {
	b.t.Helper()
	if diff := cmp.Diff(want, b.state()); diff != "" {
		b.t.Fatalf("the registration (-want +got)\n%s\nattempts %v\nrequests %+v", diff, b.attempts(), b.sim.Requests(""))
	}
}

// wantAttempts are action and outcome of each attempt, in order.
func (b *bench) wantAttempts(want ...string) {
	b.t.Helper()
	if diff := cmp.Diff(want, b.attempts()); diff != "" {
		b.t.Fatalf("attempts (-want +got)\n%s", diff)
	}
}

func (b *bench) attempts() []string {
	b.t.Helper()
	rows, _ := b.pool.Query(context.Background(),
		"SELECT action || ' ' || outcome FROM registration_attempts WHERE registration_id = $1 ORDER BY number", b.id)
	list, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		b.t.Fatal(err)
	}
	return list
}

// wantEffects holds the simulator to its count, and to one body and key in all sendings.
func (b *bench) wantEffects(n int) {
	b.t.Helper()
	if got := b.sim.Count(regKey); got != n {
		b.t.Errorf("%d effects, want %d: %+v", got, n, b.sim.Requests(""))
	}
	bodies, keys := map[string]bool{}, map[string]bool{}
	for _, r := range b.sim.Requests(regKey) {
		if r.Operation == "submit" || r.Operation == "create" {
			bodies[r.BodySum], keys[r.Key] = true, true
		}
	}
	if len(bodies) > 1 || len(keys) > 1 {
		b.t.Errorf("sent were %d bodies under %d keys", len(bodies), len(keys))
	}
}

// sendings is the number of requests that may have made something.
func (b *bench) sendings() (n int) {
	for _, r := range b.sim.Requests(regKey) {
		if r.Operation == "submit" || r.Operation == "create" {
			n++
		}
	}
	return n
}

func (b *bench) exec(sql string, args ...any) {
	b.t.Helper()
	if _, err := b.pool.Exec(context.Background(), sql, args...); err != nil {
		b.t.Fatalf("%s: %v", sql, err)
	}
}

func (b *bench) scan(to any, sql string, args ...any) {
	b.t.Helper()
	if err := b.pool.QueryRow(context.Background(), sql, args...).Scan(to); err != nil {
		b.t.Fatalf("%s: %v", sql, err)
	}
}

func (b *bench) count(from string, args ...any) (n int) {
	b.t.Helper()
	b.scan(&n, "SELECT count(*) FROM "+from, args...)
	return n
}

// recordingQueue is a queue that remembers what it was given, and fails if it is told to.
type recordingQueue struct {
	mu     sync.Mutex
	ids    []uuid.UUID
	err    error
	queued bool
	woken  func() // nil: nobody is told
}

func (q *recordingQueue) Wake() {
	if q.woken != nil {
		q.woken()
	}
}

func (q *recordingQueue) InsertRegistrations(_ context.Context, _ pgx.Tx, ids []uuid.UUID, _ time.Time) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.err == nil {
		q.ids = append(q.ids, ids...)
	}
	return q.err
}

func (q *recordingQueue) RegistrationIsQueued(context.Context, pgx.Tx, uuid.UUID) (bool, error) {
	return q.queued, nil
}

// flags counts what an operator is told.
type flags struct {
	mu      sync.Mutex
	reasons []string
	refused []string
}

func (*flags) RegistrationAttemptEnded(string) {}

func (f *flags) TargetNotAuthorised(tenant, target string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.refused = append(f.refused, tenant+" "+target)
}

func (f *flags) RegistrationFlagged(reason invoice.RegistrationReason) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.reasons = append(f.reasons, string(reason))
}

func (b *bench) wantFlags(want ...string) {
	b.t.Helper()
	b.flags.mu.Lock()
	defer b.flags.mu.Unlock()
	if diff := cmp.Diff(want, b.flags.reasons); diff != "" {
		b.t.Errorf("an operator was told (-want +got)\n%s", diff)
	}
}

// tryImpatiently makes the next attempt and loses patience as soon as its request has arrived.
func (b *bench) tryImpatiently() {
	b.t.Helper()
	before := len(b.sim.Requests(""))
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	go func() {
		defer cancel()
		for len(b.sim.Requests("")) == before {
			select {
			case <-ctx.Done():
				return
			case <-time.After(time.Millisecond):
			}
		}
	}()
	if _, err := b.reg.Register(ctx, b.id, nil); err != nil {
		b.t.Fatalf("register: %v", err)
	}
}

// hooked is a target with something done before and after its calls.
type hooked struct {
	invoice.Target
	before, after func()
}

func (h hooked) Send(ctx context.Context, s target.Submission) target.Sent {
	if h.before != nil {
		h.before()
	}
	sent := h.Target.Send(ctx, s)
	if h.after != nil {
		h.after()
	}
	return sent
}

func (h hooked) Locate(ctx context.Context, q target.Query) target.Located {
	if h.before != nil {
		h.before()
	}
	return h.Target.Locate(ctx, q)
}

// hookedRegistrar is a registrar whose calls have something done before and after.
func (b *bench) hookedRegistrar(before, after func()) *invoice.Registrar {
	b.t.Helper()
	opts := b.opts
	opts.Kinds = kinds(patience)
	for name, kind := range opts.Kinds.Kinds {
		open := kind.Open
		kind.Open = func(base string, secret target.Secret) (invoice.Target, error) {
			t, err := open(base, secret)
			return hooked{t, before, after}, err
		}
		opts.Kinds.Kinds[name] = kind
	}
	r := invoice.NewRegistrar(b.pool, opts)
	b.t.Cleanup(r.Close)
	return r
}
