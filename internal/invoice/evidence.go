package invoice

import (
	"context"
	"strconv"
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

// ListConflicts gives a page of a tenant's key conflicts, the newest first, and the cursor of the next page, or nil on the
// last; with key only those about that one. It fails with problem malformed-request for a limit out of range or a cursor
// that it never gave.
func (s *Service) ListConflicts(ctx context.Context, tenant, key string, p Page) (list []Conflict, next *string, err error) {
	limit, before, err := serialPage(p)
	if err != nil {
		return nil, nil, err
	}
	if !isStorable(key) {
		return nil, nil, problem.New(problem.MalformedRequest, "A filter is not UTF-8 text.")
	}
	rows, err := erpdb.New(s.pool).KeyConflictList(ctx, erpdb.KeyConflictListParams{
		TenantID: tenant, Key: optional(key), BeforeID: before, MaxItems: int32(limit) + 1,
	})
	if err != nil {
		return nil, nil, s.readFailed(ctx, "list key conflicts", err)
	}
	rows, next = cutPage(rows, limit, func(r erpdb.KeyConflictListRow) int64 { return r.ID })
	list = []Conflict{}
	for _, r := range rows {
		c := Conflict{
			ID: r.ID, OccurredAt: r.OccurredAt.UTC(), Key: r.Key, Caller: r.Caller, CallerLabel: r.CallerLabel,
			Differences: r.Differences, InvoiceID: r.InvoiceID,
		}
		if r.InvoiceNumber != nil {
			c.InvoiceNumber = *r.InvoiceNumber
		}
		list = append(list, c)
	}
	return list, next, nil
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

// ListAudit gives a page of what people did in a tenant, the newest first, and the cursor of the next page, or nil on the
// last. It fails as ListConflicts does.
func (s *Service) ListAudit(ctx context.Context, tenant string, f AuditFilter, p Page) (list []AuditEntry, next *string, err error) {
	limit, before, err := serialPage(p)
	if err != nil {
		return nil, nil, err
	}
	if !isStorable(f.Actor) || !isStorable(f.Action) || !isStorable(f.Subject) {
		return nil, nil, problem.New(problem.MalformedRequest, "A filter is not UTF-8 text.")
	}
	rows, err := erpdb.New(s.pool).AuditEntryList(ctx, erpdb.AuditEntryListParams{
		TenantID: tenant, Actor: optional(f.Actor), Action: optional(f.Action), Subject: optional(f.Subject),
		OccurredFrom: optionalTime(f.From), OccurredTo: optionalTime(f.To), BeforeID: before, MaxItems: int32(limit) + 1,
	})
	if err != nil {
		return nil, nil, s.readFailed(ctx, "list the audit", err)
	}
	rows, next = cutPage(rows, limit, func(r erpdb.AuditEntryListRow) int64 { return r.ID })
	list = []AuditEntry{}
	for _, r := range rows {
		list = append(list, auditEntry(r))
	}
	return list, next, nil
}

func auditEntry(r erpdb.AuditEntryListRow) AuditEntry {
	return AuditEntry{r.ID, r.OccurredAt.UTC(), r.Actor, r.Action, r.Subject, r.Reason, r.Via, r.Address, r.RequestID}
}

// serialPage reads a Page of a list whose ids rise with time: the id alone is the cursor.
func serialPage(p Page) (limit int, before *int64, err error) {
	limit = p.Limit
	if limit == 0 {
		limit = DefaultPage
	}
	if limit < 1 || limit > MaxPage {
		return 0, nil, problem.New(problem.MalformedRequest, "limit must be from 1 to %d.", MaxPage)
	}
	if p.Cursor == "" {
		return limit, nil, nil
	}
	id, err := strconv.ParseInt(p.Cursor, 10, 64)
	if err != nil || id < 1 || strconv.FormatInt(id, 10) != p.Cursor {
		return 0, nil, badCursor()
	}
	return limit, &id, nil
}

// cutPage takes the one row off that only says that there are more.
func cutPage[R any](rows []R, limit int, id func(R) int64) ([]R, *string) {
	if len(rows) <= limit {
		return rows, nil
	}
	rows = rows[:limit]
	return rows, new(strconv.FormatInt(id(rows[limit-1]), 10))
}
