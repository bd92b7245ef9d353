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

// Registration is the state of an invoice at one external target.
type Registration struct {
	Target    string   `json:"target"`
	Status    string   `json:"status"`    // pending, processing, succeeded, failed, unknown
	Reference string   `json:"reference"` // the target's; empty until it has succeeded
	Warnings  []string `json:"warnings"`  // what the target remarked on what it accepted
	Attempts  int64    `json:"attempts"`
	Flagged   bool     `json:"flagged"` // a person has to look
}

// RegistrationDetail is a Registration as an operator sees it.
type RegistrationDetail struct {
	ID      string      `json:"id"`
	Invoice InvoiceLink `json:"invoice"`
	Key     string      `json:"key"` // of the operation, and the reference under which the target is asked
	Registration
	Reason        string     `json:"reason"`
	Detail        string     `json:"detail"`
	CreatedAt     time.Time  `json:"created_at"`
	FinishedAt    *time.Time `json:"finished_at"`
	FlaggedAt     *time.Time `json:"flagged_at"`
	NextAttemptAt *time.Time `json:"next_attempt_at"`
	FirstSentAt   *time.Time `json:"first_sent_at"` // of what may have had an effect
	LastSentAt    *time.Time `json:"last_sent_at"`
	// History is all attempts, oldest first; a list has none.
	History []RegistrationAttempt `json:"history,omitzero"`
}

// RegistrationAttempt is one exchange with a target.
type RegistrationAttempt struct {
	Number     int64      `json:"number"`
	Action     string     `json:"action"` // send or locate
	StartedAt  time.Time  `json:"started_at"`
	FinishedAt *time.Time `json:"finished_at"`
	Outcome    string     `json:"outcome"`
	HTTPStatus *int32     `json:"http_status"`
	Detail     string     `json:"detail"`
	Worker     string     `json:"worker"`
}

// RegistrationPage is one page of a list. NextCursor is nil on the last page.
type RegistrationPage struct {
	Items      []RegistrationDetail `json:"items"`
	NextCursor *string              `json:"next_cursor"`
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
