package main

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"

	"invoicebridge/internal/app"
	"invoicebridge/internal/crm"
)

type replaysList struct {
	tenantOn
	Limit int `default:"20" help:"How many, from 1 to 200."`
}

// Run lists the replays.
func (c *replaysList) Run(ctx context.Context, env *app.AdminEnv) error {
	return c.read(ctx, env, func(s *crm.Service) error {
		found, err := s.ListReplayRuns(ctx, c.Tenant, crm.PageQuery{Limit: c.Limit})
		if err != nil {
			return err
		}
		return tellReplays(env, found.Items...)
	})
}

func tellReplays(env *app.AdminEnv, runs ...crm.ReplayRun) error {
	return app.Table(env.Stdout, "ID\tSTARTED\tBY\tREASON\tTOTAL\tWAITING\tQUEUED\tREFUSED\tSTOPPED\tENDED", runs, func(r crm.ReplayRun) string {
		ended := "-"
		if r.FinishedAt != nil {
			ended = r.FinishedAt.UTC().Format(time.RFC3339)
		}
		if r.StoppedBy != "" {
			ended += " by " + app.OneCell(r.StoppedBy)
		}
		return fmt.Sprintf("%s\t%s\t%s\t%s\t%d\t%d\t%d\t%d\t%d\t%s", r.ID, r.StartedAt.UTC().Format(time.RFC3339), app.OneCell(r.By.Actor),
			app.OneCell(r.By.Reason), r.Total, r.Waiting(), r.Queued, r.Refused, r.Stopped, ended)
	})
}

type replayShow struct {
	tenantOn
	ID     uuid.UUID `arg:"" help:"Id of the replay."`
	Result string    `help:"Only the operations with this result: waiting, queued, refused or stopped."`
}

// Run shows the replay and its operations.
func (c *replayShow) Run(ctx context.Context, env *app.AdminEnv) error {
	return c.read(ctx, env, func(s *crm.Service) error {
		run, err := s.GetReplayRun(ctx, c.Tenant, c.ID)
		if err != nil {
			return err
		}
		if err := tellReplays(env, run); err != nil {
			return err
		}
		return tellReplayItems(ctx, s, env.Stdout, c.Tenant, c.ID, crm.ReplayResult(c.Result))
	})
}

type replayStop struct {
	acting
	ID uuid.UUID `arg:"" help:"Id of the replay."`
}

// Run stops the replay and shows it.
func (c *replayStop) Run(ctx context.Context, env *app.AdminEnv, log *slog.Logger) error {
	return c.write(ctx, env, log, func(ctx context.Context, s *crm.Service) error {
		run, err := s.StopReplayRun(ctx, c.Tenant, c.ID, c.by())
		if err != nil {
			return err
		}
		return tellReplays(env, run)
	})
}
