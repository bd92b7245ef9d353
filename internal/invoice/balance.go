package invoice

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/shopspring/decimal"

	"invoicebridge/internal/erpapi"
	"invoicebridge/internal/erpdb"
	"invoicebridge/internal/idempotency"
	"invoicebridge/internal/problem"
)

// refusals is the error that rolls a round back because of some of its members, and tells why. It is exact: their
// orders were locked, and no other member of the round touches them.
type refusals map[*member]*problem.Problem

// note tells the members, for the look-up that comes next.
func (r refusals) note() {
	for m, p := range r {
		m.overrun = p
	}
}

func (r refusals) Error() string { return fmt.Sprintf("%d invoices of the group are refused", len(r)) }

// addToOrders locks the round's orders, adds the invoices to what was invoiced and credited so far, and checks what
// can only be known then. What it gives waits for that; it fails with refusals, or with the database's error: both want
// a rollback.
//
// Advances, parts and final invoices count against order_total, credit notes against the invoice they correct. A
// correction restates an invoice and counts as neither. Credit notes do not give room for more invoices: what was
// credited is invoiced again by a correction, which says so.
func addToOrders(ctx context.Context, tx *transaction, round []*member, patience time.Duration) (done func() error) {
	added := tx.statements().OrderBalanceAdd(ctx, []erpdb.OrderBalanceAddParams{balanceParams(round, patience)})
	corrected := listCorrected(ctx, tx, round)
	return func() error {
		rows, err := one(added.Query)
		if err != nil {
			return fmt.Errorf("lock %d orders: %w", len(round), err)
		}
		refused, err := checkBalances(round, rows)
		if err != nil {
			return err
		}
		if err := corrected(refused); err != nil {
			return err
		}
		if len(refused) > 0 {
			return refused
		}
		return nil
	}
}

func checkBalances(round []*member, rows []erpdb.OrderBalanceAddRow) (refusals, error) {
	byOrder := make(map[order]*member, len(round))
	for _, m := range round {
		byOrder[m.order()] = m
	}
	refused := refusals{}
	for _, row := range rows {
		m := byOrder[order{row.TenantID, row.Source, row.OrderID}]
		wrong, err := checkBalance(m.draft, row)
		if err != nil {
			return nil, err
		}
		if wrong != nil {
			refused[m] = invalid(*wrong)
		}
	}
	return refused, nil
}

// balanceParams sorts the orders, as every transaction does, so that two never wait for each other.
func balanceParams(round []*member, patience time.Duration) erpdb.OrderBalanceAddParams {
	params := erpdb.OrderBalanceAddParams{LockTimeout: idempotency.LockTimeout(patience)}
	sorted := slices.SortedFunc(slices.Values(round), func(a, b *member) int {
		x, y := a.order(), b.order()
		return cmp.Or(cmp.Compare(x.tenant, y.tenant), cmp.Compare(x.source, y.source), cmp.Compare(x.id, y.id))
	})
	for _, m := range sorted {
		invoiced, credited := decimal.Zero, decimal.Zero
		switch m.Request.Role {
		case erpapi.RoleAdvance, erpapi.RolePartial, erpapi.RoleFinal:
			invoiced = m.draft.gross
		case erpapi.RoleCreditNote:
			credited = m.draft.gross
		case erpapi.RoleCorrection:
		}
		params.TenantIds = append(params.TenantIds, m.Tenant)
		params.Sources = append(params.Sources, m.order().source)
		params.OrderIds = append(params.OrderIds, m.order().id)
		params.Currencies = append(params.Currencies, m.Request.Currency)
		params.InvoicedGross = append(params.InvoicedGross, m.draft.amount(invoiced))
		params.CreditedGross = append(params.CreditedGross, m.draft.amount(credited))
	}
	return params
}

func checkBalance(d *draft, row erpdb.OrderBalanceAddRow) (*problem.FieldError, error) {
	if row.Currency != d.request.Currency {
		return &problem.FieldError{Pointer: "/currency", Detail: "must be " + row.Currency +
			", the currency of the order's other invoices"}, nil
	}
	limit := d.request.OrderTotal
	if limit == nil || d.request.Role.Corrects() {
		return nil, nil
	}
	invoiced, err := decimal.NewFromString(row.InvoicedGross)
	if err != nil {
		return nil, fmt.Errorf("balance of order %q: %w", row.OrderID, err)
	}
	if invoiced.GreaterThan(limit.Value()) {
		return &problem.FieldError{Pointer: "/order_total", Detail: fmt.Sprintf(
			"would be exceeded: with this invoice the order's invoices come to %s, its total is %s",
			d.amount(invoiced), d.amount(limit.Value()))}, nil
	}
	return nil, nil
}
