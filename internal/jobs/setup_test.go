package jobs

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"

	"invoicebridge/internal/crm"
	"invoicebridge/internal/erpapi"
	"invoicebridge/internal/erpapi/erpsim"
	"invoicebridge/internal/testdb"
)

const testTenant = "acme"

// bench is a CRM side with its queue, against an ERP of its own.
type bench struct {
	t        *testing.T
	pool     *pgxpool.Pool
	erp      *erpsim.Server
	inserter *Inserter
	metrics  *Metrics
	backOff  crm.BackOff
	cfg      Config
}

func setup(t *testing.T) *bench {
	t.Helper()
	t.Parallel()
	b := &bench{t: t, pool: testdb.CRM(t), erp: erpsim.Start()}
	t.Cleanup(b.erp.Close)
	var err error
	if b.inserter, err = NewInserter(b.pool, nil); err != nil {
		t.Fatal(err)
	}
	b.metrics = NewMetrics(b.pool, nil)
	b.backOff = crm.BackOff{Base: time.Millisecond, Cap: time.Millisecond, Slow: time.Hour}
	b.cfg = Config{Workers: 8, SweepInterval: time.Hour, SoftStopTimeout: 10 * time.Second}
	b.exec("INSERT INTO tenants (id, name) VALUES ($1, 'Acme')", testTenant)
	return b
}

func (b *bench) deliverer() *crm.Deliverer {
	b.t.Helper()
	client, err := erpapi.NewClient(erpapi.ClientConfig{BaseURL: b.erp.URL, AttemptTimeout: 10 * time.Second})
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(client.CloseIdleConnections)
	return crm.NewDeliverer(b.pool, client, crm.DelivererOptions{
		Token: func(string) string { return "token" }, Worker: "test", BackOff: b.backOff, Observer: b.metrics,
	})
}

func (b *bench) deps() Deps {
	return Deps{Deliverer: b.deliverer(), Inserter: b.inserter, Metrics: b.metrics}
}

// start starts a client; it stops with the test.
func (b *bench) start() *Client {
	b.t.Helper()
	client, err := NewClient(b.pool, b.deps(), b.cfg)
	if err != nil {
		b.t.Fatal(err)
	}
	b.run(client)
	return client
}

func (b *bench) run(client *Client) {
	b.t.Helper()
	if err := client.Start(context.Background()); err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		if err := client.Stop(ctx); err != nil {
			b.t.Errorf("stop: %v", err)
		}
	})
}

// submit takes n orders in, as a CRM's messages would.
func (b *bench) submit(from, n int) {
	b.t.Helper()
	orders := make([]crm.Order, n)
	for i := range orders {
		orders[i] = testOrder(fmt.Sprintf("SO-%d", from+i))
	}
	service := crm.NewService(b.pool, b.inserter, crm.Options{})
	if _, err := service.Submit(b.t.Context(), testTenant, crm.ChannelAPI, orders, crm.SubmitOptions{}); err != nil {
		b.t.Fatalf("submit: %v", err)
	}
}

func testOrder(id string) crm.Order {
	quantity, price, rate := erpapi.MustDecimal("2"), erpapi.MustDecimal("10.00"), erpapi.MustDecimal("19")
	return crm.Order{
		Source: "crm-1", Order: id, Currency: "EUR", IssueDate: "2026-03-02",
		Customer: erpapi.Customer{Name: "Test Customer A", Country: "DE", VATID: "XX000000001"},
		Lines:    []erpapi.Line{{SKU: "P-1", Quantity: &quantity, UnitPrice: &price, VATRate: &rate, VATCategory: "S"}},
	}
}

func (b *bench) count(from string, args ...any) (n int) {
	b.t.Helper()
	b.scan(&n, "SELECT count(*) FROM "+from, args...)
	return n
}

func (b *bench) scan(to any, sql string, args ...any) {
	b.t.Helper()
	if err := b.pool.QueryRow(context.Background(), sql, args...).Scan(to); err != nil {
		b.t.Fatalf("%s: %v", sql, err)
	}
}

func (b *bench) exec(sql string, args ...any) {
	b.t.Helper()
	if _, err := b.pool.Exec(context.Background(), sql, args...); err != nil {
		b.t.Fatalf("%s: %v", sql, err)
	}
}

// waitSucceeded waits until all n operations have succeeded and no job is left to run.
func (b *bench) waitSucceeded(n int) {
	b.t.Helper()
	testdb.Await(b.t, fmt.Sprintf("%d operations succeeded", n), func() bool {
		return b.count("operations WHERE status = 'succeeded'") == n &&
			b.count("river_job WHERE kind = $1 AND state NOT IN ('completed', 'discarded', 'cancelled')", DeliverKind) == 0
	})
}

// wantOneInvoiceEach: as many invoices as operations, each with the number that its operation knows, each POST of a key
// with the same bytes.
func (b *bench) wantOneInvoiceEach(n int) {
	b.t.Helper()
	invoices := b.erp.Invoices()
	if len(invoices) != n {
		b.t.Errorf("%d invoices, want %d", len(invoices), n)
	}
	for key, inv := range invoices {
		if b.count("operations WHERE key = $1 AND invoice_number = $2", key, inv.Number) != 1 {
			b.t.Errorf("invoice %s of key %s is not what its operation knows", inv.Number, key)
		}
	}
	for _, p := range b.erp.Posts() {
		if b.count("operations WHERE key = $1 AND request_hash = $2", p.Key, p.BodyHash[:]) != 1 {
			b.t.Errorf("POST %d of key %s carried other bytes than its operation's", p.N, p.Key)
		}
	}
}

// skewed is a clock that is wrong, in River's form.
type skewed struct{ by time.Duration }

func (s skewed) Now() time.Time       { return time.Now().Add(s.by) }
func (s skewed) NowOrNil() *time.Time { return nil }

// skewedClient is a client on a machine whose clock is wrong.
func (b *bench) skewedClient(by time.Duration) *Client {
	b.t.Helper()
	clock := skewed{by}
	config, err := riverConfig(b.pool, b.deps(), b.cfg, clock.Now)
	if err != nil {
		b.t.Fatal(err)
	}
	config.RetryPolicy = &retryPolicy{now: clock.Now, jitter: func() float64 { return 0 }}
	config.Test = river.TestConfig{Time: clock}
	client, err := newClient(b.pool, config, crmKinds(), clock.Now)
	if err != nil {
		b.t.Fatal(err)
	}
	return client
}
