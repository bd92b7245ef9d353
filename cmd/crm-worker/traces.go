package main

import (
	"context"
	"log/slog"

	"go.opentelemetry.io/otel/trace"

	"invoicebridge/internal/app"
	"invoicebridge/internal/jobs"
)

// traced runs do within a trace that begins with the command, if somebody wants traces. With the option, the jobs that do
// puts into the queue stay in the traces of what they are about.
func traced(ctx context.Context, env *app.AdminEnv, log *slog.Logger, do func(ctx context.Context, option jobs.InserterOption) error) error {
	return env.Traced(ctx, "crm-worker", log, func(ctx context.Context, provider trace.TracerProvider) error {
		return do(ctx, jobs.WithTraces(provider))
	})
}
