package crm

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/jackc/pgx/v5"

	"invoicebridge/internal/audit"
	"invoicebridge/internal/crmdb"
	"invoicebridge/internal/problem"
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

// AcceptDivergence says that a divergence is known and all right. It does not count as open any more, also when it is found
// again, for as long as both sides say what they say now; when it is gone, it is resolved as any other. One that is accepted
// or resolved is refused with wrong-state.
func (s *Service) AcceptDivergence(ctx context.Context, tenant string, id int64, by audit.By) (Divergence, error) {
	return s.decideDivergence(ctx, tenant, id, ActionAccept, by, func(ctx context.Context, queries *crmdb.Queries) (int64, error) {
		return queries.DivergenceAccept(ctx, crmdb.DivergenceAcceptParams{TenantID: tenant, ID: id, DecidedBy: by.Actor, DecisionReason: by.Reason})
	})
}

// CloseDivergence resolves a divergence by hand. If it is found again, it is a new one. One that is resolved is refused with
// wrong-state.
func (s *Service) CloseDivergence(ctx context.Context, tenant string, id int64, by audit.By) (Divergence, error) {
	return s.decideDivergence(ctx, tenant, id, ActionClose, by, func(ctx context.Context, queries *crmdb.Queries) (int64, error) {
		return queries.DivergenceClose(ctx, crmdb.DivergenceCloseParams{TenantID: tenant, ID: id, DecidedBy: by.Actor, DecisionReason: by.Reason})
	})
}

func (s *Service) decideDivergence(ctx context.Context, tenant string, id int64, action ActionName, by audit.By, decide func(context.Context, *crmdb.Queries) (int64, error)) (Divergence, error) {
	if err := checkBy(by); err != nil {
		return Divergence{}, err
	}
	var refused bool
	err := pgx.BeginFunc(ctx, s.db.Of(tenant), func(tx pgx.Tx) error {
		queries := crmdb.New(tx)
		n, err := decide(ctx, queries)
		if err != nil || n == 0 {
			refused = err == nil
			return err
		}
		return writeAudit(ctx, queries, tenant, "divergence."+string(action), strconv.FormatInt(id, 10), by)
	})
	if err != nil {
		return Divergence{}, fmt.Errorf("%s a divergence: %w", action, err)
	}
	d, err := s.GetDivergence(ctx, tenant, id)
	if err != nil || !refused {
		return d, err
	}
	for _, state := range d.Actions() {
		if state.Name == action && !state.Available {
			return Divergence{}, problem.New(problem.WrongState, "%s", state.Why)
		}
	}
	return Divergence{}, problem.New(problem.WrongState, "%s", whyChanged)
}

// GetDivergence gives one divergence; the problem is not-found if the tenant has none of that id.
func (s *Service) GetDivergence(ctx context.Context, tenant string, id int64) (Divergence, error) {
	row, err := crmdb.New(s.db.Of(tenant)).DivergenceGet(ctx, tenant, id)
	if errors.Is(err, pgx.ErrNoRows) {
		return Divergence{}, problem.New(problem.NotFound, "There is no divergence of this id.")
	}
	if err != nil {
		return Divergence{}, fmt.Errorf("get divergence: %w", err)
	}
	return foundDivergence(crmdb.DivergenceSearchNewestRow(row)), nil
}
