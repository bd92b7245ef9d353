package logctx_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"

	"invoicebridge/internal/logctx"
)

func TestLinesBearTheAttributesOfTheirContext(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	log := slog.New(logctx.Handler{Handler: slog.NewTextHandler(&out, nil)}).With("part", "test")
	ctx := logctx.WithTenant(context.Background(), "acme")
	inner := logctx.WithOperation(ctx, "k-1")

	log.InfoContext(inner, "sent")
	if got := out.String(); !strings.Contains(got, `part=test tenant=acme operation_key=k-1`) {
		t.Errorf("line lacks attributes: %s", got)
	}
	out.Reset()
	log.InfoContext(ctx, "outside")
	if got := out.String(); strings.Contains(got, "k-1") {
		t.Errorf("the outer context got the inner one's key: %s", got)
	}
	out.Reset()
	log.InfoContext(logctx.WithOperation(inner, "k-2"), "next")
	if got := out.String(); strings.Contains(got, "k-1") || !strings.Contains(got, "operation_key=k-2") {
		t.Errorf("a newer key must replace the older one: %s", got)
	}
}

func TestWhatALineSaysItselfWinsOverItsContext(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	log := slog.New(logctx.Handler{Handler: slog.NewTextHandler(&out, nil)})
	ctx := logctx.WithOperation(logctx.WithTenant(context.Background(), "acme"), "of-the-leader")
	for name, say := range map[string]func(){
		"line":   func() { log.InfoContext(ctx, "put off", logctx.OperationKeyKey, "of-another") },
		"logger": func() { log.With(logctx.OperationKeyKey, "of-another").InfoContext(ctx, "put off") },
	} {
		out.Reset()
		say()
		if got := out.String(); strings.Contains(got, "of-the-leader") || !strings.Contains(got, "tenant=acme") ||
			strings.Count(got, logctx.OperationKeyKey+"=of-another") != 1 {
			t.Errorf("%s: %s", name, got)
		}
	}
}
