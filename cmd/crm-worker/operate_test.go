package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"invoicebridge/internal/audit"
	"invoicebridge/internal/auth"
	"invoicebridge/internal/auth/erpstore"
	"invoicebridge/internal/crm"
	"invoicebridge/internal/erpapi"
	"invoicebridge/internal/httpapi"
	"invoicebridge/internal/invoice"
	"invoicebridge/internal/testdb"
)

func smallOrder(order string) crm.Order {
	quantity, price, rate := erpapi.MustDecimal("1"), erpapi.MustDecimal("10"), erpapi.MustDecimal("19")
	return crm.Order{
		Source: "crm-1", Order: order, Currency: "EUR", IssueDate: "2026-03-02", Customer: erpapi.Customer{Name: "A", Country: "DE"},
		Lines: []erpapi.Line{{SKU: "P-1", Quantity: &quantity, UnitPrice: &price, VATRate: &rate, VATCategory: "S"}},
	}
}

func TestOperationsAreReplayedAndRevisedFromTheCommandLine(t *testing.T) {
	t.Parallel()
	pool := testdb.CRM(t)
	database := "--database-url=" + testdb.DSN(t, pool)
	must(t, "tenant", "create", "acme", "--name=Acme", "--actor=me", database)
	key := submit(t, pool, smallOrder("SO-1"))
	exec := func(sql string) {
		t.Helper()
		if _, err := pool.Exec(context.Background(), sql); err != nil {
			t.Fatal(err)
		}
	}
	exec("UPDATE operations SET status = 'unknown', flagged_at = now(), attempt = 1, first_sent_at = now()")
	args := []string{key, "--tenant=acme", "--actor=ann", "--reason=the ERP is back", database}
	if out := must(t, append([]string{"operations", "replay"}, args...)...); !strings.Contains(out, `"status": "unknown"`) {
		t.Errorf("replay says %s", out)
	}
	if _, err := command(t, append([]string{"operations", "replay"}, args...)...); err == nil || !strings.Contains(err.Error(), "already queued") {
		t.Errorf("the second time: %v", err)
	}
	if _, err := command(t, "operations", "replay", key, "--tenant=acme", database); err == nil || !strings.Contains(err.Error(), "--reason") {
		t.Errorf("without a reason: %v", err)
	}
	exec("UPDATE operations SET status = 'failed', reason = 'rejected', finished_at = now(), next_attempt_at = NULL")
	file := filepath.Join(t.TempDir(), "request.json")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	revise := append([]string{"operations", "revise", "--file=" + file}, args...)
	write(`{"currency":"EUR","issue_date":"2026-03-02","customer":{"name":"A","country":"DE"},"lines":[{"quantity":"x","unit_price":"10","vat_category":"S"}]}`)
	if _, err := command(t, revise...); err == nil || !strings.Contains(err.Error(), "/lines/0/quantity: ") {
		t.Errorf("a wrong request: %v", err)
	}
	write(`{"currency":"EUR","issue_date":"2026-03-02","customer":{"name":"A","country":"DE"},"lines":[{"quantity":"2","unit_price":"10","vat_rate":"19","vat_category":"S"}]}`)
	if out := must(t, revise...); !strings.Contains(out, `"status": "pending"`) || strings.Contains(out, `"key": "`+key) {
		t.Errorf("revise says %s", out)
	}
	var audited int
	if err := pool.QueryRow(t.Context(), "SELECT count(*) FROM audit_entries WHERE actor = 'ann' AND subject = $1", key).Scan(&audited); err != nil || audited != 2 {
		t.Errorf("%d audit entries, %v", audited, err)
	}
}

// serveBooks starts an ERP with a tenant acme, and gives its address and tokens.
func serveBooks(t *testing.T) (url, reader, writer string) {
	t.Helper()
	erp := testdb.ERP(t)
	admin, by := auth.NewAdmin(erpstore.New(erp)), audit.By{Actor: "test"}
	if err := admin.CreateTenant(t.Context(), "acme", "Acme", by); err != nil {
		t.Fatal(err)
	}
	_, writer, err := admin.CreateToken(t.Context(), "acme", auth.RoleWriter, "test", by)
	if err != nil {
		t.Fatal(err)
	}
	_, reader, err = admin.CreateToken(t.Context(), "acme", auth.RoleReader, "test", by)
	if err != nil {
		t.Fatal(err)
	}
	handler, err := httpapi.NewERP(httpapi.ERPDeps{
		Deps:     httpapi.Deps{Tokens: auth.NewVerifier(erpstore.New(erp)), Ready: erp.Ping, Pool: erp},
		Invoices: invoice.NewService(erp, invoice.Options{}),
	})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.URL, reader, writer
}

