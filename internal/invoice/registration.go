package invoice

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"invoicebridge/internal/audit"
	"invoicebridge/internal/erpapi"
	"invoicebridge/internal/erpdb"
	"invoicebridge/internal/problem"
)

// RegistrationFilter narrows a list. Members left zero do not narrow.
type RegistrationFilter struct {
	Status, Target string
	Flagged        *bool
}

// operationRegistrations are the registrations of an operation's invoice, by target.
func (s *Service) operationRegistrations(ctx context.Context, tenant string, invoiceID uuid.UUID) ([]erpapi.Registration, error) {
	rows, err := erpdb.New(s.db.Of(tenant)).RegistrationListOfInvoice(ctx, invoiceID, tenant)
	if err != nil {
		return nil, s.readFailed(ctx, "list the registrations of an invoice", err)
	}
	list := make([]erpapi.Registration, len(rows))
	for i, row := range rows {
		list[i] = erpapi.Registration{
			Target: row.TargetID, Status: row.Status, Reference: row.Reference, Warnings: row.Warnings,
			Attempts: int64(row.Attempt), Flagged: row.Flagged,
		}
	}
	return list, nil
}

// ListRegistrations gives a page of the tenant's registrations, newest first, and the cursor of the next page, or nil on
// the last. It fails with problem malformed-request for a status that there is not, a limit out of range or a cursor that
// it never gave.
func (s *Service) ListRegistrations(ctx context.Context, tenant string, f RegistrationFilter, p Page) (items []erpapi.RegistrationDetail, next *string, err error) {
	params, err := registrationListParams(tenant, f, p)
	if err != nil {
		return nil, nil, err
	}
	limit := int(params.PageSize)
	params.PageSize++ // the one more that says whether there is a next page
	rows, err := erpdb.New(s.db.Of(tenant).PlannedAnew()).RegistrationList(ctx, params)
	if err != nil {
		return nil, nil, s.readFailed(ctx, "list registrations", err)
	}
	if len(rows) > limit {
		rows = rows[:limit]
		cursor := position{rows[limit-1].CreatedAt, rows[limit-1].ID}.cursor()
		next = &cursor
	}
	items = make([]erpapi.RegistrationDetail, len(rows))
	for i, row := range rows {
		items[i] = registrationDetail(erpdb.RegistrationGetRow(row))
	}
	return items, next, nil
}

func registrationListParams(tenant string, f RegistrationFilter, p Page) (erpdb.RegistrationListParams, error) {
	params := erpdb.RegistrationListParams{
		TenantID: tenant, Status: optional(f.Status), TargetID: optional(f.Target), Flagged: f.Flagged, PageSize: int32(p.Limit),
	}
	if f.Status != "" && !slices.Contains(registrationStatuses(), f.Status) {
		return params, problem.New(problem.MalformedRequest, "status must be one of %s.", strings.Join(registrationStatuses(), ", "))
	}
	if !isStorable(f.Target) {
		return params, problem.New(problem.MalformedRequest, "A filter is not UTF-8 text.")
	}
	if p.Limit == 0 {
		params.PageSize = DefaultPage
	}
	if p.Limit < 0 || p.Limit > MaxPage {
		return params, problem.New(problem.MalformedRequest, "limit must be from 1 to %d.", MaxPage)
	}
	if p.Cursor != "" {
		after, err := parseCursor(p.Cursor)
		if err != nil {
			return params, err
		}
		params.BeforeCreatedAt, params.BeforeID = &after.createdAt, &after.id
	}
	return params, nil
}

func registrationStatuses() []string {
	return []string{
		string(RegistrationPending), string(RegistrationProcessing), string(RegistrationSucceeded),
		string(RegistrationFailed), string(RegistrationUnknown),
	}
}

