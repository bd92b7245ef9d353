package crm

import (
	"time"

	"github.com/google/uuid"

	"invoicebridge/internal/audit"
)

// MaxReplays is the most operations that one run replays.
const MaxReplays = 10_000

// ReplayFilter says which of a tenant's operations a run replays, of those that Replay takes: open, and left to an
// operator. Zero values leave a criterion out.
type ReplayFilter struct {
	Status OperationStatus // pending or unknown
	Reason Reason
	Source string
	MinAge time.Duration // how long ago they were made, at least
}

// ReplayPreview is what a filter matches now.
type ReplayPreview struct {
	Count int64 // all that match; a run takes at most MaxReplays of them, the oldest first
	// Sample are some of them, the oldest first, without History.
	Sample []Operation
}

// ReplayRun is one replay of many operations.
type ReplayRun struct {
	ID     uuid.UUID
	Filter ReplayFilter
	By     audit.By // who started it, and why
	// Matched is how many matched when it began; Total of them were frozen into the run, so that Matched-Total are left out.
	Matched int64
	Total   int
	// What became of them so far; the rest are waiting.
	Queued, Refused, Stopped int
	StartedAt                time.Time
	FinishedAt               *time.Time // also when it was stopped
	StoppedBy                string     // "" if it was not
}

// Waiting is how many operations of the run have no result yet.
func (r ReplayRun) Waiting() int { return r.Total - r.Queued - r.Refused - r.Stopped }

// Actions says whether the run can be stopped.
func (r ReplayRun) Actions() []ActionState {
	why := ""
	if r.FinishedAt != nil {
		why = "It has come to its end."
	}
	return []ActionState{actionState("stop", why)}
}

// ReplayResult is what became of one operation of a run.
type ReplayResult string

// The results.
const (
	ReplayWaiting ReplayResult = "waiting" // its turn is to come
	ReplayQueued  ReplayResult = "queued"
	ReplayRefused ReplayResult = "refused"
	ReplayStopped ReplayResult = "stopped" // the run was stopped before its turn
)

// ReplayItem is one operation of a run.
type ReplayItem struct {
	Position int32 // from 1
	Key      string
	Result   ReplayResult
	Detail   string // why it was refused
	DoneAt   *time.Time
	Status   OperationStatus // as it is now
}

// ReplayItemFilter says which items a list has.
type ReplayItemFilter struct {
	Result ReplayResult // "" is any
	PageQuery
}
