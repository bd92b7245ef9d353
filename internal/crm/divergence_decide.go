package crm

import (
	"context"

	"invoicebridge/internal/audit"
)

// The actions with a divergence.
const (
	ActionAccept ActionName = "accept"
	ActionClose  ActionName = "close"
)

// Actions says what can be done with a divergence.
func (d Divergence) Actions() []ActionState {
	switch {
	case d.ResolvedAt != nil:
		return []ActionState{actionState(ActionAccept, "It is resolved."), actionState(ActionClose, "It is resolved.")}
	case d.AcceptedAt != nil:
		return []ActionState{actionState(ActionAccept, "It is accepted already, by "+d.DecidedBy+"."), actionState(ActionClose, "")}
	}
	return []ActionState{actionState(ActionAccept, ""), actionState(ActionClose, "")}
}

// AcceptDivergence says that a divergence is known and all right: it does not count as open any more, also when it is found
// again just as it is. One that is accepted or resolved is refused with wrong-state.
func (s *Service) AcceptDivergence(ctx context.Context, tenant string, id int64, by audit.By) (Divergence, error) {
	return Divergence{}, errNotYet()
}

// CloseDivergence resolves a divergence by hand. If it is found again, it is a new one. One that is resolved is refused with
// wrong-state.
func (s *Service) CloseDivergence(ctx context.Context, tenant string, id int64, by audit.By) (Divergence, error) {
	return Divergence{}, errNotYet()
}
