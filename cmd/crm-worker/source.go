package main

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"invoicebridge/internal/app"
	"invoicebridge/internal/crm"
)

type sourcesCommands struct {
	List   sourcesList  `cmd:"" help:"List the sources with what of each is open, and whether it is paused."`
	Pause  sourcePause  `cmd:"" help:"Hold a source's deliveries back; its orders go on being taken."`
	Resume sourceResume `cmd:"" help:"Let a paused source's deliveries go on."`
}

type sourcesList struct{ tenantOn }

// Run lists the sources.
func (c *sourcesList) Run(ctx context.Context, env *app.AdminEnv) error {
	return c.read(ctx, env, func(s *crm.Service) error {
		sources, err := s.ListSources(ctx, c.Tenant)
		if err != nil {
			return err
		}
		return app.Table(env.Stdout, "SOURCE\tPENDING\tPROCESSING\tUNKNOWN\tFLAGGED\tPAUSED AT\tPAUSED BY\tREASON", sources, sourceLine)
	})
}

func sourceLine(s crm.Source) string {
	at, by, reason := "-", "-", "-"
	if s.Pause != nil {
		at, by, reason = s.Pause.PausedAt.UTC().Format(time.RFC3339), app.OneCell(s.Pause.PausedBy), app.OneCell(s.Pause.Reason)
	}
	return fmt.Sprintf("%s\t%d\t%d\t%d\t%d\t%s\t%s\t%s", app.OneCell(s.Source), s.Pending, s.Processing, s.Unknown, s.Flagged, at, by, reason)
}

// onSource is acting on one source.
type onSource struct {
	acting
	Source string `arg:"" help:"Where the orders come from, as they name it."`
}

type sourcePause struct{ onSource }

// Help says what goes on and what does not.
func (sourcePause) Help() string {
	return `No attempt begins any more, whoever starts it. Attempts that run end as they would, and orders go on being taken. A source
need not have orders yet. The pause lasts until somebody ends it with "sources resume".`
}

// Run pauses the source.
func (c *sourcePause) Run(ctx context.Context, env *app.AdminEnv, log *slog.Logger) error {
	return c.write(ctx, env, log, func(ctx context.Context, s *crm.Service) error {
		pause, err := s.PauseSource(ctx, c.Tenant, c.Source, c.by())
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(env.Stdout, "%s is paused since %s\n", app.OneCell(c.Source), pause.PausedAt.UTC().Format(time.RFC3339))
		return err
	})
}

type sourceResume struct{ onSource }

// Help says what happens to what waits.
func (sourceResume) Help() string {
	return `What is due is queued at once, the oldest 10,000 of it; the running service finds the rest within its sweep interval.`
}

// Run resumes the source.
func (c *sourceResume) Run(ctx context.Context, env *app.AdminEnv, log *slog.Logger) error {
	return c.write(ctx, env, log, func(ctx context.Context, s *crm.Service) error {
		queued, err := s.ResumeSource(ctx, c.Tenant, c.Source, c.by())
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(env.Stdout, "%s goes on; %d operations queued\n", app.OneCell(c.Source), queued)
		return err
	})
}
