package telemetry

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"invoicebridge/internal/tracectx"
)

// letOut says which attributes leave the process. It is a list of what may, not of what must not: libraries learn new
// attributes with each version, and one that holds a query string (what an accountant has searched for, the code of a
// log-in), a path, an address or a statement must not be found out about from the traces.
func letOut(name attribute.Key) bool {
	switch name {
	case tracectx.Tenant, tracectx.OperationKey, tracectx.InvoiceNumber, tracectx.Outcome, tracectx.GroupSize:
		return true
	case // otelhttp
		"http.request.method", "http.response.status_code", "http.route", "http.request.body.size", "http.response.body.size",
		"url.scheme", "network.protocol.version", "server.address", "server.port", "error.type", "service.peer.name":
		return true
	case // otelpgx
		"db.system.name", "db.collection.name", "db.operation.batch.size", "pgx.rows_affected", "pgx.sql_state":
		return true
	case // otelriver
		"id", "kind", "kinds", "queue", "attempt", "priority", "status", "snooze", "snooze.duration", "cancel",
		"created_at", "scheduled_at", "unique_skipped_as_duplicate_count":
		return true
	}
	return false
}

// quiet is how long failures to send are not told again.
const quiet = time.Minute

// exporter lets out only what may leave, and keeps a collector's failures from everybody else.
type exporter struct {
	to  sdktrace.SpanExporter
	log *slog.Logger

	mu   sync.Mutex
	told time.Time
	lost int // spans, since it was told
}

func newExporter(to sdktrace.SpanExporter, log *slog.Logger) *exporter {
	return &exporter{to: to, log: log}
}

// ExportSpans implements sdktrace.SpanExporter. A failure is told in the log, once a minute, and not passed on: OpenTelemetry
// would hand it to a handler that is the same for the whole process.
func (e *exporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	clean := make([]sdktrace.ReadOnlySpan, len(spans))
	for i, s := range spans {
		clean[i] = cleanSpan{s}
	}
	if err := e.to.ExportSpans(ctx, clean); err != nil {
		e.tell(len(spans), err)
	}
	return nil
}

func (e *exporter) tell(lost int, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.lost += lost
	if now := time.Now(); now.Sub(e.told) >= quiet {
		e.log.Warn("spans could not be sent and are lost", "spans", e.lost, "error", err)
		e.told, e.lost = now, 0
	}
}

// Shutdown implements sdktrace.SpanExporter.
func (e *exporter) Shutdown(ctx context.Context) error { return e.to.Shutdown(ctx) }

// cleanSpan is a span without what must not leave the process.
type cleanSpan struct{ sdktrace.ReadOnlySpan }

// Attributes are those that may leave.
func (s cleanSpan) Attributes() []attribute.KeyValue { return clean(s.ReadOnlySpan.Attributes()) }

func clean(all []attribute.KeyValue) []attribute.KeyValue {
	kept := make([]attribute.KeyValue, 0, len(all))
	for _, a := range all {
		if letOut(a.Key) {
			kept = append(kept, a)
		}
	}
	return kept
}

// Status is without its text: an error's text may hold anything, a value from a row or an address. The log has it, under the
// same trace_id.
func (s cleanSpan) Status() sdktrace.Status {
	return sdktrace.Status{Code: s.ReadOnlySpan.Status().Code}
}

// Events are what kind of error happened when, without its text.
func (s cleanSpan) Events() []sdktrace.Event {
	events := make([]sdktrace.Event, len(s.ReadOnlySpan.Events()))
	for i, e := range s.ReadOnlySpan.Events() {
		events[i] = sdktrace.Event{Name: e.Name, Time: e.Time}
		for _, a := range e.Attributes {
			if a.Key == "exception.type" {
				events[i].Attributes = []attribute.KeyValue{a}
			}
		}
	}
	return events
}

// Links are without attributes, and without the state that strangers may have put into them.
func (s cleanSpan) Links() []sdktrace.Link {
	links := make([]sdktrace.Link, len(s.ReadOnlySpan.Links()))
	for i, l := range s.ReadOnlySpan.Links() {
		links[i] = sdktrace.Link{SpanContext: l.SpanContext.WithTraceState(trace.TraceState{})}
	}
	return links
}
