package main

import (
	"context"
	"fmt"
	"log/slog"

	"invoicebridge/internal/app"
	"invoicebridge/internal/invoice"
)

// onTarget is acting on one target.
type onTarget struct {
	acting
	ID string `arg:"" help:"Id of the target."`
}

type targetPause struct{ onTarget }

// Help says what goes on and what does not.
func (targetPause) Help() string {
	return `No attempt begins there any more, neither a sending nor a question. Attempts that run end as they would, and invoices go on being
issued; their registrations wait. The pause lasts until somebody ends it with "target resume".`
}

// Run pauses the target.
func (c *targetPause) Run(ctx context.Context, env *app.AdminEnv, log *slog.Logger) error {
	return c.Invoices(ctx, env, log, func(ctx context.Context, s *invoice.Service) error {
		if err := s.PauseTarget(ctx, c.Tenant, c.ID, c.by()); err != nil {
			return err
		}
		_, err := fmt.Fprintf(env.Stdout, "%s is paused\n", c.ID)
		return err
	})
}

type targetResume struct{ onTarget }

// Run resumes the target.
func (c *targetResume) Run(ctx context.Context, env *app.AdminEnv, log *slog.Logger) error {
	return c.Invoices(ctx, env, log, func(ctx context.Context, s *invoice.Service) error {
		queued, err := s.ResumeTarget(ctx, c.Tenant, c.ID, c.by())
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(env.Stdout, "%s goes on; %d registrations queued\n", c.ID, queued)
		return err
	})
}
