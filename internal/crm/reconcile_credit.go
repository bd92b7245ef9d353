package crm

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/shopspring/decimal"

	"invoicebridge/internal/crmdb"
	"invoicebridge/internal/erpapi"
)

// compareCredits tells what is credited of each of these orders that is known here, and which those are.
func (run *reconcileRun) compareCredits(ctx context.Context, b *reconcileBatch, orders []orderID) (known map[orderID]bool, err error) {
	slices.SortFunc(orders, compareOrderIDs)
	known = map[orderID]bool{}
	for _, order := range slices.Compact(orders) {
		stands, err := run.orderStands(ctx, order)
		if err != nil {
			return nil, err
		}
		if stands == "" {
			continue
		}
		known[order] = true
		if _, err := run.compareCredit(ctx, b, order); err != nil {
			return nil, err
		}
	}
	return known, nil
}

// orderStands tells how an order stands here; empty if there is none.
func (run *reconcileRun) orderStands(ctx context.Context, order orderID) (string, error) {
	row, err := crmdb.New(run.pool).ReconciliationGetOrder(ctx, run.tenant, order.source, order.order)
	if errors.Is(err, pgx.ErrNoRows) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("look an order up: %w", err)
	}
	return fmt.Sprintf("version %d is %s", row.Version, row.Status), nil
}

// compareCredit reads the order's invoices whole: those of other days count.
func (run *reconcileRun) compareCredit(ctx context.Context, b *reconcileBatch, order orderID) (asked bool, err error) {
	return run.answered(ctx, b, order.order, func() error {
		stands, err := run.orderStands(ctx, order)
		if err != nil || stands == "" {
			return err
		}
		items, err := run.listAll(ctx, erpapi.InvoiceQuery{Source: order.source, Order: order.order})
		if err != nil {
			return err
		}
		if theirs := creditsOf(items); theirs != "" {
			b.credited(order, stands, theirs)
		}
		return nil
	})
}

// creditsOf tells which of an order's invoices were credited, by how much and by what; empty if none was.
func creditsOf(items []erpapi.ListedInvoice) string {
	var told []string
	for _, item := range items {
		inv := item.Invoice
		if inv == nil || inv.Role == erpapi.RoleCreditNote {
			continue
		}
		if sum, notes := creditsOn(inv, items); len(notes) > 0 {
			told = append(told, fmt.Sprintf("%s %s of %s %s is credited with %s by %s",
				inv.Role, inv.Number, inv.Gross, inv.Currency, sum, strings.Join(notes, ", ")))
		}
	}
	slices.Sort(told)
	return strings.Join(told, "; ")
}

func creditsOn(inv *erpapi.Invoice, items []erpapi.ListedInvoice) (sum decimal.Decimal, notes []string) {
	for _, item := range items {
		note := item.Invoice
		if note == nil || note.Role != erpapi.RoleCreditNote || note.Corrects == nil {
			continue
		}
		if *note.Corrects == inv.ID || *note.Corrects == inv.Number {
			sum, notes = sum.Add(amountOf(note.Gross)), append(notes, note.Number)
		}
	}
	return sum, notes
}