// GetRegistration gives a registration with all its attempts, oldest first. It fails with problem not-found if the tenant
// has none with this id.
func (s *Service) GetRegistration(ctx context.Context, tenant string, id uuid.UUID) (erpapi.RegistrationDetail, error) {
	row, err := erpdb.New(s.db.Of(tenant)).RegistrationGet(ctx, tenant, id)
	if errors.Is(err, pgx.ErrNoRows) {
		return erpapi.RegistrationDetail{}, noRegistration()
	}
	if err != nil {
		return erpapi.RegistrationDetail{}, s.readFailed(ctx, "get a registration", err)
	}
	attempts, err := erpdb.New(s.db.Of(tenant)).RegistrationAttemptList(ctx, id)
	if err != nil {
		return erpapi.RegistrationDetail{}, s.readFailed(ctx, "list a registration's attempts", err)
	}
	detail := registrationDetail(row)
	detail.History = make([]erpapi.RegistrationAttempt, len(attempts))
	for i, a := range attempts {
		detail.History[i] = erpapi.RegistrationAttempt{
			Number: int64(a.Number), Action: a.Action, StartedAt: a.StartedAt.UTC(), FinishedAt: utc(a.FinishedAt),
			Outcome: a.Outcome, HTTPStatus: a.HttpStatus, Detail: a.Detail, Worker: a.Worker,
		}
	}
	return detail, nil
}

func noRegistration() error {
	return problem.New(problem.NotFound, "There is no registration with this id.")
}

func registrationDetail(row erpdb.RegistrationGetRow) erpapi.RegistrationDetail {
	return erpapi.RegistrationDetail{
		ID: row.ID.String(), Invoice: erpapi.InvoiceLink{ID: row.InvoiceID.String(), Number: row.InvoiceNumber}, Key: row.Key,
		Registration: erpapi.Registration{
			Target: row.TargetID, Status: row.Status, Reference: row.Reference, Warnings: row.Warnings,
			Attempts: int64(row.Attempt), Flagged: row.FlaggedAt != nil,
		},
		Reason: row.Reason, Detail: row.Detail, CreatedAt: row.CreatedAt.UTC(), FinishedAt: utc(row.FinishedAt),
		FlaggedAt: utc(row.FlaggedAt), NextAttemptAt: utc(row.NextAttemptAt), FirstSentAt: utc(row.FirstSentAt), LastSentAt: utc(row.LastSentAt),
	}
}

func utc(t *time.Time) *time.Time {
	if t == nil {
		return nil
	}
	u := t.UTC()
	return &u
}

// ReplayRegistration has a registration tried again at once, by the rules that always hold: what is in doubt is asked for,
// never sent anew. It takes the flag off and lets the limits begin anew. Change, job and audit entry are one transaction.
//
// It fails with problem not-found, and with wrong-state if the registration has come to its end, is being worked on, is
// queued already, or its target is paused.
func (s *Service) ReplayRegistration(ctx context.Context, tenant string, id uuid.UUID, by audit.By) error {
	if err := checkReason(by); err != nil {
		return err
	}
	err := s.changeRegistration(ctx, tenant, id, func(tx pgx.Tx, status RegistrationStatus) error {
		if s.queue == nil {
			return errors.New("this process has no queue")
		}
		pause, err := pauseAt(ctx, erpdb.New(tx), tenant, id)
		if err != nil {
			return err
		}
		queued, err := s.queue.RegistrationIsQueued(ctx, tx, id)
		if err != nil {
			return err
		}
		if err := refuseFor(whyNoReplay(status, queued, pause)); err != nil {
			return err
		}
		if _, err := erpdb.New(tx).RegistrationMakeDue(ctx, id); err != nil {
			return err
		}
		if err := s.enqueue(ctx, tx, []uuid.UUID{id}); err != nil {
			return err
		}
		return auditRegistration(ctx, tx, tenant, id, "registration.replay", by)
	})
	if err == nil {
		s.wake()
	}
	return err
}

// Resolution is what a person knows of a registration whose outcome is unknown.
type Resolution struct {
	Status    RegistrationStatus // succeeded or failed
	Reference string             // the target's, with succeeded
	Evidence  string             // where that is to be seen
}

