package erpapi

import "time"

// Invoice is the issued document. Amounts are decimal strings with the currency's own number of decimals;
// quantities, prices and rates keep the text in which they were received.
//
// It holds every member of the request that made it, so the request can be read back from it (see Request).
type Invoice struct {
	ID            string            `json:"id"`
	Number        string            `json:"number"`
	Status        string            `json:"status"`
	Source        string            `json:"source"`
	Order         string            `json:"order"`
	Role          Role              `json:"role"`
	Sequence      int64             `json:"sequence"`
	OperationKey  string            `json:"operation_key"`
	Currency      string            `json:"currency"`
	IssueDate     string            `json:"issue_date"`
	DueDate       *string           `json:"due_date"`
	Customer      Customer          `json:"customer"`
	Lines         []InvoiceLine     `json:"lines"`
	VATBreakdown  []VATGroup        `json:"vat_breakdown"`
	Net           string            `json:"net"`
	VAT           string            `json:"vat"`
	Gross         string            `json:"gross"`
	Payable       string            `json:"payable"`
	OrderTotal    *Decimal          `json:"order_total,omitzero"`
	ExpectedGross *Decimal          `json:"expected_gross,omitzero"`
	Corrects      *string           `json:"corrects"`
	Note          string            `json:"note,omitzero"`
	Metadata      map[string]string `json:"metadata"`
	CreatedAt     time.Time         `json:"created_at"`
}

// InvoiceLine is a Line with its net amount.
type InvoiceLine struct {
	Line
	Net string `json:"net"`
}

// VATGroup is the VAT of all lines with one category and rate (EN 16931 BG-23).
type VATGroup struct {
	Category        string   `json:"category"`
	Rate            *Decimal `json:"rate"` // null where the category knows no rate (O)
	Net             string   `json:"net"`
	VAT             string   `json:"vat"`
	ExemptionReason string   `json:"exemption_reason,omitzero"`
}

// InvoicePage is one page of a list. NextCursor is nil on the last page.
type InvoicePage struct {
	Items      []Invoice `json:"items"`
	NextCursor *string   `json:"next_cursor"`
}

// Operation is what the ERP knows of an operation key, also after its stored answer has been purged.
type Operation struct {
	Key           string         `json:"key"`
	Kind          string         `json:"kind"`
	Status        string         `json:"status"`
	Invoice       *InvoiceLink   `json:"invoice"`
	FirstSeen     *time.Time     `json:"first_seen"`
	ExpiresAt     *time.Time     `json:"expires_at"`
	Registrations []Registration `json:"registrations"`
}

// InvoiceLink is an invoice in short.
type InvoiceLink struct {
	ID     string `json:"id"`
	Number string `json:"number"`
}

// Registration is the state of an invoice at one external target. There are no targets yet: the list is empty.
type Registration struct {
	Target string `json:"target"`
	Status string `json:"status"`
}

// Request reads the request back that the invoice was made from. It is equal to that request: its canonical form
// is the same.
func (inv *Invoice) Request() *InvoiceRequest {
	r := &InvoiceRequest{
		Source: inv.Source, Order: inv.Order, Role: inv.Role, Sequence: &inv.Sequence, Currency: inv.Currency,
		IssueDate: inv.IssueDate, Customer: inv.Customer, OrderTotal: inv.OrderTotal,
		ExpectedGross: inv.ExpectedGross, Note: inv.Note, Metadata: inv.Metadata,
	}
	if inv.DueDate != nil {
		r.DueDate = *inv.DueDate
	}
	if inv.Corrects != nil {
		r.Corrects = *inv.Corrects
	}
	for i := range inv.Lines {
		r.Lines = append(r.Lines, inv.Lines[i].Line)
	}
	return r
}
