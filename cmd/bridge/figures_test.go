package main

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgxpool"

	"invoicebridge/internal/faultproxy"
	"invoicebridge/internal/testdb"
)

func execSQL(t *testing.T, pool *pgxpool.Pool, sql string, args ...any) {
	t.Helper()
	if _, err := pool.Exec(context.Background(), sql, args...); err != nil {
		t.Fatal(err)
	}
}

// wantOperation puts an order with one finished or cancelled operation into the CRM's database.
func wantOperation(t *testing.T, crm *pgxpool.Pool, order, status string) {
	t.Helper()
	execSQL(t, crm, `INSERT INTO orders (tenant_id, source, order_id, version, status, content, content_hash)
		VALUES ('demo', 'shop', $1, 1, 'confirmed', '{}', sha256('{}'))`, order)
	execSQL(t, crm, `INSERT INTO operations (id, tenant_id, key, kind, source, order_id, role, sequence, order_version,
			request, request_hash, status, finished_at, attempt, first_sent_at, invoice_id, invoice_number)
		VALUES (gen_random_uuid(), 'demo', 'key-' || $1, 'invoice', 'shop', $1, 'final', 1, 1, '{}', sha256('{}'), $2, now(),
			CASE $2 WHEN 'cancelled' THEN 0 ELSE 1 END, CASE $2 WHEN 'cancelled' THEN NULL ELSE now() END,
			CASE $2 WHEN 'succeeded' THEN gen_random_uuid() END, CASE $2 WHEN 'succeeded' THEN 'INV-' || $1 END)`, order, status)
}

func issueInvoice(t *testing.T, erp *pgxpool.Pool, order string, number int) {
	t.Helper()
	execSQL(t, erp, `INSERT INTO invoices (id, tenant_id, number, series_prefix, series_year, series_number, status, source,
			order_id, role, sequence, operation_key, fingerprint_version, fingerprint, currency, issue_date, customer_name,
			customer_country, net, vat, gross, payable, document, created_at)
		VALUES (gen_random_uuid(), 'demo', 'INV-' || $2::int, 'INV', 2026, $2::int, 'issued', 'shop', $1, 'final', 1,
			'key-' || $1 || '-' || $2::int, 1, sha256('{}'), 'EUR', '2026-03-02', 'A', 'DE', 1, 0, 1, 1, '{}', now())`, order, number)
}

func demoDatabases(t *testing.T) (erp, crm *pgxpool.Pool) {
	t.Helper()
	erp, crm = testdb.ERP(t), testdb.CRM(t)
	for _, pool := range []*pgxpool.Pool{erp, crm} {
		execSQL(t, pool, "INSERT INTO tenants (id, name) VALUES ('demo', 'Demo'), ('other', 'Other')")
	}
	return erp, crm
}

func TestFiguresFindWhatIsMissing(t *testing.T) {
	t.Parallel()
	erp, crm := demoDatabases(t)
	wantOperation(t, crm, "A", "succeeded")
	wantOperation(t, crm, "B", "succeeded") // the CRM side believes so, the ERP knows nothing of it
	wantOperation(t, crm, "C", "failed")
	wantOperation(t, crm, "D", "cancelled")
	issueInvoice(t, erp, "A", 1)
	issueInvoice(t, erp, "Z", 2) // not by way of the CRM

	got, examples, err := count(t.Context(), erp, crm, faultproxy.Stats{Requests: 5, AnswersLost: 2, Replays: 1, Conflicts: 3})
	if err != nil {
		t.Fatal(err)
	}
	want := figures{
		Orders: 4, Operations: 4, Requests: 5, AnswersLost: 2, Replays: 1, Conflicts: 3, Invoices: 2, Duplicates: 0, Missing: 2,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("figures (-want +got):\n%s", diff)
	}
	err = got.verdict(examples)
	if err == nil {
		t.Fatal("missing invoices are no error")
	}
	for _, text := range []string{"2 invoices are missing", "order B of shop", "order C of shop"} {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("the error does not say %q: %v", text, err)
		}
	}
}

func TestFiguresCountDuplicatesThemselves(t *testing.T) {
	t.Parallel()
	erp, crm := demoDatabases(t)
	execSQL(t, erp, "ALTER TABLE invoices DROP CONSTRAINT invoices_business_claim_key")
	wantOperation(t, crm, "A", "succeeded")
	for number := range 3 {
		issueInvoice(t, erp, "A", number+1)
	}
	got, examples, err := count(t.Context(), erp, crm, faultproxy.Stats{})
	if err != nil {
		t.Fatal(err)
	}
	if want := (figures{Orders: 1, Operations: 1, Invoices: 3, Duplicates: 2}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if err := got.verdict(examples); err == nil || !strings.Contains(err.Error(), "2 duplicate invoices") {
		t.Errorf("verdict: %v", err)
	}
}

func TestFiguresCompareMoreThanOnePage(t *testing.T) {
	t.Parallel()
	erp, crm := demoDatabases(t)
	execSQL(t, crm, `INSERT INTO orders (tenant_id, source, order_id, version, status, content, content_hash)
		SELECT 'demo', 'shop', n::text, 1, 'confirmed', '{}', sha256('{}') FROM generate_series(1, 2500) n`)
	execSQL(t, crm, `INSERT INTO operations (id, tenant_id, key, kind, source, order_id, role, sequence, order_version,
			request, request_hash, status, finished_at)
		SELECT gen_random_uuid(), 'demo', n::text, 'invoice', 'shop', n::text, 'final', 1, 1, '{}', sha256('{}'), 'failed', now()
		FROM generate_series(1, 2500) n`)
	issueInvoice(t, erp, "1", 1)
	got, examples, err := count(t.Context(), erp, crm, faultproxy.Stats{})
	if err != nil {
		t.Fatal(err)
	}
	if got.Missing != 2499 || len(examples) != mostExamples {
		t.Errorf("%d missing with %d examples, want 2499 with %d", got.Missing, len(examples), mostExamples)
	}
}

func TestFiguresInJSONAreOneLineOfTheAgreedForm(t *testing.T) {
	t.Parallel()
	f := figures{
		Orders: 1, Operations: 2, Requests: 3, AnswersLost: 4, Replays: 5, Conflicts: 6, Invoices: 7, Duplicates: 0, Missing: 0,
	}
	var out bytes.Buffer
	if err := f.printJSON(&out); err != nil {
		t.Fatal(err)
	}
	want := `{"orders":1,"operations":2,"requests":3,"answers_lost":4,"replays":5,"conflicts":6,"invoices":7,"duplicates":0,"missing":0}` + "\n"
	if out.String() != want {
		t.Errorf("got %s want %s", out.String(), want)
	}
	if err := f.verdict(nil); err != nil {
		t.Errorf("verdict: %v", err)
	}
}
