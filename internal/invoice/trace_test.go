package invoice

import (
	"context"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"invoicebridge/internal/tracectx"
)

// tracedRequest is a request that waits in the lane.
type tracedRequest struct {
	span   trace.Span
	answer func() Result
}

// sendTraced sends one request with a span of its own, as the HTTP side does.
func (l lined) sendTraced(provider trace.TracerProvider, key string) tracedRequest {
	l.t.Helper()
	ctx, span := provider.Tracer("test").Start(l.t.Context(), "request "+key)
	cmd := command(l.t, key, orderOf(l.t, "SO-"+key))
	cmd.Trace = tracectx.Of(ctx)
	return tracedRequest{span, l.send(ctx, cmd)}
}

// onlyNamed samples the spans of these names, and what is below a sampled one.
type onlyNamed []string

func (o onlyNamed) ShouldSample(p sdktrace.SamplingParameters) sdktrace.SamplingResult {
	decision := sdktrace.Drop
	if slices.Contains(o, p.Name) {
		decision = sdktrace.RecordAndSample
	}
	return sdktrace.SamplingResult{Decision: decision}
}

func (onlyNamed) Description() string { return "by name" }

func (e erp) addTarget() {
	e.t.Helper()
	e.exec(`INSERT INTO targets (tenant_id, id, kind, base_url, credential_ref, locatable) VALUES ($1, 'gw', 'einvoice', 'https://gw.example', 'env:X', true)`, tenant)
}

func (e erp) traceOfRegistration(key string) (carried string) {
	e.t.Helper()
	if err := e.pool.QueryRow(context.Background(), "SELECT coalesce(trace_context, '') FROM registrations WHERE key = $1", key).Scan(&carried); err != nil {
		e.t.Fatal(err)
	}
	return carried
}

func TestRequestsThatGoTogetherKeepTheirOwnTraces(t *testing.T) {
	t.Parallel()
	e := setup(t)
	e.addTarget()
	l := lineUp(t, e, e.Service)
	spans := tracetest.NewInMemoryExporter()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))
	a := l.sendTraced(provider, "A")
	l.awaitQueued(1)
	b := l.sendTraced(provider, "B")
	l.awaitQueued(2)
	l.gate.open()
	l.wantIssued(l.first, a.answer, b.answer)
	a.span.End()
	b.span.End()
	if n := e.count("SELECT count(DISTINCT xmin::text) FROM invoices"); n != 2 {
		t.Fatalf("%d transactions: they did not go together", n)
	}
	for key, r := range map[string]tracedRequest{"A": a, "B": b} {
		sc := trace.SpanContextFromContext(tracectx.Continue(t.Context(), e.traceOfRegistration(key)))
		if sc.SpanID() != r.span.SpanContext().SpanID() || sc.TraceID() != r.span.SpanContext().TraceID() {
			t.Errorf("the registration of %s goes on with %v, want its own request %v", key, sc, r.span.SpanContext())
		}
	}
	if got := e.traceOfRegistration("first"); got != "" {
		t.Errorf("what was not traced has the trace %q", got)
	}
	group := only(t, spans, "issue invoices together")
	if group.Parent.SpanID() != a.span.SpanContext().SpanID() {
		t.Error("the group's span is not below its leader's request")
	}
	wantLinks(t, group, b.span)
	wantLinks(t, only(t, spans, "request A"))
	linked := only(t, spans, "request B")
	if len(linked.Links) != 1 || linked.Links[0].SpanContext.SpanID() != group.SpanContext.SpanID() {
		t.Errorf("the other request points to %v, want the group", linked.Links)
	}
}

func TestAGroupIsTracedIfAnyOfItsMembersIs(t *testing.T) {
	t.Parallel()
	e := setup(t)
	l := lineUp(t, e, e.Service)
	spans := tracetest.NewInMemoryExporter()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans), sdktrace.WithSampler(sdktrace.ParentBased(onlyNamed{"request B"})))
	a := l.sendTraced(provider, "A")
	l.awaitQueued(1)
	b := l.sendTraced(provider, "B")
	l.awaitQueued(2)
	l.gate.open()
	l.wantIssued(l.first, a.answer, b.answer)
	a.span.End()
	b.span.End()
	group := only(t, spans, "issue invoices together")
	if group.Parent.SpanID() != b.span.SpanContext().SpanID() || group.SpanContext.TraceID() != b.span.SpanContext().TraceID() {
		t.Errorf("the group is below %v, want the request that is sampled", group.Parent)
	}
	wantLinks(t, group, a.span)
}

func only(t *testing.T, spans *tracetest.InMemoryExporter, name string) tracetest.SpanStub {
	t.Helper()
	var found tracetest.SpanStubs
	for _, s := range spans.GetSpans() {
		if s.Name == name {
			found = append(found, s)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%d spans %q, want 1", len(found), name)
	}
	return found[0]
}

func wantLinks(t *testing.T, from tracetest.SpanStub, to ...trace.Span) {
	t.Helper()
	var got, want []trace.SpanID
	for _, l := range from.Links {
		got = append(got, l.SpanContext.SpanID())
	}
	for _, s := range to {
		want = append(want, s.SpanContext().SpanID())
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s points to (-want +got):\n%s", from.Name, diff)
	}
}
