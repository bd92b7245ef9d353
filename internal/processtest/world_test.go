package processtest

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"invoicebridge/internal/faultproxy"
	"invoicebridge/internal/fleet"
	"invoicebridge/internal/testdb"
)

// world is a pair of migrated databases with one tenant, and what the programs need to know to serve on them.
type world struct {
	t          testing.TB
	erp, crm   *pgxpool.Pool
	erpDSN     string
	crmDSN     string
	erpToken   string
	crmToken   string
	httpClient *http.Client
}

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{t: t, erp: testdb.ERP(t), crm: testdb.CRM(t), httpClient: &http.Client{Timeout: patience}}
	w.erpDSN, w.crmDSN = testdb.DSN(t, w.erp), testdb.DSN(t, w.crm)
	w.erpToken = administer(t, "erp-api", "ERP_DATABASE_URL="+w.erpDSN)
	w.crmToken = administer(t, "crm-worker", "CRM_DATABASE_URL="+w.crmDSN)
	return w
}

func administer(t testing.TB, program, database string) (token string) {
	t.Helper()
	token, _, err := built(t).Administer(t.Context(), program, []string{database}, "acme")
	if err != nil {
		t.Fatal(err)
	}
	return token
}

func (w *world) serveERP(env ...string) *fleet.Process {
	return serve(w.t, "erp-api", append([]string{"ERP_DATABASE_URL=" + w.erpDSN}, env...)...)
}

func (w *world) serveCRM(erpURL string, env ...string) *fleet.Process {
	return serve(w.t, "crm-worker", append([]string{
		"CRM_DATABASE_URL=" + w.crmDSN, "ERP_URL=" + erpURL, "ERP_TOKENS=acme=" + w.erpToken,
		"ATTEMPT_TIMEOUT=2s", "CRM_SWEEP_INTERVAL=1s",
	}, env...)...)
}

// invoiceBody is BASE of the fault collection, for any order.
func invoiceBody(order string) string {
	return fmt.Sprintf(`{"source":"crm-1","order":%q,"role":"final","currency":"EUR","issue_date":"2026-03-02",`+
		`"customer":{"name":"Test Customer A","country":"DE","vat_id":"XX000000001"},`+
		`"lines":[{"sku":"P-1","quantity":"2","unit_price":"10.00","vat_rate":"19","vat_category":"S"}]}`, order)
}

// answer is what came back, read to its end.
type answer struct {
	status int
	header http.Header
	body   string
	err    error
}

