package main

import (
	"context"
	"fmt"
	"time"

	"invoicebridge/internal/app"
	"invoicebridge/internal/audit"
	"invoicebridge/internal/invoice"
	"invoicebridge/internal/target"
)

type targetCommands struct {
	Set     targetSet     `cmd:"" help:"Make or change a target: an external service that a tenant's invoices are registered with."`
	List    targetList    `cmd:"" help:"List a tenant's targets."`
	Disable targetDisable `cmd:"" help:"Register no more new invoices at a target. What is open there is worked on to its end."`
	Pause   targetPause   `cmd:"" help:"Hold a target's registrations back; invoices go on being issued."`
	Resume  targetResume  `cmd:"" help:"Let a paused target's registrations go on."`
}

// timeoutFlag is the service's own setting: what a target may be set to depends on it.
type timeoutFlag struct {
	TargetTimeout time.Duration `name:"target-timeout" env:"ERP_TARGET_TIMEOUT" default:"30s" help:"Time limit of one request to a target, as the service has it."`
}

type targetSet struct {
	app.DatabaseFlag
	app.ActorFlags
	timeoutFlag
	Tenant      string        `required:"" help:"Id of the tenant."`
	ID          string        `name:"id" help:"Id of the target: a-z, 0-9 and -. Default: its kind."`
	Kind        string        `required:"" enum:"einvoice,ledger" help:"What it is: ${enum}."`
	URL         string        `name:"url" required:"" help:"Where its paths begin."`
	Credential  string        `required:"" placeholder:"env:NAME|file:/PATH" help:"Where the service finds the bearer token: a variable or a file. The token itself is never kept."`
	KeyWindow   time.Duration `help:"It honours idempotency keys for so long. Default: it knows no keys."`
	Locatable   bool          `help:"It can be asked what it has under our reference."`
	AbsentAfter time.Duration `help:"When it says that it has nothing, and the newest request is older than this, that proves it. Default: it never does."`
	Moved       bool          `help:"The new address is that of the same system."`
}

// Run sets the target.
func (c *targetSet) Run(ctx context.Context, env *app.AdminEnv) error {
	pool, err := c.Open(ctx, env.Schema)
	if err != nil {
		return err
	}
	defer pool.Close()
	t := invoice.TargetSettings{
		Tenant: c.Tenant, ID: c.ID, Kind: c.Kind, BaseURL: c.URL, CredentialRef: c.Credential,
		Can: target.Capabilities{
			Keyed: c.KeyWindow != 0, KeyWindow: c.KeyWindow, Locatable: c.Locatable,
			AbsenceAuthoritative: c.AbsentAfter != 0, SettleTime: c.AbsentAfter,
		},
	}
	if t.ID == "" {
		t.ID = t.Kind
	}
	by := audit.By{Actor: c.Actor, Reason: c.Reason}
	if err := invoice.NewTargetAdmin(pool, app.TargetKinds(c.TargetTimeout)).Set(ctx, t, c.Moved, by); err != nil {
		return err
	}
	_, err = fmt.Fprintf(env.Stdout, "invoices of %s issued from now on are registered at %s\n", c.Tenant, t)
	return err
}

type targetList struct {
	app.DatabaseFlag
	Tenant string `required:"" help:"Id of the tenant."`
}

// Run lists the targets.
func (c *targetList) Run(ctx context.Context, env *app.AdminEnv) error {
	pool, err := c.Open(ctx, env.Schema)
	if err != nil {
		return err
	}
	defer pool.Close()
	targets, err := invoice.NewTargetAdmin(pool, app.TargetKinds(0)).List(ctx, c.Tenant)
	if err != nil {
		return err
	}
	return app.Table(env.Stdout, "ID\tKIND\tURL\tCREDENTIAL\tKEY WINDOW\tLOCATABLE\tABSENT AFTER\tSTATE", targets, func(t invoice.TargetSettings) string {
		state := "enabled"
		if t.Disabled {
			state = "disabled"
		}
		return fmt.Sprintf("%s\t%s\t%s\t%s\t%s\t%t\t%s\t%s", t.ID, t.Kind, t.BaseURL, t.CredentialRef,
			orNever(t.Can.KeyWindow), t.Can.Locatable, orNever(t.Can.SettleTime), state)
	})
}

func orNever(d time.Duration) string {
	if d == 0 {
		return "-"
	}
	return d.String()
}

type targetDisable struct {
	app.DatabaseFlag
	app.ActorFlags
	Tenant string `required:"" help:"Id of the tenant."`
	ID     string `arg:"" help:"Id of the target."`
}

// Run disables the target.
func (c *targetDisable) Run(ctx context.Context, env *app.AdminEnv) error {
	pool, err := c.Open(ctx, env.Schema)
	if err != nil {
		return err
	}
	defer pool.Close()
	by := audit.By{Actor: c.Actor, Reason: c.Reason}
	if err := invoice.NewTargetAdmin(pool, app.TargetKinds(0)).Disable(ctx, c.Tenant, c.ID, by); err != nil {
		return err
	}
	_, err = fmt.Fprintf(env.Stdout, "new invoices of %s are not registered at %s any more\n", c.Tenant, c.ID)
	return err
}
