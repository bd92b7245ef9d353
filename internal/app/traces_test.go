package app_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/trace"

	"invoicebridge/internal/app"
	"invoicebridge/internal/auth"
	"invoicebridge/internal/crm"
	"invoicebridge/internal/testdb"
)

// syncLog is what both services log.
type syncLog struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *syncLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *syncLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func newTrace(t *testing.T) (id trace.TraceID, span trace.SpanID) {
	t.Helper()
	if _, err := rand.Read(id[:]); err != nil {
		t.Fatal(err)
	}
	if _, err := rand.Read(span[:]); err != nil {
		t.Fatal(err)
	}
	return id, span
}

func TestOneTraceGoesFromTheOrdersIntakeToTheInvoicesRegistration(t *testing.T) {
	w := tracing(t, nil)
	id := w.submit(orderJSON("SO-1"))
	w.awaitRegistered(1)
	want := `---
POST /v1/orders (server, crm-worker)
  river.insert_many (producer, crm-worker)
  river.work/deliver_operation (consumer, crm-worker): delivered
    POST erp (client, crm-worker)
      POST /v1/invoices (server, erp-api)
        river.insert_many (producer, erp-api)
        river.work/register_invoice (consumer, erp-api): accepted
          POST einvoice (client, erp-api)
`
	if diff := cmp.Diff(want, w.tree(id)); diff != "" {
		t.Errorf("the trace (-want +got):\n%s", diff)
	}
	statements := map[string]bool{}
	for _, s := range w.spans.GetSpans() {
		if s.SpanContext.TraceID() == id && isStatement(s) {
			statements[serviceOf(s)+" "+s.Name] = true
		}
	}
	for _, name := range []string{"crm-worker OrderSubmitBegin", "crm-worker DeliveryBegin", "crm-worker DeliveryEnd", "erp-api InvoiceInsert", "erp-api RegistrationEnd"} {
		if !statements[name] {
			t.Errorf("the statement %s has no span in the trace; there are %v", name, statements)
		}
	}
	for _, line := range []string{"msg=request", "route=/v1/invoices"} {
		if !w.logged(line, "trace_id="+id.String(), "span_id=") {
			t.Errorf("no log line with %s bears the trace's id", line)
		}
	}
}

// logged says whether a line has all of these.
func (w *traced) logged(all ...string) bool {
	for line := range strings.Lines(w.log.String()) {
		has := true
		for _, part := range all {
			has = has && strings.Contains(line, part)
		}
		if has {
			return true
		}
	}
	return false
}

func TestARetryAfterALostAnswerIsOneMoreSpanInTheSameTrace(t *testing.T) {
	w := tracing(t, nil)
	w.way.Store(wayLoseAnswer)
	id := w.submit(orderJSON("SO-1"))
	w.awaitRegistered(1)
	testdb.Await(t, "the operation has succeeded", func() bool {
		return len(w.named("river.work/deliver_operation", "invoicebridge.outcome", "replayed")) == 1
	})
	got := w.tree(id)
	for _, part := range []string{
		"  river.work/deliver_operation (consumer, crm-worker): lost\n    POST erp (client, crm-worker)\n      POST /v1/invoices (server, erp-api)\n",
		"  river.work/deliver_operation (consumer, crm-worker): replayed\n    POST erp (client, crm-worker)\n      POST /v1/invoices (server, erp-api)\n",
	} {
		if strings.Count(got, part) != 1 {
			t.Errorf("the trace has not once\n%sbut is\n%s", part, got)
		}
	}
	if strings.Count(got, "---") != 1 || strings.Count(got, "register_invoice") != 1 {
		t.Errorf("one tree, with one registration:\n%s", got)
	}
}

