package main

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/google/uuid"

	"invoicebridge/internal/app"
	"invoicebridge/internal/erpapi"
	"invoicebridge/internal/invoice"
)

type registrationsCommands struct {
	List        registrationsList       `cmd:"" help:"List the newest registrations of invoices at targets."`
	Show        registrationShow        `cmd:"" help:"Show a registration with its attempts, as JSON."`
	Replay      registrationReplay      `cmd:"" help:"Have a registration tried again at once. What is in doubt is asked for, never sent anew."`
	Resolve     registrationResolve     `cmd:"" help:"Settle an unknown registration by what you know, with evidence. Nobody takes it back."`
	Acknowledge registrationAcknowledge `cmd:"" help:"Put on record that a failed registration was dealt with: takes its flag off, nothing else."`
}

type registrationsList struct {
	tenantOn
	Status  string `help:"Only those with this status: pending, processing, unknown, succeeded or failed."`
	Target  string `help:"Only those at this target."`
	Flagged bool   `help:"Only those that wait for a person."`
	Limit   int    `default:"50" help:"How many, from 1 to 200."`
}

// Run lists the registrations.
func (c *registrationsList) Run(ctx context.Context, env *app.AdminEnv) error {
	return c.read(ctx, env, func(s *invoice.Service) error {
		filter := invoice.RegistrationFilter{Status: c.Status, Target: c.Target}
		if c.Flagged {
			filter.Flagged = &c.Flagged
		}
		page, _, err := s.ListRegistrations(ctx, c.Tenant, filter, invoice.Page{Limit: c.Limit})
		if err != nil {
			return err
		}
		return app.Table(env.Stdout, "ID\tINVOICE\tTARGET\tSTATUS\tATTEMPTS\tFLAGGED\tREFERENCE\tREASON\tDETAIL", page, registrationLine)
	})
}

func registrationLine(r erpapi.RegistrationDetail) string {
	cell := func(text string) string {
		if text == "" {
			return "-"
		}
		return app.OneCell(text)
	}
	flagged := "-"
	if r.Flagged {
		flagged = "yes"
	}
	return fmt.Sprintf("%s\t%s\t%s\t%s\t%d\t%s\t%s\t%s\t%s", r.ID, r.Invoice.Number, r.Target, r.Status, r.Attempts, flagged,
		cell(r.Reference), cell(r.Reason), cell(r.Detail))
}

type registrationShow struct {
	tenantOn
	ID uuid.UUID `arg:"" help:"Id of the registration."`
}

// Run shows the registration.
func (c *registrationShow) Run(ctx context.Context, env *app.AdminEnv) error {
	return c.read(ctx, env, func(s *invoice.Service) error {
		r, err := s.GetRegistration(ctx, c.Tenant, c.ID)
		return show(env, r, err)
	})
}

// onRegistration is acting on one registration.
type onRegistration struct {
	acting
	ID uuid.UUID `arg:"" help:"Id of the registration."`
}

// change does something to the registration and shows it.
func (c *onRegistration) change(ctx context.Context, env *app.AdminEnv, log *slog.Logger, do func(context.Context, *invoice.Service) error) error {
	return c.Invoices(ctx, env, log, func(ctx context.Context, s *invoice.Service) error {
		if err := do(ctx, s); err != nil {
			return explained(err)
		}
		r, err := s.GetRegistration(ctx, c.Tenant, c.ID)
		return show(env, r, err)
	})
}

type registrationReplay struct{ onRegistration }

// Run replays the registration and shows it.
func (c *registrationReplay) Run(ctx context.Context, env *app.AdminEnv, log *slog.Logger) error {
	return c.change(ctx, env, log, func(ctx context.Context, s *invoice.Service) error {
		return s.ReplayRegistration(ctx, c.Tenant, c.ID, c.by())
	})
}

type registrationResolve struct {
	onRegistration
	Status    string `required:"" enum:"succeeded,failed" help:"What became of it: succeeded (the target has it) or failed (it has it not, and never will)."`
	Reference string `help:"With succeeded: the target's reference of it."`
	Evidence  string `required:"" help:"Where that is to be seen."`
}

// Run resolves the registration and shows it.
func (c *registrationResolve) Run(ctx context.Context, env *app.AdminEnv, log *slog.Logger) error {
	resolution := invoice.Resolution{Status: invoice.RegistrationStatus(c.Status), Reference: c.Reference, Evidence: c.Evidence}
	return c.change(ctx, env, log, func(ctx context.Context, s *invoice.Service) error {
		return s.ResolveRegistration(ctx, c.Tenant, c.ID, resolution, c.by())
	})
}

type registrationAcknowledge struct{ onRegistration }

// Run acknowledges the registration and shows it.
func (c *registrationAcknowledge) Run(ctx context.Context, env *app.AdminEnv, log *slog.Logger) error {
	return c.change(ctx, env, log, func(ctx context.Context, s *invoice.Service) error {
		return s.AcknowledgeRegistration(ctx, c.Tenant, c.ID, c.by())
	})
}
