package crm

import (
	"invoicebridge/internal/audit"
	"invoicebridge/internal/problem"
)

// Channel is the way an order came in.
type Channel string

// The channels.
const (
	ChannelAPI      Channel = "api"
	ChannelImport   Channel = "import"
	ChannelGenerate Channel = "generate"
	ChannelManual   Channel = "manual" // written by a person: SubmitByHand
)

// Outcome is what a submitted order led to.
type Outcome string

// The outcomes of a submitted order.
const (
	// OutcomeNone: nothing was decided, because another order of the same call was refused and took all with it.
	OutcomeNone Outcome = ""
	// OutcomeCreated: the order was not known; it is stored, with an operation for each wanted invoice.
	OutcomeCreated Outcome = "created"
	// OutcomeAlreadyThere: this message, or this version with this content, came before. Nothing changed.
	OutcomeAlreadyThere Outcome = "already_there"
	// OutcomeChanged: a newer version was stored, and every invoice it wants otherwise could still be changed.
	OutcomeChanged Outcome = "changed"
	// OutcomeChangedAfterDelivery: a newer version was stored that differs from a request that was sent already.
	// What was sent stays as it is; a person has to decide.
	OutcomeChangedAfterDelivery Outcome = "changed_after_delivery"
	// OutcomeCancelled: the order is cancelled, and so is every operation of it that might still have been sent.
	OutcomeCancelled Outcome = "cancelled"
	// OutcomeStale: a newer version is known. Stored as received, without effect.
	OutcomeStale Outcome = "stale"
	// OutcomeRefused: the order is wrong (Errors), or its version is known with other content (Detail).
	OutcomeRefused Outcome = "refused"
)

// SubmitOptions change what a refused order does to its neighbours.
type SubmitOptions struct {
	// KeepGood stores the good orders of a call that has refused ones. Without it one refused order refuses all.
	KeepGood bool

	byHand *audit.By // who wrote the orders, if a person did
}

// Submission is what one submitted order led to.
type Submission struct {
	MessageID string  `json:"message_id,omitzero"`
	Source    string  `json:"source"` // as compared: outer blanks trimmed, Unicode NFC
	Order     string  `json:"order"`
	Version   int64   `json:"version,omitzero"` // the version this content has, or was told to have; 0 if refused without
	Outcome   Outcome `json:"outcome"`
	Detail    string  `json:"detail,omitzero"`
	// Errors say what is wrong, with pointers into the order ("/lines/0/quantity"), if the outcome is refused.
	Errors []problem.FieldError `json:"errors,omitempty"`
	// Operations are the order's live operations after this call, by role and sequence.
	Operations []OperationLink `json:"operations"`
}
