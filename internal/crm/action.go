package crm

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// ActionJobs puts into the queue what people start. internal/jobs has the real one. Both add one job on the caller's
// transaction.
type ActionJobs interface {
	// InsertReplayRun has a run of replays worked off: WorkReplayRun.
	InsertReplayRun(ctx context.Context, tx pgx.Tx, runID uuid.UUID) error
	// InsertReconciliation has a tenant's open reconciliation run gone on with.
	InsertReconciliation(ctx context.Context, tx pgx.Tx, tenant string) error
}

// ActionName names what a person can do with an operation.
type ActionName string

// The actions with an operation.
const (
	ActionReplay  ActionName = "replay"
	ActionCancel  ActionName = "cancel"
	ActionRevise  ActionName = "revise"
	ActionResolve ActionName = "resolve"
)

// ActionState says whether an action is open to somebody now, and if not, why: a sentence for the person who would press
// the button. It is computed from what was read a moment ago; the action itself decides again, in its transaction.
type ActionState struct {
	Name      ActionName `json:"name"`
	Available bool       `json:"available"`
	Why       string     `json:"why,omitzero"`
}

// Actions says of every action whether it is available for an operation. op must have its History (GetOperation fills it);
// open is its open proposal, if there is one.
func Actions(op Operation, open *Resolution) []ActionState {
	return []ActionState{
		actionState(ActionReplay, whyNoReplay(op.Status, op.FlaggedAt != nil)),
		actionState(ActionCancel, whyNoCancel(op)),
		actionState(ActionRevise, whyNoRevision(op)),
		actionState(ActionResolve, whyNoProposal(op, open)),
	}
}

func actionState(name ActionName, why string) ActionState {
	return ActionState{Name: name, Available: why == "", Why: why}
}

// whyNoReplay is the sentence that Replay refuses with; "" if it does not.
func whyNoReplay(status OperationStatus, flagged bool) string {
	switch {
	case status.Final():
		return fmt.Sprintf("This operation is %s and stays so.", status)
	case status == StatusProcessing:
		return "This operation is being worked on."
	case !flagged:
		return "This operation is already queued."
	}
	return ""
}

func whyNoCancel(op Operation) string {
	switch {
	case op.Status.Final():
		return fmt.Sprintf("This operation is %s and stays so.", op.Status)
	case op.Status == StatusProcessing:
		return "This operation is being worked on: its request may be at the ERP."
	case op.Status == StatusUnknown || !op.nothingLeft():
		return "Its request may have reached the ERP: only what has never left can be cancelled."
	}
	return ""
}

// nothingLeft says whether it is on record that none of its attempts got as far as a connection.
func (op Operation) nothingLeft() bool {
	for _, a := range op.History {
		if a.Outcome != OutcomeNotSent {
			return false
		}
	}
	return len(op.History) == int(op.Attempts)
}

func whyNoRevision(op Operation) string {
	switch {
	case op.SupersededAt != nil:
		return "It was revised before: see the order's other operations."
	case op.Status == StatusFailed && correctableReason(op.Reason):
		return ""
	case op.Status == StatusFailed:
		return "Its key or its business claim belongs to another invoice: another request would meet the same."
	case op.Status == StatusSucceeded:
		return "It has succeeded: its invoice is changed only by a credit note or a correction."
	case op.Status == StatusCancelled:
		return "It was cancelled."
	case op.Status == StatusUnknown:
		return "What became of it is not known, and a second operation could ask for a second invoice."
	case op.Status == StatusPending && op.nothingLeft():
		return "It was not sent yet: submit a newer version of the order, and that is sent."
	}
	return "It is still being delivered."
}

func whyNoProposal(op Operation, open *Resolution) string {
	switch {
	case open != nil:
		return fmt.Sprintf("%s has proposed a resolution already: approve, decline or withdraw that one.", open.ProposedBy)
	case op.Status.Final():
		return fmt.Sprintf("This operation is %s and stays so.", op.Status)
	case op.Status == StatusUnknown:
		return ""
	case op.Status == StatusProcessing:
		return "This operation is being worked on: it may learn by itself what became of it."
	}
	return "Nothing about it is unknown: no request of it may have had its effect."
}