func TestReconcilingFromTheCommandLineEnqueuesWhatWasNeverSent(t *testing.T) {
	t.Parallel()
	pool := testdb.CRM(t)
	database := "--database-url=" + testdb.DSN(t, pool)
	must(t, "tenant", "create", "acme", "--name=Acme", "--actor=me", database)
	url, reader, _ := serveBooks(t)
	key := submit(t, pool, smallOrder("SO-1"))
	for _, sql := range []string{"DELETE FROM river_job", "UPDATE operations SET next_attempt_at = now() - interval '1 hour'"} {
		if _, err := pool.Exec(context.Background(), sql); err != nil {
			t.Fatal(err)
		}
	}
	out := must(t, "reconcile", "--tenant=acme", "--erp-url="+url, "--erp-token=acme="+reader, database)
	if fields := strings.Fields(strings.Split(out, "\n")[1]); fields[4] != "1" {
		t.Errorf("reconcile says %s", out)
	}
	var queued int
	err := pool.QueryRow(t.Context(), `SELECT count(*) FROM river_job AS j JOIN operations AS o ON o.id::text = j.args ->> 'operation_id'
		WHERE j.kind = 'deliver_operation' AND o.key = $1`, key).Scan(&queued)
	if err != nil || queued != 1 {
		t.Errorf("%d jobs, want 1; %v", queued, err)
	}
}

func TestBooksAreReconciledFromTheCommandLine(t *testing.T) {
	t.Parallel()
	pool := testdb.CRM(t)
	database := "--database-url=" + testdb.DSN(t, pool)
	must(t, "tenant", "create", "acme", "--name=Acme", "--actor=me", database)
	url, reader, writer := serveBooks(t)
	client, err := erpapi.NewClient(erpapi.ClientConfig{BaseURL: url})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.CloseIdleConnections)
	x := client.CreateInvoice(t.Context(), writer, "foreign", []byte(`{"source":"crm-1","order":"SO-9","role":"final","currency":"EUR","issue_date":"2026-03-02",
		"customer":{"name":"A","country":"DE"},"lines":[{"sku":"P-1","quantity":"2","unit_price":"10","vat_rate":"19","vat_category":"S"}]}`))
	if x.Status != http.StatusCreated {
		t.Fatalf("issue: %d %s", x.Status, x.Body)
	}
	out := must(t, "reconcile", "--tenant=acme", "--erp-url="+url, "--erp-token=acme="+reader, "--since=2026-01-01T00:00:00Z", database)
	if fields := strings.Fields(strings.Split(out, "\n")[1]); fields[0] != "2026-01-01T00:00:00Z" || strings.Join(fields[2:], " ") != "1 1 0 0" {
		t.Errorf("reconcile says %s", out)
	}
	if out := must(t, "divergences", "list", "--tenant=acme", database); !strings.Contains(out, "missing_in_crm  foreign") || !strings.Contains(out, "SO-9") {
		t.Errorf("divergences are %s", out)
	}
	if out := must(t, "divergences", "list", "--tenant=acme", "--kind=amount_differs", "--all", database); strings.Contains(out, "foreign") {
		t.Errorf("divergences are %s", out)
	}
	if _, err := command(t, "divergences", "list", "--tenant=nope", database); err == nil || !strings.Contains(err.Error(), `no tenant "nope"`) {
		t.Errorf("a tenant that there is not: %v", err)
	}
	if _, err := command(t, "reconcile", "--tenant=acme", "--erp-url="+url, "--erp-token=other=x", database); err == nil || !strings.Contains(err.Error(), "acme") {
		t.Errorf("without a token: %v", err)
	}
}
