package crm

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"invoicebridge/internal/audit"
	"invoicebridge/internal/crmdb"
	"invoicebridge/internal/logctx"
	"invoicebridge/internal/problem"
)

const (
	maxEvidenceLength      = 4000
	maxInvoiceNumberLength = 200
)

// check gives the invoice of a proposal that is whole.
func (p Proposal) check() (*IssuedInvoice, error) {
	wrong := problem.New(problem.MalformedRequest, "The proposal is not whole.")
	add := func(pointer, detail string) {
		wrong.Errors = append(wrong.Errors, problem.FieldError{Pointer: pointer, Detail: detail})
	}
	var invoice *IssuedInvoice
	switch {
	case p.Verdict != VerdictApplied && p.Verdict != VerdictNotApplied:
		add("/verdict", fmt.Sprintf("must be %s or %s", VerdictApplied, VerdictNotApplied))
	case p.Verdict == VerdictApplied && p.Invoice == nil:
		add("/invoice", "is required: which invoice is it?")
	case p.Verdict == VerdictNotApplied && p.Invoice != nil:
		add("/invoice", "must be absent: nothing came of the operation")
	case p.Verdict == VerdictApplied:
		number := strings.TrimSpace(p.Invoice.Number)
		if utf8.RuneCountInString(number) > maxInvoiceNumberLength || storable(number) != number {
			add("/invoice/number", "is too long, or no text")
			break
		}
		var ok bool
		if invoice, ok = issuedInvoice(strings.TrimSpace(p.Invoice.ID), number); !ok {
			add("/invoice", "must have the ERP's id (a UUID) and number of the invoice")
		}
	}
	switch {
	case strings.TrimSpace(p.Evidence) == "":
		add("/evidence", "is required: how is that known?")
	case utf8.RuneCountInString(p.Evidence) > maxEvidenceLength || strings.ToValidUTF8(p.Evidence, "") != p.Evidence || strings.ContainsRune(p.Evidence, 0):
		add("/evidence", fmt.Sprintf("must be text of at most %d characters", maxEvidenceLength))
	}
	if len(wrong.Errors) > 0 {
		return nil, wrong
	}
	return invoice, nil
}

// ProposeResolution writes down what somebody says became of an operation that is unknown. Another person has to approve it
// before it counts. Proposal and audit entry are one transaction.
//
// An operation that is not unknown, or has an open proposal, is refused with wrong-state; a proposal that is not whole is
// malformed-request; an unknown key is not-found.
func (s *Service) ProposeResolution(ctx context.Context, tenant, key string, p Proposal, by audit.By) (Resolution, error) {
	if err := checkBy(by); err != nil {
		return Resolution{}, err
	}
	invoice, err := p.check()
	if err != nil {
		return Resolution{}, err
	}
	arg := crmdb.ResolutionInsertParams{
		ID: uuid.Must(uuid.NewV7()), TenantID: tenant, Key: key, Verdict: string(p.Verdict), Evidence: strings.TrimSpace(p.Evidence),
		Reason: by.Reason, ProposedBy: by.Actor, ProposerAccount: by.AccountID(),
	}
	if invoice != nil {
		arg.InvoiceID, arg.InvoiceNumber = &invoice.ID, &invoice.Number
	}
	err = pgx.BeginFunc(ctx, s.db.Of(tenant), func(tx pgx.Tx) error {
		queries := crmdb.New(tx)
		if _, err := queries.ResolutionInsert(ctx, arg); err != nil {
			return err
		}
		told := by
		told.Reason += " (" + p.told(invoice) + ")"
		return writeAudit(ctx, queries, tenant, "resolution.propose", key, told)
	})
	if errors.Is(err, pgx.ErrNoRows) || violates(err, "resolutions_one_open_key") {
		return Resolution{}, s.refuseProposal(ctx, tenant, key)
	}
	if err != nil {
		return Resolution{}, fmt.Errorf("propose a resolution: %w", err)
	}
	s.log.LogAttrs(ctx, slog.LevelInfo, "resolution proposed", slog.String(logctx.TenantKey, tenant),
		slog.String(logctx.OperationKeyKey, key), slog.String("verdict", string(p.Verdict)), slog.String("actor", by.Actor))
	return s.GetResolution(ctx, tenant, arg.ID)
}

