package crm_test

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/jackc/pgx/v5"

	"invoicebridge/internal/crm"
	"invoicebridge/internal/crmdb"
	"invoicebridge/internal/erpapi"
	"invoicebridge/internal/jobs"
	"invoicebridge/internal/problem"
	"invoicebridge/internal/testdb"
)

// listedBy is an ERP that answers a question with one page of a list, and all further ones with an empty page.
type listedBy struct {
	page atomic.Pointer[[]byte] // nil: it fails
}

func (l *listedBy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	switch {
	case r.Method == http.MethodPost:
		w.WriteHeader(http.StatusInternalServerError)
	case strings.HasSuffix(r.URL.Path, "/v1/invoices") && r.URL.Query().Get("cursor") == "":
		_, _ = w.Write(*l.page.Load())
	case strings.HasSuffix(r.URL.Path, "/v1/invoices"):
		_, _ = w.Write([]byte(`{"items":[],"next_cursor":null}`))
	default:
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write([]byte(`{"type":"/problems/not-found"}`))
	}
}

// Whatever the ERP lists, a reconciliation comes to its end, or says that the list can't be read: no document stops it. Nothing
// succeeds by it but with an invoice of just what was asked for, and no divergence tells the token.
func FuzzReconciliation(f *testing.F) {
	const token = "hush-token"
	theERP := &listedBy{}
	server := httptest.NewServer(theERP)
	f.Cleanup(server.Close)
	pool := testdb.CRM(f)
	ctx := context.Background()
	if _, err := crmdb.New(pool).TenantInsert(ctx, deliverTenant, "Acme"); err != nil {
		f.Fatal(err)
	}
	inserter, err := jobs.NewInserter(pool, nil)
	if err != nil {
		f.Fatal(err)
	}
	service := crm.NewService(pool, inserter, crm.Options{})
	client, err := erpapi.NewClient(erpapi.ClientConfig{BaseURL: server.URL})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(client.CloseIdleConnections)
	submitted, err := service.Submit(ctx, deliverTenant, crm.ChannelAPI, []crm.Order{plainOrder("SO-1")}, crm.SubmitOptions{})
	if err != nil {
		f.Fatal(err)
	}
	key := submitted[0].Operations[0].Key
	row, err := crmdb.New(pool).ReconciliationGetOperation(ctx, 0, deliverTenant, key)
	if err != nil {
		f.Fatal(err)
	}
	deliverer := crm.NewDeliverer(pool, client, crm.DelivererOptions{Token: func(string) string { return token }, Worker: "test"})
	if _, err := deliverer.Deliver(ctx, row.ID, nil); err != nil { // fails there, so that nobody knows what became of it
		f.Fatal(err)
	}
	reconciler := crm.NewReconciler(pool, client, crm.ReconcilerOptions{
		Token: func(string) string { return token }, Pause: func(ctx context.Context, _ time.Duration) error { return ctx.Err() },
	})
	// again begins from there: nothing found, and the operation unknown.
	again := func() error {
		return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
			for _, sql := range []string{
				"SET LOCAL session_replication_role = replica", "DELETE FROM reconciliation_matches", "DELETE FROM reconciliation_runs", "DELETE FROM divergences",
				"UPDATE operations SET status = 'unknown', finished_at = NULL, invoice_id = NULL, invoice_number = NULL, reason = '', next_attempt_at = now() + interval '1 hour' WHERE status <> 'unknown'",
			} {
				if _, err := tx.Exec(ctx, sql); err != nil {
					return err
				}
			}
			return nil
		})
	}
	const id = "018f0000-0000-7000-8000-000000000001"
	for _, page := range []string{
		`{"items":[],"next_cursor":"\u0000"}`, `{"items":null}`, `{"items":[null,1,{},{"operation_key":"\u0000"}],"next_cursor":"x"}`, `{"items":[{"net":],"next_cursor":null}`, `{}`, ``, `<html>`,
		`{"items":[{"id":"` + id + `","number":"N","operation_key":"\ud800"}],"next_cursor":null}`,
	} {
		f.Add([]byte(page), "", "", "", "", "", "", int64(0), "")
	}
	for _, number := range []string{"INV-1", "\x00", " ", strings.Repeat("9", 5000), token} {
		f.Add([]byte(nil), number, "own", "crm-1", "SO-1", "final", "23.80", int64(1), "")
	}
	f.Add([]byte(nil), "INV-1", "other", "crm-1", "SO-1", "final", "23.80", int64(1), "next")
	f.Add([]byte(nil), "CN-1", "k\x00", "c\x00", "o\x00", "credit_note", "NaN", int64(-1), "\x00")
	f.Add([]byte(nil), "CN-1", "k-9", "crm-1", "SO-1", "credit_note", "1e99", int64(9223372036854775807), "x")
	f.Add([]byte(nil), "INV-1", "own", "crm-1", "SO-2", "\x00", strings.Repeat("9", 70), int64(1), "")
	f.Fuzz(func(t *testing.T, page []byte, number, operationKey, source, order, role, gross string, sequence int64, next string) {
		if len(page) == 0 {
			page = pageOf(t, id, number, operationKey, source, order, role, gross, sequence, next, key)
		}
		if err := again(); err != nil {
			t.Fatal(err)
		}
		theERP.page.Store(&page)
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		if _, err := reconciler.Run(ctx, deliverTenant, time.Time{}); err != nil && (problem.As(err) == nil || ctx.Err() != nil) {
			t.Fatalf("%q stops the reconciliation: %v", page, err)
		}
		operation, err := service.GetOperation(ctx, deliverTenant, key)
		if err != nil {
			t.Fatal(err)
		}
		if operation.Status != crm.StatusUnknown && (operation.Status != crm.StatusSucceeded || !asks(page, row.Request)) {
			t.Fatalf("by %q the operation is %+v", page, operation)
		}
		found, _, err := service.ListDivergences(ctx, deliverTenant, crm.DivergenceFilter{Limit: 100})
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range found {
			if strings.Contains(d.Ours+d.Theirs+d.Action, token) {
				t.Fatalf("%q is told as %+v", page, d)
			}
		}
	})
}

