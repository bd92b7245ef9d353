package app

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/trace"

	"invoicebridge/internal/telemetry"
)

// traceFlush is the longest that the end of a command waits for a collector of traces.
const traceFlush = 5 * time.Second

// Traced runs do within a trace that begins with the command, if somebody wants traces; if not, the provider is nil. program
// is which of the services' programs this is.
func (env *AdminEnv) Traced(ctx context.Context, program string, log *slog.Logger, do func(ctx context.Context, provider trace.TracerProvider) error) error {
	traces, err := telemetry.Start(ctx, program, telemetry.Config{}, log)
	if err != nil {
		return fmt.Errorf("configuration: %w", err)
	}
	defer traces.Close(traceFlush)
	ctx, end := traces.Begin(ctx, env.Command)
	defer end()
	return do(ctx, traces.Provider())
}
