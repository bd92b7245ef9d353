package crm

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/bojanz/currency"

	"invoicebridge/internal/erpapi"
	"invoicebridge/internal/problem"
)

// Limits of what tells things apart: the contract's. Lengths are in characters.
const (
	maxSourceLength    = 64
	maxOrderLength     = 128
	maxCorrectsLength  = 64
	maxMessageIDLength = 255
	maxSequence        = 999_999
)

// maxFindings bounds what is told of an order that is wrong in every line.
const maxFindings = 100

// findings collects what is wrong with one order.
type findings []problem.FieldError

func (f *findings) add(pointer, format string, args ...any) {
	if len(*f) < maxFindings {
		*f = append(*f, problem.FieldError{Pointer: pointer, Detail: fmt.Sprintf(format, args...)})
	}
}

// validate says what this side can know to be wrong with a normalised order: what is missing, what contradicts
// itself. Amounts and VAT are the ERP's to judge.
func (o Order) validate() findings {
	var f findings
	f.id("/source", o.Source, maxSourceLength)
	f.id("/order", o.Order, maxOrderLength)
	f.text("/message_id", o.MessageID, maxMessageIDLength)
	if o.Version != nil && *o.Version < 1 {
		f.add("/version", "must be 1 or more")
	}
	switch o.Status {
	case OrderCancelled: // wants nothing, whatever else it says
		return f
	case OrderConfirmed:
	default:
		f.add("/status", "%q is neither %q nor %q", o.Status, OrderConfirmed, OrderCancelled)
	}
	f.currency(o.Currency)
	f.required("/customer/name", o.Customer.Name)
	f.decimal("/order_total", o.OrderTotal)
	f.form(o)
	f.invoices(o.wantedInvoices())
	return f
}

// currency asks for what the ERP asks for: what is taken here is to become an invoice there.
func (f *findings) currency(code string) {
	f.required("/currency", code)
	if _, known := currency.GetDigits(code); code != "" && !known {
		f.add("/currency", "%q is not a currency code of ISO 4217 such as EUR, in capitals", excerpt(code))
	}
}

// form holds the two forms of an order apart.
func (f *findings) form(o Order) {
	if o.Invoices == nil {
		return
	}
	switch {
	case len(o.Invoices) == 0:
		f.add("/invoices", "is empty: list the wanted invoices, or give lines instead")
	case o.Lines != nil:
		f.add("/invoices", "an order has either lines or invoices, not both")
	}
	// What belongs to one invoice can't be meant for each of several.
	if o.Sequence != nil {
		f.add("/sequence", "with invoices, each of them has its own sequence")
	}
	if o.ExpectedGross != nil {
		f.add("/expected_gross", "with invoices, each of them has its own expected_gross; the order's is order_total")
	}
}

func (f *findings) invoices(wanted []wantedInvoice) {
	claimed := map[claim]bool{}
	for _, w := range wanted {
		f.invoice(w)
		if c := w.claim(); claimed[c] {
			f.add(w.pointer, "the order wants a %s with sequence %d twice", c.role, c.sequence)
		} else {
			claimed[c] = true
		}
	}
}

func (f *findings) invoice(w wantedInvoice) {
	f.role(w)
	f.date(w.pointer+"/issue_date", w.IssueDate, true)
	f.date(w.pointer+"/due_date", w.DueDate, false)
	f.decimal(w.pointer+"/expected_gross", w.ExpectedGross)
	if len(w.Lines) == 0 {
		f.add(w.pointer+"/lines", "at least one line is required")
	}
	for i := range w.Lines {
		f.line(w.pointer+pointer("lines", i), &w.Lines[i])
	}
}

func (f *findings) role(w wantedInvoice) {
	if !slices.Contains(erpapi.Roles(), w.Role) {
		f.add(w.pointer+"/role", "%q is not a role", w.Role)
		return
	}
	switch seq := w.claim().sequence; {
	case seq < 1 || seq > maxSequence:
		f.add(w.pointer+"/sequence", "must be from 1 to %d", maxSequence)
	case w.Role == erpapi.RoleFinal && seq != 1:
		f.add(w.pointer+"/sequence", "an order has one final invoice; its sequence is 1")
	}
	switch {
	case w.Role.Corrects() && w.Corrects == "":
		f.add(w.pointer+"/corrects", "a %s names the invoice it corrects", w.Role)
	case !w.Role.Corrects() && w.Corrects != "":
		f.add(w.pointer+"/corrects", "a %s corrects no invoice", w.Role)
	}
	f.text(w.pointer+"/corrects", w.Corrects, maxCorrectsLength)
}

func (f *findings) line(at string, l *erpapi.Line) {
	f.requiredDecimal(at+"/quantity", l.Quantity)
	f.requiredDecimal(at+"/unit_price", l.UnitPrice)
	f.decimal(at+"/discount", l.Discount)
	f.decimal(at+"/vat_rate", l.VATRate)
	f.required(at+"/vat_category", l.VATCategory)
}

func (f *findings) id(at, text string, most int) {
	f.required(at, text)
	f.text(at, text, most)
}

// text refuses what nobody can tell apart by looking, and what a text column or an index can't hold.
func (f *findings) text(at, text string, most int) {
	switch {
	case !utf8.ValidString(text):
		f.add(at, "is not UTF-8")
	case strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }):
		f.add(at, "must have only visible characters")
	case utf8.RuneCountInString(text) > most:
		f.add(at, "has more than %d characters", most)
	}
}

func (f *findings) required(at, text string) {
	if text == "" {
		f.add(at, "is required")
	}
}

func (f *findings) requiredDecimal(at string, d *erpapi.Decimal) {
	if d == nil {
		f.add(at, "is required")
		return
	}
	f.decimal(at, d)
}

func (f *findings) decimal(at string, d *erpapi.Decimal) {
	if d != nil && !d.Valid() {
		f.add(at, "%q is not a plain decimal number such as 12.50", excerpt(d.String()))
	}
}

func (f *findings) date(at, text string, required bool) {
	if text == "" {
		if required {
			f.add(at, "is required")
		}
		return
	}
	if _, err := time.Parse(time.DateOnly, text); err != nil {
		f.add(at, "%q is not a date such as 2026-03-02", excerpt(text))
	}
}

// excerpt keeps a wrong text short enough to be told.
func excerpt(text string) string {
	const most = 60
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	return string([]rune(text)[:most]) + "…"
}

func pointer(list string, i int) string { return fmt.Sprintf("/%s/%d", list, i) }
