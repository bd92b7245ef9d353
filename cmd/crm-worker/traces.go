package main

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"invoicebridge/internal/app"
	"invoicebridge/internal/jobs"
	"invoicebridge/internal/telemetry"
)

// flushTime is the longest that the end of a command waits for a collector of traces.
const flushTime = 5 * time.Second

// traced runs do within a trace that begins with the command, if somebody wants traces. With the option, the jobs that do
// puts into the queue stay in the traces of what they are about.
func traced(ctx context.Context, env *app.AdminEnv, log *slog.Logger, do func(ctx context.Context, option jobs.InserterOption) error) error {
	traces, err := telemetry.Start(ctx, "crm-worker", telemetry.Config{}, log)
	if err != nil {
		return fmt.Errorf("configuration: %w", err)
	}
	defer traces.Close(flushTime)
	ctx, end := traces.Begin(ctx, env.Command)
	defer end()
	return do(ctx, jobs.WithTraces(traces.Provider()))
}
