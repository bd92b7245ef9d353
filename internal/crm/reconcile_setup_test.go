package crm_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"invoicebridge/internal/audit"
	"invoicebridge/internal/auth"
	"invoicebridge/internal/auth/erpstore"
	"invoicebridge/internal/crm"
	"invoicebridge/internal/crmdb"
	"invoicebridge/internal/erpapi"
	"invoicebridge/internal/httpapi"
	"invoicebridge/internal/invoice"
	"invoicebridge/internal/jobs"
	"invoicebridge/internal/testdb"
)

// bothSides are a CRM side and a real ERP, each on a database of its own.
type bothSides struct {
	t              *testing.T
	crm, erp       *pgxpool.Pool
	service        *crm.Service
	deliverer      *crm.Deliverer
	client         *erpapi.Client
	server         *httptest.Server
	writer, reader string // tokens of the ERP
	opts           crm.ReconcilerOptions
}

func setupBothSides(t *testing.T) *bothSides {
	t.Helper()
	t.Parallel()
	s := &bothSides{t: t, crm: testdb.CRM(t), erp: testdb.ERP(t)}
	s.startERP()
	s.startCRM()
	s.opts = crm.ReconcilerOptions{
		Token: func(string) string { return s.reader },
		Pause: func(ctx context.Context, _ time.Duration) error { return ctx.Err() },
	}
	return s
}

// startCRM makes the CRM side on its database.
func (s *bothSides) startCRM() {
	s.t.Helper()
	if _, err := crmdb.New(s.crm).TenantInsert(s.t.Context(), deliverTenant, "Acme"); err != nil {
		s.t.Fatal(err)
	}
	inserter, err := jobs.NewInserter(s.crm, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	s.service = crm.NewService(s.crm, inserter, crm.Options{})
	if s.client, err = erpapi.NewClient(erpapi.ClientConfig{BaseURL: s.server.URL, AttemptTimeout: 20 * time.Second}); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(s.client.CloseIdleConnections)
	s.deliverer = crm.NewDeliverer(s.crm, s.client, crm.DelivererOptions{Token: func(string) string { return s.writer }, Worker: "test"})
}

func (s *bothSides) startERP() {
	s.t.Helper()
	admin, by := auth.NewAdmin(erpstore.New(s.erp)), audit.By{Actor: "test"}
	if err := admin.CreateTenant(s.t.Context(), deliverTenant, "Acme", by); err != nil {
		s.t.Fatal(err)
	}
	for role, text := range map[auth.Role]*string{auth.RoleWriter: &s.writer, auth.RoleReader: &s.reader} {
		_, token, err := admin.CreateToken(s.t.Context(), deliverTenant, role, "test", by)
		if err != nil {
			s.t.Fatal(err)
		}
		*text = token
	}
	handler, err := httpapi.NewERP(httpapi.ERPDeps{
		Deps:     httpapi.Deps{Tokens: auth.NewVerifier(erpstore.New(s.erp)), Ready: s.erp.Ping, Pool: s.erp},
		Invoices: invoice.NewService(s.erp, invoice.Options{}),
	})
	if err != nil {
		s.t.Fatal(err)
	}
	s.server = httptest.NewServer(handler)
	s.t.Cleanup(s.server.Close)
}

func plainOrder(order string) crm.Order {
	quantity, price, rate := erpapi.MustDecimal("2"), erpapi.MustDecimal("10"), erpapi.MustDecimal("19")
	return crm.Order{
		Source: "crm-1", Order: order, Currency: "EUR", IssueDate: "2026-03-02",
		Customer: erpapi.Customer{Name: "Test Customer A", Country: "DE", VATID: "XX000000001"},
		Lines:    []erpapi.Line{{SKU: "P-1", Quantity: &quantity, UnitPrice: &price, VATRate: &rate, VATCategory: "S"}},
	}
}

// submitted takes orders in and gives the key of each one's first operation.
func (s *bothSides) submitted(orders ...crm.Order) (keys []string) {
	s.t.Helper()
	submissions, err := s.service.Submit(s.t.Context(), deliverTenant, crm.ChannelAPI, orders, crm.SubmitOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	for _, sub := range submissions {
		keys = append(keys, sub.Operations[0].Key)
	}
	return keys
}

// invoiced takes orders in and delivers them.
func (s *bothSides) invoiced(orders ...string) (keys []string) {
	s.t.Helper()
	all := make([]crm.Order, len(orders))
	for i, order := range orders {
		all[i] = plainOrder(order)
	}
	keys = s.submitted(all...)
	for _, key := range keys {
		s.deliver(key)
		if op := s.operation(key); op.Status != crm.StatusSucceeded {
			s.t.Fatalf("operation is %+v", op)
		}
	}
	return keys
}

func (s *bothSides) deliver(key string) {
	s.t.Helper()
	if _, err := s.deliverer.Deliver(s.t.Context(), s.id(key), nil); err != nil {
		s.t.Fatal(err)
	}
}

// issue lets somebody else than this CRM side issue an invoice.
func (s *bothSides) issue(key, body string) erpapi.Invoice {
	s.t.Helper()
	x := s.client.CreateInvoice(s.t.Context(), s.writer, key, []byte(body))
	if x.Invoice == nil {
		s.t.Fatalf("issue: %d %s", x.Status, x.Body)
	}
	return *x.Invoice
}

func forOrder(order string) string { return strings.Replace(base, "SO-1001", order, 1) }

func (s *bothSides) operation(key string) crm.Operation {
	s.t.Helper()
	op, err := s.service.GetOperation(context.Background(), deliverTenant, key)
	if err != nil {
		s.t.Fatal(err)
	}
	return op
}

func (s *bothSides) id(key string) (id uuid.UUID) {
	s.t.Helper()
	if err := s.crm.QueryRow(context.Background(), "SELECT id FROM operations WHERE key = $1", key).Scan(&id); err != nil {
		s.t.Fatal(err)
	}
	return id
}

// plant changes rows behind everybody's back: no trigger and no foreign key speaks against it.
func (s *bothSides) plant(pool *pgxpool.Pool, sql string, args ...any) {
	s.t.Helper()
	tx, err := pool.Begin(context.Background())
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.Background()) }()
	if _, err := tx.Exec(context.Background(), "SET LOCAL session_replication_role = replica"); err != nil {
		s.t.Fatal(err)
	}
	tag, err := tx.Exec(context.Background(), sql, args...)
	if err != nil || tag.RowsAffected() == 0 {
		s.t.Fatalf("%s: %v, %v", sql, tag, err)
	}
	if err := tx.Commit(context.Background()); err != nil {
		s.t.Fatal(err)
	}
}

