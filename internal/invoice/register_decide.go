package invoice

import (
	"cmp"
	"strings"
	"time"

	"invoicebridge/internal/target"
)

// registrationOutcome is what became of one attempt.
type registrationOutcome string

// The outcomes that a verdict can have.
const (
	outcomeAccepted          registrationOutcome = "accepted"
	outcomeRejected          registrationOutcome = "rejected"
	outcomeAlreadyRegistered registrationOutcome = "already_registered"
	outcomeForeign           registrationOutcome = "foreign"
	outcomeNotSent           registrationOutcome = "not_sent"
	outcomeWait              registrationOutcome = "wait"
	outcomeNotAuthorised     registrationOutcome = "not_authorised"
	outcomeWrongAnswer       registrationOutcome = "wrong_answer"
	outcomeLost              registrationOutcome = "lost"
	outcomeLanded            registrationOutcome = "landed"
	outcomeHeld              registrationOutcome = "held"
	outcomeAbsent            registrationOutcome = "absent"
	outcomeInconclusive      registrationOutcome = "inconclusive"
)

// RegistrationReason says in one word why a registration stands as it does.
type RegistrationReason string

// The reasons, beside none (registered).
const (
	ReasonRejected       RegistrationReason = "rejected"
	ReasonForeign        RegistrationReason = "foreign_invoice"  // where ours should be, there is another one
	ReasonDuplicate      RegistrationReason = "registered_twice" // there may be more than the one
	ReasonHeld           RegistrationReason = "held"             // the target has it and has not finished
	ReasonClaimed        RegistrationReason = "already_registered"
	ReasonNoAnswer       RegistrationReason = "no_answer"
	ReasonInconclusive   RegistrationReason = "inconclusive"
	ReasonAbsent         RegistrationReason = "absent"        // which does not prove anything, or not yet
	ReasonProvenAbsent   RegistrationReason = "proven_absent" // nothing has landed: it may be sent
	ReasonNotSent        RegistrationReason = "not_sent"
	ReasonWaiting        RegistrationReason = "waiting"
	ReasonNotAuthorised  RegistrationReason = "not_authorised"
	ReasonConfiguration  RegistrationReason = "configuration"
	ReasonWorkerDied     RegistrationReason = "worker_died"
	ReasonNothingIsSafe  RegistrationReason = "nothing_is_safe" // neither keyed nor locatable: a person has to say
	ReasonSettledByHuman RegistrationReason = "resolved"
)

// pace is what follows on an attempt.
type pace string

const (
	paceDone   pace = "done"   // the status is final
	paceSoon   pace = "soon"   // at once: nothing speaks against it
	paceGrow   pace = "grow"   // after a growing pause
	paceWait   pace = "wait"   // when the target said, without making the pauses grow
	paceSlow   pace = "slow"   // after a long pause: a person has to change something first
	paceSettle pace = "settle" // after a growing pause, but when its absence proves something at the latest
)

// asked is what was known before an answer came.
type asked struct {
	Action  action
	Known   string // what was resumed
	Doubt   bool   // an earlier request may have landed
	Claimed bool   // see standing
	// LastSent is the age of the newest request that may have had an effect, when this question was asked.
	LastSent time.Duration
	Can      target.Capabilities
}

// verdict is what an answer means for attempt and registration. Status is succeeded, failed, pending or unknown.
type verdict struct {
	Outcome   registrationOutcome
	Status    RegistrationStatus
	Pace      pace
	Reason    RegistrationReason
	Detail    string
	Reference string // with succeeded
	Warnings  []string
	Known     string        // what can be resumed
	Settle    time.Duration // with paceSettle: when
	// Attention: a person has to look, now.
	Attention bool
	// NotAuthorised: a question was refused for its credential. What is known of the registration is what was known before.
	NotAuthorised bool
	// Held: the target works on it. It has a limit of its own.
	Held bool
	// RetryAfter is the least pause that the target asks for.
	RetryAfter time.Duration
}

// decideSent is the decision table of sending (docs/unknown-outcomes.md). It decides for safety: succeeded only where the
// target names this very invoice's registration, failed only where it is proven that nothing of it is there or will be,
// unknown wherever the request may have had its effect.
func decideSent(a asked, s target.Sent) verdict {
	v := verdict{Detail: s.Detail, Warnings: s.Warnings, RetryAfter: s.RetryAfter}
	switch s.Outcome {
	case target.Accepted, target.AlreadyRegistered:
		v.Outcome = outcomeAccepted
		if s.Outcome == target.AlreadyRegistered || !s.Registered() {
			v.Outcome = outcomeAlreadyRegistered // a claim, until there is a reference
		}
		if s.Registered() {
			return v.registered(s.Reference, nil)
		}
		return v.unknown(paceSoon, ReasonClaimed)
	case target.Held:
		v.Outcome = outcomeHeld
		return v.held(s.ID, s.Resume)
	case target.Foreign:
		return v.foreign(a, s.ForeignInvoice)
	case target.Rejected:
		return v.rejected(a, s)
	case target.NotSent:
		v.Outcome = outcomeNotSent
		return v.again(a, s, paceGrow, ReasonNotSent)
	case target.Wait:
		v.Outcome = outcomeWait
		return v.again(a, s, paceWait, ReasonWaiting)
	case target.NotAuthorised:
		v.Outcome = outcomeNotAuthorised
		return v.again(a, s, paceSlow, ReasonNotAuthorised)
	case target.Misconfigured:
		v.Outcome = outcomeWrongAnswer
		v.Attention = s.NotApplied // nothing changes by itself; otherwise asking comes first
		return v.again(a, s, paceSlow, ReasonConfiguration)
	default: // lost, and whatever is not classified
		v.Outcome = outcomeLost
		return v.again(a, target.Sent{ID: s.ID, Resume: s.Resume}, paceGrow, ReasonNoAnswer)
	}
}

