package crm

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/google/uuid"

	"invoicebridge/internal/erpapi"
	"invoicebridge/internal/problem"
)

// AttemptOutcome is what became of one attempt. The first, sent, is not one yet; overtaken is written by the attempt
// that comes after.
type AttemptOutcome string

// The outcomes that a Decision can have.
const (
	OutcomeDelivered     AttemptOutcome = "delivered"
	OutcomeReplayed      AttemptOutcome = "replayed"
	OutcomeLost          AttemptOutcome = "lost"
	OutcomeWrongAnswer   AttemptOutcome = "wrong_answer"
	OutcomeNotSent       AttemptOutcome = "not_sent"
	OutcomeWait          AttemptOutcome = "wait"
	OutcomeConflict      AttemptOutcome = "conflict"
	OutcomeRejected      AttemptOutcome = "rejected"
	OutcomeNotAuthorised AttemptOutcome = "not_authorised"
)

// Reason says in one word why an operation stands as it does.
type Reason string

// The reasons that a Decision can have, beside none (delivered).
const (
	ReasonAlreadyInvoiced  Reason = "already_invoiced"  // succeeded: another key made this very invoice
	ReasonAnswerIncomplete Reason = "answer_incomplete" // the ERP began to say yes: ask before sending again
	ReasonNoAnswer         Reason = "no_answer"
	ReasonInterrupted      Reason = "interrupted" // by our own shutdown
	ReasonServerError      Reason = "server_error"
	ReasonNotReached       Reason = "not_reached"
	ReasonWaiting          Reason = "waiting"
	ReasonNotAuthorised    Reason = "not_authorised"
	ReasonConfiguration    Reason = "configuration" // what answers is not the ERP, or not at this address
	ReasonConflict         Reason = "conflict"
	ReasonRejected         Reason = "rejected"
	ReasonRequestDamaged   Reason = "request_damaged" // the stored bytes are not those that were frozen
)

// The reasons that people give.
const (
	ReasonResolved           Reason = "resolved"             // succeeded: two people vouch for the invoice
	ReasonResolvedNotApplied Reason = "resolved_not_applied" // failed: two people vouch that nothing came of it
	ReasonCancelledByHand    Reason = "cancelled_by_hand"    // cancelled by a person, not by its order
)

// Step is what follows on an attempt.
type Step string

// The steps.
const (
	StepDone      Step = "done"      // the status is final
	StepSoon      Step = "soon"      // again at once: nothing speaks against it
	StepBackOff   Step = "back_off"  // again with the same key, after a growing pause
	StepWait      Step = "wait"      // again when the ERP said, without using up an attempt
	StepSlow      Step = "slow"      // again after a long pause: a person has to change something first
	StepAttention Step = "attention" // open, and nobody retries by itself: flagged for an operator
)

// Asked is what the deliverer knew before the answer came.
type Asked struct {
	Key      string
	Source   string
	Order    string
	Role     erpapi.Role
	Sequence int64
	// MayHaveArrived: an earlier attempt may have reached the ERP and its outcome was never learned. Then nothing
	// but the ERP's own word proves that the operation was not applied.
	MayHaveArrived bool
}

// Decision is what an answer means for attempt and operation. Status is succeeded, failed, pending or unknown;
// succeeded always has an Invoice.
type Decision struct {
	Outcome AttemptOutcome
	Status  OperationStatus
	Step    Step
	Reason  Reason
	Detail  string
	Invoice *IssuedInvoice
}

// IssuedInvoice is the invoice that an operation led to.
type IssuedInvoice struct {
	ID     uuid.UUID
	Number string
}