// What lost its job is found by the sweep, on both sides, and its trace with it.
func TestWhatTheSweepEnqueuesAgainStaysInItsTrace(t *testing.T) {
	w := tracing(t, func(erp *app.ERPConfig, side *app.CRMConfig) {
		side.BackOff = crm.BackOff{Base: time.Hour, Cap: time.Hour, Slow: time.Hour}
	})
	w.way.Store(wayShut)
	id := w.submit(orderJSON("SO-1"))
	testdb.Await(t, "the first attempt is over", func() bool {
		var snoozed int
		w.scan(w.crm, &snoozed, "SELECT count(*) FROM river_job WHERE kind = 'deliver_operation' AND state = 'scheduled'")
		return snoozed == 1
	})
	w.way.Store(wayOpen)
	w.exec(w.crm, "DELETE FROM river_job WHERE kind = 'deliver_operation'")
	w.exec(w.crm, "UPDATE operations SET next_attempt_at = now() - interval '1 hour'")
	w.awaitRegistered(1)
	want := `---
POST /v1/orders (server, crm-worker)
  river.insert_many (producer, crm-worker)
  river.work/deliver_operation (consumer, crm-worker): wait
    POST erp (client, crm-worker)
  river.work/deliver_operation (consumer, crm-worker): delivered
    POST erp (client, crm-worker)
      POST /v1/invoices (server, erp-api)
        river.insert_many (producer, erp-api)
        river.work/register_invoice (consumer, erp-api): accepted
          POST einvoice (client, erp-api)
`
	if diff := cmp.Diff(want, w.tree(id)); diff != "" {
		t.Errorf("the trace (-want +got):\n%s", diff)
	}
}

func TestARegistrationThatTheSweepEnqueuesAgainStaysInItsTrace(t *testing.T) {
	var erpCfg app.ERPConfig
	w := tracing(t, func(erp *app.ERPConfig, _ *app.CRMConfig) {
		erpCfg = *erp
		erp.Registering.Disabled = true
	})
	id := w.submit(orderJSON("SO-1"))
	testdb.Await(t, "the invoice is issued", func() bool {
		var n int
		w.scan(w.erp, &n, "SELECT count(*) FROM registrations")
		return n == 1
	})
	w.exec(w.erp, "DELETE FROM river_job")
	w.exec(w.erp, "UPDATE registrations SET next_attempt_at = now() - interval '1 hour'")
	w.serve(func(ctx context.Context, ready func(string)) error { return app.RunERP(ctx, erpCfg, w.logger(), ready) })
	w.awaitRegistered(1)
	if got := w.tree(id); strings.Count(got, "---") != 1 || !strings.Contains(got, "        river.work/register_invoice (consumer, erp-api): accepted\n") {
		t.Errorf("the registration is not below the request that issued the invoice:\n%s", got)
	}
}

func TestEachOfManyOrdersInOneCallHasATraceOfItsOwn(t *testing.T) {
	w := tracing(t, nil)
	call := w.submit("[" + orderJSON("SO-1") + "," + orderJSON("SO-2") + "," + orderJSON("SO-3") + "]")
	w.awaitRegistered(3)
	traces := map[trace.TraceID]bool{}
	for _, s := range w.spans.GetSpans() {
		if s.Name != "take order in" {
			continue
		}
		traces[s.SpanContext.TraceID()] = true
		if s.Parent.IsValid() || len(s.Links) != 1 || s.Links[0].SpanContext.TraceID() != call {
			t.Errorf("parent %v, links %v, want none and one to the call", s.Parent, s.Links)
		}
	}
	if len(traces) != 3 || traces[call] {
		t.Fatalf("%d traces, want 3 beside the call's", len(traces))
	}
	for id := range traces {
		if got := w.tree(id); strings.Count(got, "---") != 1 || strings.Count(got, "POST /v1/invoices") != 1 || strings.Count(got, "register_invoice") != 1 {
			t.Errorf("the trace of one order:\n%s", got)
		}
	}
	if got := w.tree(call); strings.Contains(got, "deliver_operation") {
		t.Errorf("a delivery is in the trace of the call:\n%s", got)
	}
}

