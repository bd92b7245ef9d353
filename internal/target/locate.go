package target

import "time"

// Query is what a target is asked for.
type Query struct {
	Reference string // our external reference
	Number    string // our invoice number; what is found under Reference must have it
	Known     string // the target's own id, where one is known
}

// State is what a target knows of a submission.
type State string

const (
	// Landed: registered. Located.Reference is set.
	Landed State = "landed"
	// StateHeld: the target has it and has not finished: ask again, or, where Located.Resume is true, send the rest with
	// Submission.Known.
	StateHeld State = "held"
	// StateRejected: the target had it and says finally no. A target that decides after its answer tells it only here.
	StateRejected State = "rejected"
	// Absent: the target says that it has nothing under this reference. Whether that proves anything is a matter of
	// Capabilities: a request that is still running, or was answered by somebody in between, can land after it.
	Absent State = "absent"
	// Inconclusive: no usable answer. Nothing is known that was not known before.
	Inconclusive State = "inconclusive"
)

// Located is a target's answer to a Query.
type Located struct {
	State State
	// Reference is the target's reference of the registration (Landed).
	Reference string
	// ID is the target's own id of what was found.
	ID string
	// Resume: with ID as Submission.Known the rest may be sent (created, but not posted).
	Resume bool
	// Duplicates are the ids of more than the one registration that there may be. ID and Reference are the first's.
	Duplicates []string
	// ForeignInvoice: under our reference there is another invoice, this one. State is Inconclusive, and stays so until
	// somebody has looked.
	ForeignInvoice string
	// NotAuthorised: the target does not take our credential. State is Inconclusive.
	NotAuthorised bool
	Warnings      []string
	Reasons       []Reason
	// Detail says in one line what was found, for people.
	Detail string
	// RetryAfter is the least pause that the target asks for; 0: it asks for none.
	RetryAfter time.Duration
	HTTPStatus int
	Answer     []byte
}