// Decide is the decision table of the delivery (docs/idempotency.md). It is a function of its arguments alone, and it
// decides for safety: succeeded only with an invoice of just this key and claim, failed only where the operation is
// proven not applied, unknown wherever the request may have had its effect.
func Decide(asked Asked, x *erpapi.Exchange) Decision {
	switch {
	case !x.SendingBegan:
		return decideNotSent(asked, x)
	case x.Status == 0:
		return lost(lostReason(x), "The connection ended without an answer: "+errorText(x.Err))
	case x.Status == http.StatusOK || x.Status == http.StatusCreated:
		return decideCreated(asked, x)
	case x.Status < http.StatusBadRequest:
		return wrongAnswer(asked, "The answer "+statusText(x)+" is none of the ERP's: is its address right?")
	case x.Status == http.StatusUnauthorized || x.Status == http.StatusForbidden:
		return again(asked, OutcomeNotAuthorised, StepSlow, ReasonNotAuthorised, answerText(x))
	case x.Status == http.StatusTooManyRequests || x.Status == http.StatusServiceUnavailable || x.Status == http.StatusTooEarly:
		return again(asked, OutcomeWait, StepWait, ReasonWaiting, answerText(x))
	case x.Status >= http.StatusInternalServerError || x.Status == http.StatusRequestTimeout:
		return lost(ReasonServerError, answerText(x))
	default:
		return decideRefused(asked, x)
	}
}

// DecideSettled reads the answer to the question what became of a key. Only the ERP's yes decides something: a no
// proves nothing, as the first request may still be running.
func DecideSettled(asked Asked, x *erpapi.Exchange) (Decision, bool) {
	op := x.Operation
	if x.Status != http.StatusOK || op == nil || op.Key != asked.Key || op.Status != string(StatusSucceeded) || op.Invoice == nil {
		return Decision{}, false
	}
	inv, ok := issuedInvoice(op.Invoice.ID, op.Invoice.Number)
	if !ok {
		return Decision{}, false
	}
	return Decision{Outcome: OutcomeReplayed, Status: StatusSucceeded, Step: StepDone, Invoice: inv}, true
}

func decideNotSent(asked Asked, x *erpapi.Exchange) Decision {
	d := again(asked, OutcomeNotSent, StepBackOff, ReasonNotReached, "Nothing was sent: "+errorText(x.Err))
	switch {
	case errors.Is(x.Err, erpapi.ErrNothingToSend):
		d.Reason, d.Step = ReasonRequestDamaged, StepAttention
	case errors.Is(x.Err, context.Canceled):
		d.Reason, d.Step = ReasonInterrupted, StepSoon
	}
	return d
}

// decideCreated: a yes counts only whole, and only for what was asked. A 200 is judged like a 201: what matters is
// that the body is the invoice of this key and claim.
func decideCreated(asked Asked, x *erpapi.Exchange) Decision {
	switch {
	case x.Status == http.StatusOK && x.HTML():
		return wrongAnswer(asked, "The answer "+statusText(x)+" is a page for people: a log-in, or another service's?")
	case !x.Complete:
		return lost(ReasonAnswerIncomplete, "The answer "+statusText(x)+" is not whole: "+errorText(x.Err))
	case x.Invoice == nil:
		return lost(ReasonAnswerIncomplete, "The answer "+statusText(x)+" holds no invoice.")
	case differs(asked, x.Invoice):
		return wrongAnswer(asked, "The answer "+statusText(x)+" is the invoice of another operation.")
	}
	inv, ok := issuedInvoice(x.Invoice.ID, x.Invoice.Number)
	if !ok || !matches(asked, x.Invoice) {
		return lost(ReasonAnswerIncomplete, "The answer "+statusText(x)+" lacks the invoice's number, id or claim.")
	}
	d := Decision{Outcome: OutcomeDelivered, Status: StatusSucceeded, Step: StepDone, Invoice: inv}
	if x.Replayed() {
		d.Outcome = OutcomeReplayed
	}
	return d
}

// decideRefused has the other 4xx. They are told apart by the problem's type; the status alone could be anybody's.
func decideRefused(asked Asked, x *erpapi.Exchange) Decision {
	if !x.Complete {
		return lost(ReasonServerError, "The answer "+statusText(x)+" is not whole: "+errorText(x.Err))
	}
	switch problemType(x) {
	case problem.OperationInProgress:
		return again(asked, OutcomeWait, StepWait, ReasonWaiting, answerText(x))
	case problem.AlreadyInvoiced:
		return decideAlreadyInvoiced(x)
	case problem.IdempotencyKeyReused:
		return failed(OutcomeConflict, ReasonConflict, answerText(x))
	}
	switch x.Status {
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType, http.StatusUnprocessableEntity:
		if x.Problem != nil || !asked.MayHaveArrived {
			return failed(OutcomeRejected, ReasonRejected, answerText(x))
		}
		return attention(OutcomeRejected, ReasonRejected, answerText(x))
	case http.StatusConflict: // with what? Perhaps with the invoice that an earlier attempt made
		return attention(OutcomeWrongAnswer, ReasonConfiguration, answerText(x))
	}
	return wrongAnswer(asked, answerText(x))
}

