package crm

import (
	"context"
	"fmt"
	"net/http"
	"strconv"

	"github.com/google/uuid"

	"invoicebridge/internal/crmdb"
	"invoicebridge/internal/erpapi"
)

// maxQuestions by key are asked before the run's state is committed: each takes its time, and a process has only so much
// before it makes room.
const maxQuestions = 20

func (run *reconcileRun) questions() int32 { return int32(min(run.opts.Batch, maxQuestions)) }

// compareInvoices holds one page of the ERP's invoices against the operations.
func (run *reconcileRun) compareInvoices(ctx context.Context, b *reconcileBatch) (position, error) {
	listing, err := run.listWhole(ctx, erpapi.InvoiceQuery{
		CreatedFrom: run.from, CreatedTo: run.to, Limit: run.opts.Batch, Cursor: run.at.cursor,
	})
	if err != nil {
		if run.at.cursor != "" && listing.Exchange.Status == http.StatusBadRequest && !run.restarted {
			run.restarted = true
			return position{phase: phaseInvoices}, nil // a cursor of an older ERP: from the top
		}
		return position{}, err
	}
	if _, err := run.judgeItems(ctx, b, listing.Items); err != nil {
		return position{}, err
	}
	if listing.Next == "" {
		return position{phase: phaseOperations}, nil
	}
	return position{phaseInvoices, listing.Next}, nil
}

// judgeItems compares invoices with the operations of their keys and claims. decided says whether all could be compared.
func (run *reconcileRun) judgeItems(ctx context.Context, b *reconcileBatch, items []erpapi.ListedInvoice) (decided bool, err error) {
	decided = true
	var invoices []*erpapi.Invoice
	var issued []IssuedInvoice
	var credits []orderID
	arg := crmdb.ReconciliationListOperationsParams{TenantID: run.tenant}
	for _, item := range items {
		inv := item.Invoice
		is, ok := readable(inv)
		if !ok {
			b.unreadable(item)
			decided = false
			continue
		}
		arg.Positions, arg.Keys = append(arg.Positions, int32(len(invoices))), append(arg.Keys, inv.OperationKey)
		arg.Sources, arg.OrderIds = append(arg.Sources, inv.Source), append(arg.OrderIds, inv.Order)
		arg.Roles, arg.Sequences = append(arg.Roles, string(inv.Role)), append(arg.Sequences, inv.Sequence)
		invoices, issued = append(invoices, inv), append(issued, *is)
		if inv.Role == erpapi.RoleCreditNote {
			credits = append(credits, orderID{inv.Source, inv.Order})
		}
	}
	b.compared += int64(len(items))
	known, err := run.compareCredits(ctx, b, credits)
	if err != nil || len(invoices) == 0 {
		return decided, err
	}
	rows, err := crmdb.New(run.pool).ReconciliationListOperations(ctx, arg)
	if err != nil {
		return false, fmt.Errorf("look operations up: %w", err)
	}
	// By its key an operation knows its invoice; only where there is none does the claim decide.
	partner := make([]*booked, len(invoices))
	for _, row := range rows {
		if op := bookedOf(row); row.ByKey || partner[row.Position] == nil {
			partner[row.Position] = &op
		}
	}
	for i, inv := range invoices {
		switch {
		case partner[i] != nil:
			decided = b.judge(*partner[i], inv, issued[i]) && decided
		case inv.Role == erpapi.RoleCreditNote && known[orderID{inv.Source, inv.Order}]:
			// told with its order: credited
		default:
			b.unknownHere(inv)
		}
	}
	return decided, nil
}

// readable says whether an item can be compared: without id, number and key it can't, nor with text that nothing here can have,
// which PostgreSQL does not even take to look for.
func readable(inv *erpapi.Invoice) (*IssuedInvoice, bool) {
	if inv == nil || inv.OperationKey == "" {
		return nil, false
	}
	for _, text := range []string{inv.OperationKey, inv.Source, inv.Order, string(inv.Role)} {
		if storable(text) != text {
			return nil, false
		}
	}
	return issuedInvoice(inv.ID, inv.Number)
}

