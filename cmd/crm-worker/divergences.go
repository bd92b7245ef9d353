package main

import (
	"context"
	"fmt"
	"log/slog"

	"invoicebridge/internal/app"
	"invoicebridge/internal/crm"
)

type divergencesCommands struct {
	List   divergencesList  `cmd:"" help:"List the newest differences between our books and the ERP's."`
	Accept divergenceAccept `cmd:"" help:"Say that a difference is known and all right: it counts as open no more, for as long as both sides stay as they are."`
	Close  divergenceClose  `cmd:"" help:"Say that a difference is put right. If it is found again, it is a new one."`
}

type divergencesList struct {
	tenantOn
	Kind  string `help:"Only those of this kind, such as missing_in_erp."`
	All   bool   `help:"Also those that are accepted or resolved."`
	Limit int    `default:"50" help:"How many, from 1 to 200."`
}

// Run lists the divergences.
func (c *divergencesList) Run(ctx context.Context, env *app.AdminEnv) error {
	return c.read(ctx, env, func(s *crm.Service) error {
		filter := crm.DivergenceFilter{Kind: crm.DivergenceKind(c.Kind), Limit: c.Limit}
		if !c.All {
			filter.Resolved = new(false)
		}
		page, _, err := s.ListDivergences(ctx, c.Tenant, filter)
		if err != nil {
			return err
		}
		return app.Table(env.Stdout, "ID\tKIND\tSUBJECT\tOWNER\tFIRST SEEN\tLAST SEEN\tOURS\tTHEIRS\tACTION", page, divergenceLine)
	})
}

func divergenceLine(d crm.Divergence) string {
	const layout = "2006-01-02T15:04:05Z"
	return fmt.Sprintf("%d\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s", d.ID, d.Kind, d.Subject, d.Owner, d.FirstSeenAt.UTC().Format(layout),
		d.LastSeenAt.UTC().Format(layout), app.OneCell(d.Ours), app.OneCell(d.Theirs), app.OneCell(d.Action))
}

// onDivergence is acting on one divergence.
type onDivergence struct {
	acting
	ID int64 `arg:"" help:"Id of the divergence, as the list has it."`
}

type divergenceAccept struct{ onDivergence }

// Run accepts the divergence and shows it.
func (c *divergenceAccept) Run(ctx context.Context, env *app.AdminEnv, log *slog.Logger) error {
	return c.write(ctx, env, log, func(ctx context.Context, s *crm.Service) error {
		d, err := s.AcceptDivergence(ctx, c.Tenant, c.ID, c.by())
		return show(env, d, err)
	})
}

type divergenceClose struct{ onDivergence }

// Run closes the divergence and shows it.
func (c *divergenceClose) Run(ctx context.Context, env *app.AdminEnv, log *slog.Logger) error {
	return c.write(ctx, env, log, func(ctx context.Context, s *crm.Service) error {
		d, err := s.CloseDivergence(ctx, c.Tenant, c.ID, c.by())
		return show(env, d, err)
	})
}
