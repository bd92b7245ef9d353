package crm

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"invoicebridge/internal/audit"
	"invoicebridge/internal/crmdb"
	"invoicebridge/internal/logctx"
	"invoicebridge/internal/problem"
)

// ApproveResolution carries a proposal out: the operation is succeeded with the invoice, or failed and may be revised. by
// must be a person with another account than the proposer's; else the problem is forbidden. An attempt that ends later
// writes nothing. Operation, proposal and audit entry are one transaction.
//
// Before it the ERP is asked. Where it contradicts the proposal, that is refused with wrong-state, which tells what the ERP
// says; where it can't be asked, that is written down and no hindrance. Also refused with wrong-state: the operation is not
// unknown any more, it was tried again since not_applied was proposed, another operation has the invoice, or somebody has
// decided meanwhile.
func (s *Service) ApproveResolution(ctx context.Context, tenant string, id uuid.UUID, by audit.By) (Resolution, error) {
	if err := checkBy(by); err != nil {
		return Resolution{}, err
	}
	row, err := s.resolutionRow(ctx, tenant, id)
	if err != nil {
		return Resolution{}, err
	}
	if err := mayDecide(resolution(row), resolution(row).whyNoApproval(by), by); err != nil {
		return Resolution{}, err
	}
	said := s.askERP(ctx, tenant, row)
	if why := said.contradiction(row); why != "" {
		return Resolution{}, problem.New(problem.WrongState, "The ERP contradicts this: %s Nothing was changed.", why)
	}
	err = pgx.BeginFunc(ctx, s.db.Of(tenant), func(tx pgx.Tx) error {
		queries := crmdb.New(tx)
		// The operation first: who proposes locks it, and then looks for an open proposal.
		if err := applyResolution(ctx, queries, tenant, row, by); err != nil {
			return err
		}
		return decideResolution(ctx, queries, tenant, row, ResolutionApproved, said.text, by)
	})
	if err != nil {
		return Resolution{}, fmt.Errorf("approve a resolution: %w", err)
	}
	s.log.LogAttrs(ctx, slog.LevelInfo, "resolution approved", slog.String(logctx.TenantKey, tenant),
		slog.String(logctx.OperationKeyKey, row.Key), slog.String("verdict", row.Verdict), slog.String("proposer", row.ProposedBy),
		slog.String("actor", by.Actor))
	return s.GetResolution(ctx, tenant, id)
}

// mayDecide tells apart what is not this person's to do from what nobody can do any more.
func mayDecide(r Resolution, why string, by audit.By) error {
	switch {
	case why == "":
		return nil
	case r.Status == ResolutionOpen && (by.Account == uuid.Nil || by.Account == r.proposerAccount):
		return problem.New(problem.Forbidden, "%s", why)
	}
	return problem.New(problem.WrongState, "%s", why)
}

// decideResolution ends a proposal. Of several who decide at once, the first does.
func decideResolution(ctx context.Context, queries *crmdb.Queries, tenant string, row crmdb.ResolutionGetRow, status ResolutionStatus, said string, by audit.By) error {
	n, err := queries.ResolutionDecide(ctx, crmdb.ResolutionDecideParams{
		TenantID: tenant, ID: row.ID, Status: string(status), DecidedBy: &by.Actor, DeciderAccount: by.AccountID(),
		DecisionReason: &by.Reason, ErpSaid: said,
	})
	if err != nil {
		return fmt.Errorf("end the proposal: %w", err)
	}
	if n == 0 {
		now, err := queries.ResolutionGet(ctx, tenant, row.ID)
		if err != nil {
			return fmt.Errorf("read the proposal again: %w", err)
		}
		return problem.New(problem.WrongState, "%s", resolution(now).whyClosed())
	}
	verb := map[ResolutionStatus]string{ResolutionApproved: "approve", ResolutionDeclined: "decline", ResolutionWithdrawn: "withdraw"}[status]
	return writeAudit(ctx, queries, tenant, "resolution."+verb, row.Key, by)
}

