package tracectx_test

import (
	"context"
	"testing"

	"go.opentelemetry.io/otel/trace"

	"invoicebridge/internal/tracectx"
)

// What is carried is a span's context and goes on as the same text, or it is none and changes nothing.
func FuzzCarried(f *testing.F) {
	for _, seed := range []string{
		"", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00",
		"00-00000000000000000000000000000000-00f067aa0ba902b7-01", "cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-what",
		"ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "00-4BF92F3577B34DA6A3CE929D0E0E4736-00F067AA0BA902B7-01",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, carried string) {
		ctx := tracectx.Continue(context.Background(), carried)
		sc := trace.SpanContextFromContext(ctx)
		if !sc.IsValid() {
			if told := tracectx.Of(ctx); told != "" {
				t.Fatalf("%q is no span and told as %q", carried, told)
			}
			return
		}
		again := trace.SpanContextFromContext(tracectx.Continue(context.Background(), tracectx.Of(ctx)))
		if again.TraceID() != sc.TraceID() || again.SpanID() != sc.SpanID() || again.IsSampled() != sc.IsSampled() {
			t.Fatalf("%q goes on as %q", carried, tracectx.Of(ctx))
		}
	})
}
