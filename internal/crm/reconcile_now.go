package crm

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"invoicebridge/internal/audit"
	"invoicebridge/internal/crmdb"
	"invoicebridge/internal/problem"
)

// ReconciliationRun is one run of reconciliation, as it stands.
type ReconciliationRun struct {
	ID          uuid.UUID  `json:"id"`
	WindowFrom  time.Time  `json:"window_from"`
	WindowTo    time.Time  `json:"window_to"`
	Phase       string     `json:"phase"`
	Compared    int64      `json:"compared"`
	Found       int64      `json:"found"`
	Repaired    int64      `json:"repaired"`
	RequestedBy string     `json:"requested_by,omitzero"` // "" if the schedule began it
	StartedAt   time.Time  `json:"started_at"`
	UpdatedAt   time.Time  `json:"updated_at"`
	FinishedAt  *time.Time `json:"finished_at"`
}

// StartReconciliation begins a run of a tenant's reconciliation now: run, job and audit entry in one transaction. Whoever
// comes first goes on with it, that job or the schedule's. One that is running already is refused with wrong-state.
func (s *Service) StartReconciliation(ctx context.Context, tenant string, by audit.By) (ReconciliationRun, error) {
	if err := checkBy(by); err != nil {
		return ReconciliationRun{}, err
	}
	if s.opts.Actions == nil {
		return ReconciliationRun{}, errors.New("start reconciliation: no jobs for it are configured")
	}
	id := uuid.Must(uuid.NewV7())
	err := pgx.BeginFunc(ctx, s.db.Of(tenant), func(tx pgx.Tx) error {
		queries := crmdb.New(tx)
		_, err := queries.ReconciliationRunBegin(ctx, crmdb.ReconciliationRunBeginParams{
			ID: id, TenantID: tenant, Scope: ReconcileScope, Phase: phaseInvoices, OverlapSeconds: s.opts.ReconcileOverlap.Seconds(),
			RequestedBy: by.Actor,
		})
		if errors.Is(err, pgx.ErrNoRows) {
			return refuseReconciliation(ctx, queries, tenant)
		}
		if err != nil {
			return fmt.Errorf("begin: %w", err)
		}
		if err := s.opts.Actions.InsertReconciliation(ctx, tx, tenant); err != nil {
			return fmt.Errorf("insert job: %w", err)
		}
		return writeAudit(ctx, queries, tenant, "reconciliation.start", id.String(), by)
	})
	if err != nil {
		return ReconciliationRun{}, fmt.Errorf("start reconciliation: %w", err)
	}
	row, err := crmdb.New(s.db.Of(tenant)).ReconciliationRunGet(ctx, tenant, id)
	if err != nil {
		return ReconciliationRun{}, fmt.Errorf("start reconciliation: read it: %w", err)
	}
	return reconciliationRun(row), nil
}

func refuseReconciliation(ctx context.Context, queries *crmdb.Queries, tenant string) error {
	row, err := queries.ReconciliationRunGetOpen(ctx, tenant, ReconcileScope)
	if errors.Is(err, pgx.ErrNoRows) {
		return problem.New(problem.WrongState, "%s", whyChanged)
	}
	if err != nil {
		return err
	}
	return problem.New(problem.WrongState, "Reconciliation is running already, since %s (phase %s, %d compared so far).",
		row.StartedAt.UTC().Format(time.RFC3339), row.Phase, row.Compared)
}

// ListReconciliations gives one page of a tenant's runs, the newest first unless OldestFirst.
func (s *Service) ListReconciliations(ctx context.Context, tenant string, q PageQuery) (found Page[ReconciliationRun], err error) {
	err = readConsole(ctx, s.db.Of(tenant), func(queries *crmdb.Queries) error {
		rows, err := reconciliationPaging(ctx, queries, tenant).page(q)
		found, err = pageOf(rows, err, func(r crmdb.ReconciliationRunListNewestRow) ReconciliationRun {
			return reconciliationRun(crmdb.ReconciliationRunGetRow(r))
		})
		return err
	})
	return found, listError("reconciliation runs", err)
}

func reconciliationPaging(ctx context.Context, queries *crmdb.Queries, tenant string) paging[crmdb.ReconciliationRunListNewestRow, uuid.UUID] {
	arg := crmdb.ReconciliationRunListNewestParams{TenantID: tenant, Scope: ReconcileScope}
	return paging[crmdb.ReconciliationRunListNewestRow, uuid.UUID]{
		newest: func(beyond *place[uuid.UUID], limit int32) ([]crmdb.ReconciliationRunListNewestRow, error) {
			arg.BeyondAt, arg.BeyondID = beyond.parts()
			arg.MaxItems = limit
			return queries.ReconciliationRunListNewest(ctx, arg)
		},
		oldest: func(beyond *place[uuid.UUID], limit int32) (told []crmdb.ReconciliationRunListNewestRow, err error) {
			arg.BeyondAt, arg.BeyondID = beyond.parts()
			arg.MaxItems = limit
			rows, err := queries.ReconciliationRunListOldest(ctx, crmdb.ReconciliationRunListOldestParams(arg))
			for _, r := range rows {
				told = append(told, crmdb.ReconciliationRunListNewestRow(r))
			}
			return told, err
		},
		at: func(r crmdb.ReconciliationRunListNewestRow) place[uuid.UUID] {
			return place[uuid.UUID]{r.StartedAt, r.ID}
		},
		parse: parseUUID, format: formatUUID,
	}
}

func reconciliationRun(r crmdb.ReconciliationRunGetRow) ReconciliationRun {
	return ReconciliationRun{
		ID: r.ID, WindowFrom: r.WindowFrom, WindowTo: r.WindowTo, Phase: r.Phase, Compared: r.Compared, Found: r.Found,
		Repaired: r.Repaired, RequestedBy: r.RequestedBy, StartedAt: r.StartedAt, UpdatedAt: r.UpdatedAt, FinishedAt: r.FinishedAt,
	}
}
