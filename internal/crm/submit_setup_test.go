package crm

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"invoicebridge/internal/crmdb"
	"invoicebridge/internal/erpapi"
	"invoicebridge/internal/tenantdb"
	"invoicebridge/internal/testdb"
)

const testTenant = "acme"

// recordedJobs stands in for the queue: its jobs are rows of a table of its own, so they live and die with the
// transaction as the real ones do.
type recordedJobs struct {
	mu   sync.Mutex
	fail error // returned after the rows are in
}

func (r *recordedJobs) InsertDeliveries(ctx context.Context, tx pgx.Tx, ids []uuid.UUID, at time.Time) error {
	if _, err := tx.Exec(ctx, "INSERT INTO test_jobs SELECT unnest($1::uuid[]), $2", ids, at); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.fail
}

// Wake implements JobInserter.
func (*recordedJobs) Wake() {}

type submitSetup struct {
	t    *testing.T
	pool *pgxpool.Pool
	jobs *recordedJobs
	*Service
}

func setupSubmit(t *testing.T) *submitSetup {
	t.Helper()
	t.Parallel()
	s := &submitSetup{t: t, pool: testdb.CRM(t), jobs: &recordedJobs{}}
	s.exec("CREATE TABLE test_jobs (operation_id uuid, scheduled_at timestamptz); GRANT INSERT ON test_jobs TO " + tenantdb.Role)
	if _, err := crmdb.New(s.pool).TenantInsert(t.Context(), testTenant, "Acme"); err != nil {
		t.Fatal(err)
	}
	s.Service = NewService(s.pool, s.jobs, Options{})
	return s
}

func (s *submitSetup) exec(sql string, args ...any) {
	s.t.Helper()
	if _, err := s.pool.Exec(context.Background(), sql, args...); err != nil {
		s.t.Fatal(err)
	}
}

func (s *submitSetup) submit(orders ...Order) []Submission {
	s.t.Helper()
	subs, err := s.Submit(s.t.Context(), testTenant, ChannelAPI, orders, SubmitOptions{})
	if err != nil {
		s.t.Fatalf("submit: %v", err)
	}
	return subs
}

// takes submits one order and holds the outcome against want.
func (s *submitSetup) takes(o Order, want Outcome) Submission {
	s.t.Helper()
	sub := s.submit(o)[0]
	if sub.Outcome != want {
		s.t.Fatalf("outcome is %q (%s), want %q", sub.Outcome, sub.Detail, want)
	}
	return sub
}

// refuses submits one order and wants it refused.
func (s *submitSetup) refuses(o Order) (Submission, error) {
	s.t.Helper()
	subs, err := s.Submit(s.t.Context(), testTenant, ChannelAPI, []Order{o}, SubmitOptions{})
	if err == nil || len(subs) != 1 || subs[0].Outcome != OutcomeRefused {
		s.t.Fatalf("not refused: %v, %+v", err, subs)
	}
	return subs[0], err
}

// counts holds the numbers of stored orders, live operations and jobs against want.
func (s *submitSetup) counts(orders, operations, jobs int) {
	s.t.Helper()
	got := [3]int{s.count("orders"), s.count("operations WHERE superseded_at IS NULL AND status <> 'cancelled'"), s.count("test_jobs")}
	if want := [3]int{orders, operations, jobs}; got != want {
		s.t.Fatalf("orders, operations, jobs are %v, want %v", got, want)
	}
}

func (s *submitSetup) count(from string, args ...any) (n int) {
	s.t.Helper()
	if err := s.pool.QueryRow(context.Background(), "SELECT count(*) FROM "+from, args...).Scan(&n); err != nil {
		s.t.Fatal(err)
	}
	return n
}

// send lets an attempt begin, as the deliverer does.
func send(t testing.TB, db crmdb.DBTX, key string) {
	t.Helper()
	tag, err := db.Exec(context.Background(), `UPDATE operations
		SET status = 'processing', attempt = attempt + 1, first_sent_at = coalesce(first_sent_at, now()),
		    lease_until = now() + interval '1 minute', next_attempt_at = NULL
		WHERE key = $1 AND status IN ('pending', 'unknown')`, key)
	if err != nil || tag.RowsAffected() != 1 {
		t.Fatalf("begin attempt: %v, %v", tag, err)
	}
}

// succeed and reject end a sent operation.
func (s *submitSetup) succeed(key string) {
	s.t.Helper()
	s.exec(`UPDATE operations SET status = 'succeeded', finished_at = now(), lease_until = NULL,
		invoice_id = gen_random_uuid(), invoice_number = 'INV-2026-000001' WHERE key = $1`, key)
}

func (s *submitSetup) fail(key string, reason Reason) {
	s.t.Helper()
	s.exec(`UPDATE operations SET status = 'failed', finished_at = now(), lease_until = NULL, reason = $2 WHERE key = $1`, key, string(reason))
}

func (s *submitSetup) request(key string) *erpapi.InvoiceRequest {
	s.t.Helper()
	var body []byte
	if err := s.pool.QueryRow(context.Background(), "SELECT request FROM operations WHERE key = $1", key).Scan(&body); err != nil {
		s.t.Fatal(err)
	}
	r, err := erpapi.DecodeInvoiceRequest(body)
	if err != nil {
		s.t.Fatal(err)
	}
	return r
}

// anOrder is a plain order, with price as the price of its one line.
func anOrder(id, price string) Order {
	return Order{
		Source: "crm-1", Order: id, Currency: "EUR", IssueDate: "2026-03-02",
		Customer: erpapi.Customer{Name: "Test Customer A", Country: "DE", VATID: "XX000000001"},
		Lines:    []erpapi.Line{aLine(price)},
	}
}

func aLine(price string) erpapi.Line {
	return erpapi.Line{SKU: "P-1", Quantity: dec("2"), UnitPrice: dec(price), VATRate: dec("19"), VATCategory: "S"}
}

func (o Order) at(version int64) Order { o.Version = &version; return o }

func (o Order) as(messageID string) Order { o.MessageID = messageID; return o }

func (o Order) cancelled() Order { o.Status = OrderCancelled; return o }

// inParts turns the order into one that wants an advance and n parts of its line.
func (o Order) inParts(n int64) Order {
	o.Invoices = []OrderInvoice{{Role: erpapi.RoleAdvance, Lines: o.Lines}}
	for i := int64(1); i <= n; i++ {
		o.Invoices = append(o.Invoices, OrderInvoice{Role: erpapi.RolePartial, Sequence: &i, Lines: o.Lines})
	}
	o.Lines = nil
	return o
}

func dec(text string) *erpapi.Decimal { d := erpapi.MustDecimal(text); return &d }

func manyOrders(n int) []Order {
	orders := make([]Order, n)
	for i := range orders {
		orders[i] = anOrder(fmt.Sprintf("SO-%05d", i), "10.00").as(fmt.Sprintf("m-%d", i))
	}
	return orders
}