// decideLocated is the decision table of asking.
func decideLocated(a asked, l target.Located) verdict {
	v := verdict{Detail: l.Detail, Warnings: l.Warnings, RetryAfter: l.RetryAfter}
	switch {
	case l.ForeignInvoice != "":
		v.Outcome, v.Attention = outcomeForeign, true
		v.Detail = "under our reference the target has another invoice, " + l.ForeignInvoice + ": " + l.Detail
		return v.unknown(paceSlow, ReasonForeign)
	case l.State == target.Landed && l.Reference != "":
		v.Outcome = outcomeLanded
		return v.registered(l.Reference, l.Duplicates)
	case l.State == target.StateHeld && len(l.Duplicates) > 0:
		v.Outcome, v.Attention, v.Held = outcomeHeld, true, true
		v.Detail += "; it may have more than the one: " + strings.Join(l.Duplicates, ", ")
		return v.unknown(paceSlow, ReasonDuplicate)
	case l.State == target.StateHeld:
		v.Outcome = outcomeHeld
		return v.held(l.ID, l.Resume)
	case l.State == target.StateRejected:
		v.Outcome, v.Detail = outcomeRejected, withReasons(l.Detail, l.Reasons)
		v.Status, v.Pace, v.Reason = RegistrationFailed, paceDone, ReasonRejected
		return v
	case l.State == target.Absent:
		return v.absent(a)
	default:
		v.Outcome, v.NotAuthorised = outcomeInconclusive, l.NotAuthorised
		return v.unknown(paceGrow, ReasonInconclusive)
	}
}

func (v verdict) registered(reference string, duplicates []string) verdict {
	v.Status, v.Pace, v.Reference = RegistrationSucceeded, paceDone, reference
	if len(duplicates) > 0 {
		v.Attention, v.Reason = true, ReasonDuplicate
		v.Detail += "; it may have more than the one: " + strings.Join(duplicates, ", ")
	}
	return v
}

func (v verdict) unknown(p pace, reason RegistrationReason) verdict {
	v.Status, v.Pace, v.Reason = RegistrationUnknown, p, reason
	return v
}

func (v verdict) held(id string, resume bool) verdict {
	v.Held = true
	if resume {
		v.Known = id
	}
	return v.unknown(paceGrow, ReasonHeld)
}

// foreign: an alarm in any case. With an earlier request in doubt, what the target says of this one proves nothing
// about that one.
func (v verdict) foreign(a asked, other string) verdict {
	v.Outcome, v.Attention = outcomeForeign, true
	v.Detail = "the target answers with another invoice, " + cmp.Or(other, "which it does not name") + ": " + v.Detail
	if a.Doubt {
		return v.unknown(paceSlow, ReasonForeign)
	}
	v.Status, v.Pace, v.Reason = RegistrationFailed, paceDone, ReasonForeign
	return v
}

func (v verdict) rejected(a asked, s target.Sent) verdict {
	v.Outcome, v.Detail = outcomeRejected, withReasons(s.Detail, s.Reasons)
	switch {
	case s.NotApplied && !a.Doubt:
		v.Status, v.Pace, v.Reason = RegistrationFailed, paceDone, ReasonRejected
		return v
	case s.Resume: // what is there can't be finished until the reason is gone
		v.Known, v.Attention, v.Held = s.ID, true, true
		return v.unknown(paceSlow, ReasonRejected)
	default:
		return v.unknown(paceGrow, ReasonRejected)
	}
}

// again: where this request is proven to have had no effect, the registration stands as it did before.
func (v verdict) again(a asked, s target.Sent, p pace, reason RegistrationReason) verdict {
	v = v.unknown(p, reason)
	if s.NotApplied && !a.Doubt {
		v.Status = RegistrationPending
	}
	if s.Resume {
		v.Known = s.ID
	} else if s.NotApplied && a.Action == actResume {
		v.Known = a.Known // as before: nothing has been said about it
	}
	return v
}

// absent: only where the target's absence is authoritative, where it has never said otherwise, and where the newest
// request is older than its settle time, is it the proof that nothing has landed and nothing will.
func (v verdict) absent(a asked) verdict {
	v.Outcome = outcomeAbsent
	switch {
	case !a.Can.AbsenceAuthoritative:
		v.Detail += "; that proves nothing at this target"
		return v.unknown(paceGrow, ReasonAbsent)
	case a.Claimed:
		v.Detail += "; it has said before that it has it"
		return v.unknown(paceGrow, ReasonAbsent)
	case a.LastSent <= a.Can.SettleTime:
		v.Detail += "; that proves nothing before its settle time is over"
		v.Settle = a.Can.SettleTime - a.LastSent + time.Second
		return v.unknown(paceSettle, ReasonAbsent)
	default:
		v.Status, v.Pace, v.Reason = RegistrationPending, paceSoon, ReasonProvenAbsent
		return v
	}
}

// withReasons is everything that the target found wrong, in its words.
func withReasons(detail string, reasons []target.Reason) string {
	var b strings.Builder
	b.WriteString(detail)
	for _, r := range reasons {
		b.WriteString("\n" + strings.TrimSpace(strings.Join([]string{r.Pointer, r.Code, r.Detail}, " ")))
	}
	return b.String()
}
