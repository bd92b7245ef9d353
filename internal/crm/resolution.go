package crm

import (
	"time"

	"github.com/google/uuid"

	"invoicebridge/internal/audit"
	"invoicebridge/internal/crmdb"
	"invoicebridge/internal/erpapi"
)

// Verdict is what a proposal says became of an operation.
type Verdict string

// The verdicts.
const (
	VerdictApplied    Verdict = "applied"     // there is an invoice: the operation has succeeded with it
	VerdictNotApplied Verdict = "not_applied" // nothing came of it and nothing will: it has failed
)

// ResolutionStatus is where a proposal stands.
type ResolutionStatus string

// The statuses of a proposal. All but open are final.
const (
	ResolutionOpen      ResolutionStatus = "open"
	ResolutionApproved  ResolutionStatus = "approved"
	ResolutionDeclined  ResolutionStatus = "declined"
	ResolutionWithdrawn ResolutionStatus = "withdrawn"
)

// Proposal is what somebody says became of an operation.
type Proposal struct {
	Verdict Verdict
	// Invoice is required for applied, and must be absent for not_applied.
	Invoice *erpapi.InvoiceLink
	// Evidence says how that is known: where it was looked up, who was asked. It is required.
	Evidence string
}

// Resolution is a proposal with what became of it.
type Resolution struct {
	ID              uuid.UUID           `json:"id"`
	Key             string              `json:"key"` // of the operation
	Source          string              `json:"source"`
	Order           string              `json:"order"`
	OperationStatus OperationStatus     `json:"operation_status"` // as it is now
	Verdict         Verdict             `json:"verdict"`
	Invoice         *erpapi.InvoiceLink `json:"invoice"`
	Evidence        string              `json:"evidence"`
	Reason          string              `json:"reason"`
	Status          ResolutionStatus    `json:"status"`
	ProposedBy      string              `json:"proposed_by"`
	ProposedAt      time.Time           `json:"proposed_at"`
	DecidedBy       string              `json:"decided_by,omitzero"`
	DecidedAt       *time.Time          `json:"decided_at"`
	DecisionReason  string              `json:"decision_reason,omitzero"`
	// ERPSaid is what the ERP answered when it was asked before the approval, or why it could not be asked.
	ERPSaid string `json:"erp_said,omitzero"`

	proposerAccount uuid.UUID // uuid.Nil: a machine's token
}

// The actions with a proposal.
const (
	ActionApprove  ActionName = "approve"
	ActionDecline  ActionName = "decline"
	ActionWithdraw ActionName = "withdraw"
)

// Actions says what the person who looks can do with the proposal.
func (r Resolution) Actions(who audit.By) []ActionState {
	return []ActionState{
		actionState(ActionApprove, r.whyNoApproval(who)),
		actionState(ActionDecline, r.whyNoDecision(who)),
		actionState(ActionWithdraw, r.whyNoWithdrawal(who)),
	}
}

func (r Resolution) whyNoApproval(who audit.By) string {
	if why := r.whyNoDecision(who); why != "" {
		return why
	}
	if r.OperationStatus != StatusUnknown {
		return "The operation is " + string(r.OperationStatus) + " by now: nothing about it has to be resolved by hand."
	}
	return ""
}

func (r Resolution) whyNoDecision(who audit.By) string {
	switch {
	case r.Status != ResolutionOpen:
		return r.whyClosed()
	case who.Account == uuid.Nil:
		return "This needs a person: a log-in, or a token that is a person's own."
	case who.Account == r.proposerAccount:
		return "This needs a second person: who proposes does not decide."
	}
	return ""
}

func (r Resolution) whyNoWithdrawal(who audit.By) string {
	switch {
	case r.Status != ResolutionOpen:
		return r.whyClosed()
	case !r.isProposer(who):
		return "Only who proposed it can withdraw it; others decline it."
	}
	return ""
}

func (r Resolution) isProposer(who audit.By) bool {
	if r.proposerAccount != uuid.Nil {
		return who.Account == r.proposerAccount
	}
	return who.Account == uuid.Nil && who.Actor == r.ProposedBy
}

func (r Resolution) whyClosed() string {
	return "It is " + string(r.Status) + " already, by " + r.DecidedBy + "."
}

// ResolutionFilter says which proposals a list has.
type ResolutionFilter struct {
	Status ResolutionStatus // "" is any
	PageQuery
}

func resolution(r crmdb.ResolutionGetRow) Resolution {
	res := Resolution{
		ID: r.ID, Key: r.Key, Source: r.Source, Order: r.OrderID, OperationStatus: OperationStatus(r.OperationStatus),
		Verdict: Verdict(r.Verdict), Evidence: r.Evidence, Reason: r.Reason, Status: ResolutionStatus(r.Status),
		ProposedBy: r.ProposedBy, ProposedAt: r.ProposedAt, DecidedAt: r.DecidedAt, ERPSaid: r.ErpSaid,
	}
	if r.InvoiceID != nil && r.InvoiceNumber != nil {
		res.Invoice = &erpapi.InvoiceLink{ID: r.InvoiceID.String(), Number: *r.InvoiceNumber}
	}
	if r.ProposerAccount != nil {
		res.proposerAccount = *r.ProposerAccount
	}
	if r.DecidedBy != nil {
		res.DecidedBy = *r.DecidedBy
	}
	if r.DecisionReason != nil {
		res.DecisionReason = *r.DecisionReason
	}
	return res
}