// rewrite changes the document that the ERP has of a key.
func (s *bothSides) rewrite(key, old, replacement string) {
	s.t.Helper()
	s.plant(s.erp, `UPDATE invoices SET document = convert_to(replace(convert_from(document, 'UTF8'), $2, $3), 'UTF8')
	                WHERE operation_key = $1 AND position($2 in convert_from(document, 'UTF8')) > 0`, key, old, replacement)
}

// unlearn lets the CRM side forget what became of an operation.
func (s *bothSides) unlearn(key string) {
	s.t.Helper()
	s.plant(s.crm, `UPDATE operations SET status = 'unknown', finished_at = NULL, invoice_id = NULL, invoice_number = NULL,
	                next_attempt_at = now() + interval '1 hour' WHERE key = $1`, key)
}

// forgetInvoice lets the ERP lose an invoice, as a restored backup does.
func (s *bothSides) forgetInvoice(key string) {
	s.t.Helper()
	s.plant(s.erp, "DELETE FROM invoices WHERE operation_key = $1", key)
}

func (s *bothSides) reconciler() *crm.Reconciler { return crm.NewReconciler(s.crm, s.client, s.opts) }

// reconciles runs to the end.
func (s *bothSides) reconciles() crm.Reconciliation {
	s.t.Helper()
	report, err := s.reconciler().Run(s.t.Context(), deliverTenant, time.Time{})
	if err != nil {
		s.t.Fatalf("reconcile: %v", err)
	}
	return report
}

// divergences are those in a list, by kind and subject, through pages of two.
func (s *bothSides) divergences(resolved bool) map[string]crm.Divergence {
	s.t.Helper()
	all := map[string]crm.Divergence{}
	f := crm.DivergenceFilter{Resolved: &resolved, Limit: 2}
	for {
		page, next, err := s.service.ListDivergences(context.Background(), deliverTenant, f)
		if err != nil {
			s.t.Fatal(err)
		}
		for _, d := range page {
			name := string(d.Kind) + " " + d.Subject
			if _, twice := all[name]; twice {
				s.t.Errorf("%s is listed twice", name)
			}
			all[name] = d
		}
		if f.Cursor = next; next == "" {
			return all
		}
	}
}

// finds holds the open divergences against what is wanted: kind and subject.
func (s *bothSides) finds(want ...string) map[string]crm.Divergence {
	s.t.Helper()
	open := s.divergences(false)
	var got []string
	for name := range open {
		got = append(got, name)
	}
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		s.t.Errorf("open divergences (-want +got):\n%s", diff)
	}
	return open
}

func (s *bothSides) count(pool *pgxpool.Pool, from string) (n int) {
	s.t.Helper()
	if err := pool.QueryRow(context.Background(), "SELECT count(*) FROM "+from).Scan(&n); err != nil {
		s.t.Fatal(err)
	}
	return n
}

func numbered(prefix string, n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("%s-%04d", prefix, i)
	}
	return names
}

func (s *bothSides) inserter() *jobs.Inserter {
	s.t.Helper()
	inserter, err := jobs.NewInserter(s.crm, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	return inserter
}

// meddledBooks is the ERP with somebody in between.
type meddledBooks struct {
	crm.Books
	onList func(context.Context)
	lists  []erpapi.InvoiceQuery
	asked  []string
}

func (b *meddledBooks) ListInvoices(ctx context.Context, token string, q erpapi.InvoiceQuery) erpapi.InvoiceListing {
	b.lists = append(b.lists, q)
	listing := b.Books.ListInvoices(ctx, token, q)
	if b.onList != nil {
		b.onList(ctx)
	}
	return listing
}

func (b *meddledBooks) GetOperation(ctx context.Context, token, key string) erpapi.Exchange {
	b.asked = append(b.asked, key)
	return b.Books.GetOperation(ctx, token, key)
}
