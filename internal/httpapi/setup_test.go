package httpapi_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/jackc/pgx/v5/pgxpool"

	"invoicebridge/internal/app"
	"invoicebridge/internal/audit"
	"invoicebridge/internal/auth"
	"invoicebridge/internal/auth/erpstore"
	"invoicebridge/internal/erpapi"
	"invoicebridge/internal/httpapi"
	"invoicebridge/internal/invoice"
	"invoicebridge/internal/problem"
	"invoicebridge/internal/testdb"
)

const base = `{"source":"crm-1","order":"SO-1001","role":"final","currency":"EUR","issue_date":"2026-03-02",` +
	`"customer":{"name":"Test Customer A","country":"DE","vat_id":"XX000000001"},` +
	`"lines":[{"sku":"P-1","quantity":"2","unit_price":"10.00","vat_rate":"19","vat_category":"S"}]}`

// forOrder is base for another order.
func forOrder(order string) string { return strings.Replace(base, "SO-1001", order, 1) }

// erp is a running ERP with two tenants, whose every answer is held against the contract.
type erp struct {
	t      testing.TB
	url    string
	pool   *pgxpool.Pool // the test's own, not the server's
	tokens map[string]string
}

// startERP runs the whole service as in production, on a port and a database of its own, until the test ends.
func startERP(t testing.TB) erp {
	t.Helper()
	return newERP(t).replica()
}

// startERPWithoutWorker is startERP with nobody who works on registrations.
func startERPWithoutWorker(t testing.TB) erp {
	t.Helper()
	return newERP(t).run(app.RegisterConfig{Disabled: true})
}

// replica is one more service on the same database.
func (e erp) replica() erp {
	e.t.Helper()
	return e.run(app.RegisterConfig{})
}

func (e erp) run(registering app.RegisterConfig) erp {
	e.t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	address, ended := make(chan string, 1), make(chan error, 1)
	cfg := app.ERPConfig{Listen: "127.0.0.1:0", DatabaseURL: testdb.DSN(e.t, e.pool), MaxConns: 10, Registering: registering}
	go func() {
		ended <- app.RunERP(ctx, cfg, slog.New(slog.DiscardHandler), func(addr string) { address <- addr })
	}()
	e.t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			e.t.Errorf("the service did not start, or did not stop gracefully: %v", err)
		}
	})
	select {
	case addr := <-address:
		e.url = "http://" + addr
	case err := <-ended:
		ended <- err
		e.t.FailNow()
	}
	return e
}

// serveERP serves the routes with parts of the test's own.
func serveERP(t testing.TB, change func(*httpapi.ERPDeps)) erp {
	t.Helper()
	e := newERP(t)
	invoices := invoice.NewService(e.pool, invoice.Options{})
	deps := httpapi.ERPDeps{
		Deps: httpapi.Deps{
			Tokens: auth.NewVerifier(erpstore.New(e.pool)),
			Ready:  e.pool.Ping,
			Pool:   e.pool,
		},
		Invoices:      invoice.NewBatcher(invoices),
		Registrations: invoices,
	}
	change(&deps)
	handler, err := httpapi.NewERP(deps)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	e.url = server.URL
	return e
}

