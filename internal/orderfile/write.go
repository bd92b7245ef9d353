package orderfile

import (
	"bufio"
	"encoding/csv"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"

	"invoicebridge/internal/crm"
	"invoicebridge/internal/erpapi"
)

// WriteJSONLines writes one order per line, equal orders as equal bytes. Read gives the same orders back.
func WriteJSONLines(w io.Writer, orders []crm.Order) error {
	out := bufio.NewWriter(w)
	for i := range orders {
		b, err := json.Marshal(&orders[i], json.Deterministic(true))
		if err != nil {
			return fmt.Errorf("write order %s: %w", orders[i].Order, err)
		}
		if _, err := out.Write(append(b, '\n')); err != nil {
			return fmt.Errorf("write: %w", err)
		}
	}
	return out.Flush()
}

// WriteCSV writes the orders as CSV with a header, lines ended by LF. Read with the same options gives the same
// orders back, as far as CSV can hold them: CR LF inside a text comes back as LF, an order's own dates and notes come
// back as those of its invoices, and an empty metadata value does not come back.
func WriteCSV(w io.Writer, orders []crm.Order, o CSVOptions) error {
	o = o.withDefaults("")
	if err := o.check(); err != nil {
		return err
	}
	out := csv.NewWriter(w)
	out.Comma = o.Delimiter
	header, rows := Table(orders, o.Decimal)
	if err := out.Write(header); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	if err := out.WriteAll(rows); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	return nil
}

// Table gives the header and the rows of a CSV file with these orders. It has the columns that some order uses, and
// the required ones.
func Table(orders []crm.Order, decimal rune) (header []string, rows [][]string) {
	var records []row
	used := map[place]bool{}
	for c, spec := range columnSpecs {
		used[place{column: column(c)}] = spec.required
	}
	for i := range orders {
		for _, r := range orderRecords(&orders[i]) {
			records = append(records, r)
			for c, v := range r.values {
				used[place{column: column(c)}] = used[place{column: column(c)}] || v != ""
			}
			for key := range r.metadata {
				used[place{column: columnCount, metadata: key}] = true
			}
		}
	}
	places := slices.DeleteFunc(slices.Collect(maps.Keys(used)), func(p place) bool { return !used[p] })
	slices.SortFunc(places, comparePlaces)
	for _, p := range places {
		header = append(header, p.name())
	}
	for i := range records {
		fields := make([]string, len(places))
		for j, p := range places {
			fields[j] = p.cell(&records[i], decimal)
		}
		rows = append(rows, fields)
	}
	return header, rows
}

func comparePlaces(a, b place) int {
	if a.column != b.column {
		return int(a.column - b.column)
	}
	return strings.Compare(a.metadata, b.metadata)
}

func (p place) name() string {
	if p.metadata != "" {
		return metadataPrefix + p.metadata
	}
	return p.column.String()
}

// cell writes a value so that reading gives it back. Numbers are numbers and need no guard: -5.00 stays -5.00.
func (p place) cell(r *row, decimal rune) string {
	if p.metadata != "" {
		return withGuard(r.metadata[p.metadata])
	}
	v := r.values[p.column]
	switch columnSpecs[p.column].kind {
	case kindDecimal:
		return strings.Replace(v, ".", string(decimal), 1)
	case kindInteger, kindDate:
		return v
	case kindID:
		if v == "" {
			return ""
		}
		return withIDGuard(v)
	default:
		return withGuard(v)
	}
}

// orderRecords gives the rows of an order: one for each line of each invoice, or one for an invoice without lines.
func orderRecords(o *crm.Order) []row {
	invoices := o.Invoices
	if len(invoices) == 0 {
		invoices = []crm.OrderInvoice{{
			Role: o.Role, Sequence: o.Sequence, IssueDate: o.IssueDate, DueDate: o.DueDate, Lines: o.Lines,
			ExpectedGross: o.ExpectedGross, Corrects: o.Corrects, Note: o.Note,
		}}
	}
	var rows []row
	for i := range invoices {
		first := len(rows)
		for j := range invoices[i].Lines {
			r := row{}
			r.setLine(&invoices[i].Lines[j])
			rows = append(rows, r)
		}
		if first == len(rows) {
			rows = append(rows, row{})
		}
		for j := first; j < len(rows); j++ {
			rows[j].setOrder(o)
			rows[j].setInvoice(o, &invoices[i])
		}
	}
	return rows
}

func (r *row) setOrder(o *crm.Order) {
	v := &r.values
	v[colSource], v[colOrder], v[colMessageID] = o.Source, o.Order, o.MessageID
	v[colVersion], v[colStatus], v[colCurrency] = integerText(o.Version), string(o.Status), o.Currency
	v[colCustomerName], v[colCustomerCountry], v[colCustomerVATID] = o.Customer.Name, o.Customer.Country, o.Customer.VATID
	v[colCustomerEmail], v[colCustomerAddress] = o.Customer.Email, o.Customer.Address
	v[colOrderTotal] = decimalText(o.OrderTotal)
	r.metadata = o.Metadata
}

func (r *row) setInvoice(o *crm.Order, inv *crm.OrderInvoice) {
	v := &r.values
	v[colRole], v[colSequence] = string(inv.Role), integerText(inv.Sequence)
	v[colIssueDate], v[colDueDate] = orElse(inv.IssueDate, o.IssueDate), orElse(inv.DueDate, o.DueDate)
	v[colExpectedGross], v[colCorrects], v[colNote] = decimalText(inv.ExpectedGross), inv.Corrects, orElse(inv.Note, o.Note)
}

func (r *row) setLine(l *erpapi.Line) {
	v := &r.values
	v[colSKU], v[colDescription], v[colExemptionReason] = l.SKU, l.Description, l.ExemptionReason
	v[colQuantity], v[colUnitPrice], v[colDiscount] = decimalText(l.Quantity), decimalText(l.UnitPrice), decimalText(l.Discount)
	v[colVATRate], v[colVATCategory] = decimalText(l.VATRate), l.VATCategory
}

func orElse(own, fallback string) string {
	if own != "" {
		return own
	}
	return fallback
}

func integerText(n *int64) string {
	if n == nil {
		return ""
	}
	return strconv.FormatInt(*n, 10)
}

func decimalText(d *erpapi.Decimal) string {
	if d == nil {
		return ""
	}
	return d.String()
}
