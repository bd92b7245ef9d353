package crm

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"invoicebridge/internal/audit"
	"invoicebridge/internal/crmdb"
	"invoicebridge/internal/logctx"
	"invoicebridge/internal/problem"
)

// Replay hands an operation back to the deliverer that was left to an operator: one more attempt at once, under the same
// key and with the same bytes, so that it can't make a second invoice. If that does not end it either, it is flagged
// again. Flag, job and audit entry are one transaction.
//
// An operation that is final, is being worked on or is queued already is refused with wrong-state; an unknown key is
// not-found.
func (s *Service) Replay(ctx context.Context, tenant, key string, by audit.By) (Operation, error) {
	if err := checkBy(by); err != nil {
		return Operation{}, err
	}
	err := pgx.BeginFunc(ctx, s.db.Of(tenant), func(tx pgx.Tx) error {
		queries := crmdb.New(tx)
		id, err := handBack(ctx, queries, tenant, key, by)
		if err != nil {
			return err
		}
		if err := s.jobs.InsertDeliveries(ctx, tx, []uuid.UUID{id}, time.Time{}); err != nil {
			return fmt.Errorf("insert job: %w", err)
		}
		return nil
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return Operation{}, s.refuseReplay(ctx, tenant, key)
	}
	if err != nil {
		return Operation{}, fmt.Errorf("replay: %w", err)
	}
	s.jobs.Wake()
	s.log.LogAttrs(ctx, slog.LevelInfo, "operation replayed", slog.String(logctx.TenantKey, tenant),
		slog.String(logctx.OperationKeyKey, key), slog.String("actor", by.Actor))
	return s.GetOperation(ctx, tenant, key)
}

// handBack is a replay but for its job. pgx.ErrNoRows: there is nothing to replay.
func handBack(ctx context.Context, queries *crmdb.Queries, tenant, key string, by audit.By) (id uuid.UUID, err error) {
	if id, err = queries.OperationReplay(ctx, tenant, key); err != nil {
		return id, err
	}
	return id, writeAudit(ctx, queries, tenant, "operation.replay", key, by)
}

func (s *Service) refuseReplay(ctx context.Context, tenant, key string) error {
	op, err := s.GetOperation(ctx, tenant, key)
	if err != nil {
		return err
	}
	if why := whyNoReplay(op.Status, op.FlaggedAt != nil); why != "" {
		return problem.New(problem.WrongState, "%s", why)
	}
	return problem.New(problem.WrongState, "%s", whyChanged)
}

// whyChanged: what it was refused for is over already.
const whyChanged = "It has changed at this very moment: look at it again."