// compareOperations asks for the succeeded operations of the window whose invoice the ERP's list did not have.
func (run *reconcileRun) compareOperations(ctx context.Context, b *reconcileBatch) (position, error) {
	arg := crmdb.ReconciliationListWindowParams{
		TenantID: run.tenant, RunID: run.id, WindowFrom: run.from, BeforeCreatedAt: run.to, MaxItems: int32(run.opts.Batch),
	}
	if run.at.cursor != "" {
		from, _, err := parsePlace(run.at.cursor, parseUUID, formatUUID)
		if err != nil {
			return position{}, fmt.Errorf("the run's cursor: %w", err)
		}
		arg.BeforeCreatedAt, arg.BeforeID = from.at, from.id
	}
	rows, err := crmdb.New(run.pool).ReconciliationListWindow(ctx, arg)
	if err != nil {
		return position{}, fmt.Errorf("list operations: %w", err)
	}
	questions := 0
	for i, row := range rows {
		if row.Matched || OperationStatus(row.Status) != StatusSucceeded {
			continue
		}
		if _, err := run.compareKey(ctx, b, row.Key); err != nil {
			return position{}, err
		}
		if questions++; questions == maxQuestions && i < len(rows)-1 {
			return position{phaseOperations, formatPlace(place[uuid.UUID]{row.CreatedAt, row.ID}, false, formatUUID)}, nil
		}
	}
	if len(rows) < run.opts.Batch {
		return position{phaseOpen, ""}, nil
	}
	last := rows[len(rows)-1]
	return position{phaseOperations, formatPlace(place[uuid.UUID]{last.CreatedAt, last.ID}, false, formatUUID)}, nil
}

// compareOpen asks what became of operations that were sent and whose outcome nobody here knows.
func (run *reconcileRun) compareOpen(ctx context.Context, b *reconcileBatch) (position, error) {
	var after uuid.UUID
	if run.at.cursor == "" {
		if err := run.enqueue(ctx, b); err != nil {
			return position{}, err
		}
	} else if err := after.UnmarshalText([]byte(run.at.cursor)); err != nil {
		return position{}, fmt.Errorf("the run's cursor: %w", err)
	}
	rows, err := crmdb.New(run.pool).ReconciliationListOpen(ctx, run.tenant, after, run.questions())
	if err != nil {
		return position{}, fmt.Errorf("list open operations: %w", err)
	}
	for _, row := range rows {
		if _, err := run.compareKey(ctx, b, row.Key); err != nil {
			return position{}, err
		}
	}
	if len(rows) < int(run.questions()) {
		return position{phaseKnown, "0"}, nil
	}
	return position{phaseOpen, rows[len(rows)-1].ID.String()}, nil
}

// enqueue is not the run's alone to do: the sweep does the same every minute. It makes reconciliation whole by itself.
func (run *reconcileRun) enqueue(ctx context.Context, b *reconcileBatch) error {
	if run.opts.Enqueue == nil {
		return nil
	}
	n, err := run.opts.Enqueue(ctx)
	if err != nil {
		return fmt.Errorf("enqueue what was never sent: %w", err)
	}
	b.enqueued = int64(n)
	if n > 0 {
		run.log.WarnContext(ctx, "operations without a job enqueued again", "operations", n)
	}
	return nil
}

// compareKnown looks again at open divergences that the run has not met: what of them is gone is resolved, however old it
// is.
func (run *reconcileRun) compareKnown(ctx context.Context, b *reconcileBatch) (position, error) {
	after, err := strconv.ParseInt(run.at.cursor, 10, 64)
	if err != nil {
		return position{}, fmt.Errorf("the run's cursor: %w", err)
	}
	kinds := make([]string, 0, len(DivergenceKinds()))
	for _, kind := range DivergenceKinds() {
		kinds = append(kinds, string(kind))
	}
	rows, err := crmdb.New(run.pool).DivergenceListUnseen(ctx, crmdb.DivergenceListUnseenParams{
		TenantID: run.tenant, SeenBefore: run.startedAt, AfterID: after, Kinds: kinds, MaxItems: run.questions(),
	})
	if err != nil {
		return position{}, fmt.Errorf("list open divergences: %w", err)
	}
	for _, row := range rows {
		asked := false
		switch {
		case row.Key != "":
			asked, err = run.compareKey(ctx, b, row.Key)
		case DivergenceKind(row.Kind) == DivergenceOrderCredited:
			asked, err = run.compareCredit(ctx, b, orderID{row.Source, row.OrderID})
		}
		if err != nil {
			return position{}, err
		}
		if asked {
			b.looked = append(b.looked, row.ID)
		}
	}
	if len(rows) < int(run.questions()) {
		return position{phaseDone, ""}, nil
	}
	return position{phaseKnown, strconv.FormatInt(rows[len(rows)-1].ID, 10)}, nil
}
