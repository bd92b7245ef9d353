// Package logctx carries attributes of log lines in a context, so that every line about an operation bears its
// tenant, key and request id, whoever writes it.
package logctx

import (
	"context"
	"log/slog"
	"slices"
)

// The attributes that lines about requests and operations share.
const (
	TenantKey       = "tenant"
	OperationKeyKey = "operation_key"
	RequestIDKey    = "request_id"
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

// Handler adds the context's attributes to the lines of another handler.
type Handler struct{ slog.Handler }

// Handle implements slog.Handler.
func (h Handler) Handle(ctx context.Context, r slog.Record) error {
	if attrs := attrsOf(ctx); len(attrs) > 0 {
		r = r.Clone()
		r.AddAttrs(attrs...)
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (h Handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return Handler{h.Handler.WithAttrs(attrs)}
}

// WithGroup implements slog.Handler.
func (h Handler) WithGroup(name string) slog.Handler { return Handler{h.Handler.WithGroup(name)} }
