package telemetry

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"invoicebridge/internal/tracectx"
)

var quietLog = slog.New(slog.DiscardHandler)

// environment has the OTEL_ variables that are given, and no other.
func environment(t *testing.T, variables map[string]string) {
	t.Helper()
	for _, name := range []string{
		"OTEL_SDK_DISABLED", "OTEL_TRACES_EXPORTER", "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
		"OTEL_EXPORTER_OTLP_PROTOCOL", "OTEL_PROPAGATORS", "OTEL_SERVICE_NAME", "OTEL_RESOURCE_ATTRIBUTES", "OTEL_TRACES_SAMPLER",
	} {
		t.Setenv(name, variables[name])
	}
}

func TestTracingIsOffUnlessAVariableAsksForIt(t *testing.T) {
	for name, c := range map[string]struct {
		variables map[string]string
		on        bool
	}{
		"nothing is set":            {nil, false},
		"a name alone":              {map[string]string{"OTEL_SERVICE_NAME": "x", "OTEL_TRACES_SAMPLER": "always_on"}, false},
		"none":                      {map[string]string{"OTEL_TRACES_EXPORTER": "none", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"}, false},
		"disabled":                  {map[string]string{"OTEL_SDK_DISABLED": "true", "OTEL_TRACES_EXPORTER": "console"}, false},
		"a collector":               {map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"}, true},
		"a collector of traces":     {map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://127.0.0.1:1/v1/traces"}, true},
		"an exporter":               {map[string]string{"OTEL_TRACES_EXPORTER": "console"}, true},
		"the default collector":     {map[string]string{"OTEL_TRACES_EXPORTER": "otlp"}, true},
		"not disabled, a collector": {map[string]string{"OTEL_SDK_DISABLED": "false", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			environment(t, c.variables)
			traces, err := Start(t.Context(), "erp-api", Config{}, quietLog)
			if err != nil {
				t.Fatal(err)
			}
			defer traces.Close(time.Second)
			if on := traces != nil; on != c.on {
				t.Errorf("on is %t", on)
			}
		})
	}
}

// What is off is not there: nothing is wrapped, no time is taken off a shutdown.
func TestWhatIsOffHandsBackWhatItIsGiven(t *testing.T) {
	t.Parallel()
	var off *Traces
	handler := http.NewServeMux()
	if got := off.Handler(handler); got != http.Handler(handler) {
		t.Error("the handler is wrapped")
	}
	if got := off.Transport(http.DefaultTransport, "erp"); got != http.DefaultTransport {
		t.Error("the transport is wrapped")
	}
	if off.Wrap("erp") != nil || off.Queries() != nil || off.Provider() != nil || off.ShareOf(time.Minute) != 0 {
		t.Error("something is there")
	}
	ctx, end := off.Begin(t.Context(), "import")
	end()
	off.Close(0)
	if tracectx.Of(ctx) != "" {
		t.Error("there is a span")
	}
}

func TestAWrongVariableIsNamed(t *testing.T) {
	for variable, value := range map[string]string{"OTEL_TRACES_EXPORTER": "zipkin", "OTEL_PROPAGATORS": "tracecontext,smoke", "OTEL_EXPORTER_OTLP_PROTOCOL": "http/xml"} {
		environment(t, map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", variable: value})
		if _, err := Start(t.Context(), "erp-api", Config{}, quietLog); err == nil || !strings.Contains(err.Error(), variable) {
			t.Errorf("%s=%s: %v", variable, value, err)
		}
	}
}

func TestAServiceIsDescribedByItsNameVersionAndInstance(t *testing.T) {
	resourceOf := func() map[string]string {
		res, err := describe(t.Context(), "erp-api")
		if err != nil {
			t.Fatal(err)
		}
		all := map[string]string{}
		for _, a := range res.Attributes() {
			all[string(a.Key)] = a.Value.String()
		}
		return all
	}
	environment(t, nil)
	one, other := resourceOf(), resourceOf()
	if one["service.name"] != "erp-api" || one["service.version"] == "" || one["service.instance.id"] == "" {
		t.Errorf("it is described as %v", one)
	}
	if one["service.instance.id"] == other["service.instance.id"] {
		t.Error("two instances have one id")
	}
	environment(t, map[string]string{"OTEL_SERVICE_NAME": "billing", "OTEL_RESOURCE_ATTRIBUTES": "deployment.environment.name=test"})
	if got := resourceOf(); got["service.name"] != "billing" || got["deployment.environment.name"] != "test" {
		t.Errorf("the variables are not heeded: %v", got)
	}
}

func TestBaggageIsNeitherTakenNorPassedOn(t *testing.T) {
	t.Parallel()
	for names, want := range map[string][]string{
		"": {"traceparent", "tracestate"}, "baggage": {"traceparent", "tracestate"}, "tracecontext, baggage": {"traceparent", "tracestate"}, "b3,baggage": {"b3"},
	} {
		p, err := newPropagator(names)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, p.Fields()); diff != "" {
			t.Errorf("%q:\n%s", names, diff)
		}
	}
}

func TestOnlyKnownAttributesLeaveAndNoTextOfAnError(t *testing.T) {
	t.Parallel()
	spans := tracetest.NewInMemoryExporter()
	traces, err := Start(t.Context(), "erp-api", Config{Exporter: spans}, quietLog)
	if err != nil {
		t.Fatal(err)
	}
	_, span := traces.Provider().Tracer("test").Start(t.Context(), "work")
	span.SetAttributes(attribute.String("http.route", "/invoices"), attribute.String("url.query", "customer=Zephyrine"))
	span.RecordError(errors.New("no row for Zephyrine"))
	span.SetStatus(codes.Error, "no row for Zephyrine")
	span.End()
	got := spans.GetSpans()[0]
	if diff := cmp.Diff([]attribute.KeyValue{attribute.String("http.route", "/invoices")}, got.Attributes, cmp.AllowUnexported(attribute.Value{})); diff != "" {
		t.Errorf("attributes:\n%s", diff)
	}
	if got.Status.Description != "" || got.Status.Code != codes.Error {
		t.Errorf("the status is %v", got.Status)
	}
	if len(got.Events) != 1 || len(got.Events[0].Attributes) != 1 || got.Events[0].Attributes[0].Key != "exception.type" {
		t.Errorf("the error is told as %v", got.Events)
	}
}

// stuck is a collector that takes nothing before it is released.
type stuck chan struct{}

func (s stuck) ExportSpans(context.Context, []sdktrace.ReadOnlySpan) error {
	<-s
	return errors.New("released")
}

func (stuck) Shutdown(context.Context) error { return nil }

// The collector is released only after everything has gone on without it.
func TestACollectorThatTakesNothingHoldsUpNeitherWorkNorTheEnd(t *testing.T) {
	t.Parallel()
	collector := make(stuck)
	defer close(collector)
	traces := &Traces{log: quietLog, provider: sdktrace.NewTracerProvider(sdktrace.WithBatcher(newExporter(collector, quietLog)))}
	for range 10_000 { // more than the queue holds
		_, span := traces.Provider().Tracer("test").Start(t.Context(), "work")
		span.End()
	}
	traces.Close(10 * time.Millisecond)
}

func TestACollectorsFailuresAreToldOnceAMinute(t *testing.T) {
	t.Parallel()
	var told bytes.Buffer
	e := newExporter(failing{}, slog.New(slog.NewTextHandler(&told, nil)))
	for range 5 {
		if err := e.ExportSpans(t.Context(), make([]sdktrace.ReadOnlySpan, 3)); err != nil {
			t.Errorf("the failure goes on to the process's handler: %v", err)
		}
	}
	if got := told.String(); strings.Count(got, "no route to collector") != 1 || strings.Count(got, "\n") != 1 {
		t.Errorf("told:\n%s", got)
	}
}

type failing struct{}

func (failing) ExportSpans(context.Context, []sdktrace.ReadOnlySpan) error {
	return errors.New("no route to collector")
}

func (failing) Shutdown(context.Context) error { return nil }

// The collector is not there at all: requests are answered as ever.
func TestRequestsAreAnsweredWithoutTheirCollector(t *testing.T) {
	environment(t, map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"})
	traces, err := Start(t.Context(), "erp-api", Config{}, quietLog)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(traces.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if tracectx.Of(r.Context()) == "" {
			t.Error("it is not traced")
		}
		w.WriteHeader(http.StatusNoContent)
	})))
	defer server.Close()
	for range 3 {
		answer, err := http.Get(server.URL + "/v1/invoices")
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if answer.StatusCode != http.StatusNoContent {
			t.Errorf("status %d", answer.StatusCode)
		}
	}
	traces.Close(10 * time.Millisecond)
}

func TestAStatementIsNamedAsInItsFile(t *testing.T) {
	t.Parallel()
	for sql, want := range map[string]string{
		"-- name: InvoiceInsert :exec\nINSERT INTO invoices": "InvoiceInsert",
		"SELECT now()":      "SELECT",
		"begin":             "BEGIN",
		"-- note\nselect 1": "SELECT",
	} {
		if got := queryName(t.Context(), sql); got != want {
			t.Errorf("%q is named %q, want %q", sql, got, want)
		}
	}
}