func (w *world) send(base, path, token, key, body string) answer {
	req, err := http.NewRequestWithContext(w.t.Context(), http.MethodPost, base+path, strings.NewReader(body))
	if err != nil {
		return answer{err: err}
	}
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Content-Type", "application/json")
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	res, err := w.httpClient.Do(req)
	if err != nil {
		return answer{err: err}
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	return answer{status: res.StatusCode, header: res.Header, body: string(text), err: err}
}

func (w *world) invoice(base, key, order string) answer {
	return w.send(base, "/v1/invoices", w.erpToken, key, invoiceBody(order))
}

func (w *world) submit(base string, orders ...string) {
	w.t.Helper()
	bodies := make([]string, len(orders))
	for i, order := range orders {
		bodies[i] = invoiceBody(order)
	}
	got := w.send(base, "/v1/orders", w.crmToken, "", "["+strings.Join(bodies, ",")+"]")
	if got.err != nil || got.status != http.StatusCreated {
		w.t.Fatalf("orders were not taken: %d %v %s", got.status, got.err, got.body)
	}
}

// number runs a query that gives one number.
func number(t testing.TB, pool *pgxpool.Pool, query string, args ...any) int {
	t.Helper()
	var n int
	if err := pool.QueryRow(t.Context(), query, args...).Scan(&n); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return n
}

func sqlExec(t testing.TB, pool *pgxpool.Pool, query string, args ...any) {
	t.Helper()
	if _, err := pool.Exec(t.Context(), query, args...); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}

// wantInvoices holds the ERP's books to the invariants: so many invoices, one per claim, numbers without holes or doubles.
func (w *world) wantInvoices(want int) {
	w.t.Helper()
	if got := number(w.t, w.erp, `SELECT count(*) FROM invoices`); got != want {
		w.t.Errorf("%d invoices, want %d", got, want)
	}
	if n := number(w.t, w.erp, `SELECT count(DISTINCT (source, order_id, role, sequence)) FROM invoices`); n != want {
		w.t.Errorf("%d business claims among %d invoices", n, want)
	}
	holes := `SELECT coalesce(max(series_number), 0) - count(DISTINCT series_number) FROM invoices`
	if n := number(w.t, w.erp, holes); n != 0 {
		w.t.Errorf("the series has %d holes", n)
	}
}

// wantDelivered holds the CRM's books to the invariants: all operations succeeded with an invoice that the ERP has
// under the same key, and nobody ever sent anything but the frozen bytes.
func (w *world) wantDelivered(want int) {
	w.t.Helper()
	if got := number(w.t, w.crm, `SELECT count(*) FROM operations WHERE status = 'succeeded'`); got != want {
		w.t.Errorf("%d operations succeeded, want %d", got, want)
	}
	rows, err := w.crm.Query(w.t.Context(), `SELECT key, invoice_number FROM operations WHERE status = 'succeeded'`)
	if err != nil {
		w.t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var key, invoice string
		if err := rows.Scan(&key, &invoice); err != nil {
			w.t.Fatal(err)
		}
		if n := number(w.t, w.erp, `SELECT count(*) FROM invoices WHERE operation_key = $1 AND number = $2`, key, invoice); n != 1 {
			w.t.Errorf("operation %s says it is invoice %s; the ERP does not", key, invoice)
		}
	}
	if err := rows.Err(); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) settled() bool {
	return number(w.t, w.crm, `SELECT count(*) FROM operations WHERE status NOT IN ('succeeded', 'failed')`) == 0
}

// recorder stands in front of an ERP and keeps what the worker sent: every key with the bodies that came under it.
type recorder struct {
	*httptest.Server
	sent chan request
}

type request struct{ key, body string }

// record forwards to upstream; before, where given, may do something to the request and says whether it is done.
func record(t testing.TB, upstream string, spoil func(w http.ResponseWriter, r *http.Request, body []byte) bool) *recorder {
	t.Helper()
	rec := &recorder{sent: make(chan request, 10_000)}
	rec.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		if r.Method == http.MethodPost {
			rec.sent <- request{r.Header.Get("Idempotency-Key"), string(body)}
		}
		if spoil != nil && spoil(w, r, body) {
			return
		}
		forward(w, r, upstream, body)
	}))
	t.Cleanup(rec.CloseClientConnections)
	t.Cleanup(rec.Close)
	return rec
}

// forward hands a request on and the answer back, unchanged.
func forward(w http.ResponseWriter, r *http.Request, upstream string, body []byte) {
	out, err := http.NewRequestWithContext(r.Context(), r.Method, upstream+r.URL.RequestURI(), bytes.NewReader(body))
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	out.Header = r.Header.Clone()
	res, err := http.DefaultTransport.RoundTrip(out)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	defer res.Body.Close()
	for name, values := range res.Header {
		w.Header()[name] = values
	}
	w.WriteHeader(res.StatusCode)
	_, _ = io.Copy(w, res.Body)
}

// next is the oldest request that has not been looked at.
func (rec *recorder) next(t testing.TB) request {
	t.Helper()
	select {
	case r := <-rec.sent:
		return r
	default:
		t.Fatal("nothing was sent")
		return request{}
	}
}

// wantOneBodyPerKey says that all that was sent under one key were the same bytes.
func (rec *recorder) wantOneBodyPerKey(t testing.TB) (requests int) {
	t.Helper()
	bodies := map[string]string{}
	for {
		select {
		case r := <-rec.sent:
			requests++
			if first, known := bodies[r.key]; known && first != r.body {
				t.Errorf("under key %s other bytes were sent:\n%s\n%s", r.key, first, r.body)
			}
			bodies[r.key] = r.body
		default:
			return requests
		}
	}
}

// faulty is the demo's proxy in front of an ERP.
func faulty(t testing.TB, upstream string, rates faultproxy.Rates) string {
	t.Helper()
	proxy, err := faultproxy.New(faultproxy.Config{Upstream: parse(t, upstream), Seed: 7, Rates: rates, Hold: 4 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(proxy)
	t.Cleanup(server.CloseClientConnections)
	t.Cleanup(server.Close)
	return server.URL
}

func parse(t testing.TB, text string) *url.URL {
	t.Helper()
	u, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return u
}