// applyResolution gives the operation the end that two people vouch for.
func applyResolution(ctx context.Context, queries *crmdb.Queries, tenant string, row crmdb.ResolutionGetRow, by audit.By) error {
	arg := crmdb.ResolutionApplyParams{
		ID: row.OperationID, InvoiceID: row.InvoiceID, InvoiceNumber: row.InvoiceNumber,
		Detail: keepable(fmt.Sprintf("Resolved by %s and %s: %s", row.ProposedBy, by.Actor, row.Evidence), ""),
	}
	if Verdict(row.Verdict) == VerdictApplied {
		// An invoice that is there stays there, whatever was tried since.
		arg.Status, arg.Reason, arg.Attempt = string(StatusSucceeded), string(ReasonResolved), row.OperationAttempt
		if err := onlyOwner(ctx, queries, tenant, row); err != nil {
			return err
		}
	} else {
		// Nobody has vouched for what was tried since.
		arg.Status, arg.Reason, arg.Attempt = string(StatusFailed), string(ReasonResolvedNotApplied), row.Attempt
	}
	n, err := queries.ResolutionApply(ctx, arg)
	if err != nil {
		return fmt.Errorf("end the operation: %w", err)
	}
	if n == 0 {
		return refuseApproval(ctx, queries, tenant, row)
	}
	return nil
}

// onlyOwner refuses to give two operations one invoice.
func onlyOwner(ctx context.Context, queries *crmdb.Queries, tenant string, row crmdb.ResolutionGetRow) error {
	if err := queries.ResolutionLockInvoice(ctx, tenant, row.InvoiceID.String()); err != nil {
		return fmt.Errorf("lock the invoice: %w", err)
	}
	owner, err := queries.ResolutionOwnerOfInvoice(ctx, tenant, row.InvoiceID, row.OperationID)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil
	case err != nil:
		return fmt.Errorf("look for the invoice's operation: %w", err)
	}
	return problem.New(problem.WrongState, "Invoice %s belongs to operation %s already. Nothing was changed.", *row.InvoiceNumber, owner)
}

func refuseApproval(ctx context.Context, queries *crmdb.Queries, tenant string, row crmdb.ResolutionGetRow) error {
	now, err := queries.ResolutionGet(ctx, tenant, row.ID)
	if err != nil {
		return fmt.Errorf("read the operation again: %w", err)
	}
	switch status := OperationStatus(now.OperationStatus); {
	case ResolutionStatus(now.Status) != ResolutionOpen:
		return problem.New(problem.WrongState, "%s", resolution(now).whyClosed())
	case status == StatusProcessing:
		return problem.New(problem.WrongState, "The operation is being worked on at this moment: it may learn by itself what became of it.")
	case status != StatusUnknown:
		return problem.New(problem.WrongState, "The operation is %s by now: nothing about it has to be resolved by hand.", status)
	}
	return problem.New(problem.WrongState, "The operation was tried again since this was proposed (then attempt %d, now %d), and what came of that nobody has vouched for. Decline it, and propose it anew.",
		row.Attempt, now.OperationAttempt)
}

// DeclineResolution ends a proposal without effect. by is as for ApproveResolution.
func (s *Service) DeclineResolution(ctx context.Context, tenant string, id uuid.UUID, by audit.By) (Resolution, error) {
	return s.endResolution(ctx, tenant, id, ResolutionDeclined, by, Resolution.whyNoDecision)
}

// WithdrawResolution ends a proposal without effect. Only its proposer can; for others the problem is forbidden.
func (s *Service) WithdrawResolution(ctx context.Context, tenant string, id uuid.UUID, by audit.By) (Resolution, error) {
	return s.endResolution(ctx, tenant, id, ResolutionWithdrawn, by, Resolution.whyNoWithdrawal)
}

func (s *Service) endResolution(ctx context.Context, tenant string, id uuid.UUID, status ResolutionStatus, by audit.By, whyNot func(Resolution, audit.By) string) (Resolution, error) {
	if err := checkBy(by); err != nil {
		return Resolution{}, err
	}
	row, err := s.resolutionRow(ctx, tenant, id)
	if err != nil {
		return Resolution{}, err
	}
	r := resolution(row)
	if why := whyNot(r, by); why != "" {
		if r.Status == ResolutionOpen {
			return Resolution{}, problem.New(problem.Forbidden, "%s", why)
		}
		return Resolution{}, problem.New(problem.WrongState, "%s", why)
	}
	err = pgx.BeginFunc(ctx, s.db.Of(tenant), func(tx pgx.Tx) error {
		return decideResolution(ctx, crmdb.New(tx), tenant, row, status, "", by)
	})
	if err != nil {
		return Resolution{}, fmt.Errorf("end a resolution: %w", err)
	}
	return s.GetResolution(ctx, tenant, id)
}
