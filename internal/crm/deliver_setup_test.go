package crm_test

import (
	"context"
	"crypto/sha256"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"invoicebridge/internal/crm"
	"invoicebridge/internal/erpapi"
	"invoicebridge/internal/erpapi/erpsim"
	"invoicebridge/internal/testdb"
)

const (
	deliverTenant = "acme"
	deliverToken  = "ibt_test_secret"
	// base is BASE of CASES.md as the bytes that Submit would freeze.
	base = `{"source":"crm-1","order":"SO-1001","role":"final","sequence":1,"currency":"EUR","issue_date":"2026-03-02",` +
		`"customer":{"name":"Test Customer A","country":"DE","vat_id":"XX000000001"},` +
		`"lines":[{"sku":"P-1","quantity":"2","unit_price":"10","vat_rate":"19","vat_category":"S"}]}`
)

// delivery is a deliverer on a database of its own, against an ERP of its own.
type delivery struct {
	t      *testing.T
	pool   *pgxpool.Pool
	erp    *erpsim.Server
	opts   crm.DelivererOptions
	client erpapi.ClientConfig
	log    *logBuffer
}

func setupDelivery(t *testing.T) *delivery {
	t.Helper()
	t.Parallel()
	d := &delivery{t: t, pool: testdb.CRM(t), erp: erpsim.Start(), log: &logBuffer{}}
	t.Cleanup(d.erp.Close)
	d.client = erpapi.ClientConfig{BaseURL: d.erp.URL, AttemptTimeout: 10 * time.Second}
	d.opts = crm.DelivererOptions{
		Token: func(string) string { return deliverToken }, Worker: "test",
		BackOff: crm.BackOff{Base: time.Millisecond, Cap: time.Millisecond, Slow: time.Hour},
		Jitter:  func() float64 { return 0 },
		Logger:  slog.New(slog.NewTextHandler(d.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	d.exec("INSERT INTO tenants (id, name) VALUES ($1, 'Acme')", deliverTenant)
	return d
}

// deliverer is a new one, as another process would be.
func (d *delivery) deliverer() *crm.Deliverer {
	d.t.Helper()
	client, err := erpapi.NewClient(d.client)
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(client.CloseIdleConnections)
	return crm.NewDeliverer(d.pool, client, d.opts)
}

// operation adds a pending operation for an order of its own.
func (d *delivery) operation(order string) uuid.UUID {
	d.t.Helper()
	id := uuid.Must(uuid.NewV7())
	request := strings.Replace(base, "SO-1001", order, 1)
	hash := sha256.Sum256([]byte(request))
	d.exec(`INSERT INTO orders (tenant_id, source, order_id, version, status, content, content_hash)
	        VALUES ($1, 'crm-1', $2, 1, 'confirmed', '{}', $3)`, deliverTenant, order, hash[:])
	d.exec(`INSERT INTO operations (id, tenant_id, key, kind, source, order_id, role, sequence, order_version, request,
	                                request_hash, status, next_attempt_at)
	        VALUES ($1, $2, $3, 'invoice', 'crm-1', $4, 'final', 1, 1, $5, $6, 'pending', now())`,
		id, deliverTenant, keyOf(id), order, []byte(request), hash[:])
	return id
}

func keyOf(id uuid.UUID) string { return "key-" + id.String() }

// completions is a crm.JobCompleter that does the same for however many jobs.
type completions struct {
	do func(ctx context.Context, tx pgx.Tx) error
}

func (c *completions) CompleteJobs(ctx context.Context, tx pgx.Tx, _ []int64) error {
	return c.do(ctx, tx)
}

// jobOf is a job whose completion is whatever complete does.
func jobOf(complete func(ctx context.Context, tx pgx.Tx) error) *crm.Job {
	return &crm.Job{ID: 1, Completer: &completions{complete}}
}

// deliver makes one attempt that must not fail.
func (d *delivery) deliver(id uuid.UUID) crm.Next {
	d.t.Helper()
	next, err := d.deliverer().Deliver(d.t.Context(), id, nil)
	if err != nil {
		d.t.Fatalf("deliver: %v", err)
	}
	return next
}

// deliverUntilDone makes attempts, without the pauses, until there is none left to make.
func (d *delivery) deliverUntilDone(id uuid.UUID, atMost int) {
	d.t.Helper()
	for range atMost {
		if d.deliver(id).Done {
			return
		}
		d.makeDue(id)
	}
	d.t.Fatalf("not done after %d attempts: %+v", atMost, d.state(id))
}

// makeDue lets the pause of an open operation pass.
func (d *delivery) makeDue(id uuid.UUID) {
	d.t.Helper()
	d.exec("UPDATE operations SET next_attempt_at = now() WHERE id = $1 AND next_attempt_at IS NOT NULL", id)
}

// state is what the database knows of an operation.
type state struct {
	Status, Reason, Detail string
	Number                 string
	Attempt, Waits         int
	Flagged                bool
	FlaggedAt              *time.Time
	Pause                  time.Duration // until the next attempt
	Outcomes               string        // of its attempts, in order
}

func (d *delivery) state(id uuid.UUID) state {
	d.t.Helper()
	var s state
	var pause float64
	err := d.pool.QueryRow(context.Background(), `
		SELECT status, reason, detail, coalesce(invoice_number, ''), attempt, waits, flagged_at IS NOT NULL, flagged_at,
		       coalesce(extract(epoch FROM next_attempt_at - now()), 0)::float8,
		       coalesce((SELECT string_agg(outcome, ' ' ORDER BY number) FROM attempts WHERE operation_id = o.id), '')
		FROM operations AS o WHERE id = $1`, id).
		Scan(&s.Status, &s.Reason, &s.Detail, &s.Number, &s.Attempt, &s.Waits, &s.Flagged, &s.FlaggedAt, &pause, &s.Outcomes)
	if err != nil {
		d.t.Fatal(err)
	}
	s.Pause = time.Duration(pause * float64(time.Second))
	return s
}

// lock is somebody who has an operation's row until unlock.
func (d *delivery) lock(id uuid.UUID) (unlock func()) {
	d.t.Helper()
	tx, err := d.pool.Begin(context.Background())
	if err != nil {
		d.t.Fatal(err)
	}
	unlock = func() { _ = tx.Rollback(context.Background()) }
	d.t.Cleanup(unlock)
	if _, err := tx.Exec(context.Background(), "SELECT FROM operations WHERE id = $1 FOR NO KEY UPDATE", id); err != nil {
		d.t.Fatal(err)
	}
	return unlock
}

// leaseOf is until when an operation's attempt has its turn.
func (d *delivery) leaseOf(id uuid.UUID) (until time.Time) {
	d.t.Helper()
	if err := d.pool.QueryRow(context.Background(), "SELECT lease_until FROM operations WHERE id = $1", id).Scan(&until); err != nil {
		d.t.Fatal(err)
	}
	return until
}

// wantState compares what a test cares about.
func (d *delivery) wantState(id uuid.UUID, status, reason, outcomes string) state {
	d.t.Helper()
	s := d.state(id)
	if s.Status != status || s.Reason != reason || s.Outcomes != outcomes {
		d.t.Errorf("operation is %s (%s) after [%s], want %s (%s) after [%s]; detail %q",
			s.Status, s.Reason, s.Outcomes, status, reason, outcomes, s.Detail)
	}
	return s
}

// wantOneKeyAndBody: every POST of the operation carried the key and the bytes that were stored before the first.
func (d *delivery) wantOneKeyAndBody(id uuid.UUID, posts int) {
	d.t.Helper()
	var hash []byte
	if err := d.pool.QueryRow(context.Background(), "SELECT request_hash FROM operations WHERE id = $1", id).Scan(&hash); err != nil {
		d.t.Fatal(err)
	}
	got := d.erp.Posts()
	if len(got) != posts {
		d.t.Errorf("%d POSTs arrived, want %d", len(got), posts)
	}
	for _, p := range got {
		if p.Key != keyOf(id) || string(p.BodyHash[:]) != string(hash) {
			d.t.Errorf("POST %d carried key %q, body hash %x; stored are %q, %x", p.N, p.Key, p.BodyHash, keyOf(id), hash)
		}
	}
}

// wantOneInvoice: the ERP has one invoice, and the operation knows its number.
func (d *delivery) wantOneInvoice(id uuid.UUID) {
	d.t.Helper()
	invoices := d.erp.Invoices()
	if len(invoices) != 1 || invoices[keyOf(id)].Number == "" || invoices[keyOf(id)].Number != d.state(id).Number {
		d.t.Errorf("ERP has %v, operation knows number %q", invoices, d.state(id).Number)
	}
}

func (d *delivery) exec(sql string, args ...any) {
	d.t.Helper()
	if _, err := d.pool.Exec(context.Background(), sql, args...); err != nil {
		d.t.Fatal(err)
	}
}

// logBuffer is a log that can be read while it is written.
type logBuffer struct {
	mu   sync.Mutex
	text strings.Builder
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *logBuffer) lines() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return strings.Split(strings.TrimSpace(b.text.String()), "\n")
}
