package crm

import (
	"time"

	"invoicebridge/internal/erpapi"
)

// OperationStatus is where an operation stands (docs/architecture.md, "States").
type OperationStatus string

// The statuses of an operation. Succeeded, failed and cancelled are final; failed means proven not applied.
const (
	StatusPending    OperationStatus = "pending"
	StatusProcessing OperationStatus = "processing"
	StatusUnknown    OperationStatus = "unknown"
	StatusSucceeded  OperationStatus = "succeeded"
	StatusFailed     OperationStatus = "failed"
	StatusCancelled  OperationStatus = "cancelled"
)

// OperationStatuses are all statuses, in the order in which an operation may meet them.
func OperationStatuses() []OperationStatus {
	return []OperationStatus{StatusPending, StatusProcessing, StatusUnknown, StatusSucceeded, StatusFailed, StatusCancelled}
}

// KindInvoice is the kind of an operation that wants one invoice.
const KindInvoice = "invoice"

// Final says whether an operation in this status never changes its status again.
func (s OperationStatus) Final() bool {
	return s == StatusSucceeded || s == StatusFailed || s == StatusCancelled
}

// OperationLink is an operation in short, as a Submission names it.
type OperationLink struct {
	Key      string          `json:"key"`
	Role     erpapi.Role     `json:"role"`
	Sequence int64           `json:"sequence"`
	Status   OperationStatus `json:"status"`
}

// Operation is what the CRM side knows of one operation.
type Operation struct {
	Key          string              `json:"key"`
	Kind         string              `json:"kind"`
	Status       OperationStatus     `json:"status"`
	Source       string              `json:"source"`
	Order        string              `json:"order"`
	Role         erpapi.Role         `json:"role"`
	Sequence     int64               `json:"sequence"`
	OrderVersion int64               `json:"order_version"` // the version its frozen request was made from
	Invoice      *erpapi.InvoiceLink `json:"invoice"`
	// Attempts counts the tries that were sent, Waits how many of them the ERP told to come back later.
	Attempts int32  `json:"attempts"`
	Waits    int32  `json:"waits"`
	Reason   Reason `json:"reason,omitzero"`
	Detail   string `json:"detail,omitzero"`
	// ChangedAfterDeliveryVersion is the newest order version that differs from what was sent.
	ChangedAfterDeliveryVersion *int64     `json:"changed_after_delivery_version,omitzero"`
	SupersededAt                *time.Time `json:"superseded_at,omitzero"`
	FlaggedAt                   *time.Time `json:"flagged_at,omitzero"`
	NextAttemptAt               *time.Time `json:"next_attempt_at,omitzero"`
	FirstSentAt                 *time.Time `json:"first_sent_at,omitzero"`
	FinishedAt                  *time.Time `json:"finished_at,omitzero"`
	CreatedAt                   time.Time  `json:"created_at"`
	// History are its attempts, oldest first; only GetOperation and GetOrder fill it.
	History []OperationAttempt `json:"history,omitempty"`
}

// OperationAttempt is one try at delivering an operation.
type OperationAttempt struct {
	Number      int32          `json:"number"`
	Outcome     AttemptOutcome `json:"outcome"`
	StartedAt   time.Time      `json:"started_at"`
	FinishedAt  *time.Time     `json:"finished_at"`
	HTTPStatus  *int32         `json:"http_status,omitzero"`
	ProblemType string         `json:"problem_type,omitzero"`
	Detail      string         `json:"detail,omitzero"`
	Worker      string         `json:"worker"`
}
