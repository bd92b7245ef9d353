package orderfile

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"invoicebridge/internal/crm"
	"invoicebridge/internal/erpapi"
)

// finish turns the rows into entries, and refuses the orders that have a faulty row.
func (g *grouper) finish() {
	for _, o := range g.order {
		if len(o.faults) > 0 {
			g.file.refuseOrder(o.rows, o.faults)
			continue
		}
		g.file.Entries = append(g.file.Entries, o.entry())
	}
	g.orders, g.order = nil, nil
}

// refuseOrder refuses all rows of an order: each with its own reasons, or naming the row that had some.
func (f *File) refuseOrder(rows []int, reasons map[int][]string) {
	first := rows[0]
	for _, index := range rows {
		if len(reasons[index]) > 0 {
			first = index
			break
		}
	}
	for _, index := range rows {
		r := &f.Rows[index]
		r.Outcome = Refused
		if own := reasons[index]; len(own) > 0 {
			r.Reason = strings.Join(own, "; ")
		} else {
			r.Reason = fmt.Sprintf("line %d of the same order was refused", f.Rows[first].Line)
		}
	}
}

func (o *orderRows) entry() Entry {
	e := Entry{Order: o.members.order(), Rows: o.rows, Copies: o.copies}
	e.Order.Source, e.Order.Order = o.key.source, o.key.id
	for _, inv := range o.invoices {
		inv.sort()
		rows := make([]int, len(inv.lines))
		for i := range inv.lines {
			rows[i] = inv.lines[i].index
		}
		e.lines = append(e.lines, rows)
	}
	if len(o.invoices) > 1 {
		for _, inv := range o.invoices {
			e.Order.Invoices = append(e.Order.Invoices, inv.invoice())
		}
		return e
	}
	one := o.invoices[0].invoice()
	e.Order.Role, e.Order.Sequence, e.Order.IssueDate, e.Order.DueDate = one.Role, one.Sequence, one.IssueDate, one.DueDate
	e.Order.Lines, e.Order.ExpectedGross, e.Order.Corrects, e.Order.Note = one.Lines, one.ExpectedGross, one.Corrects, one.Note
	return e
}

// sort puts numbered lines in their order: with numbers, the order of the rows in the file says nothing.
func (inv *invoiceRows) sort() {
	slices.SortStableFunc(inv.lines, func(a, b lineRow) int {
		return cmp.Compare(number(a.values[colLine]), number(b.values[colLine]))
	})
}

func (inv *invoiceRows) invoice() crm.OrderInvoice {
	m := inv.members
	out := crm.OrderInvoice{
		Role: erpapi.Role(m.value(colRole)), Sequence: integer(m.value(colSequence)), IssueDate: m.value(colIssueDate),
		DueDate: m.value(colDueDate), ExpectedGross: decimalOf(m.value(colExpectedGross)),
		Corrects: m.value(colCorrects), Note: m.value(colNote),
	}
	for i := range inv.lines {
		out.Lines = append(out.Lines, inv.lines[i].orderLine())
	}
	return out
}

func (m merged) order() crm.Order {
	o := crm.Order{
		MessageID: m.value(colMessageID), Version: integer(m.value(colVersion)),
		Status: crm.OrderStatus(m.value(colStatus)), Currency: m.value(colCurrency),
		Customer: erpapi.Customer{
			Name: m.value(colCustomerName), Country: m.value(colCustomerCountry), VATID: m.value(colCustomerVATID),
			Email: m.value(colCustomerEmail), Address: m.value(colCustomerAddress),
		},
		OrderTotal: decimalOf(m.value(colOrderTotal)),
	}
	for p, t := range m {
		if p.metadata == "" {
			continue
		}
		if o.Metadata == nil {
			o.Metadata = map[string]string{}
		}
		o.Metadata[p.metadata] = t.value
	}
	return o
}

// number reads what integerForm let pass; 0 where there is nothing.
func number(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

func integer(text string) *int64 {
	if text == "" {
		return nil
	}
	n := number(text)
	return &n
}
