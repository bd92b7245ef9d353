package crm

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"invoicebridge/internal/crmdb"
	"invoicebridge/internal/erpapi"
	"invoicebridge/internal/problem"
)

// answered does what asks the ERP about one thing. Without an answer that thing is left to the next run, and this one goes
// on; asked is false then. Several in a row mean that the ERP is away, and end the run for now.
func (run *reconcileRun) answered(ctx context.Context, b *reconcileBatch, subject string, do func() error) (asked bool, err error) {
	err = do()
	if !problem.Is(err, problem.Unavailable) {
		if err == nil {
			run.silent = 0
		}
		return err == nil, err
	}
	run.silent++
	if run.silent >= maxSilent {
		return false, err
	}
	b.unanswered++
	run.log.WarnContext(ctx, "left to the next reconciliation", "subject", subject, "error", err)
	return false, nil
}

// compareKey asks the ERP about one key and compares what it says with the operation, if there is one. decided says whether
// what was found, or that nothing was, is the whole truth for now.
func (run *reconcileRun) compareKey(ctx context.Context, b *reconcileBatch, key string) (decided bool, err error) {
	asked, err := run.answered(ctx, b, key, func() error {
		before, err := run.operation(ctx, key)
		if err != nil {
			return err
		}
		items, err := run.invoiceOf(ctx, key)
		if err != nil {
			return err
		}
		if len(items) > 0 {
			decided, err = run.judgeItems(ctx, b, items)
			return err
		}
		b.compared++
		decided = true
		if before != nil {
			decided, err = run.absent(ctx, b, before)
		}
		return err
	})
	return asked && decided, err
}

// quietOperation is an operation with what decides whether the ERP's "not found" may be believed.
type quietOperation struct {
	booked
	live  bool // neither cancelled nor replaced by a revision
	quiet bool // nothing that was sent can still be on its way or at work
}

func (run *reconcileRun) operation(ctx context.Context, key string) (*quietOperation, error) {
	row, err := crmdb.New(run.pool).ReconciliationGetOperation(ctx, run.opts.Settle.Seconds(), run.tenant, key)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("get operation: %w", err)
	}
	return &quietOperation{live: row.Live, quiet: row.Quiet, booked: bookedOf(crmdb.ReconciliationListOperationsRow{
		ID: row.ID, Key: row.Key, Source: row.Source, OrderID: row.OrderID, Role: row.Role, Sequence: row.Sequence,
		Request: row.Request, RequestHash: row.RequestHash, Minimised: row.Minimised, Status: row.Status, Attempt: row.Attempt, Reason: row.Reason, InvoiceID: row.InvoiceID,
		InvoiceNumber: row.InvoiceNumber, Flagged: row.Flagged, Leased: row.Leased,
	})}, nil
}

// absent judges an operation whose key the ERP does not know. Its state was read before the question: what has moved on
// since was not what the ERP was asked about.
func (run *reconcileRun) absent(ctx context.Context, b *reconcileBatch, op *quietOperation) (decided bool, err error) {
	if op.leased || !op.live {
		return !op.leased, nil
	}
	found, decided, err := run.judgeClaim(ctx, b, op.booked)
	if err != nil || found {
		return decided, err
	}
	f := op.finding(DivergenceMissingInERP, ownerERP)
	f.ours, f.theirs = op.told(), "no invoice of this key or business claim"
	switch {
	case op.status == StatusSucceeded:
		f.action = actionLook
	case op.status != StatusUnknown && op.status != StatusProcessing:
		return true, nil // it is known here that nothing came of it
	case !op.quiet:
		return false, nil // the request may still be at work there
	case op.flagged:
		f.action = actionReplay
	default:
		f.action = actionResend
	}
	b.add(f)
	return true, nil
}

// judgeClaim compares the operation with the invoice that has its claim under another key, if there is one.
func (run *reconcileRun) judgeClaim(ctx context.Context, b *reconcileBatch, op booked) (found, decided bool, err error) {
	items, err := run.listAll(ctx, erpapi.InvoiceQuery{Source: op.order.source, Order: op.order.order, Role: op.claim.role})
	if err != nil {
		return false, false, err
	}
	for _, item := range items {
		if issued, ok := readable(item.Invoice); ok && item.Invoice.Sequence == op.claim.sequence {
			return true, b.judge(op, item.Invoice, *issued), nil
		}
	}
	return false, false, nil
}
