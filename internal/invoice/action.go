package invoice

import (
	"fmt"
	"strings"

	"invoicebridge/internal/audit"
	"invoicebridge/internal/problem"
)

// ActionName is a thing that a person can do.
type ActionName string

// The actions. Those with a token are auth's.
const (
	ActionReplay      ActionName = "replay"
	ActionResolve     ActionName = "resolve"
	ActionAcknowledge ActionName = "acknowledge"
	ActionPause       ActionName = "pause"
	ActionResume      ActionName = "resume"
	ActionAccept      ActionName = "accept"
	ActionClose       ActionName = "close"
	ActionReconcile   ActionName = "reconcile"
)

// ActionState says whether an action is open to somebody now, and if not, why: a sentence for the person who would press
// the button. It is computed from what was read a moment ago; the action itself decides again, in its transaction, by the
// same words.
type ActionState struct {
	Name      ActionName `json:"name"`
	Available bool       `json:"available"`
	Why       string     `json:"why,omitzero"`
}

func actionState(name ActionName, why string) ActionState {
	return ActionState{Name: name, Available: why == "", Why: why}
}

// refuseFor is the problem of an action that is not available; nil if it is.
func refuseFor(why string) error {
	if why == "" {
		return nil
	}
	return problem.New(problem.WrongState, "%s", why)
}

// whyNoReplay, whyNoResolve and whyNoAcknowledge are the sentences that these actions refuse with; "" if they don't.
func whyNoReplay(status RegistrationStatus, queued bool, pause *Pause) string {
	switch {
	case status.Final():
		return fmt.Sprintf("This registration has %s. It stays so.", status)
	case status == RegistrationProcessing:
		return "This registration is being worked on right now."
	case pause != nil:
		return "Its target is paused, by " + pause.By + ": resume the target first."
	case queued:
		return "This registration is already queued."
	}
	return ""
}

func whyNoResolve(status RegistrationStatus) string {
	if status == RegistrationUnknown {
		return ""
	}
	return fmt.Sprintf("This registration is %s. Only one that is unknown, and that nobody works on, can be settled by hand.", status)
}

func whyNoAcknowledge(status RegistrationStatus, flagged bool) string {
	switch {
	case !status.Final():
		return fmt.Sprintf("This registration is %s. Only one that has come to its end can be acknowledged.", status)
	case status == RegistrationSucceeded && !flagged:
		return fmt.Sprintf("This registration has %s and has no flag. There is nothing to acknowledge.", status)
	}
	return ""
}

// checkBy says what is missing of who acts, and why.
func checkBy(by audit.By) error {
	if strings.TrimSpace(by.Actor) == "" {
		return fmt.Errorf("an actor must be named: who does this?")
	}
	return checkReason(by)
}
