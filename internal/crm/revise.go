package crm

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"invoicebridge/internal/audit"
	"invoicebridge/internal/crmdb"
	"invoicebridge/internal/erpapi"
	"invoicebridge/internal/logctx"
	"invoicebridge/internal/problem"
)

const maxReasonLength = 1000

// checkBy: actor and reason are required, they go into the audit.
func checkBy(by audit.By) error {
	switch {
	case strings.TrimSpace(by.Actor) == "":
		return errors.New("nobody is named who does this")
	case strings.TrimSpace(by.Reason) == "":
		return problem.New(problem.MalformedRequest, "reason is required: it goes into the audit.")
	case utf8.RuneCountInString(by.Reason) > maxReasonLength || storable(by.Reason) != by.Reason:
		return problem.New(problem.MalformedRequest, "reason must be text of at most %d characters.", maxReasonLength)
	}
	return nil
}

// Revise puts a corrected request in the place of an operation that is proven not applied: a new operation under a new
// key, which supersedes the old one, with its job and an audit entry, in one transaction. It gives the new operation.
//
// The claim stays: what the request leaves out of source, order, role and sequence it takes from the operation, and other
// ones are invalid-order, as is whatever Submit would refuse. It is the same for every role, and the same path as a newer
// version of the order takes; a still newer version counts from here on.
//
// An operation that is open, unknown, succeeded, cancelled, revised before, or failed for another reason is refused with
// wrong-state: a second operation beside one that may have been applied could make a second document. An unknown key is
// not-found. After an error that is no problem nothing was stored, or (connection lost during the commit) that is not
// known; the operation shows it.
func (s *Service) Revise(ctx context.Context, tenant, key string, request *erpapi.InvoiceRequest, by audit.By) (Operation, error) {
	if err := checkBy(by); err != nil {
		return Operation{}, err
	}
	row, err := crmdb.New(s.db.Of(tenant)).OperationGetByKey(ctx, tenant, key)
	if errors.Is(err, pgx.ErrNoRows) {
		return Operation{}, problem.New(problem.NotFound, "There is no operation with this key.")
	}
	if err != nil {
		return Operation{}, fmt.Errorf("revise: get operation: %w", err)
	}
	in, err := corrected(row, request)
	if err != nil {
		return Operation{}, err
	}
	var revision string
	for try := 1; ; try++ {
		revision, err = s.reviseOnce(ctx, tenant, key, in, by)
		if err == nil {
			break
		}
		if problem.As(err) == nil && brokenOff(err) && try < submitTries {
			continue
		}
		return Operation{}, fmt.Errorf("revise: %w", err)
	}
	s.log.LogAttrs(ctx, slog.LevelInfo, "operation revised", slog.String(logctx.TenantKey, tenant),
		slog.String(logctx.OperationKeyKey, revision), slog.String("supersedes", key), slog.String("actor", by.Actor))
	return s.GetOperation(ctx, tenant, revision)
}

// corrected is the request as Submit would judge and freeze it: as an order that wants this one invoice.
func corrected(row crmdb.OperationGetByKeyRow, r *erpapi.InvoiceRequest) (*incoming, error) {
	sequence := int64(row.Sequence)
	if r.Sequence != nil {
		sequence = *r.Sequence
	}
	in := newIncoming(Order{
		Source: firstOf(r.Source, row.Source), Order: firstOf(r.Order, row.OrderID), Role: firstOf(r.Role, erpapi.Role(row.Role)),
		Sequence: &sequence, Currency: r.Currency, Customer: r.Customer, IssueDate: r.IssueDate, DueDate: r.DueDate, Lines: r.Lines,
		ExpectedGross: r.ExpectedGross, Corrects: r.Corrects, OrderTotal: r.OrderTotal, Note: r.Note, Metadata: r.Metadata,
	})
	if len(in.errors) == 0 {
		want := in.wants[0].claim
		for _, member := range []struct {
			pointer string
			same    bool
		}{
			{"/source", in.id.source == row.Source}, {"/order", in.id.order == row.OrderID},
			{"/role", want.role == erpapi.Role(row.Role)}, {"/sequence", want.sequence == int64(row.Sequence)},
		} {
			if !member.same {
				in.errors.add(member.pointer, "is another one than the operation's: a revision is for the same invoice")
			}
		}
	}
	if len(in.errors) > 0 {
		p := problem.New(problem.InvalidOrder, "The corrected request is not valid. Nothing was stored.")
		p.Errors = in.errors
		return nil, p
	}
	return &in, nil
}

func (s *Service) reviseOnce(ctx context.Context, tenant, key string, in *incoming, by audit.By) (revision string, err error) {
	err = pgx.BeginFunc(ctx, s.db.Of(tenant), func(tx pgx.Tx) error {
		call := &submitTx{tx: tx, queries: crmdb.New(tx), jobs: s.jobs, tenant: tenant, states: map[orderID]*orderState{}}
		st, op, err := call.lockRevised(ctx, key, in)
		if err != nil {
			return err
		}
		if p := refuseRevision(st, op); p != nil {
			return p
		}
		st.supersede(op, in.wants[0])
		revision = st.operations[op.claim].key
		if err := call.write(ctx); err != nil {
			return err
		}
		by.Reason += " (revision: " + revision + ")"
		return writeAudit(ctx, call.queries, tenant, "operation.revise", key, by)
	})
	if err == nil {
		s.jobs.Wake()
	}
	return revision, err
}

// lockRevised locks the order and then the operation, as Submit does, and reads both under the locks.
func (c *submitTx) lockRevised(ctx context.Context, key string, in *incoming) (*orderState, *operationState, error) {
	begin, err := c.queries.OrderSubmitBegin(ctx, c.tenant)
	if err != nil {
		return nil, nil, fmt.Errorf("begin: %w", err)
	}
	c.now = begin.Now
	if err := c.lockThere(ctx, []*incoming{in}); err != nil {
		return nil, nil, err
	}
	st := c.states[in.id]
	op := st.operations[in.wants[0].claim]
	if op == nil || op.key != key {
		return nil, nil, problem.New(problem.WrongState, "This operation was cancelled or revised before: see the order's other operations.")
	}
	rows, err := c.queries.OperationLock(ctx, []uuid.UUID{op.id})
	if err != nil {
		return nil, nil, fmt.Errorf("lock operation: %w", err)
	}
	for _, row := range rows {
		op.status, op.attempt, op.reason = OperationStatus(row.Status), row.Attempt, Reason(row.Reason)
		op.nothingLeft = row.NothingLeft
	}
	return st, op, nil
}

// refuseRevision says why an operation must not be revised; nil if it may.
func refuseRevision(st *orderState, op *operationState) *problem.Problem {
	refuse := func(why string) *problem.Problem {
		return problem.New(problem.WrongState, "%s Nothing was stored.", why)
	}
	switch {
	case op.correctable() && st.status == OrderCancelled:
		return refuse("The order is cancelled.")
	case op.correctable():
		return nil
	case op.unsent():
		return refuse("It was not sent yet: submit a newer version of the order, and that is sent.")
	case op.status == StatusUnknown:
		return refuse("What became of it is not known, and a second operation could make a second invoice: replay it, or let reconciliation ask.")
	case op.status == StatusSucceeded:
		return refuse("It has succeeded: its invoice is changed only by a credit note or a correction.")
	case op.status == StatusFailed:
		return refuse("Its key or its business claim belongs to another invoice (" + string(op.reason) + "): another request would meet the same.")
	}
	return refuse("It is still being delivered.")
}
