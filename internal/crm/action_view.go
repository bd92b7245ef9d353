package crm

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"invoicebridge/internal/crmdb"
)

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
	view := OperationView{Operation: op}
	queries := crmdb.New(s.db.Of(tenant))
	id, err := queries.ResolutionGetOpenOf(ctx, tenant, key)
	if err == nil {
		open, err := s.GetResolution(ctx, tenant, id)
		if err != nil {
			return OperationView{}, err
		}
		view.Proposal = &open
	} else if !errors.Is(err, pgx.ErrNoRows) {
		return OperationView{}, fmt.Errorf("get the open proposal: %w", err)
	}
	pause, err := queries.SourcePauseGet(ctx, tenant, op.Source)
	if err == nil {
		view.Pause = &SourcePause{PausedAt: pause.PausedAt, PausedBy: pause.PausedBy, Reason: pause.Reason}
	} else if !errors.Is(err, pgx.ErrNoRows) {
		return OperationView{}, fmt.Errorf("get the source's pause: %w", err)
	}
	view.Actions = Actions(op, view.Proposal)
	return view, nil
}
