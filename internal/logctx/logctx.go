// Package logctx carries attributes of log lines in a context, so that every line about an operation bears its
// tenant, key and request id, whoever writes it; and, where it is traced, the ids of its trace and span.
package logctx

import (
	"context"
	"log/slog"
	"slices"

	"go.opentelemetry.io/otel/trace"
)

// The attributes that lines about requests and operations share.
const (
	TenantKey       = "tenant"
	OperationKeyKey = "operation_key"
	RequestIDKey    = "request_id"
	TraceIDKey      = "trace_id"
	SpanIDKey       = "span_id"
)

type contextKey struct{}

// With returns a context whose log lines bear attrs besides those ctx already has. An attribute of the same name
// replaces the older one.
func With(ctx context.Context, attrs ...slog.Attr) context.Context {
	kept := slices.Clone(attrsOf(ctx))
	for _, a := range attrs {
		kept = slices.DeleteFunc(kept, func(old slog.Attr) bool { return old.Key == a.Key })
		kept = append(kept, a)
	}
	return context.WithValue(ctx, contextKey{}, kept)
}

// WithTenant is With for the tenant.
func WithTenant(ctx context.Context, tenant string) context.Context {
	return With(ctx, slog.String(TenantKey, tenant))
}

// WithOperation is With for an operation's key.
func WithOperation(ctx context.Context, key string) context.Context {
	return With(ctx, slog.String(OperationKeyKey, key))
}

// WithRequest is With for the id of an HTTP request.
func WithRequest(ctx context.Context, id string) context.Context {
	return With(ctx, slog.String(RequestIDKey, id))
}

func attrsOf(ctx context.Context) []slog.Attr {
	attrs, _ := ctx.Value(contextKey{}).([]slog.Attr)
	return attrs
}

// withSpan are attrs and the ids of the context's span.
func withSpan(ctx context.Context, attrs []slog.Attr) []slog.Attr {
	span := trace.SpanContextFromContext(ctx)
	if !span.IsValid() {
		return attrs
	}
	return append(slices.Clip(attrs), slog.String(TraceIDKey, span.TraceID().String()), slog.String(SpanIDKey, span.SpanID().String()))
}

// Handler adds the context's attributes to the lines of another handler. What a line, or its logger, says itself wins:
// a line about another operation than the context's (of the same group, say) bears that one's key and no second one.
type Handler struct {
	slog.Handler
	own []string // names of the attributes that the logger has
}

// Handle implements slog.Handler.
func (h Handler) Handle(ctx context.Context, r slog.Record) error {
	attrs := withSpan(ctx, attrsOf(ctx))
	if len(attrs) == 0 {
		return h.Handler.Handle(ctx, r)
	}
	said := slices.Clone(h.own)
	r.Attrs(func(a slog.Attr) bool {
		said = append(said, a.Key)
		return true
	})
	r = r.Clone()
	for _, a := range attrs {
		if !slices.Contains(said, a.Key) {
			r.AddAttrs(a)
		}
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (h Handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	own := slices.Clone(h.own)
	for _, a := range attrs {
		own = append(own, a.Key)
	}
	return Handler{Handler: h.Handler.WithAttrs(attrs), own: own}
}

// WithGroup implements slog.Handler.
func (h Handler) WithGroup(name string) slog.Handler {
	return Handler{Handler: h.Handler.WithGroup(name), own: h.own}
}
