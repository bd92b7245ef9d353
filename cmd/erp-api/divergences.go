package main

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"invoicebridge/internal/app"
	"invoicebridge/internal/invoice"
)

type divergencesCommands struct {
	List   divergencesList  `cmd:"" help:"List the newest differences between our registrations and what their targets know."`
	Accept divergenceAccept `cmd:"" help:"Say that a difference is known and all right: it counts as open no more."`
	Close  divergenceClose  `cmd:"" help:"Say that a difference is put right. If it is found again, it opens anew."`
}

type divergencesList struct {
	app.DatabaseFlag
	Tenant string `required:"" help:"Id of the tenant."`
	Kind   string `help:"Only those of this kind, such as registered_twice."`
	All    bool   `help:"Also those that are resolved."`
	Limit  int    `default:"50" help:"How many, from 1 to 200."`
}

// Run lists the divergences.
func (c *divergencesList) Run(ctx context.Context, env *app.AdminEnv) error {
	pool, err := c.Open(ctx, env.Schema)
	if err != nil {
		return err
	}
	defer pool.Close()
	resolved := new(false)
	if c.All {
		resolved = nil
	}
	list, err := invoice.NewService(pool, invoice.Options{}).ListDivergences(ctx, c.Tenant, c.Kind, resolved, c.Limit)
	if err != nil {
		return err
	}
	return app.Table(env.Stdout, "ID\tKIND\tREGISTRATION\tOWNER\tFIRST SEEN\tLAST SEEN\tOURS\tTHEIRS\tACTION", list, func(d invoice.Divergence) string {
		return fmt.Sprintf("%d\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s", d.ID, d.Kind, d.Subject, d.Owner, d.FirstSeenAt.UTC().Format(time.RFC3339),
			d.LastSeenAt.UTC().Format(time.RFC3339), app.OneCell(d.Ours), app.OneCell(d.Theirs), app.OneCell(d.Action))
	})
}

// onDivergence is acting on one divergence.
type onDivergence struct {
	acting
	ID int64 `arg:"" help:"Id of the divergence, as the list has it."`
}

// decide decides on the divergence and says where it stands.
func (c *onDivergence) decide(ctx context.Context, env *app.AdminEnv, log *slog.Logger, do func(context.Context, *invoice.Service) error) error {
	return c.Invoices(ctx, env, log, func(ctx context.Context, s *invoice.Service) error {
		if err := do(ctx, s); err != nil {
			return err
		}
		d, err := s.GetDivergence(ctx, c.Tenant, c.ID)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(env.Stdout, "divergence %d (%s) is %s\n", d.ID, d.Kind, d.State())
		return err
	})
}

type divergenceAccept struct{ onDivergence }

// Run accepts the divergence.
func (c *divergenceAccept) Run(ctx context.Context, env *app.AdminEnv, log *slog.Logger) error {
	return c.decide(ctx, env, log, func(ctx context.Context, s *invoice.Service) error {
		return s.AcceptDivergence(ctx, c.Tenant, c.ID, c.by())
	})
}

type divergenceClose struct{ onDivergence }

// Run closes the divergence.
func (c *divergenceClose) Run(ctx context.Context, env *app.AdminEnv, log *slog.Logger) error {
	return c.decide(ctx, env, log, func(ctx context.Context, s *invoice.Service) error {
		return s.CloseDivergence(ctx, c.Tenant, c.ID, c.by())
	})
}
