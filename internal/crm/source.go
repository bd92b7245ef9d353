package crm

import (
	"context"
	"time"

	"invoicebridge/internal/audit"
)

// SourcePause is who holds a source's deliveries back, since when and why.
type SourcePause struct {
	PausedAt time.Time `json:"paused_at"`
	PausedBy string    `json:"paused_by"`
	Reason   string    `json:"reason"`
}

// Source is one source of orders, with what of it is open.
type Source struct {
	Source string       `json:"source"`
	Pause  *SourcePause `json:"pause"` // nil if its deliveries go on
	// Open operations by status; Flagged is how many of them are left to an operator.
	Pending    int64 `json:"pending"`
	Processing int64 `json:"processing"`
	Unknown    int64 `json:"unknown"`
	Flagged    int64 `json:"flagged"`
}

// The actions with a source.
const (
	ActionPause  ActionName = "pause"
	ActionResume ActionName = "resume"
)

// Actions says which of pause and resume is available.
func (s Source) Actions() []ActionState {
	if s.Pause == nil {
		return []ActionState{actionState(ActionPause, ""), actionState(ActionResume, "Its deliveries are not paused.")}
	}
	return []ActionState{actionState(ActionPause, "Its deliveries are paused already, by "+s.Pause.PausedBy+"."), actionState(ActionResume, "")}
}

// ListSources gives every source that a tenant has orders from, or has paused, by name.
func (s *Service) ListSources(ctx context.Context, tenant string) ([]Source, error) {
	return nil, errNotYet()
}

// PauseSource holds a source's deliveries back: no attempt begins from then on. Those that run end as they would, and
// orders go on being taken. Pause and audit entry are one transaction. One that is paused is refused with wrong-state.
func (s *Service) PauseSource(ctx context.Context, tenant, source string, by audit.By) (SourcePause, error) {
	return SourcePause{}, errNotYet()
}

// ResumeSource ends a source's pause. What is due is queued in the same transaction (the oldest 10,000; the sweep does the
// rest), and how many that are is returned. A source that is not paused is refused with wrong-state.
func (s *Service) ResumeSource(ctx context.Context, tenant, source string, by audit.By) (queued int, err error) {
	return 0, errNotYet()
}
