package invoice

import (
	"context"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"invoicebridge/internal/erpapi"
	"invoicebridge/internal/erpdb"
	"invoicebridge/internal/problem"
)

// Search is what a person looks for. Members left zero do not narrow; all that are given must hold.
type Search struct {
	// Term is what was typed: a number, whole (INV-2026-000123), without its zeros (inv-2026-123) or only its beginning up
	// to the year (INV-2026); an operation key; or the beginning of an order's id or of a customer's name, in any case.
	Term                          string
	Source, Order, Role, Currency string

	IssuedFrom, IssuedTo string // days, YYYY-MM-DD, both inclusive

	CreatedFrom time.Time // inclusive
	CreatedTo   time.Time // exclusive
}

// Walk says which part of a list is wanted: the first page, or the one After (older) or Before (newer) a cursor that the
// list gave. Not both.
type Walk struct {
	Limit         int // 1 to MaxPage; 0 is DefaultPage
	After, Before string
}

// Found is a page of invoices, newest first.
type Found struct {
	Invoices []*erpapi.Invoice
	// Next and Previous are the cursors for Walk.After and Walk.Before; empty where there is no such page. Invoices that
	// come while somebody pages are on the pages before the first, and shift nothing.
	Next, Previous string
}

// Search gives a page of the invoices that fit, newest first, by (created_at, id): walking by cursors, forth and back,
// meets each exactly once, also those that share their time. Page and filter never see another tenant's.
//
// It fails with problem malformed-request for a limit out of range, a cursor that no list gave, or a day that is none.
func (s *Service) Search(ctx context.Context, tenant string, f Search, w Walk) (Found, error) {
	params, err := searchParams(tenant, f)
	if err != nil {
		return Found{}, err
	}
	at, newer, err := w.position()
	if err != nil {
		return Found{}, err
	}
	limit := w.limit()
	var rows []foundRow
	err = s.searching(ctx, tenant, func(queries *erpdb.Queries) (err error) {
		params.MaxItems = int32(limit) + 1 // the one more that says whether there is a further page
		rows, err = page(ctx, queries, params, at, newer)
		return err
	})
	if err != nil {
		return Found{}, s.readFailed(ctx, "search invoices", err)
	}
	return found(rows, limit, w)
}

// searching runs do with plans made for the very filter that is given.
func (s *Service) searching(ctx context.Context, tenant string, do func(*erpdb.Queries) error) error {
	return pgx.BeginTxFunc(ctx, s.db.Of(tenant), pgx.TxOptions{AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		queries := erpdb.New(tx)
		if err := queries.InvoiceSearchBegin(ctx); err != nil {
			return err
		}
		return do(queries)
	})
}

type foundRow struct {
	position
	document []byte
}

// page reads one page in the direction that is wanted.
func page(ctx context.Context, queries *erpdb.Queries, params erpdb.InvoiceSearchOlderParams, at *position, newer bool) (rows []foundRow, err error) {
	if newer {
		list, err := queries.InvoiceSearchNewer(ctx, newerParams(params, *at))
		for _, row := range list {
			rows = append(rows, foundRow{position{row.CreatedAt, row.ID}, row.Document})
		}
		return rows, err
	}
	if at != nil {
		params.BeyondAt, params.BeyondID = &at.createdAt, &at.id
	}
	list, err := queries.InvoiceSearchOlder(ctx, params)
	for _, row := range list {
		rows = append(rows, foundRow{position{row.CreatedAt, row.ID}, row.Document})
	}
	return rows, err
}

// found makes a page of rows as they were read: in the direction of the walk, and one more than the page holds if there
// are further ones.
func found(rows []foundRow, limit int, w Walk) (f Found, err error) {
	more := len(rows) > limit
	rows = rows[:min(len(rows), limit)]
	hasNext, hasPrevious := more, w.After != ""
	if w.Before != "" {
		slices.Reverse(rows)
		hasNext, hasPrevious = true, more
	}
	for _, row := range rows {
		inv, err := readDocument(row.document)
		if err != nil {
			return Found{}, err
		}
		f.Invoices = append(f.Invoices, inv)
	}
	if len(rows) == 0 {
		return f, nil
	}
	if hasNext {
		f.Next = rows[len(rows)-1].cursor()
	}
	if hasPrevious {
		f.Previous = rows[0].cursor()
	}
	return f, nil
}

// limit is within bounds: position has checked it.
func (w Walk) limit() int {
	if w.Limit == 0 {
		return DefaultPage
	}
	return w.Limit
}

