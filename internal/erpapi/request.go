package erpapi

// Role is what an invoice is for its order.
type Role string

// The roles. A final invoice exists once per order; the others are told apart by their sequence.
const (
	RoleAdvance    Role = "advance"
	RolePartial    Role = "partial"
	RoleFinal      Role = "final"
	RoleCreditNote Role = "credit_note"
	RoleCorrection Role = "correction"
)

// Roles are all roles, in the order in which an order usually meets them.
func Roles() []Role {
	return []Role{RoleAdvance, RolePartial, RoleFinal, RoleCreditNote, RoleCorrection}
}

// Corrects says whether an invoice of this role has to name the invoice it corrects.
func (r Role) Corrects() bool { return r == RoleCreditNote || r == RoleCorrection }

// InvoiceRequest is the body of POST /v1/invoices as decoded; nothing in it is checked or defaulted yet.
// Absent, null and the default are the same in every member.
//
// Every member takes part in the canonical form. A member added here without a decision about Canonical fails
// TestEveryRequestMemberIsInTheCanonicalForm.
type InvoiceRequest struct {
	Source        string            `json:"source,omitzero"`
	Order         string            `json:"order,omitzero"`
	Role          Role              `json:"role,omitzero"`
	Sequence      *int64            `json:"sequence,omitzero"` // default 1
	Currency      string            `json:"currency,omitzero"` // ISO 4217
	IssueDate     string            `json:"issue_date,omitzero"`
	DueDate       string            `json:"due_date,omitzero"`
	Customer      Customer          `json:"customer,omitzero"`
	Lines         []Line            `json:"lines,omitempty"`
	OrderTotal    *Decimal          `json:"order_total,omitzero"`    // gross of the whole order
	ExpectedGross *Decimal          `json:"expected_gross,omitzero"` // what the source computed
	Corrects      string            `json:"corrects,omitzero"`       // id or number of the corrected invoice
	Note          string            `json:"note,omitzero"`
	Metadata      map[string]string `json:"metadata,omitempty"`
}

// Customer is who is invoiced.
type Customer struct {
	Name    string `json:"name,omitzero"`
	Country string `json:"country,omitzero"` // ISO 3166-1 alpha-2
	VATID   string `json:"vat_id,omitzero"`
	Email   string `json:"email,omitzero"`
	Address string `json:"address,omitzero"`
}

// Line is one line of a request.
type Line struct {
	SKU             string   `json:"sku,omitzero"`
	Description     string   `json:"description,omitzero"`
	Quantity        *Decimal `json:"quantity,omitzero"`
	UnitPrice       *Decimal `json:"unit_price,omitzero"`
	Discount        *Decimal `json:"discount,omitzero"` // amount off the line, default 0
	VATRate         *Decimal `json:"vat_rate,omitzero"` // percent
	VATCategory     string   `json:"vat_category,omitzero"`
	ExemptionReason string   `json:"exemption_reason,omitzero"`
}

// EffectiveSequence is the sequence with its default.
func (r *InvoiceRequest) EffectiveSequence() int64 {
	if r.Sequence == nil {
		return 1
	}
	return *r.Sequence
}
