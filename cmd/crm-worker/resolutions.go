package main

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"invoicebridge/internal/app"
	"invoicebridge/internal/audit"
	"invoicebridge/internal/auth"
	"invoicebridge/internal/crm"
	"invoicebridge/internal/erpapi"
)

type resolutionsCommands struct {
	Propose  resolutionPropose  `cmd:"" help:"Say, with evidence, what became of an operation that is unknown. It counts once another person has approved it."`
	List     resolutionsList    `cmd:"" help:"List the newest proposals."`
	Show     resolutionShow     `cmd:"" help:"Show a proposal, as JSON."`
	Withdraw resolutionWithdraw `cmd:"" help:"Take back a proposal of one's own."`
}

// Help says why there is no command that approves.
func (resolutionsCommands) Help() string {
	return `Approving and declining are not here: they take a second person, and a command can't tell who calls it. Whoever can run it has the
database, and could name anybody. A proposal is approved or declined by a person who has logged in, on the page /resolutions, or by
POST /admin/v1/resolutions/{id}/approve with a token of that person's own.`
}

// inPerson is acting in the name of a person who has an account here, so that the same person can't decide as the second one.
type inPerson struct {
	tenantOn
	Account string `required:"" placeholder:"NAME" help:"Log-in name of the person who does this. That person can't be the one who approves it."`
	Reason  string `required:"" help:"Why, for the audit."`
}

// as gives do a Service and who acts. Only an account that could do the same on the page is taken.
func (c *inPerson) as(ctx context.Context, env *app.AdminEnv, log *slog.Logger, do func(context.Context, *crm.Service, audit.By) error) error {
	return c.queue(ctx, env, log, func(ctx context.Context, s *crm.Service, pool *pgxpool.Pool) error {
		account, err := auth.NewAdmin(env.Store(pool)).GetAccount(ctx, c.Tenant, c.Account)
		if err != nil {
			return err
		}
		if !account.Role.May(auth.MayOperate) {
			return fmt.Errorf("account %q has the role %s, which may not do this", account.Name, account.Role)
		}
		return do(ctx, s, audit.By{Actor: account.Name, Account: account.ID, Reason: c.Reason, Via: audit.ViaCLI})
	})
}

type resolutionPropose struct {
	inPerson
	Key           string `arg:"" help:"Key of the operation."`
	Verdict       string `required:"" enum:"applied,not-applied" help:"What became of it: applied (there is an invoice) or not-applied (nothing came of it, and nothing will)."`
	InvoiceID     string `placeholder:"UUID" help:"With applied: the ERP's id of the invoice."`
	InvoiceNumber string `help:"With applied: the invoice's number."`
	Evidence      string `required:"" help:"How that is known: where it was looked up, who was asked."`
}

// Help says what comes of it.
func (resolutionPropose) Help() string {
	return `Nothing happens to the operation until another person approves. Then it is succeeded with that invoice, or failed, so that it can be
revised. Before that the ERP is asked, and its word against the proposal stops it.`
}

// Run proposes and shows the proposal.
func (c *resolutionPropose) Run(ctx context.Context, env *app.AdminEnv, log *slog.Logger) error {
	p := crm.Proposal{Verdict: crm.VerdictNotApplied, Evidence: c.Evidence}
	if c.Verdict == "applied" {
		p.Verdict = crm.VerdictApplied
	}
	if c.InvoiceID != "" || c.InvoiceNumber != "" {
		p.Invoice = &erpapi.InvoiceLink{ID: c.InvoiceID, Number: c.InvoiceNumber}
	}
	return c.as(ctx, env, log, func(ctx context.Context, s *crm.Service, by audit.By) error {
		r, err := s.ProposeResolution(ctx, c.Tenant, c.Key, p, by)
		return show(env, r, explained(err))
	})
}

type resolutionWithdraw struct {
	inPerson
	ID uuid.UUID `arg:"" help:"Id of the proposal."`
}

// Run withdraws the proposal and shows it.
func (c *resolutionWithdraw) Run(ctx context.Context, env *app.AdminEnv, log *slog.Logger) error {
	return c.as(ctx, env, log, func(ctx context.Context, s *crm.Service, by audit.By) error {
		r, err := s.WithdrawResolution(ctx, c.Tenant, c.ID, by)
		return show(env, r, err)
	})
}

type resolutionsList struct {
	tenantOn
	Status string `help:"Only those with this status: open, approved, declined or withdrawn."`
	Limit  int    `default:"50" help:"How many, from 1 to 200."`
}

// Run lists the proposals.
func (c *resolutionsList) Run(ctx context.Context, env *app.AdminEnv) error {
	return c.read(ctx, env, func(s *crm.Service) error {
		page, err := s.ListResolutions(ctx, c.Tenant, crm.ResolutionFilter{Status: crm.ResolutionStatus(c.Status), PageQuery: crm.PageQuery{Limit: c.Limit}})
		if err != nil {
			return err
		}
		return app.Table(env.Stdout, "ID\tKEY\tORDER\tOPERATION NOW\tVERDICT\tINVOICE\tSTATUS\tPROPOSED\tBY\tDECIDED BY", page.Items, resolutionLine)
	})
}

func resolutionLine(r crm.Resolution) string {
	number, decided := "-", "-"
	if r.Invoice != nil {
		number = app.OneCell(r.Invoice.Number)
	}
	if r.DecidedBy != "" {
		decided = app.OneCell(r.DecidedBy)
	}
	return fmt.Sprintf("%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s", r.ID, r.Key, app.OneCell(r.Order), r.OperationStatus, r.Verdict, number, r.Status,
		r.ProposedAt.UTC().Format(time.RFC3339), app.OneCell(r.ProposedBy), decided)
}

type resolutionShow struct {
	tenantOn
	ID uuid.UUID `arg:"" help:"Id of the proposal."`
}

// Run shows the proposal.
func (c *resolutionShow) Run(ctx context.Context, env *app.AdminEnv) error {
	return c.read(ctx, env, func(s *crm.Service) error {
		r, err := s.GetResolution(ctx, c.Tenant, c.ID)
		return show(env, r, err)
	})
}