// newERP has the database, tenants t1 and t2, and tokens: "writer" and so on of t1 (one for each role), "t2" of a writer of t2.
func newERP(t testing.TB) erp {
	t.Helper()
	e := erp{t: t, pool: testdb.ERP(t), tokens: map[string]string{}}
	admin := auth.NewAdmin(erpstore.New(e.pool))
	by := audit.By{Actor: "test"}
	for _, tenant := range []string{"t1", "t2"} {
		if err := admin.CreateTenant(t.Context(), tenant, "Tenant "+tenant, by); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []struct{ name, tenant, role string }{
		{"reader", "t1", "reader"}, {"writer", "t1", "writer"}, {"admin", "t1", "admin"}, {"metrics", "t1", "metrics"}, {"t2", "t2", "writer"},
	} {
		_, text, err := admin.CreateToken(t.Context(), want.tenant, auth.Role(want.role), want.name, by)
		if err != nil {
			t.Fatal(err)
		}
		e.tokens[want.name] = text
	}
	return e
}

// answer is a response that was read to its end.
type answer struct {
	t      testing.TB
	status int
	header http.Header
	body   []byte
}

// do sends a request and holds the answer against the contract.
func (e erp) do(r *http.Request) answer {
	e.t.Helper()
	response, err := http.DefaultTransport.RoundTrip(r) // no redirects, no cookies
	if err != nil {
		e.t.Fatalf("%s %s: %v", r.Method, r.URL, err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		e.t.Fatalf("%s %s: read the answer: %v", r.Method, r.URL, err)
	}
	a := answer{e.t, response.StatusCode, response.Header, body}
	checkAnswer(e.t, r, a)
	return a
}

func (e erp) request(method, path, token string, body []byte) *http.Request {
	e.t.Helper()
	r, err := http.NewRequestWithContext(context.Background(), method, e.url+path, bytes.NewReader(body))
	if err != nil {
		e.t.Fatal(err)
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+e.tokens[token])
	}
	return r
}

func (e erp) get(token, path string) answer {
	e.t.Helper()
	return e.do(e.request(http.MethodGet, path, token, nil))
}

// post issues an invoice as t1's writer.
func (e erp) post(key, body string) answer {
	e.t.Helper()
	return e.postAs("writer", key, body)
}

func (e erp) postAs(token, key, body string) answer {
	e.t.Helper()
	return e.do(e.postRequest(token, key, []byte(body)))
}

func (e erp) postRequest(token, key string, body []byte) *http.Request {
	e.t.Helper()
	r := e.request(http.MethodPost, "/v1/invoices", token, body)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Idempotency-Key", key)
	return r
}

// count gives the one number that a query answers.
func (e erp) count(sql string, args ...any) (n int) {
	e.t.Helper()
	if err := e.pool.QueryRow(context.Background(), sql, args...).Scan(&n); err != nil {
		e.t.Fatalf("%s: %v", sql, err)
	}
	return n
}

func (e erp) exec(sql string) {
	e.t.Helper()
	if _, err := e.pool.Exec(context.Background(), sql); err != nil {
		e.t.Fatalf("%s: %v", sql, err)
	}
}

// wantStored holds the database to a number of invoices and reservations.
func (e erp) wantStored(n int) {
	e.t.Helper()
	if got := e.count("SELECT count(*) FROM invoices"); got != n {
		e.t.Errorf("there are %d invoices, want %d", got, n)
	}
	if got := e.count("SELECT count(*) FROM idempotency_records"); got != n {
		e.t.Errorf("there are %d reservations, want %d", got, n)
	}
}

// wantFirst holds the answer to a first 201, without the marker.
func (a answer) wantFirst() answer {
	a.t.Helper()
	if a.status != http.StatusCreated || a.header.Get("Idempotent-Replayed") != "" {
		a.t.Fatalf("got %d, replayed %q: %s\nwant a first 201", a.status, a.header.Get("Idempotent-Replayed"), a.body)
	}
	return a
}

// wantSame holds the answer to be the first one again.
func (a answer) wantSame(first answer) {
	a.t.Helper()
	if a.status != first.status || !bytes.Equal(a.body, first.body) {
		a.t.Fatalf("got %d %s\nwant %d %s", a.status, a.body, first.status, first.body)
	}
	for _, name := range []string{"Location", "Content-Type", "Idempotency-First-Seen", "Idempotency-Expires"} {
		if a.header.Get(name) != first.header.Get(name) {
			a.t.Errorf("%s is %q, want %q as first", name, a.header.Get(name), first.header.Get(name))
		}
	}
	if got := a.header.Get("Idempotent-Replayed"); got != "true" {
		a.t.Errorf("Idempotent-Replayed is %q, want true", got)
	}
}

// document is a problem document as a caller reads it.
type document struct {
	Type        string               `json:"type"`
	Status      int                  `json:"status"`
	Detail      string               `json:"detail"`
	Instance    string               `json:"instance"`
	Errors      []problem.FieldError `json:"errors"`
	Differences []string             `json:"differences"`
	Invoice     *problem.InvoiceRef  `json:"invoice"`
	SameContent *bool                `json:"same_content"`
}

// wantProblem holds the answer to a problem of a type, and gives it.
func (a answer) wantProblem(status int, want problem.Type) (d document) {
	a.t.Helper()
	if got := a.header.Get("Content-Type"); got != "application/problem+json" {
		a.t.Fatalf("got %d %s: %.500s\nwant a problem document", a.status, got, a.body)
	}
	a.decode(&d)
	if a.status != status || d.Status != status || d.Type != "/problems/"+string(want) {
		a.t.Fatalf("got %d %s\nwant %d %s", a.status, a.body, status, want)
	}
	if id := a.header.Get("X-Request-Id"); d.Instance != "urn:uuid:"+id {
		a.t.Errorf("instance is %q, the request's id %q", d.Instance, id)
	}
	return d
}

func (a answer) decode(v any) {
	a.t.Helper()
	if err := json.Unmarshal(a.body, v); err != nil {
		a.t.Fatalf("read the answer %.500s: %v", a.body, err)
	}
}

func (a answer) invoice() (inv erpapi.Invoice) {
	a.t.Helper()
	a.decode(&inv)
	return inv
}
