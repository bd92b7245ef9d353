package main

import (
	"context"
	"fmt"
	"time"

	"invoicebridge/internal/app"
	"invoicebridge/internal/invoice"
)

type divergencesCommands struct {
	List divergencesList `cmd:"" help:"List the newest differences between our registrations and what their targets know."`
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
	return app.Table(env.Stdout, "KIND\tREGISTRATION\tOWNER\tFIRST SEEN\tLAST SEEN\tOURS\tTHEIRS\tACTION", list, func(d invoice.Divergence) string {
		return fmt.Sprintf("%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s", d.Kind, d.Subject, d.Owner, d.FirstSeenAt.UTC().Format(time.RFC3339),
			d.LastSeenAt.UTC().Format(time.RFC3339), app.OneCell(d.Ours), app.OneCell(d.Theirs), app.OneCell(d.Action))
	})
}