func (p Proposal) told(invoice *IssuedInvoice) string {
	if invoice == nil {
		return string(p.Verdict)
	}
	return string(p.Verdict) + ", invoice " + invoice.Number
}

func violates(err error, constraint string) bool {
	var answer *pgconn.PgError
	return errors.As(err, &answer) && answer.Code == "23505" && answer.ConstraintName == constraint
}

func (s *Service) refuseProposal(ctx context.Context, tenant, key string) error {
	view, err := s.ViewOperation(ctx, tenant, key)
	if err != nil {
		return err
	}
	why := whyNoProposal(view.Operation, view.Proposal)
	if why == "" {
		why = whyChanged
	}
	return problem.New(problem.WrongState, "%s", why)
}

// GetResolution gives one proposal; the problem is not-found if the tenant has none of that id.
func (s *Service) GetResolution(ctx context.Context, tenant string, id uuid.UUID) (Resolution, error) {
	row, err := s.resolutionRow(ctx, tenant, id)
	if err != nil {
		return Resolution{}, err
	}
	return resolution(row), nil
}

func (s *Service) resolutionRow(ctx context.Context, tenant string, id uuid.UUID) (crmdb.ResolutionGetRow, error) {
	row, err := crmdb.New(s.db.Of(tenant)).ResolutionGet(ctx, tenant, id)
	if errors.Is(err, pgx.ErrNoRows) {
		return row, problem.New(problem.NotFound, "There is no resolution of this id.")
	}
	if err != nil {
		return row, fmt.Errorf("get resolution: %w", err)
	}
	return row, nil
}

// ListResolutions gives one page of a tenant's proposals, the newest first unless OldestFirst. A wrong filter is
// malformed-request.
func (s *Service) ListResolutions(ctx context.Context, tenant string, f ResolutionFilter) (found Page[Resolution], err error) {
	if f.Status != "" && !slices.Contains(resolutionStatuses(), f.Status) {
		return found, problem.New(problem.MalformedRequest, "%q is not a status of resolutions.", excerpt(string(f.Status)))
	}
	err = readConsole(ctx, s.db.Of(tenant), func(queries *crmdb.Queries) error {
		rows, err := resolutionPaging(ctx, queries, tenant, f.Status).page(f.PageQuery)
		found, err = pageOf(rows, err, func(r crmdb.ResolutionListNewestRow) Resolution { return resolution(crmdb.ResolutionGetRow(r)) })
		return err
	})
	return found, listError("resolutions", err)
}

func resolutionPaging(ctx context.Context, queries *crmdb.Queries, tenant string, status ResolutionStatus) paging[crmdb.ResolutionListNewestRow, uuid.UUID] {
	arg := crmdb.ResolutionListNewestParams{TenantID: tenant, Status: orNil(string(status))}
	return paging[crmdb.ResolutionListNewestRow, uuid.UUID]{
		newest: func(beyond *place[uuid.UUID], limit int32) ([]crmdb.ResolutionListNewestRow, error) {
			arg.BeyondAt, arg.BeyondID = beyond.parts()
			arg.MaxItems = limit
			return queries.ResolutionListNewest(ctx, arg)
		},
		oldest: func(beyond *place[uuid.UUID], limit int32) (told []crmdb.ResolutionListNewestRow, err error) {
			arg.BeyondAt, arg.BeyondID = beyond.parts()
			arg.MaxItems = limit
			rows, err := queries.ResolutionListOldest(ctx, crmdb.ResolutionListOldestParams(arg))
			for _, r := range rows {
				told = append(told, crmdb.ResolutionListNewestRow(r))
			}
			return told, err
		},
		at:    func(r crmdb.ResolutionListNewestRow) place[uuid.UUID] { return place[uuid.UUID]{r.ProposedAt, r.ID} },
		parse: parseUUID, format: formatUUID,
	}
}

func resolutionStatuses() []ResolutionStatus {
	return []ResolutionStatus{ResolutionOpen, ResolutionApproved, ResolutionDeclined, ResolutionWithdrawn}
}
