package invoice

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/shopspring/decimal"

	"invoicebridge/internal/erpapi"
	"invoicebridge/internal/erpdb"
	"invoicebridge/internal/problem"
)

// listCorrected finds the invoices that members correct. What it gives waits for that and sets their ids, or adds to
// the refused.
func listCorrected(ctx context.Context, tx *transaction, round []*member) (resolve func(refused refusals) error) {
	var params erpdb.InvoiceListCorrectedParams
	for i, m := range round {
		if !m.Request.Role.Corrects() {
			continue
		}
		m.corrects = uuid.Nil
		id := ""
		if parsed, err := uuid.Parse(m.Request.Corrects); err == nil {
			id = parsed.String()
		}
		params.TenantIds = append(params.TenantIds, m.Tenant)
		params.Positions = append(params.Positions, int32(i))
		params.Ids = append(params.Ids, id)
		params.Numbers = append(params.Numbers, m.Request.Corrects)
	}
	if len(params.Positions) == 0 {
		return func(refusals) error { return nil }
	}
	listed := tx.statements().InvoiceListCorrected(ctx, []erpdb.InvoiceListCorrectedParams{params})
	return func(refused refusals) error {
		rows, err := one(listed.Query)
		if err != nil {
			return fmt.Errorf("find the corrected invoices: %w", err)
		}
		return resolveCorrected(round, params.Positions, rows, refused)
	}
}

func resolveCorrected(round []*member, positions []int32, rows []erpdb.InvoiceListCorrectedRow, refused refusals) error {
	found := make(map[int32]erpdb.InvoiceListCorrectedRow, len(rows))
	for _, row := range rows {
		found[row.Position] = row
	}
	for _, i := range positions {
		m := round[i]
		row, ok := found[i]
		detail, err := checkCorrected(m, row, ok)
		if err != nil {
			return err
		}
		if detail != "" {
			refused[m] = invalid(problem.FieldError{Pointer: "/corrects", Detail: detail})
			continue
		}
		m.corrects = row.ID
	}
	return nil
}

// checkCorrected gives what is wrong with correcting the invoice of row, or nothing.
func checkCorrected(m *member, row erpdb.InvoiceListCorrectedRow, found bool) (string, error) {
	switch {
	case !found:
		return "names no invoice: it must be the id or the number of one", nil
	case order{m.Tenant, row.Source, row.OrderID} != m.order():
		return "names an invoice of another order", nil
	case row.Currency != m.Request.Currency:
		return "names an invoice in another currency, " + row.Currency, nil
	case m.Request.Role == erpapi.RoleCorrection:
		return "", nil
	case row.Role == string(erpapi.RoleCreditNote):
		return "names a credit note: a credit note can't be credited", nil
	}
	gross, err := decimal.NewFromString(row.Gross)
	if err != nil {
		return "", fmt.Errorf("gross of invoice %s: %w", row.ID, err)
	}
	credited, err := decimal.NewFromString(row.Credited)
	if err != nil {
		return "", fmt.Errorf("credit notes of invoice %s: %w", row.ID, err)
	}
	if credited.Add(m.draft.gross).GreaterThan(gross) {
		return fmt.Sprintf("names an invoice of %s of which %s is credited already: %s more is too much",
			m.draft.amount(gross), m.draft.amount(credited), m.draft.amount(m.draft.gross)), nil
	}
	return "", nil
}
