package invoice

import (
	"fmt"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"

	"invoicebridge/internal/erpapi"
)

// statusIssued is the one status of an invoice: it is issued, and never changes after that.
const statusIssued = "issued"

// identification is what a draft gets when it becomes an invoice.
type identification struct {
	id        uuid.UUID
	number    string
	key       string
	createdAt time.Time // of the transaction, by the database's clock
}

// document writes the invoice as the world will see it, for ever: these bytes are the first answer, every replay and
// every later read. The same draft and identification give the same bytes.
func (d *draft) document(is identification) ([]byte, error) {
	r := d.request
	inv := erpapi.Invoice{
		ID: is.id.String(), Number: is.number, Status: statusIssued,
		Source: r.Source, Order: r.Order, Role: r.Role, Sequence: r.EffectiveSequence(), OperationKey: is.key,
		Currency: r.Currency, IssueDate: r.IssueDate, DueDate: optional(r.DueDate), Customer: r.Customer,
		Net: d.amount(d.net), VAT: d.amount(d.vat), Gross: d.amount(d.gross), Payable: d.amount(d.gross),
		OrderTotal: r.OrderTotal, ExpectedGross: r.ExpectedGross, Corrects: optional(r.Corrects),
		Note: r.Note, Metadata: r.Metadata, CreatedAt: is.createdAt.UTC(),
	}
	for i := range r.Lines {
		inv.Lines = append(inv.Lines, erpapi.InvoiceLine{Line: r.Lines[i], Net: d.amount(d.nets[i])})
	}
	for i := range d.groups {
		inv.VATBreakdown = append(inv.VATBreakdown, d.breakdown(&d.groups[i]))
	}
	document, err := json.Marshal(&inv, json.Deterministic(true))
	if err != nil {
		return nil, fmt.Errorf("write invoice document: %w", err)
	}
	return document, nil
}

func (d *draft) breakdown(g *vatGroup) erpapi.VATGroup {
	group := erpapi.VATGroup{
		Category: g.category.code, Net: d.amount(g.net), VAT: d.amount(g.vat),
		ExemptionReason: strings.Join(g.reasons, "; "),
	}
	if g.category.rate != rateNone {
		rate := erpapi.MustDecimal(g.rate.String()) // 19 and 19.00 are one group, with one text
		group.Rate = &rate
	}
	if group.ExemptionReason == "" {
		group.ExemptionReason = g.category.normReason
	}
	return group
}

// readDocument is the inverse of document.
func readDocument(document []byte) (*erpapi.Invoice, error) {
	var inv erpapi.Invoice
	if err := json.Unmarshal(document, &inv); err != nil {
		return nil, fmt.Errorf("read invoice document: %w", err)
	}
	return &inv, nil
}

func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
