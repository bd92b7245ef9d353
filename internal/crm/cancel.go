package crm

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/jackc/pgx/v5"

	"invoicebridge/internal/audit"
	"invoicebridge/internal/crmdb"
	"invoicebridge/internal/logctx"
	"invoicebridge/internal/problem"
)

// Cancel takes an operation back of which nothing has left: no attempt began, or none got as far as a connection. Operation
// and audit entry are one transaction.
//
// What the order does afterwards: a repeat, or a newer version that wants just this invoice, leaves it cancelled; a newer
// version that wants it otherwise, or an order written by hand, makes a new operation under a new key.
//
// What may have been sent, is being worked on or is final is refused with wrong-state; an unknown key is not-found.
func (s *Service) Cancel(ctx context.Context, tenant, key string, by audit.By) (Operation, error) {
	if err := checkBy(by); err != nil {
		return Operation{}, err
	}
	for try := 1; ; try++ {
		err := pgx.BeginFunc(ctx, s.db.Of(tenant), func(tx pgx.Tx) error { return cancelOnce(ctx, tx, tenant, key, by) })
		if err == nil {
			break
		}
		if problem.As(err) == nil && brokenOff(err) && try < submitTries {
			continue
		}
		return Operation{}, fmt.Errorf("cancel: %w", err)
	}
	s.log.LogAttrs(ctx, slog.LevelInfo, "operation cancelled by hand", slog.String(logctx.TenantKey, tenant),
		slog.String(logctx.OperationKeyKey, key), slog.String("actor", by.Actor))
	return s.GetOperation(ctx, tenant, key)
}

// cancelOnce takes the order's lock before the operation's, as Submit does: a version that comes at the same time sees the
// operation as it was before, or as it is after.
func cancelOnce(ctx context.Context, tx pgx.Tx, tenant, key string, by audit.By) error {
	queries := crmdb.New(tx)
	row, err := queries.OperationGetByKey(ctx, tenant, key)
	if errors.Is(err, pgx.ErrNoRows) {
		return problem.New(problem.NotFound, "There is no operation with this key.")
	}
	if err != nil {
		return fmt.Errorf("get operation: %w", err)
	}
	if _, err := queries.OrderLock(ctx, []string{row.Source}, []string{row.OrderID}, tenant); err != nil {
		return fmt.Errorf("lock the order: %w", err)
	}
	n, err := queries.OperationCancelByHand(ctx, "Cancelled by "+storable(by.Actor)+".", row.ID)
	if err != nil {
		return err
	}
	if n == 0 {
		return refuseCancel(ctx, queries, tenant, key)
	}
	return writeAudit(ctx, queries, tenant, "operation.cancel", key, by)
}

func refuseCancel(ctx context.Context, queries *crmdb.Queries, tenant, key string) error {
	row, err := queries.OperationGetByKey(ctx, tenant, key)
	if err != nil {
		return fmt.Errorf("get operation: %w", err)
	}
	operations, err := withHistory(ctx, queries, []operationRow{operationRow(row)})
	if err != nil {
		return err
	}
	why := whyNoCancel(operations[0])
	if why == "" {
		why = whyChanged
	}
	return problem.New(problem.WrongState, "%s", why)
}
