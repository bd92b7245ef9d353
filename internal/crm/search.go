package crm

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"invoicebridge/internal/crmdb"
	"invoicebridge/internal/erpapi"
	"invoicebridge/internal/problem"
	"invoicebridge/internal/tenantdb"
)

// maxFoundOrders bounds of how many orders a search shows the operations.
const maxFoundOrders = 200

// OperationSearch says which operations a list has. What is left empty does not narrow.
type OperationSearch struct {
	Status OperationStatus
	// Attention: with an operator, refused and not mended, or sent before its order changed.
	Attention bool
	// Due: open, in nobody's hands, and its time has come.
	Due     bool
	Reason  Reason
	Source  string
	Role    erpapi.Role
	Flagged *bool
	// Order is the whole number of an order, of whatever source.
	Order string
	Key   string
	// Text is a key, or the beginning of an order's number.
	Text string
	// CreatedFrom is inclusive, CreatedTo exclusive; OlderThan is by the database's clock.
	CreatedFrom, CreatedTo time.Time
	OlderThan              time.Duration
	PageQuery
}

// OperationPage is a page of operations.
type OperationPage struct {
	Page[Operation]
	// Cut: so many orders begin with the text that only the operations of the first of them are searched.
	Cut bool
}

// SearchOperations gives one page of a tenant's operations, the newest first unless OldestFirst. Going through the pages,
// either way, shows every operation that was there at the start just once. A wrong filter is malformed-request.
func (c *Console) SearchOperations(ctx context.Context, tenant string, f OperationSearch) (OperationPage, error) {
	return searchOperations(ctx, c.db.Of(tenant), tenant, f)
}

func searchOperations(ctx context.Context, db tenantdb.Scope, tenant string, f OperationSearch) (found OperationPage, err error) {
	if err := f.check(); err != nil {
		return found, err
	}
	err = readConsole(ctx, db, func(queries *crmdb.Queries) error {
		var arg crmdb.OperationSearchNewestParams
		if arg, found.Cut, err = f.params(ctx, queries, tenant); err != nil {
			return err
		}
		rows, err := operationPaging(ctx, queries, arg).page(f.PageQuery)
		found.Page, err = pageOf(rows, err, operationRow.operation)
		return err
	})
	return found, listError("operations", err)
}

func operationPaging(ctx context.Context, queries *crmdb.Queries, arg crmdb.OperationSearchNewestParams) paging[operationRow, uuid.UUID] {
	return paging[operationRow, uuid.UUID]{
		newest: func(beyond *place[uuid.UUID], limit int32) ([]operationRow, error) {
			arg.BeyondCreatedAt, arg.BeyondID = beyond.parts()
			arg.MaxItems = limit
			rows, err := queries.OperationSearchNewest(ctx, arg)
			return operationRows(rows), err
		},
		oldest: func(beyond *place[uuid.UUID], limit int32) ([]operationRow, error) {
			arg.BeyondCreatedAt, arg.BeyondID = beyond.parts()
			arg.MaxItems = limit
			rows, err := queries.OperationSearchOldest(ctx, crmdb.OperationSearchOldestParams(arg))
			return operationRows(rows), err
		},
		at:    func(r operationRow) place[uuid.UUID] { return place[uuid.UUID]{r.CreatedAt, r.ID} },
		parse: parseUUID, format: formatUUID,
	}
}

func operationRows[R crmdb.OperationSearchNewestRow | crmdb.OperationSearchOldestRow](rows []R) []operationRow {
	told := make([]operationRow, len(rows))
	for i, r := range rows {
		told[i] = operationRow(r)
	}
	return told
}

func (f OperationSearch) check() error {
	switch {
	case f.Status != "" && !slices.Contains(OperationStatuses(), f.Status):
		return problem.New(problem.MalformedRequest, "%q is not a status of operations.", excerpt(string(f.Status)))
	case f.Role != "" && !slices.Contains(erpapi.Roles(), f.Role):
		return problem.New(problem.MalformedRequest, "%q is not a role of invoices.", excerpt(string(f.Role)))
	case f.OlderThan < 0 || f.OlderThan > maxAge:
		return problem.New(problem.MalformedRequest, "older_than must be a time such as 2h, up to a hundred years.")
	}
	return storableFilter(string(f.Reason), f.Source, f.Order, f.Key, f.Text)
}

const maxAge = 100 * 365 * 24 * time.Hour

// params looks up what is searched by text first: then the list is of a few operations whose ids are known.
func (f OperationSearch) params(ctx context.Context, queries *crmdb.Queries, tenant string) (arg crmdb.OperationSearchNewestParams, cut bool, err error) {
	arg = crmdb.OperationSearchNewestParams{
		TenantID: tenant, Status: orNil(string(f.Status)), Attention: f.Attention, Due: f.Due, Reason: orNil(string(f.Reason)),
		Source: orNil(normaliseID(f.Source)), Role: orNil(string(f.Role)), Flagged: f.Flagged,
		CreatedFrom: timeOrNil(f.CreatedFrom), CreatedTo: timeOrNil(f.CreatedTo),
	}
	if f.OlderThan > 0 {
		arg.OlderThanSeconds = new(f.OlderThan.Seconds())
	}
	for _, by := range []crmdb.OperationFindParams{
		{Key: f.Key},
		{OrderPattern: likeExactly(normaliseID(f.Order))},
		{Key: strings.TrimSpace(f.Text), OrderPattern: likeBeginning(normaliseID(f.Text))},
	} {
		if by.Key == "" && by.OrderPattern == "" {
			continue
		}
		by.TenantID, by.MaxOrders = tenant, maxFoundOrders+1
		found, err := queries.OperationFind(ctx, by)
		if err != nil {
			return arg, false, fmt.Errorf("find operations: %w", err)
		}
		ids, more := firstOrders(found)
		cut = cut || more
		arg.Ids = both(arg.Ids, ids)
	}
	return arg, cut, nil
}

// firstOrders are the operations of the first maxFoundOrders orders, and whether there are more orders.
func firstOrders(found []crmdb.OperationFindRow) (ids []uuid.UUID, more bool) {
	ids = []uuid.UUID{} // found nothing is not asked for nothing
	seen := map[orderID]bool{}
	for _, row := range found {
		if order := (orderID{row.Source, row.OrderID}); !seen[order] {
			if len(seen) == maxFoundOrders {
				more = true
				continue
			}
			seen[order] = true
		}
		ids = append(ids, row.ID)
	}
	return ids, more
}

// both are the ids in each of the two; nil stands for all.
func both(a, b []uuid.UUID) []uuid.UUID {
	if a == nil {
		return b
	}
	return slices.DeleteFunc(a, func(id uuid.UUID) bool { return !slices.Contains(b, id) })
}

// likeExactly and likeBeginning are patterns for LIKE; "" for no text matches no order.
func likeExactly(text string) string {
	return strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(text)
}

func likeBeginning(text string) string {
	if text == "" {
		return ""
	}
	return likeExactly(text) + "%"
}

func orNil(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

func timeOrNil(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// ListSources gives the sources whose orders came in, by name, at most 200.
func (c *Console) ListSources(ctx context.Context, tenant string) ([]string, error) {
	sources, err := crmdb.New(c.db.Of(tenant)).OperationListSources(ctx, maxSources, tenant)
	if err != nil {
		return nil, fmt.Errorf("list sources: %w", err)
	}
	return sources, nil
}

const maxSources = 200
