package app_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"invoicebridge/internal/app"
	"invoicebridge/internal/audit"
	"invoicebridge/internal/auth"
	"invoicebridge/internal/auth/crmstore"
	"invoicebridge/internal/auth/erpstore"
	"invoicebridge/internal/backoff"
	"invoicebridge/internal/crm"
	"invoicebridge/internal/logctx"
	"invoicebridge/internal/target/targetsim"
	"invoicebridge/internal/telemetry"
	"invoicebridge/internal/testdb"
)

// traced is both services and a target in one process, with one exporter for all that they trace.
type traced struct {
	t        *testing.T
	spans    *tracetest.InMemoryExporter
	log      *syncLog
	erp, crm *pgxpool.Pool
	sim      *targetsim.Sim
	crmURL   string
	erpURL   string   // around what decides of requests
	secrets  []string // that no span may have
	crmToken string
	erpToken string
	// way decides what becomes of the next request to the ERP.
	way atomic.Int32
}

// What becomes of requests on their way to the ERP.
const (
	wayOpen       int32 = iota
	wayLoseAnswer       // of the next invoice; then the way is open
	wayShut             // 503, until it is opened
)

// tracing starts everything. change may change how.
func tracing(t *testing.T, change func(*app.ERPConfig, *app.CRMConfig)) *traced {
	t.Helper()
	t.Parallel()
	w := &traced{t: t, spans: tracetest.NewInMemoryExporter(), log: new(syncLog), erp: testdb.ERP(t), crm: testdb.CRM(t)}
	w.startTarget()
	erpCfg := app.ERPConfig{
		Listen: "127.0.0.1:0", DatabaseURL: testdb.DSN(t, w.erp), ShutdownTimeout: 5 * time.Second, Traces: telemetry.Config{Exporter: w.spans},
		Registering: app.RegisterConfig{SweepInterval: time.Second, BackOff: backoff.BackOff{Base: time.Millisecond, Cap: time.Millisecond, Slow: time.Millisecond}},
	}
	crmCfg := app.CRMConfig{
		Listen: "127.0.0.1:0", DatabaseURL: testdb.DSN(t, w.crm), ShutdownTimeout: 5 * time.Second, Traces: telemetry.Config{Exporter: w.spans},
		SweepInterval: time.Second, BackOff: crm.BackOff{Base: time.Millisecond, Cap: time.Millisecond, Slow: time.Millisecond},
	}
	if change != nil {
		change(&erpCfg, &crmCfg)
	}
	w.erpToken = w.token(auth.NewAdmin(erpstore.New(w.erp)))
	w.crmToken = w.token(auth.NewAdmin(crmstore.New(w.crm)))
	erpURL := w.serve(func(ctx context.Context, ready func(string)) error { return app.RunERP(ctx, erpCfg, w.logger(), ready) })
	w.erpURL = erpURL
	crmCfg.ERPURL, crmCfg.ERPTokens = w.startWay(erpURL), []string{"acme=" + w.erpToken}
	w.crmURL = w.serve(func(ctx context.Context, ready func(string)) error { return app.RunCRM(ctx, crmCfg, w.logger(), ready) })
	testdb.Await(t, "the reconciliation that begins with the service is over: it would settle what a retry is to", func() bool {
		var finished int
		w.scan(w.crm, &finished, "SELECT count(*) FROM reconciliation_runs WHERE finished_at IS NOT NULL")
		return finished > 0
	})
	return w
}

func (w *traced) logger() *slog.Logger {
	return slog.New(logctx.Handler{Handler: slog.NewTextHandler(w.log, &slog.HandlerOptions{Level: slog.LevelDebug})})
}

func (w *traced) startTarget() {
	w.t.Helper()
	var err error
	if w.sim, err = targetsim.Open(targetsim.Config{Token: "hush-gateway"}); err != nil {
		w.t.Fatal(err)
	}
	server := httptest.NewServer(w.sim)
	w.t.Cleanup(func() { w.sim.EndWaiting(); server.Close() })
	token := filepath.Join(w.t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("hush-gateway\n"), 0o600); err != nil {
		w.t.Fatal(err)
	}
	w.secrets = append(w.secrets, "hush-gateway")
	setTarget(w.t, w.erp, server.URL+"/einvoice", "file:"+token, time.Hour)
}

func (w *traced) token(admin *auth.Admin) string {
	w.t.Helper()
	by := audit.By{Actor: "test"}
	_ = admin.CreateTenant(w.t.Context(), "acme", "Acme", by) // the target's has been made already
	_, token, err := admin.CreateToken(w.t.Context(), "acme", auth.RoleWriter, "test", by)
	if err != nil {
		w.t.Fatal(err)
	}
	w.secrets = append(w.secrets, token, token[strings.LastIndex(token, "_")+1:])
	return token
}

// serve runs a service until the end of the test and gives its address.
func (w *traced) serve(run func(ctx context.Context, ready func(string)) error) string {
	w.t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	ready, ended := make(chan string, 1), make(chan error, 1)
	go func() { ended <- run(ctx, func(addr string) { ready <- addr }) }()
	w.t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			w.t.Errorf("a stop is no error: %v", err)
		}
	})
	select {
	case addr := <-ready:
		return "http://" + addr
	case err := <-ended:
		ended <- nil
		w.t.Fatalf("it does not start: %v", err)
		return ""
	}
}

