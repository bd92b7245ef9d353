package crm

import (
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"invoicebridge/internal/erpapi"
)

// normaliseID gives the one text of all ids that look the same at their ends: outer blanks go (U+00A0 and the
// other spaces of Unicode, and the invisible characters that spreadsheets and web forms leave behind), and the rest
// is in NFC, as it is in the request. Case stays: A-1 and a-1 are two ids.
func normaliseID(id string) string {
	return norm.NFC.String(strings.TrimFunc(id, blank))
}

func blank(r rune) bool {
	switch r {
	case '\u200b', '\u2060', '\ufeff': // zero width space, word joiner, byte order mark
		return true
	}
	return unicode.IsSpace(r)
}

// normalised is o with its ids and words as they are compared.
func (o Order) normalised() Order {
	o.MessageID, o.Source, o.Order = normaliseID(o.MessageID), normaliseID(o.Source), normaliseID(o.Order)
	o.Corrects = normaliseID(o.Corrects)
	if o.Status == "" {
		o.Status = OrderConfirmed
	}
	return o
}

// wantedInvoice is one invoice of an order with what it takes from the order, and the place it is described at.
type wantedInvoice struct {
	OrderInvoice
	pointer string
}

// wantedInvoices are the invoices that o describes, in either of its two forms.
func (o Order) wantedInvoices() []wantedInvoice {
	if o.Invoices == nil {
		return []wantedInvoice{{OrderInvoice: OrderInvoice{
			Role: orFinal(o.Role), Sequence: o.Sequence, IssueDate: o.IssueDate, DueDate: o.DueDate, Lines: o.Lines,
			ExpectedGross: o.ExpectedGross, Corrects: o.Corrects, Note: o.Note,
		}}}
	}
	wanted := make([]wantedInvoice, len(o.Invoices))
	for i, inv := range o.Invoices {
		inv.Corrects = normaliseID(inv.Corrects)
		inv.Role = orFinal(firstOf(inv.Role, o.Role))
		inv.IssueDate = firstOf(inv.IssueDate, o.IssueDate)
		inv.DueDate = firstOf(inv.DueDate, o.DueDate)
		inv.Note = firstOf(inv.Note, o.Note)
		if inv.Role.Corrects() {
			inv.Corrects = firstOf(inv.Corrects, o.Corrects)
		}
		wanted[i] = wantedInvoice{OrderInvoice: inv, pointer: pointer("invoices", i)}
	}
	return wanted
}

// request is the body of POST /v1/invoices for one wanted invoice of o.
func (o Order) request(w OrderInvoice) *erpapi.InvoiceRequest {
	return &erpapi.InvoiceRequest{
		Source: o.Source, Order: o.Order, Role: w.Role, Sequence: w.Sequence, Currency: o.Currency,
		IssueDate: w.IssueDate, DueDate: w.DueDate, Customer: o.Customer, Lines: w.Lines, OrderTotal: o.OrderTotal,
		ExpectedGross: w.ExpectedGross, Corrects: w.Corrects, Note: w.Note, Metadata: o.Metadata,
	}
}

func orFinal(r erpapi.Role) erpapi.Role { return firstOf(r, erpapi.RoleFinal) }

func firstOf[T ~string](a, b T) T {
	if a != "" {
		return a
	}
	return b
}
