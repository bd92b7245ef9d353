// Package target has the words that are shared by those who register invoices at external services and by the clients
// of such services, one package for each kind (einvoice, ledger). It knows nothing of HTTP or SQL. The interface that a
// client fulfils is declared by its user; a new kind is one new package.
//
// The rule behind all of it: not knowing is an outcome of its own. A client never turns doubt into success, and never
// into "did not happen". Sent.NotApplied is set only where it is proven that a request had no effect and will have
// none; everything else is Lost or one of the outcomes that say what the target claims.
package target

import "time"

// Submission is one invoice to be made known at a target.
type Submission struct {
	// Key is the operation's key: the same on every attempt. Targets without keys do not get it.
	Key string
	// Reference is our external reference, stable for life (the operation key): what the target is asked for later.
	Reference string
	// Number is the invoice's number. An answer that names another number is not about this invoice.
	Number string
	// Document is the invoice document (JSON), the same bytes on every attempt.
	Document []byte
	// Known is the target's own id of what it already has of this submission, from Sent.ID or Located.ID. Where it is
	// set and Resume was true, only the rest is done and nothing is made anew.
	Known string
}

// Outcome is the class of one answer to a Submission.
type Outcome string

const (
	// Accepted: the target has registered this invoice. Sent.Reference is set.
	Accepted Outcome = "accepted"
	// Held: the target has it and has not finished. Never send it anew: ask with Locate, or, where Sent.Resume is
	// true, send the rest with Submission.Known.
	Held Outcome = "held"
	// Rejected: the target says no, for reasons that sending again does not change. Sent.Reasons, Detail and Answer
	// hold what it said. Only with NotApplied is it a proven failure.
	Rejected Outcome = "rejected"
	// AlreadyRegistered: the target says that it had this before. With Sent.Reference it has also said that what it
	// has is this invoice, which is as good as Accepted; without it has not, and must be asked with Locate.
	AlreadyRegistered Outcome = "already_registered"
	// Foreign: under our reference, our key or in answer to our request there is another invoice (Sent.ForeignInvoice,
	// where the target names it). Somebody has to look; nothing may be sent again.
	Foreign Outcome = "foreign"
	// Wait: the target asks to come back later (busy, or still working on the first request). Sent.RetryAfter is what
	// it asks for, 0 where it names no time. A request is proven not applied only with NotApplied.
	Wait Outcome = "wait"
	// NotSent: nothing has left this process.
	NotSent Outcome = "not_sent"
	// NotAuthorised: the credential is not taken.
	NotAuthorised Outcome = "not_authorised"
	// Misconfigured: what answers at this address is not the target's interface, or it refuses the form of the
	// request. Trying again does not help until somebody changes the settings.
	Misconfigured Outcome = "misconfigured"
	// Lost: no answer, or one that can't be told from nonsense. The request may have had its effect, or have it later.
	Lost Outcome = "lost"
)

// Sent is what is known after one attempt to send a Submission.
type Sent struct {
	Outcome Outcome
	// NotApplied: proven that this request had no effect at the target and will have none. It speaks of this request only:
	// doubt that an earlier one left remains. Without such doubt, sending again is safe without asking. While it is
	// false and the Outcome is not a success, what has become of the request is open.
	NotApplied bool
	// Reference is the target's reference of the registration (the authority's number, the voucher).
	Reference string
	// ID is the target's own id, for Submission.Known and Query.Known.
	ID string
	// Resume: with ID as Submission.Known the rest may be sent at once and repeatedly, without asking.
	Resume bool
	// Warnings are what the target remarked on what it accepted, in its words.
	Warnings []string
	// Reasons are what the target found wrong, in full.
	Reasons []Reason
	// ForeignInvoice names the other invoice (Foreign).
	ForeignInvoice string
	// Detail says in one line what happened, for people.
	Detail string
	// RetryAfter is the least pause that the target asks for; 0: it asks for none.
	RetryAfter time.Duration
	// HTTPStatus and Answer are the answer as it came, Answer up to the client's bound; 0 and nil without one.
	HTTPStatus int
	Answer     []byte
}

// Registered says whether the target holds this very invoice as registered, under Reference.
func (s *Sent) Registered() bool {
	return s.Reference != "" && (s.Outcome == Accepted || s.Outcome == AlreadyRegistered)
}

// Reason is one thing that a target found wrong.
type Reason struct {
	Pointer string `json:"pointer,omitzero"` // RFC 6901, into Submission.Document
	Code    string `json:"code,omitzero"`
	Detail  string `json:"detail,omitzero"`
}
