package main

import (
	"context"
	"fmt"

	"invoicebridge/internal/app"
	"invoicebridge/internal/audit"
	"invoicebridge/internal/invoice"
)

type seriesCommands struct {
	Set seriesSet `cmd:"" help:"Number a role's invoices in a series from now on. Numbers already given stay."`
}

type seriesSet struct {
	app.DatabaseFlag
	Actor  string `default:"${actor}" help:"Who does this, for the audit."`
	Reason string `required:"" help:"Why, for the audit."`
	Tenant string `required:"" help:"Id of the tenant."`
	Role   string `required:"" enum:"advance,partial,final,credit_note,correction" help:"What the invoices are for their order: ${enum}."`
	Prefix string `required:"" help:"First part of the numbers, capital letters and digits: INV gives INV-2026-000001."`
	Digits int    `default:"6" help:"Least digits of the last part, from 1 to 12."`
}

// Run sets the series.
func (c *seriesSet) Run(ctx context.Context, env *app.AdminEnv) error {
	pool, err := c.Open(ctx, env.Schema)
	if err != nil {
		return err
	}
	defer pool.Close()
	err = invoice.NewService(pool, invoice.Options{}).
		SetSeries(ctx, c.Tenant, c.Role, c.Prefix, c.Digits, audit.By{Actor: c.Actor, Reason: c.Reason})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(env.Stdout, "%s invoices of %s are numbered %s-YEAR-%0*d and on\n", c.Role, c.Tenant, c.Prefix, c.Digits, 1)
	return err
}
