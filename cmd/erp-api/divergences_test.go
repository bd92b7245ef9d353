package main

import (
	"context"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/uuid"

	"invoicebridge/internal/erpapi"
	"invoicebridge/internal/idempotency"
	"invoicebridge/internal/invoice"
	"invoicebridge/internal/target/targetsim"
	"invoicebridge/internal/testdb"
)

func TestRegistrationsAreReconciledFromTheCommandLine(t *testing.T) {
	t.Parallel()
	const token = "hush"
	sim, err := targetsim.Open(targetsim.Config{Token: token})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(sim)
	t.Cleanup(func() {
		server.Close()
		if err := sim.Close(); err != nil {
			t.Error(err)
		}
	})
	secret := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(secret, []byte(token), 0o600); err != nil {
		t.Fatal(err)
	}
	pool := testdb.ERP(t)
	db := "--database-url=" + testdb.DSN(t, pool)
	mustRun(t, "tenant", "create", db, "acme", "--name=Acme")
	request, err := erpapi.DecodeInvoiceRequest([]byte(`{"source":"crm-1","order":"SO-1","role":"final","currency":"EUR","issue_date":"2026-03-02",
		"customer":{"name":"A","country":"DE"},"lines":[{"sku":"P-1","quantity":"2","unit_price":"10","vat_rate":"19","vat_category":"S"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	key, err := idempotency.ParseKey([]string{"op-1"})
	if err != nil {
		t.Fatal(err)
	}
	result := invoice.NewService(pool, invoice.Options{}).Issue(t.Context(), []invoice.Command{{Tenant: "acme", Caller: "test", Key: key, Request: request}})[0]
	if result.Err != nil {
		t.Fatal(result.Err)
	}
	mustRun(t, "target", "set", db, "--tenant=acme", "--kind=einvoice", "--url="+server.URL+"/einvoice", "--credential=file:"+secret,
		"--locatable", "--absent-after=10m", "--reason=as agreed")
	// On record as registered, and the target knows nothing of it.
	_, err = pool.Exec(context.Background(), `INSERT INTO registrations
		(id, tenant_id, invoice_id, target_id, key, status, attempt, tried_since, first_sent_at, last_sent_at, reference, finished_at)
		VALUES ($1, 'acme', $2, 'einvoice', 'op-1', 'succeeded', 1, now() - interval '1 hour', now() - interval '1 hour', now() - interval '1 hour', 'REF-0', now())`,
		uuid.Must(uuid.NewV7()), result.Answer.InvoiceID)
	if err != nil {
		t.Fatal(err)
	}
	out := mustRun(t, "reconcile", db, "--tenant=acme", "--since=2026-01-01T00:00:00Z")
	if fields := strings.Fields(strings.Split(out, "\n")[1]); strings.Join(fields[2:], " ") != "1 1 0 0" {
		t.Errorf("reconcile says\n%s", out)
	}
	if out := mustRun(t, "divergences", "list", db, "--tenant=acme"); !strings.Contains(out, "status_differs") || !strings.Contains(out, "REF-0") {
		t.Errorf("divergences are\n%s", out)
	}
	if _, err := erpAPI(t, "divergences", "list", db, "--tenant=acme", "--kind=nonsense"); err == nil || !strings.Contains(err.Error(), "nonsense") {
		t.Errorf("a kind that there is not: %v", err)
	}
	if _, err := erpAPI(t, "divergences", "list", db, "--tenant=nope"); err == nil || !strings.Contains(err.Error(), `no tenant "nope"`) {
		t.Errorf("a tenant that there is not: %v", err)
	}
}