// pageOf is a list with one invoice, of the order's own content but for what is given. The key "own" is the operation's.
func pageOf(t *testing.T, id, number, operationKey, source, order, role, gross string, sequence int64, next, own string) []byte {
	t.Helper()
	text := func(s string) string { return strings.ToValidUTF8(s, "\ufffd") }
	if operationKey == "own" {
		operationKey = own
	}
	o := plainOrder(text(order))
	inv := erpapi.Invoice{
		ID: id, Number: text(number), OperationKey: text(operationKey), Source: text(source), Order: o.Order, Role: erpapi.Role(text(role)), Sequence: sequence,
		Currency: o.Currency, IssueDate: o.IssueDate, Customer: o.Customer, Net: "20.00", VAT: "3.80", Gross: text(gross), Payable: text(gross),
		Lines: []erpapi.InvoiceLine{{Line: o.Lines[0], Net: "20.00"}}, VATBreakdown: []erpapi.VATGroup{{Category: "S", Rate: o.Lines[0].VATRate, Net: "20.00", VAT: "3.80"}},
	}
	p := erpapi.InvoicePage{Items: []erpapi.Invoice{inv}}
	if next = text(next); next != "" {
		p.NextCursor = &next
	}
	page, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	return page
}

// asks says whether a page has an invoice of just this request.
func asks(page, request []byte) bool {
	var p erpapi.InvoicePage
	if json.Unmarshal(page, &p) != nil {
		return false
	}
	for _, inv := range p.Items {
		if form, err := inv.Request().Canonical(); err == nil && bytes.Equal(form, request) {
			return true
		}
	}
	return false
}
