package ordergen

import (
	"fmt"

	"github.com/shopspring/decimal"

	"invoicebridge/internal/crm"
	"invoicebridge/internal/erpapi"
)

// oneInvoice makes a final invoice out of everything ordered.
func (m *maker) oneInvoice(o *crm.Order, at market, how treatment) {
	o.Lines = m.lines(at, how, 1+m.IntN(3))
	for range m.IntN(3) {
		o.Lines = append(o.Lines, m.line(at, m.mixable(at, how)))
	}
	if m.oneIn(15) { // one long order
		o.Lines = append(o.Lines, m.lines(at, how, 25)...)
	}
	digits := digitsOf(o.Currency)
	o.IssueDate, o.DueDate = m.day(0), m.due(0)
	total := gross(o.Lines, digits)
	if m.oneIn(2) {
		o.ExpectedGross = amount(total, digits)
	}
	if m.oneIn(4) {
		o.OrderTotal = amount(total, digits)
	}
	if m.oneIn(3) {
		o.Role = erpapi.RoleFinal
	}
}

// advanceAndRest makes an advance of some percent and, if finished, the final invoice over the rest.
func (m *maker) advanceAndRest(o *crm.Order, at market, how treatment, finished bool) {
	digits := digitsOf(o.Currency)
	ordered := decimal.Zero
	for _, l := range m.lines(at, how, 2+m.IntN(3)) {
		ordered = ordered.Add(net(&l, digits))
	}
	percent := pick(m, []int64{10, 20, 30, 50})
	first := round(ordered.Mul(decimal.NewFromInt(percent)).Shift(-2), digits)
	advance := m.sum(how, "ADVANCE", fmt.Sprintf("Advance of %d %% on order %s", percent, m.id), first, digits)
	rest := m.sum(how, "REST", fmt.Sprintf("Order %s, less the advance", m.id), ordered.Sub(first), digits)
	o.OrderTotal = amount(gross(advance, digits).Add(gross(rest, digits)), digits)
	o.Invoices = []crm.OrderInvoice{m.invoice(o, erpapi.RoleAdvance, 0, 0, advance)}
	if finished {
		o.Invoices = append(o.Invoices, m.invoice(o, erpapi.RoleFinal, 0, 30, rest))
		return
	}
	one := o.Invoices[0] // an order that wants one invoice needs no list
	o.Invoices = nil
	o.Role, o.Sequence, o.IssueDate, o.DueDate = one.Role, one.Sequence, one.IssueDate, one.DueDate
	o.Lines, o.ExpectedGross = one.Lines, one.ExpectedGross
}

// parts makes an invoice for each of some deliveries and a final one for the last.
func (m *maker) parts(o *crm.Order, at market, how treatment) {
	digits := digitsOf(o.Currency)
	total := decimal.Zero
	count := 2 + m.IntN(3)
	for i := range count {
		lines := m.lines(at, how, 1+m.IntN(3))
		total = total.Add(gross(lines, digits))
		role, sequence := erpapi.RolePartial, int64(i+1)
		if i == count-1 {
			role, sequence = erpapi.RoleFinal, 0
		}
		o.Invoices = append(o.Invoices, m.invoice(o, role, sequence, 7*i, lines))
	}
	o.OrderTotal = amount(total, digits)
}

// invoice makes one of several invoices. The order's note goes onto each; sequence 0 leaves it out.
func (m *maker) invoice(o *crm.Order, role erpapi.Role, sequence int64, days int, lines []erpapi.Line) crm.OrderInvoice {
	inv := crm.OrderInvoice{Role: role, IssueDate: m.day(days), DueDate: m.due(days), Lines: lines}
	if sequence > 0 {
		inv.Sequence = &sequence
	}
	if m.oneIn(2) {
		digits := digitsOf(o.Currency)
		inv.ExpectedGross = amount(gross(lines, digits), digits)
	}
	return inv
}

// sum is the line of an invoice over a sum.
func (m *maker) sum(how treatment, sku, text string, amountNet decimal.Decimal, digits int32) []erpapi.Line {
	l := erpapi.Line{SKU: sku, Description: text, Quantity: exact("1"), UnitPrice: amount(amountNet, digits)}
	how.apply(&l)
	return []erpapi.Line{l}
}

// due is when an invoice of that day is to be paid; some have no date.
func (m *maker) due(days int) string {
	if m.oneIn(5) {
		return ""
	}
	return m.day(days + pick(m, []int{14, 30, 60}))
}