// startWay is between the CRM side and the ERP.
func (w *traced) startWay(erpURL string) string {
	to, err := url.Parse(erpURL)
	if err != nil {
		w.t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(to)
	proxy.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	proxy.ModifyResponse = func(answer *http.Response) error {
		if answer.Request.Method == http.MethodPost && w.way.CompareAndSwap(wayLoseAnswer, wayOpen) { // and not reconciliation's
			panic(http.ErrAbortHandler) // the ERP has done its work
		}
		return nil
	}
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if w.way.Load() == wayShut {
			rw.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		proxy.ServeHTTP(rw, r)
	}))
	w.t.Cleanup(server.Close)
	return server.URL
}

const (
	customerName = "Zephyrine Quillfeather"
	vatID        = "XX987654321"
)

func orderJSON(order string) string {
	return fmt.Sprintf(`{"source":"crm-1","order":%q,"currency":"EUR","issue_date":"2026-03-02",
	"customer":{"name":%q,"country":"DE","vat_id":%q},"note":"for %s","lines":[{"sku":"P-1","description":"A secret gift",
	"quantity":"2","unit_price":"10.00","vat_rate":"19","vat_category":"S"}]}`, order, customerName, vatID, customerName)
}

// submit hands orders in as a CRM does, and gives the trace that it has begun for that.
func (w *traced) submit(body string) trace.TraceID {
	w.t.Helper()
	id, span := newTrace(w.t)
	request, err := http.NewRequestWithContext(w.t.Context(), http.MethodPost, w.crmURL+"/v1/orders", strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+w.crmToken)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Traceparent", fmt.Sprintf("00-%s-%s-01", id, span))
	request.Header.Set("Baggage", "customer="+url.QueryEscape(customerName))
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		w.t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusCreated {
		text, _ := io.ReadAll(answer.Body)
		w.t.Fatalf("status is %d: %s", answer.StatusCode, text)
	}
	return id
}

func (w *traced) scan(pool *pgxpool.Pool, to any, sql string) {
	w.t.Helper()
	if err := pool.QueryRow(w.t.Context(), sql).Scan(to); err != nil {
		w.t.Fatalf("%s: %v", sql, err)
	}
}

func (w *traced) exec(pool *pgxpool.Pool, sql string) {
	w.t.Helper()
	if _, err := pool.Exec(w.t.Context(), sql); err != nil {
		w.t.Fatalf("%s: %v", sql, err)
	}
}

// awaitRegistered waits until n invoices are registered and the runs that did it have ended their spans.
func (w *traced) awaitRegistered(n int) {
	w.t.Helper()
	testdb.Await(w.t, fmt.Sprintf("%d are registered", n), func() bool {
		var succeeded int
		w.scan(w.erp, &succeeded, "SELECT count(*) FROM registrations WHERE status = 'succeeded'")
		if succeeded != n || len(w.named("river.work/register_invoice", "invoicebridge.outcome", "accepted")) != n {
			return false
		}
		var operations int // the run that delivers one may end after the registration
		w.scan(w.crm, &operations, "SELECT count(*) FROM operations")
		const job, outcome = "river.work/deliver_operation", "invoicebridge.outcome"
		return len(w.named(job, outcome, "delivered"))+len(w.named(job, outcome, "replayed")) == operations
	})
}

// named are the ended spans of a name that have an attribute of some value.
func (w *traced) named(name string, key attribute.Key, value string) (found tracetest.SpanStubs) {
	for _, s := range w.spans.GetSpans() {
		if s.Name == name && attributesOf(s)[string(key)] == value {
			found = append(found, s)
		}
	}
	return found
}

func attributesOf(s tracetest.SpanStub) map[string]string {
	all := map[string]string{}
	for _, a := range s.Attributes {
		all[string(a.Key)] = a.Value.String()
	}
	return all
}

// tree draws a trace, one span a line with its kind and service, statements and connections left out. Siblings stand in the
// order in which they began.
func (w *traced) tree(id trace.TraceID) string {
	children := map[trace.SpanID]tracetest.SpanStubs{}
	for _, s := range w.spans.GetSpans() {
		if s.SpanContext.TraceID() == id && !isStatement(s) {
			children[s.Parent.SpanID()] = append(children[s.Parent.SpanID()], s)
		}
	}
	drawn := map[trace.SpanID]bool{}
	var out strings.Builder
	var draw func(parent trace.SpanID, indent string)
	draw = func(parent trace.SpanID, indent string) {
		drawn[parent] = true
		below := children[parent]
		slices.SortStableFunc(below, func(a, b tracetest.SpanStub) int { return a.StartTime.Compare(b.StartTime) })
		for _, s := range below {
			fmt.Fprintf(&out, "%s%s (%s, %s)%s\n", indent, s.Name, s.SpanKind, serviceOf(s), outcomeOf(s))
			draw(s.SpanContext.SpanID(), indent+"  ")
		}
	}
	roots := map[trace.SpanID]bool{}
	for parent := range children {
		roots[parent] = true
	}
	for _, below := range children {
		for _, s := range below {
			delete(roots, s.SpanContext.SpanID())
		}
	}
	for parent := range maps.Keys(roots) { // the caller's span, which is not ours; two of them would be a torn trace
		fmt.Fprintf(&out, "---\n")
		draw(parent, "")
	}
	return out.String()
}

func isStatement(s tracetest.SpanStub) bool { return attributesOf(s)["db.system.name"] != "" }

func serviceOf(s tracetest.SpanStub) string {
	for _, a := range s.Resource.Attributes() {
		if a.Key == "service.name" {
			return a.Value.AsString()
		}
	}
	return "?"
}

func outcomeOf(s tracetest.SpanStub) string {
	if outcome := attributesOf(s)["invoicebridge.outcome"]; outcome != "" {
		return ": " + outcome
	}
	return ""
}
