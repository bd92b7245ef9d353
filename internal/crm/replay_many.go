package crm

import (
	"context"
	"time"

	"github.com/google/uuid"

	"invoicebridge/internal/audit"
	"invoicebridge/internal/problem"
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
	Limit  int          // 1 to MaxPageLimit; 0 is DefaultPageLimit
	Cursor string       // of the page before; "" is the first page
}

// PageFilter says which page of a list is wanted.
type PageFilter struct {
	Limit  int    // 1 to MaxPageLimit; 0 is DefaultPageLimit
	Cursor string // of the page before; "" is the first page
}

// PreviewReplays says what StartReplays would take up. A wrong filter is malformed-request.
func (s *Service) PreviewReplays(ctx context.Context, tenant string, f ReplayFilter) (ReplayPreview, error) {
	return ReplayPreview{}, errNotYet()
}

// StartReplays freezes the operations that match into a run, with its job and an audit entry, in one transaction. The job
// replays them batch by batch, each as Replay does.
//
// expected is the count that was previewed. If more match now, or none, or another run of the tenant is not finished, it is
// refused with wrong-state.
func (s *Service) StartReplays(ctx context.Context, tenant string, f ReplayFilter, expected int64, by audit.By) (ReplayRun, error) {
	return ReplayRun{}, errNotYet()
}

// StopReplayRun ends a run: what is waiting stays as it is. One that has ended is refused with wrong-state.
func (s *Service) StopReplayRun(ctx context.Context, tenant string, id uuid.UUID, by audit.By) (ReplayRun, error) {
	return ReplayRun{}, errNotYet()
}

// GetReplayRun gives one run; the problem is not-found if the tenant has none of that id.
func (s *Service) GetReplayRun(ctx context.Context, tenant string, id uuid.UUID) (ReplayRun, error) {
	return ReplayRun{}, errNotYet()
}

// ListReplayRuns gives one page of a tenant's runs, the newest first, and the cursor of the next page; "" after the last.
func (s *Service) ListReplayRuns(ctx context.Context, tenant string, f PageFilter) (page []ReplayRun, next string, err error) {
	return nil, "", errNotYet()
}

// ListReplayItems gives one page of a run's operations with their results, in the order of their turns.
func (s *Service) ListReplayItems(ctx context.Context, tenant string, id uuid.UUID, f ReplayItemFilter) (page []ReplayItem, next string, err error) {
	return nil, "", errNotYet()
}

func errNotYet() *problem.Problem {
	return problem.New(problem.Unavailable, "This action is not there yet.")
}
