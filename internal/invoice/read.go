package invoice

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"invoicebridge/internal/erpapi"
	"invoicebridge/internal/erpdb"
	"invoicebridge/internal/problem"
)

// Filter narrows a list. Members left zero do not narrow; an unknown value finds nothing.
type Filter struct {
	Source, Order, Role, Key, Number, Status string

	CreatedFrom time.Time // inclusive
	CreatedTo   time.Time // exclusive
}

// Page says which part of a list is wanted.
type Page struct {
	Limit  int    // 1 to MaxPage; 0 is DefaultPage
	Cursor string // what List gave for the page before; empty for the first page
}

// How many invoices a page of a list holds.
const (
	DefaultPage = 50
	MaxPage     = 200
)

// Get gives the document of one invoice of the tenant. It fails with problem not-found if the tenant has none with
// this id, whoever else may have one.
func (s *Service) Get(ctx context.Context, tenant string, id uuid.UUID) ([]byte, error) {
	document, err := erpdb.New(s.db.Of(tenant)).InvoiceGetDocument(ctx, tenant, id)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, problem.New(problem.NotFound, "There is no invoice %s.", id)
	}
	if err != nil {
		return nil, s.readFailed(ctx, "get an invoice", err)
	}
	return document, nil
}

// List gives the documents of a page, newest first, and the cursor of the next page, or nil on the last. Invoices of
// one transaction share their time; the id tells them apart, so walking by cursors meets each exactly once.
//
// It fails with problem malformed-request for a limit out of range or a cursor that List never gave. A cursor is a
// place in time and holds nothing of any tenant.
func (s *Service) List(ctx context.Context, tenant string, f Filter, p Page) (items [][]byte, next *string, err error) {
	params, err := listParams(tenant, f, p)
	if err != nil {
		return nil, nil, err
	}
	limit := int(params.PageSize)
	params.PageSize++ // the one more that says whether there is a next page
	if !f.findable() {
		return [][]byte{}, nil, nil
	}
	rows, err := erpdb.New(s.db.Of(tenant).PlannedAnew()).InvoiceList(ctx, params)
	if err != nil {
		return nil, nil, s.readFailed(ctx, "list invoices", err)
	}
	if len(rows) > limit {
		rows = rows[:limit]
		last := rows[limit-1]
		cursor := position{last.CreatedAt, last.ID}.cursor()
		next = &cursor
	}
	items = make([][]byte, len(rows))
	for i, row := range rows {
		items[i] = row.Document
	}
	return items, next, nil
}

// findable says whether anything can match: to look for what no invoice can be would read all that there are.
func (f Filter) findable() bool {
	return (f.Status == "" || f.Status == statusIssued) && (f.Role == "" || slices.Contains(erpapi.Roles(), erpapi.Role(f.Role)))
}

func listParams(tenant string, f Filter, p Page) (erpdb.InvoiceListParams, error) {
	if p.Limit == 0 {
		p.Limit = DefaultPage
	}
	if p.Limit < 1 || p.Limit > MaxPage {
		return erpdb.InvoiceListParams{}, problem.New(problem.MalformedRequest, "limit must be from 1 to %d.", MaxPage)
	}
	for _, text := range []string{f.Source, f.Order, f.Role, f.Key, f.Number, f.Status} {
		if !isStorable(text) {
			return erpdb.InvoiceListParams{}, problem.New(problem.MalformedRequest, "A filter is not UTF-8 text.")
		}
	}
	params := erpdb.InvoiceListParams{
		TenantID: tenant, Source: optional(identity(f.Source)), OrderID: optional(identity(f.Order)),
		Role: optional(f.Role), OperationKey: optional(f.Key), Number: optional(f.Number), Status: optional(f.Status),
		CreatedFrom: optionalTime(f.CreatedFrom), CreatedTo: optionalTime(f.CreatedTo), PageSize: int32(p.Limit),
	}
	if p.Cursor != "" {
		after, err := parseCursor(p.Cursor)
		if err != nil {
			return erpdb.InvoiceListParams{}, err
		}
		params.BeforeCreatedAt, params.BeforeID = &after.createdAt, &after.id
	}
	return params, nil
}

// Operation tells what is known of an operation key, also after its reservation has been purged: the invoice remembers
// its key. It fails with problem not-found if the tenant has no invoice under this key; a request with it may still
// be running then.
func (s *Service) Operation(ctx context.Context, tenant, key string) (erpapi.Operation, error) {
	notFound := problem.New(problem.NotFound, "There is no operation with this key.")
	if !isStorable(key) {
		return erpapi.Operation{}, notFound
	}
	row, err := erpdb.New(s.db.Of(tenant)).InvoiceGetOperation(ctx, operationKind, tenant, key)
	if errors.Is(err, pgx.ErrNoRows) {
		return erpapi.Operation{}, notFound
	}
	if err != nil {
		return erpapi.Operation{}, s.readFailed(ctx, "get an operation", err)
	}
	registrations, err := s.operationRegistrations(ctx, tenant, row.ID)
	if err != nil {
		return erpapi.Operation{}, err
	}
	firstSeen := row.CreatedAt
	if row.FirstSeenAt != nil {
		firstSeen = *row.FirstSeenAt
	}
	return erpapi.Operation{
		Key: key, Kind: operationKind, Status: "succeeded",
		Invoice:   &erpapi.InvoiceLink{ID: row.ID.String(), Number: row.Number},
		FirstSeen: tellable(&firstSeen), ExpiresAt: tellable(row.ExpiresAt), Registrations: registrations,
	}, nil
}

// tellable is t in UTC, or nil, "never", for a time that RFC 3339 can't write.
func tellable(t *time.Time) *time.Time {
	const lastYear = 9999
	if t == nil || t.UTC().Year() > lastYear {
		return nil
	}
	utc := t.UTC()
	return &utc
}

// readFailed makes a problem of what will pass, and leaves the rest internal.
func (s *Service) readFailed(ctx context.Context, step string, err error) error {
	switch failureOf(err) {
	case failureRetry, failureBlocked, failureUnavailable:
		s.logger.WarnContext(ctx, "database not available, the caller is to come again", "step", step, "error", err)
		return unavailable()
	default:
		return fmt.Errorf("%s: %w", step, err)
	}
}

func optionalTime(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}