func decideAlreadyInvoiced(x *erpapi.Exchange) Decision {
	ref := x.Problem.Invoice
	if ref == nil {
		return lost(ReasonServerError, answerText(x))
	}
	if !x.Problem.SameContent {
		return failed(OutcomeConflict, ReasonConflict, answerText(x))
	}
	inv, ok := issuedInvoice(ref.ID, ref.Number)
	if !ok {
		return lost(ReasonServerError, answerText(x))
	}
	return Decision{
		Outcome: OutcomeConflict, Status: StatusSucceeded, Step: StepDone,
		Reason: ReasonAlreadyInvoiced, Detail: answerText(x), Invoice: inv,
	}
}

// differs says whether the invoice names another key or claim; a member that is not there names none.
func differs(asked Asked, inv *erpapi.Invoice) bool {
	return inv.OperationKey != "" && inv.OperationKey != asked.Key ||
		inv.Source != "" && inv.Source != asked.Source ||
		inv.Order != "" && inv.Order != asked.Order ||
		inv.Role != "" && inv.Role != asked.Role ||
		inv.Sequence != 0 && inv.Sequence != asked.Sequence
}

func matches(asked Asked, inv *erpapi.Invoice) bool {
	return inv.OperationKey == asked.Key && inv.Source == asked.Source && inv.Order == asked.Order &&
		inv.Role == asked.Role && inv.Sequence == asked.Sequence
}

// maxNumberLength is far more, in bytes, than any ERP's numbers have.
const maxNumberLength = 255

// issuedInvoice: nothing succeeds without a number, or with one that can't be written down.
func issuedInvoice(id, number string) (*IssuedInvoice, bool) {
	parsed, err := uuid.Parse(id)
	if err != nil || strings.TrimSpace(number) == "" || len(number) > maxNumberLength || storable(number) != number {
		return nil, false
	}
	return &IssuedInvoice{ID: parsed, Number: number}, true
}

func lostReason(x *erpapi.Exchange) Reason {
	if errors.Is(x.Err, context.Canceled) {
		return ReasonInterrupted
	}
	return ReasonNoAnswer
}

func lost(reason Reason, detail string) Decision {
	d := Decision{Outcome: OutcomeLost, Status: StatusUnknown, Step: StepBackOff, Reason: reason, Detail: detail}
	if reason == ReasonInterrupted {
		d.Step = StepSoon
	}
	return d
}

// again keeps the operation open without a claim that this attempt had an effect: what was unknown stays so.
func again(asked Asked, outcome AttemptOutcome, step Step, reason Reason, detail string) Decision {
	d := Decision{Outcome: outcome, Status: StatusPending, Step: step, Reason: reason, Detail: detail}
	if asked.MayHaveArrived {
		d.Status = StatusUnknown
	}
	return d
}

func failed(outcome AttemptOutcome, reason Reason, detail string) Decision {
	return Decision{Outcome: outcome, Status: StatusFailed, Step: StepDone, Reason: reason, Detail: detail}
}

func attention(outcome AttemptOutcome, reason Reason, detail string) Decision {
	return Decision{Outcome: outcome, Status: StatusUnknown, Step: StepAttention, Reason: reason, Detail: detail}
}

// wrongAnswer ends the operation, unless an earlier attempt may have arrived: whatever stands in the ERP's place now
// says nothing about that one.
func wrongAnswer(asked Asked, detail string) Decision {
	if asked.MayHaveArrived {
		return attention(OutcomeWrongAnswer, ReasonConfiguration, detail)
	}
	return failed(OutcomeWrongAnswer, ReasonConfiguration, detail)
}
