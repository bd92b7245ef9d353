package invoice

import (
	"context"
	"time"

	"github.com/google/uuid"

	"invoicebridge/internal/erpdb"
	"invoicebridge/internal/problem"
)

// Conflict is a request that came with a key that belongs to another one: it was refused, and this is kept of it.
type Conflict struct {
	ID         int64
	OccurredAt time.Time
	Key        string
	// Caller is the token that it came with, CallerLabel what that is called; empty if the token is not known any more.
	Caller, CallerLabel string
	Differences         []string // JSON pointers (RFC 6901) of the members that were not the same; never their values
	// InvoiceID and InvoiceNumber are of the invoice that has the key.
	InvoiceID     *uuid.UUID
	InvoiceNumber string
}

// ListConflicts gives a page of a tenant's key conflicts, the newest first; with key only those about that one. It fails with
// problem malformed-request for a limit out of range or a cursor that it never gave.
func (s *Service) ListConflicts(ctx context.Context, tenant, key string, w Walk) (page Walked[Conflict], err error) {
	if !isStorable(key) {
		return page, problem.New(problem.MalformedRequest, "A filter is not UTF-8 text.")
	}
	queries := erpdb.New(s.db.Of(tenant).PlannedAnew())
	page, err = walking[erpdb.KeyConflictListRow, int64, Conflict]{
		older: func(behind *int64, limit int32) ([]erpdb.KeyConflictListRow, error) {
			return queries.KeyConflictList(ctx, erpdb.KeyConflictListParams{TenantID: tenant, Key: optional(key), BeforeID: behind, MaxItems: limit})
		},
		newer: func(behind *int64, limit int32) (rows []erpdb.KeyConflictListRow, err error) {
			newer, err := queries.KeyConflictListNewer(ctx, erpdb.KeyConflictListNewerParams{
				TenantID: tenant, Key: optional(key), AfterID: *behind, MaxItems: limit,
			})
			for _, r := range newer {
				rows = append(rows, erpdb.KeyConflictListRow(r))
			}
			return rows, err
		},
		parse: parseSerial, cursor: func(r erpdb.KeyConflictListRow) string { return serial(r.ID) }, item: conflict,
	}.page(w)
	if err != nil {
		return page, s.readFailed(ctx, "list key conflicts", err)
	}
	return page, nil
}

func conflict(r erpdb.KeyConflictListRow) Conflict {
	c := Conflict{
		ID: r.ID, OccurredAt: r.OccurredAt.UTC(), Key: r.Key, Caller: r.Caller, CallerLabel: r.CallerLabel,
		Differences: r.Differences, InvoiceID: r.InvoiceID,
	}
	if r.InvoiceNumber != nil {
		c.InvoiceNumber = *r.InvoiceNumber
	}
	return c
}

func conflictsOf(ctx context.Context, queries *erpdb.Queries, tenant, key string) (list []Conflict, err error) {
	rows, err := queries.InvoiceStoryConflicts(ctx, erpdb.InvoiceStoryConflictsParams{
		TenantID: tenant, Operation: operationKind, Key: key, MaxItems: maxStory,
	})
	for _, r := range rows {
		list = append(list, Conflict{
			ID: r.ID, OccurredAt: r.OccurredAt.UTC(), Key: key, Caller: r.Caller, CallerLabel: r.CallerLabel, Differences: r.Differences,
		})
	}
	return list, err
}

// AuditEntry is one thing that a person did.
type AuditEntry struct {
	ID                                                      int64
	OccurredAt                                              time.Time
	Actor, Action, Subject, Reason, Via, Address, RequestID string
}

// AuditFilter narrows a list. Members left zero do not narrow.
type AuditFilter struct {
	Actor, Action, Subject string

	From time.Time // inclusive
	To   time.Time // exclusive
}

// ListAudit gives a page of what people did in a tenant, the newest first. It fails as ListConflicts does.
func (s *Service) ListAudit(ctx context.Context, tenant string, f AuditFilter, w Walk) (page Walked[AuditEntry], err error) {
	if !isStorable(f.Actor) || !isStorable(f.Action) || !isStorable(f.Subject) {
		return page, problem.New(problem.MalformedRequest, "A filter is not UTF-8 text.")
	}
	queries := erpdb.New(s.db.Of(tenant).PlannedAnew())
	wanted := erpdb.AuditEntryListParams{
		TenantID: tenant, Actor: optional(f.Actor), Action: optional(f.Action), Subject: optional(f.Subject),
		OccurredFrom: optionalTime(f.From), OccurredTo: optionalTime(f.To),
	}
	page, err = walking[erpdb.AuditEntryListRow, int64, AuditEntry]{
		older: func(behind *int64, limit int32) ([]erpdb.AuditEntryListRow, error) {
			wanted.BeforeID, wanted.MaxItems = behind, limit
			return queries.AuditEntryList(ctx, wanted)
		},
		newer: func(behind *int64, limit int32) (rows []erpdb.AuditEntryListRow, err error) {
			newer, err := queries.AuditEntryListNewer(ctx, erpdb.AuditEntryListNewerParams{
				TenantID: tenant, Actor: wanted.Actor, Action: wanted.Action, Subject: wanted.Subject,
				OccurredFrom: wanted.OccurredFrom, OccurredTo: wanted.OccurredTo, AfterID: *behind, MaxItems: limit,
			})
			for _, r := range newer {
				rows = append(rows, erpdb.AuditEntryListRow(r))
			}
			return rows, err
		},
		parse: parseSerial, cursor: func(r erpdb.AuditEntryListRow) string { return serial(r.ID) }, item: auditEntry,
	}.page(w)
	if err != nil {
		return page, s.readFailed(ctx, "list the audit", err)
	}
	return page, nil
}

func auditEntry(r erpdb.AuditEntryListRow) AuditEntry {
	return AuditEntry{r.ID, r.OccurredAt.UTC(), r.Actor, r.Action, r.Subject, r.Reason, r.Via, r.Address, r.RequestID}
}
