package crm

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"invoicebridge/internal/crmdb"
	"invoicebridge/internal/erpapi"
	"invoicebridge/internal/problem"
)

// OrderDetail is the newest known version of an order, with every operation it ever led to.
type OrderDetail struct {
	Source    string      `json:"source"`
	Order     string      `json:"order"`
	Version   int64       `json:"version"`
	Status    OrderStatus `json:"status"`
	CreatedAt time.Time   `json:"created_at"`
	UpdatedAt time.Time   `json:"updated_at"`
	// MinimisedAt is when the personal data was removed from the content (docs/retention.md).
	MinimisedAt *time.Time `json:"minimised_at,omitzero"`
	// Content is the order in canonical form, with its invoices listed.
	Content jsontext.Value `json:"content"`
	// Operations are oldest first, the cancelled and superseded ones included.
	Operations []Operation `json:"operations"`
}

// GetOrder gives an order with its operations and their attempts; the problem is not-found if the tenant has none of
// that id. The ids are compared as Submit compares them.
func (s *Service) GetOrder(ctx context.Context, tenant, source, order string) (OrderDetail, error) {
	source, order = normaliseID(source), normaliseID(order)
	queries := crmdb.New(s.db.Of(tenant))
	row, err := queries.OrderGet(ctx, tenant, source, order)
	if errors.Is(err, pgx.ErrNoRows) {
		return OrderDetail{}, problem.New(problem.NotFound, "There is no such order.")
	}
	if err != nil {
		return OrderDetail{}, fmt.Errorf("get order: %w", err)
	}
	rows, err := queries.OperationListOfOrder(ctx, tenant, source, order)
	if err != nil {
		return OrderDetail{}, fmt.Errorf("get the order's operations: %w", err)
	}
	operations := make([]operationRow, len(rows))
	for i, r := range rows {
		operations[i] = operationRow(r)
	}
	detail := OrderDetail{
		Source: row.Source, Order: row.OrderID, Version: row.Version, Status: OrderStatus(row.Status),
		CreatedAt: row.CreatedAt, UpdatedAt: row.UpdatedAt, MinimisedAt: row.MinimisedAt, Content: row.Content,
	}
	detail.Operations, err = withHistory(ctx, queries, operations)
	return detail, err
}

// GetOperation gives one operation with its attempts; the problem is not-found if the tenant has none of that key.
func (s *Service) GetOperation(ctx context.Context, tenant, key string) (Operation, error) {
	queries := crmdb.New(s.db.Of(tenant))
	row, err := queries.OperationGetByKey(ctx, tenant, key)
	if errors.Is(err, pgx.ErrNoRows) {
		return Operation{}, problem.New(problem.NotFound, "There is no operation with this key.")
	}
	if err != nil {
		return Operation{}, fmt.Errorf("get operation: %w", err)
	}
	operations, err := withHistory(ctx, queries, []operationRow{operationRow(row)})
	if err != nil {
		return Operation{}, err
	}
	return operations[0], nil
}

// The size of a page of operations.
const (
	DefaultPageLimit = 50
	MaxPageLimit     = 200
)

// OperationFilter says which operations a list has.
type OperationFilter struct {
	Status OperationStatus // "" is any
	Limit  int             // 1 to MaxPageLimit; 0 is DefaultPageLimit
	Cursor string          // of the page before; "" is the first page
}

// ListOperations gives one page of a tenant's operations, the newest first, and the cursor of the next page; "" after
// the last. Going through the pages shows every operation that was there at the start just once, whatever comes in
// meanwhile. A wrong filter is malformed-request.
func (s *Service) ListOperations(ctx context.Context, tenant string, f OperationFilter) (page []Operation, next string, err error) {
	found, err := searchOperations(ctx, s.db.Of(tenant), tenant, OperationSearch{
		Status: f.Status, PageQuery: PageQuery{Limit: f.Limit, Cursor: f.Cursor},
	})
	return found.Items, found.Next, err
}

// operationRow is an operation as every query of whole operations gives it.
type operationRow crmdb.OperationGetByKeyRow

func (r operationRow) operation() Operation {
	op := Operation{
		Key: r.Key, Kind: r.Kind, Status: OperationStatus(r.Status), Source: r.Source, Order: r.OrderID,
		Role: erpapi.Role(r.Role), Sequence: int64(r.Sequence), OrderVersion: r.OrderVersion, Attempts: r.Attempt,
		Waits: r.Waits, Reason: Reason(r.Reason), Detail: r.Detail,
		ChangedAfterDeliveryVersion: r.ChangedAfterDeliveryVersion, SupersededAt: r.SupersededAt,
		FlaggedAt: r.FlaggedAt, NextAttemptAt: r.NextAttemptAt, FirstSentAt: r.FirstSentAt,
		FinishedAt: r.FinishedAt, CreatedAt: r.CreatedAt,
	}
	if r.InvoiceID != nil && r.InvoiceNumber != nil {
		op.Invoice = &erpapi.InvoiceLink{ID: r.InvoiceID.String(), Number: *r.InvoiceNumber}
	}
	return op
}

func withHistory(ctx context.Context, queries *crmdb.Queries, rows []operationRow) ([]Operation, error) {
	operations := make([]Operation, len(rows))
	ids := make([]uuid.UUID, len(rows))
	at := make(map[uuid.UUID]*Operation, len(rows))
	for i, row := range rows {
		operations[i] = row.operation()
		ids[i], at[row.ID] = row.ID, &operations[i]
	}
	attempts, err := queries.OperationListAttempts(ctx, ids)
	if err != nil {
		return nil, fmt.Errorf("get attempts: %w", err)
	}
	for _, a := range attempts {
		op := at[a.OperationID]
		op.History = append(op.History, OperationAttempt{
			Number: a.Number, Outcome: AttemptOutcome(a.Outcome), StartedAt: a.StartedAt, FinishedAt: a.FinishedAt,
			HTTPStatus: a.HttpStatus, ProblemType: a.ProblemType, Detail: a.Detail, Worker: a.Worker,
		})
	}
	return operations, nil
}
