// Package crm is the CRM side of the bridge: orders come in, operations with keys go out, and what became of each
// is known for good. It knows the ERP only through the HTTP contract in internal/erpapi.
package crm

import "invoicebridge/internal/erpapi"

// OrderStatus is what the source says of an order.
type OrderStatus string

// The statuses of an order. Absent means confirmed.
const (
	OrderConfirmed OrderStatus = "confirmed"
	OrderCancelled OrderStatus = "cancelled"
)

// Order is the native order form: what POST /v1/orders takes and what files are read into. api/order.schema.json
// describes it. Either Lines are given and the order becomes one invoice (Role, default final), or Invoices lists
// the invoices wanted: advances, parts, a final one.
type Order struct {
	// MessageID is the sender's own identity of the message that brought the order; no part of its content.
	MessageID string `json:"message_id,omitzero"`

	Source string `json:"source,omitzero"`
	Order  string `json:"order,omitzero"`
	// Version only rises. Absent: the content decides, and other content counts as the next version.
	Version  *int64          `json:"version,omitzero"`
	Status   OrderStatus     `json:"status,omitzero"`
	Currency string          `json:"currency,omitzero"`
	Customer erpapi.Customer `json:"customer,omitzero"`

	Role          erpapi.Role       `json:"role,omitzero"`
	Sequence      *int64            `json:"sequence,omitzero"`
	IssueDate     string            `json:"issue_date,omitzero"`
	DueDate       string            `json:"due_date,omitzero"`
	Lines         []erpapi.Line     `json:"lines,omitempty"`
	ExpectedGross *erpapi.Decimal   `json:"expected_gross,omitzero"`
	Corrects      string            `json:"corrects,omitzero"`
	OrderTotal    *erpapi.Decimal   `json:"order_total,omitzero"`
	Note          string            `json:"note,omitzero"`
	Metadata      map[string]string `json:"metadata,omitempty"`

	Invoices []OrderInvoice `json:"invoices,omitempty"`
}

// OrderInvoice is one invoice that an order wants. What it leaves out it takes from the order.
type OrderInvoice struct {
	Role          erpapi.Role     `json:"role,omitzero"`
	Sequence      *int64          `json:"sequence,omitzero"`
	IssueDate     string          `json:"issue_date,omitzero"`
	DueDate       string          `json:"due_date,omitzero"`
	Lines         []erpapi.Line   `json:"lines,omitempty"`
	ExpectedGross *erpapi.Decimal `json:"expected_gross,omitzero"`
	Corrects      string          `json:"corrects,omitzero"`
	Note          string          `json:"note,omitzero"`
}
