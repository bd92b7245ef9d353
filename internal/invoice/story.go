package invoice

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"invoicebridge/internal/erpapi"
	"invoicebridge/internal/erpdb"
	"invoicebridge/internal/problem"
)

// maxStory bounds each part of a story: the newest are told.
const maxStory = 200

// Story is all that is known of one invoice.
type Story struct {
	Invoice *erpapi.Invoice
	Seller  string // the tenant's name
	// Corrects is the invoice that this one corrects or credits; nil if it does not.
	Corrects *erpapi.InvoiceLink
	// CorrectedBy are the invoices that correct or credit this one, oldest first.
	CorrectedBy []Correction
	// FirstSeen and Expires are of the reservation of its key; FirstSeen is the invoice's own time once that is purged, and
	// Expires nil.
	FirstSeen     time.Time
	Expires       *time.Time
	Registrations []erpapi.RegistrationDetail // by target, each with its newest attempts
	Conflicts     []Conflict                  // requests refused for other content under its key, newest first
	Audit         []AuditEntry                // what people did to it, its key or its registrations, newest first
}

// Correction is an invoice that corrects or credits another.
type Correction struct {
	ID              uuid.UUID
	Number          string
	Role            erpapi.Role
	Currency, Gross string
	CreatedAt       time.Time
}

// Story tells one invoice's, as one moment of the database has it. It fails with problem not-found if the tenant has no such
// invoice.
func (s *Service) Story(ctx context.Context, tenant string, id uuid.UUID) (story Story, err error) {
	options := pgx.TxOptions{AccessMode: pgx.ReadOnly, IsoLevel: pgx.RepeatableRead}
	err = pgx.BeginTxFunc(ctx, s.db.Of(tenant), options, func(tx pgx.Tx) error {
		story, err = tell(ctx, erpdb.New(tx), tenant, id)
		return err
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return Story{}, problem.New(problem.NotFound, "There is no invoice %s.", id)
	}
	if err != nil {
		return Story{}, s.readFailed(ctx, "tell an invoice's story", err)
	}
	return story, nil
}

func tell(ctx context.Context, queries *erpdb.Queries, tenant string, id uuid.UUID) (story Story, err error) {
	row, err := queries.InvoiceStoryGet(ctx, operationKind, tenant, id)
	if err != nil {
		return story, err
	}
	if story.Invoice, err = readDocument(row.Document); err != nil {
		return story, err
	}
	story.Seller, story.FirstSeen, story.Expires = row.TenantName, row.CreatedAt, tellable(row.ExpiresAt)
	if row.FirstSeenAt != nil {
		story.FirstSeen = *row.FirstSeenAt
	}
	if row.CorrectsID != nil && row.CorrectsNumber != nil {
		story.Corrects = &erpapi.InvoiceLink{ID: row.CorrectsID.String(), Number: *row.CorrectsNumber}
	}
	corrections, err := queries.InvoiceStoryCorrections(ctx, tenant, id, maxStory)
	if err != nil {
		return story, err
	}
	for _, c := range corrections {
		story.CorrectedBy = append(story.CorrectedBy, Correction{c.ID, c.Number, erpapi.Role(c.Role), c.Currency, c.Gross, c.CreatedAt})
	}
	if err := story.tellRegistrations(ctx, queries, tenant, id); err != nil {
		return story, err
	}
	if story.Conflicts, err = conflictsOf(ctx, queries, tenant, row.OperationKey); err != nil {
		return story, err
	}
	subjects := []string{story.Invoice.ID, story.Invoice.Number, row.OperationKey}
	for _, r := range story.Registrations {
		subjects = append(subjects, r.ID)
	}
	entries, err := queries.InvoiceStoryAudit(ctx, tenant, subjects, maxStory)
	for _, e := range entries {
		story.Audit = append(story.Audit, auditEntry(erpdb.AuditEntryListRow(e)))
	}
	return story, err
}

func (story *Story) tellRegistrations(ctx context.Context, queries *erpdb.Queries, tenant string, id uuid.UUID) error {
	rows, err := queries.InvoiceStoryRegistrations(ctx, tenant, id)
	if err != nil {
		return err
	}
	attempts, err := queries.InvoiceStoryAttempts(ctx, tenant, id, maxStory)
	if err != nil {
		return err
	}
	for _, r := range rows {
		detail := registrationDetail(erpdb.RegistrationGetRow{
			ID: r.ID, InvoiceID: id, InvoiceNumber: story.Invoice.Number, TargetID: r.TargetID, Key: story.Invoice.OperationKey,
			Status: r.Status, Attempt: r.Attempt, Reference: r.Reference, Warnings: r.Warnings, Reason: r.Reason, Detail: r.Detail,
			CreatedAt: r.CreatedAt, FinishedAt: r.FinishedAt, FlaggedAt: r.FlaggedAt, NextAttemptAt: r.NextAttemptAt,
		})
		for _, a := range attempts {
			if a.RegistrationID == r.ID {
				detail.History = append(detail.History, erpapi.RegistrationAttempt{
					Number: int64(a.Number), Action: a.Action, StartedAt: a.StartedAt.UTC(), FinishedAt: utc(a.FinishedAt),
					Outcome: a.Outcome, HTTPStatus: a.HttpStatus, Detail: a.Detail,
				})
			}
		}
		story.Registrations = append(story.Registrations, detail)
	}
	return nil
}
