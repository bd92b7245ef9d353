package crm

import "context"

// OperationView is an operation with what a person can do about it.
type OperationView struct {
	Operation
	Actions []ActionState `json:"actions"`
	// Proposal is the open proposal of a resolution, Pause the pause of the operation's source; nil if there is none.
	Proposal *Resolution  `json:"proposal"`
	Pause    *SourcePause `json:"pause"`
}

// ViewOperation gives one operation with its attempts, the actions that are available, an open proposal, and the pause that
// holds it back. The problem is not-found if the tenant has none of that key.
func (s *Service) ViewOperation(ctx context.Context, tenant, key string) (OperationView, error) {
	op, err := s.GetOperation(ctx, tenant, key)
	if err != nil {
		return OperationView{}, err
	}
	return OperationView{Operation: op, Actions: Actions(op, nil)}, nil
}
