package invoice

import (
	"time"

	"invoicebridge/internal/target"
)

// RegistrationStatus is where a registration stands.
type RegistrationStatus string

// The statuses. Succeeded and failed are left by no path.
const (
	RegistrationPending    RegistrationStatus = "pending" // nothing has been sent that may have had an effect
	RegistrationProcessing RegistrationStatus = "processing"
	RegistrationSucceeded  RegistrationStatus = "succeeded"
	RegistrationFailed     RegistrationStatus = "failed"
	RegistrationUnknown    RegistrationStatus = "unknown" // something may have had its effect, or have it later
)

// Final says whether nothing follows any more.
func (s RegistrationStatus) Final() bool {
	return s == RegistrationSucceeded || s == RegistrationFailed
}

// action is what the next attempt does.
type action string

const (
	actSend   action = "send"   // the whole submission
	actResume action = "resume" // what is left to do of what the target has already
	actLocate action = "locate" // ask
	actNone   action = "none"   // nothing is safe: a person has to say
)

// standing is what is on record before an attempt, by the database's clock.
type standing struct {
	Status RegistrationStatus // pending or unknown
	// Known is the target's id of what it has begun and not finished.
	Known string
	// Claimed: the target has said that it has the invoice, and not yet under which reference. Whatever it says later,
	// nothing is sent anew.
	Claimed bool
	// Refused: while it was in doubt whether an earlier request has landed, the target has said no to a later one.
	Refused bool
	// FirstSent is the age of the first request that may have had an effect; meaningless in pending.
	FirstSent      time.Duration
	Can            target.Capabilities
	LongestRequest time.Duration
}

// keyMargin is taken off a key's window besides the longest request's time: our clock and the target's need not run
// alike, and it counts from the arrival of the first request, we from its sending.
const keyMargin = time.Minute

// plan decides what the next attempt does. It is a function of its argument alone:
//
//	nothing may have landed                        send
//	the target has begun and waits for the rest    send the rest
//	its key still covers the first request         send the same again, under the same key
//	it can be asked                                ask
//	else                                           nothing
func plan(s standing) action {
	switch {
	case s.Known != "":
		return actResume
	case s.Status == RegistrationPending:
		return actSend
	case s.keyCovers():
		return actSend
	case s.Can.Locatable:
		return actLocate
	default:
		return actNone
	}
}

// keyCovers: until the answer of a request that is sent now, the key that the first request had is surely remembered.
// Where the target has claimed or refused something, repeating would only make it say so again.
func (s standing) keyCovers() bool {
	return s.Can.Keyed && !s.Claimed && !s.Refused && s.FirstSent < keyCovers(s.Can, s.LongestRequest)
}

// keyCovers is the age of the first request up to which the same may be sent again.
func keyCovers(c target.Capabilities, longestRequest time.Duration) time.Duration {
	return c.KeyWindow - longestRequest - keyMargin
}