// The order goes through intake, a lost answer, a retry, a refused request and a registration; none of it may tell who the
// customer is, nor with which credential anybody came.
func TestNoSpanTellsASecretOrACustomer(t *testing.T) {
	w := tracing(t, nil)
	w.way.Store(wayLoseAnswer)
	w.submit(orderJSON("SO-1"))
	w.awaitRegistered(1)
	w.get("/v1/operations?customer="+strings.ReplaceAll(customerName, " ", "+"), "Cookie", "session=hush-cookie")
	w.get("/login?next=%2Fsecret-place&code=hush-code", "Cookie", "session=hush-cookie")
	spans := w.spans.GetSpans()
	if len(spans) == 0 {
		t.Fatal("there is no span")
	}
	forbidden := append([]string{
		customerName, "Zephyrine", vatID, "secret gift", "hush", "Bearer", "secret-place", "unit_price", "SELECT ", "INSERT ", "postgres://",
	}, w.secrets...)
	for _, s := range spans {
		all := fmt.Sprintf("%s|%s|%v|%v|%v|%v|%v", s.Name, s.Status.Description, s.Attributes, s.Events, s.Links, s.Resource.Attributes(),
			s.SpanContext.TraceState().String())
		for _, word := range forbidden {
			if strings.Contains(all, word) {
				t.Errorf("%q stands in a span: %s", word, all)
			}
		}
		for _, a := range s.Attributes {
			switch a.Key {
			case "url.full", "url.path", "url.query", "client.address", "user_agent.original", "db.query.text":
				t.Errorf("the span %s has the attribute %s", s.Name, a.Key)
			}
		}
	}
	if w.logged("secret gift") {
		t.Error("and the log has it")
	}
}

func (w *traced) get(path, header, value string) {
	w.t.Helper()
	request, err := http.NewRequestWithContext(w.t.Context(), http.MethodGet, w.crmURL+path, http.NoBody)
	if err != nil {
		w.t.Fatal(err)
	}
	request.Header.Set(header, value)
	answer, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		w.t.Fatal(err)
	}
	answer.Body.Close()
}

// Whoever has only the address does not write into the traces of others.
func TestAStrangersTraceIsOnlyPointedTo(t *testing.T) {
	w := tracing(t, nil)
	id, span := newTrace(t)
	w.get("/problems", "Traceparent", fmt.Sprintf("00-%s-%s-01", id, span))
	w.get("/v1/operations", "Traceparent", fmt.Sprintf("00-%s-%s-01", id, span))
	w.get("/healthz", "Traceparent", fmt.Sprintf("00-%s-%s-01", id, span))
	testdb.Await(t, "both requests have their spans", func() bool {
		return len(w.named("GET /problems", "http.response.status_code", "200"))+
			len(w.named("GET /v1/operations", "http.response.status_code", "401")) == 2
	})
	for _, s := range w.spans.GetSpans() {
		if s.SpanContext.TraceID() == id {
			t.Errorf("the span %s is in a stranger's trace", s.Name)
		}
		if strings.HasPrefix(s.Name, "GET /problems") && (len(s.Links) != 1 || s.Links[0].SpanContext.SpanID() != span) {
			t.Errorf("it points to %v, want the caller's span", s.Links)
		}
		if strings.Contains(s.Name, "healthz") {
			t.Error("a probe is traced")
		}
	}
}

// What looks like a token is looked up within the trace that it came with, and that is all it gets.
func TestAMadeUpTokenGetsNoFurtherIntoATraceThanItsRefusal(t *testing.T) {
	w := tracing(t, nil)
	id, span := newTrace(t)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.crmURL+"/v1/orders", strings.NewReader(orderJSON("SO-1")))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+auth.Format(auth.Generate()))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Traceparent", fmt.Sprintf("00-%s-%s-01", id, span))
	answer, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusUnauthorized {
		t.Fatalf("status is %d", answer.StatusCode)
	}
	testdb.Await(t, "the request has its span", func() bool {
		return len(w.named("POST /v1/orders", "http.response.status_code", "401")) == 1
	})
	if diff := cmp.Diff("---\nPOST /v1/orders (server, crm-worker)\n", w.tree(id)); diff != "" {
		t.Errorf("the trace (-want +got):\n%s", diff)
	}
	for _, s := range w.spans.GetSpans() {
		if s.SpanContext.TraceID() == id && isStatement(s) && !strings.HasPrefix(s.Name, "Token") {
			t.Errorf("the statement %s is made for it", s.Name)
		}
	}
	var stored int
	w.scan(w.crm, &stored, "SELECT (SELECT count(*) FROM orders) + (SELECT count(*) FROM operations) + (SELECT count(*) FROM inbox_messages) + (SELECT count(*) FROM intake_refusals)")
	if stored != 0 {
		t.Errorf("%d rows are stored for it", stored)
	}
}