// ResolveRegistration settles what is unknown by what a person knows. Change and audit entry are one transaction. Nobody
// takes it back: succeeded and failed are left by no path.
//
// It fails with problem not-found, malformed-request, and wrong-state unless the registration is unknown and nobody is
// working on it.
func (s *Service) ResolveRegistration(ctx context.Context, tenant string, id uuid.UUID, r Resolution, by audit.By) error {
	if err := checkResolution(r, by); err != nil {
		return err
	}
	return s.changeRegistration(ctx, tenant, id, func(tx pgx.Tx, status RegistrationStatus) error {
		if err := refuseFor(whyNoResolve(status)); err != nil {
			return err
		}
		_, err := erpdb.New(tx).RegistrationResolve(ctx, erpdb.RegistrationResolveParams{
			ID: id, Status: string(r.Status), Reference: r.Reference, Reason: string(ReasonSettledByHuman),
			Detail: "Settled by hand: " + by.Reason + " Evidence: " + r.Evidence,
		})
		if err != nil {
			return err
		}
		by.Reason = fmt.Sprintf("%s (%s %s, evidence: %s)", by.Reason, r.Status, r.Reference, r.Evidence)
		return auditRegistration(ctx, tx, tenant, id, "registration.resolve", by)
	})
}

// changeRegistration runs do in a transaction that has the registration locked: no attempt begins or ends meanwhile.
func (s *Service) changeRegistration(ctx context.Context, tenant string, id uuid.UUID, do func(tx pgx.Tx, status RegistrationStatus) error) error {
	err := pgx.BeginFunc(ctx, s.db.Of(tenant), func(tx pgx.Tx) error {
		status, err := erpdb.New(tx).RegistrationLock(ctx, tenant, id)
		if errors.Is(err, pgx.ErrNoRows) {
			return noRegistration()
		}
		if err != nil {
			return err
		}
		return do(tx, RegistrationStatus(status))
	})
	if err != nil && problem.As(err) == nil {
		return s.readFailed(ctx, "change registration "+id.String(), err)
	}
	return err
}

func auditRegistration(ctx context.Context, tx pgx.Tx, tenant string, id uuid.UUID, action string, by audit.By) error {
	return writeAudit(ctx, erpdb.New(tx), tenant, action, id.String(), by)
}

const maxAuditText = 2000

func checkReason(by audit.By) error { return checkTexts([2]string{"/reason", by.Reason}) }

func checkResolution(r Resolution, by audit.By) error {
	texts := [][2]string{{"/reason", by.Reason}, {"/evidence", r.Evidence}}
	switch r.Status {
	case RegistrationSucceeded:
		texts = append(texts, [2]string{"/reference", r.Reference})
	case RegistrationFailed:
		if r.Reference != "" {
			return wrongMembers(problem.FieldError{Pointer: "/reference", Detail: "must not be given with failed"})
		}
	default:
		return wrongMembers(problem.FieldError{Pointer: "/status", Detail: "must be succeeded or failed"})
	}
	return checkTexts(texts...)
}

// checkTexts: pairs of pointer and text that must be there.
func checkTexts(texts ...[2]string) error {
	var wrong []problem.FieldError
	for _, text := range texts {
		switch {
		case strings.TrimSpace(text[1]) == "":
			wrong = append(wrong, problem.FieldError{Pointer: text[0], Detail: "is missing"})
		case len(text[1]) > maxAuditText || !isStorable(text[1]):
			wrong = append(wrong, problem.FieldError{Pointer: text[0], Detail: fmt.Sprintf("must be text of at most %d bytes", maxAuditText)})
		}
	}
	if len(wrong) == 0 {
		return nil
	}
	return wrongMembers(wrong...)
}

func wrongMembers(wrong ...problem.FieldError) error {
	p := problem.New(problem.MalformedRequest, "The request can't be carried out: %s %s.", wrong[0].Pointer, wrong[0].Detail)
	p.Errors = wrong
	return p
}
