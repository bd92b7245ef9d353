package invoice

import (
	"context"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/jackc/pgx/v5/pgxpool"

	"invoicebridge/internal/erpapi"
	"invoicebridge/internal/erpdb"
	"invoicebridge/internal/idempotency"
	"invoicebridge/internal/postgres"
	"invoicebridge/internal/problem"
	"invoicebridge/internal/testdb"
)

const base = `{"source":"crm-1","order":"SO-1001","role":"final","currency":"EUR","issue_date":"2026-03-02",
"customer":{"name":"Test Customer A","country":"DE","vat_id":"XX000000001"},
"lines":[{"sku":"P-1","quantity":"2","unit_price":"10.00","vat_rate":"19","vat_category":"S"}]}`

const tenant = "t1"

// erp is a service on a database of its own.
type erp struct {
	*Service
	t    testing.TB
	pool *pgxpool.Pool
}

func setup(t testing.TB, tenants ...string) erp {
	t.Helper()
	pool := testdb.ERP(t)
	for _, id := range append(tenants, tenant) {
		if _, err := erpdb.New(pool).TenantInsert(t.Context(), id, "Tenant "+id); err != nil {
			t.Fatal(err)
		}
	}
	return erp{NewService(pool, Options{}), t, pool}
}

// replica is a second service on the same database, with connections of its own.
func (e erp) replica() erp {
	e.t.Helper()
	pool, err := postgres.OpenPool(e.t.Context(), postgres.PoolConfig{DSN: testdb.DSN(e.t, e.pool), MinConns: 1})
	if err != nil {
		e.t.Fatal(err)
	}
	e.t.Cleanup(pool.Close)
	return erp{NewService(pool, Options{}), e.t, pool}
}

// exec runs SQL of a test: a fault to inject, a row to plant.
func (e erp) exec(sql string, args ...any) {
	e.t.Helper()
	if _, err := e.pool.Exec(context.Background(), sql, args...); err != nil {
		e.t.Fatalf("%s: %v", sql, err)
	}
}

// count gives the one number that a query answers.
func (e erp) count(sql string, args ...any) (n int) {
	e.t.Helper()
	if err := e.pool.QueryRow(context.Background(), sql, args...).Scan(&n); err != nil {
		e.t.Fatalf("%s: %v", sql, err)
	}
	return n
}

func (e erp) invoices() int { e.t.Helper(); return e.count("SELECT count(*) FROM invoices") }

// issue sends one request, by tenant t1 unless the command names another.
func (e erp) issue(key string, request *erpapi.InvoiceRequest) Result {
	e.t.Helper()
	return e.Issue(context.Background(), []Command{command(e.t, key, request)})[0]
}

// mustIssue is issue where anything but an answer ends the test.
func (e erp) mustIssue(key string, request *erpapi.InvoiceRequest) *Answer {
	e.t.Helper()
	r := e.issue(key, request)
	if r.Err != nil {
		e.t.Fatalf("key %s: %v", key, r.Err)
	}
	return r.Answer
}

func command(t testing.TB, key string, request *erpapi.InvoiceRequest) Command {
	t.Helper()
	return Command{Tenant: tenant, Caller: "test", Key: parseKey(t, key), Request: request}
}

func parseKey(t testing.TB, text string) idempotency.Key {
	t.Helper()
	key, err := idempotency.ParseKey([]string{text})
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// request is BASE of CASES with members replaced: pairs of old and new text.
func request(t testing.TB, oldNew ...string) *erpapi.InvoiceRequest {
	t.Helper()
	body := base
	for i := 0; i < len(oldNew); i += 2 {
		if !strings.Contains(body, oldNew[i]) {
			t.Fatalf("the request has no %s", oldNew[i])
		}
		body = strings.Replace(body, oldNew[i], oldNew[i+1], 1)
	}
	return decode(t, body)
}

func decode(t testing.TB, body string) *erpapi.InvoiceRequest {
	t.Helper()
	r, err := erpapi.DecodeInvoiceRequest([]byte(body))
	if err != nil {
		t.Fatalf("%v in %s", err, body)
	}
	return r
}

func orderOf(t testing.TB, order string) *erpapi.InvoiceRequest {
	return request(t, `"SO-1001"`, `"`+order+`"`)
}

func document(t testing.TB, a *Answer) erpapi.Invoice {
	t.Helper()
	var inv erpapi.Invoice
	if err := json.Unmarshal(a.Document, &inv); err != nil {
		t.Fatal(err)
	}
	return inv
}

// wantProblem ends the test unless r is refused with a problem of this type.
func wantProblem(t testing.TB, r Result, want problem.Type) *problem.Problem {
	t.Helper()
	p := problem.As(r.Err)
	if p == nil || p.Type != want {
		t.Fatalf("got %+v, want problem %s", r, want)
	}
	return p
}

// wantRefused is wantProblem where the type is all that matters.
func wantRefused(t testing.TB, r Result, want problem.Type) {
	t.Helper()
	_ = wantProblem(t, r, want)
}
