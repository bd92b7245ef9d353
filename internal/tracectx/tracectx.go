// Package tracectx carries traces through the domain: through rows, jobs and transactions that several requests share. It
// knows OpenTelemetry's API alone, no exporter and no setting. Without a span in the context, which is so whenever tracing
// is off, everything here does nothing and costs next to nothing.
package tracectx

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// The attributes that spans of ours have. Nothing about a customer belongs into one: internal/telemetry lets only names
// out that it knows.
const (
	Tenant        = "invoicebridge.tenant"
	OperationKey  = "invoicebridge.operation.key"
	InvoiceNumber = "invoicebridge.invoice.number"
	Outcome       = "invoicebridge.outcome" // of an attempt at a delivery or a registration
	GroupSize     = "invoicebridge.group.size"
)

const scope = "invoicebridge/internal/tracectx"

// traceparent is the header's name of W3C Trace Context, and the member's in a job's metadata.
const traceparent = "traceparent"

// Of gives the current span as text (a W3C traceparent) for a row, a job or a command; "" if there is none. A span that is
// not sampled has one, too: what follows it is then not sampled either.
func Of(ctx context.Context) string {
	if !trace.SpanContextFromContext(ctx).IsValid() {
		return ""
	}
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, carrier)
	return carrier[traceparent]
}

// Continue makes what Of gave the parent of spans begun in the returned context. Anything else changes nothing.
func Continue(ctx context.Context, carried string) context.Context {
	if sc := parse(carried); sc.IsValid() {
		return trace.ContextWithRemoteSpanContext(ctx, sc)
	}
	return ctx
}

func parse(carried string) trace.SpanContext {
	if carried == "" {
		return trace.SpanContext{}
	}
	ctx := propagation.TraceContext{}.Extract(context.Background(), propagation.MapCarrier{traceparent: carried})
	return trace.SpanContextFromContext(ctx)
}

// Set gives the current span an attribute.
func Set(ctx context.Context, name, value string) {
	if span := trace.SpanFromContext(ctx); span.IsRecording() {
		span.SetAttributes(attribute.String(name, value))
	}
}

// Name names the current span, which was begun when too little was known for it.
func Name(ctx context.Context, name string) {
	if span := trace.SpanFromContext(ctx); span.IsRecording() {
		span.SetName(name)
	}
}

// Link points from the current span to the one that Of gave.
func Link(ctx context.Context, carried string) {
	if span := trace.SpanFromContext(ctx); span.IsRecording() {
		if sc := parse(carried); sc.IsValid() {
			span.AddLink(trace.Link{SpanContext: sc})
		}
	}
}

// Apart begins and ends the first span of a trace of its own, and gives it as Of does. It points to the current span: for one of many orders that came in one call, so that a trace is about one order however they come.
// operationKey says which.
func Apart(ctx context.Context, name, operationKey string) (carried string) {
	current := trace.SpanFromContext(ctx)
	if !current.SpanContext().IsValid() {
		return ""
	}
	ctx, span := current.TracerProvider().Tracer(scope).Start(ctx, name, trace.WithNewRoot(),
		trace.WithSpanKind(trace.SpanKindProducer), trace.WithLinks(trace.Link{SpanContext: current.SpanContext()}),
		trace.WithAttributes(attribute.String(OperationKey, operationKey)))
	defer span.End()
	return Of(ctx)
}

// Together begins the span of work that several have in common, each given as Of does, the current span among them. A span
// has one parent: it is the current one or, if that is not sampled, the first that is; the span points to the others. shared
// is what to Link the others' spans to.
func Together(ctx context.Context, name string, all []string) (_ context.Context, shared string, end func()) {
	current := trace.SpanFromContext(ctx)
	if !current.SpanContext().IsValid() {
		return ctx, "", func() {}
	}
	parent := current.SpanContext()
	var links []trace.Link
	for _, carried := range all {
		sc := parse(carried)
		if !sc.IsValid() {
			continue
		}
		if !parent.IsSampled() && sc.IsSampled() {
			parent, ctx = sc, trace.ContextWithRemoteSpanContext(ctx, sc)
		}
		links = append(links, trace.Link{SpanContext: sc})
	}
	others := links[:0]
	for _, l := range links {
		if l.SpanContext.SpanID() != parent.SpanID() {
			others = append(others, l)
		}
	}
	ctx, span := current.TracerProvider().Tracer(scope).Start(ctx, name, trace.WithLinks(others...),
		trace.WithAttributes(attribute.Int(GroupSize, len(all))))
	return ctx, Of(ctx), func() { span.End() }
}