// position is the place that a walk begins behind; nil at the start.
func (w Walk) position() (at *position, newer bool, err error) {
	cursor, newer, err := w.cursor()
	if err != nil || cursor == "" {
		return nil, false, err
	}
	p, err := parseCursor(cursor)
	return &p, newer, err
}

// numberForm is what may be the beginning of an invoice's number: a series, or one with a year, or a whole number.
var numberForm = regexp.MustCompile(`^([A-Z0-9]{1,16})(?:-([0-9]{4})(?:-([0-9]{1,18}))?)?-?$`)

func searchParams(tenant string, f Search) (erpdb.InvoiceSearchOlderParams, error) {
	params := erpdb.InvoiceSearchOlderParams{
		TenantID: tenant, Source: optional(identity(f.Source)), OrderID: optional(identity(f.Order)), Role: optional(f.Role),
		Currency: optional(f.Currency), IssuedFrom: optional(f.IssuedFrom), IssuedTo: optional(f.IssuedTo),
		CreatedFrom: optionalTime(f.CreatedFrom), CreatedTo: optionalTime(f.CreatedTo),
	}
	for _, text := range []string{f.Term, f.Source, f.Order, f.Role, f.Currency} {
		if !isStorable(text) {
			return params, problem.New(problem.MalformedRequest, "A filter is not UTF-8 text.")
		}
	}
	for _, day := range []struct{ name, text string }{{"issued_from", f.IssuedFrom}, {"issued_to", f.IssuedTo}} {
		if at, err := time.Parse(time.DateOnly, day.text); day.text != "" && (err != nil || at.Year() < 1) {
			return params, problem.New(problem.MalformedRequest, "%s must be a day of the calendar, such as 2026-03-31.", day.name)
		}
	}
	for _, at := range []time.Time{f.CreatedFrom, f.CreatedTo} {
		if y := at.Year(); y < 1 || y > 9999 {
			return params, problem.New(problem.MalformedRequest, "A time must lie in the years 1 to 9999.")
		}
	}
	if term := identity(strings.TrimSpace(f.Term)); term != "" {
		pattern := escapeLike(tenant+"/"+term) + "%"
		params.TermKey, params.TermPattern = &term, &pattern
		if m := numberForm.FindStringSubmatch(strings.ToUpper(term)); m != nil {
			params.TermPrefix = &m[1]
			if year, err := strconv.ParseInt(m[2], 10, 32); err == nil {
				params.TermYear = new(int32(year))
			}
			if count, err := strconv.ParseInt(m[3], 10, 64); err == nil {
				params.TermCount = &count
			}
		}
	}
	return params, nil
}

// escapeLike: what was typed means itself.
func escapeLike(s string) string {
	return strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(s)
}

func newerParams(p erpdb.InvoiceSearchOlderParams, at position) erpdb.InvoiceSearchNewerParams {
	return erpdb.InvoiceSearchNewerParams{
		TenantID: p.TenantID, TermKey: p.TermKey, TermPattern: p.TermPattern, TermPrefix: p.TermPrefix, TermYear: p.TermYear,
		TermCount: p.TermCount, Source: p.Source, OrderID: p.OrderID, Role: p.Role, Currency: p.Currency,
		IssuedFrom: p.IssuedFrom, IssuedTo: p.IssuedTo, CreatedFrom: p.CreatedFrom, CreatedTo: p.CreatedTo,
		BeyondAt: at.createdAt, BeyondID: at.id, MaxItems: p.MaxItems,
	}
}

func sumsParams(p erpdb.InvoiceSearchOlderParams, most int32) erpdb.InvoiceSearchSumsParams {
	return erpdb.InvoiceSearchSumsParams{
		TenantID: p.TenantID, TermKey: p.TermKey, TermPattern: p.TermPattern, TermPrefix: p.TermPrefix, TermYear: p.TermYear,
		TermCount: p.TermCount, Source: p.Source, OrderID: p.OrderID, Role: p.Role, Currency: p.Currency,
		IssuedFrom: p.IssuedFrom, IssuedTo: p.IssuedTo, CreatedFrom: p.CreatedFrom, CreatedTo: p.CreatedTo, MaxItems: most,
	}
}

// Sources gives the sources that a tenant has invoices of, at most 100 of them, in the database's order.
func (s *Service) Sources(ctx context.Context, tenant string) ([]string, error) {
	sources, err := erpdb.New(s.db.Of(tenant)).InvoiceSourceList(ctx, tenant)
	if err != nil {
		return nil, s.readFailed(ctx, "list sources", err)
	}
	return sources, nil
}
