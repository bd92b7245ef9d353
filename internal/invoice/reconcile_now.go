package invoice

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"invoicebridge/internal/audit"
	"invoicebridge/internal/erpdb"
	"invoicebridge/internal/problem"
)

// ReconciliationQueue has a tenant's open reconciliation run gone on with. internal/jobs has the real one.
type ReconciliationQueue interface {
	// InsertReconciliation inserts a job; it is there once the caller's transaction has committed, and never otherwise.
	InsertReconciliation(ctx context.Context, tx pgx.Tx, tenant string) error
}

// ReconciliationRun is one comparison with the targets, as it stands.
type ReconciliationRun struct {
	ID                        uuid.UUID
	WindowFrom, WindowTo      time.Time
	Phase                     string
	Compared, Found, Repaired int64
	RequestedBy               string // "" if the schedule began it
	StartedAt, UpdatedAt      time.Time
	FinishedAt                *time.Time
}

// StartReconciliation begins a comparison of a tenant's registrations with what their targets know now: run, job and audit
// entry are one transaction. Whoever comes first goes on with it, that job or the schedule's. It fails with problem
// malformed-request without a reason, and wrong-state if one is running already.
func (s *Service) StartReconciliation(ctx context.Context, tenant string, by audit.By) (ReconciliationRun, error) {
	if err := checkBy(by); err != nil {
		return ReconciliationRun{}, err
	}
	if s.reconciliations == nil {
		return ReconciliationRun{}, errors.New("this process has no queue for reconciliations")
	}
	var run ReconciliationRun
	err := pgx.BeginFunc(ctx, s.db.Of(tenant), func(tx pgx.Tx) error {
		queries := erpdb.New(tx)
		row, err := queries.ReconciliationRunBegin(ctx, erpdb.ReconciliationRunBeginParams{
			ID: uuid.Must(uuid.NewV7()), TenantID: tenant, Scope: ReconcileScope, Phase: phaseFinal, RequestedBy: by.Actor,
			OverlapSeconds: s.reconcileOverlap.Seconds(),
		})
		if errors.Is(err, pgx.ErrNoRows) {
			return refuseReconciliation(ctx, queries, tenant)
		}
		if err != nil {
			return fmt.Errorf("begin: %w", err)
		}
		run = ReconciliationRun{
			ID: row.ID, WindowFrom: row.WindowFrom.UTC(), WindowTo: row.WindowTo.UTC(), Phase: row.Phase, RequestedBy: by.Actor,
			StartedAt: row.StartedAt.UTC(), UpdatedAt: row.StartedAt.UTC(),
		}
		if err := s.reconciliations.InsertReconciliation(ctx, tx, tenant); err != nil {
			return fmt.Errorf("insert its job: %w", err)
		}
		return writeAudit(ctx, queries, tenant, "reconciliation.start", row.ID.String(), by)
	})
	if err != nil && problem.As(err) == nil {
		return ReconciliationRun{}, s.readFailed(ctx, "start a reconciliation", err)
	}
	return run, err
}

func refuseReconciliation(ctx context.Context, queries *erpdb.Queries, tenant string) error {
	row, err := queries.ReconciliationRunGetOpen(ctx, tenant, ReconcileScope)
	if errors.Is(err, pgx.ErrNoRows) {
		return problem.New(problem.WrongState, "Another one has just come to its end. Look again.")
	}
	if err != nil {
		return err
	}
	return refuseFor(whyNoReconcile(&ReconciliationRun{Phase: row.Phase, Compared: row.Compared, StartedAt: row.StartedAt}))
}

func whyNoReconcile(open *ReconciliationRun) string {
	if open == nil {
		return ""
	}
	return fmt.Sprintf("A comparison is running already, since %s (%d compared so far).", open.StartedAt.UTC().Format(time.RFC3339), open.Compared)
}

// ReconcileAction says whether a comparison can be started, by the newest runs.
func ReconcileAction(runs []ReconciliationRun) ActionState {
	for i := range runs {
		if runs[i].FinishedAt == nil {
			return actionState(ActionReconcile, whyNoReconcile(&runs[i]))
		}
	}
	return actionState(ActionReconcile, "")
}

// Reconciliations gives the newest comparisons of a tenant, at most limit (1 to MaxPage; 0 is DefaultPage).
func (s *Service) Reconciliations(ctx context.Context, tenant string, limit int) ([]ReconciliationRun, error) {
	if limit == 0 {
		limit = DefaultPage
	}
	if limit < 1 || limit > MaxPage {
		return nil, problem.New(problem.MalformedRequest, "limit must be from 1 to %d.", MaxPage)
	}
	rows, err := erpdb.New(s.db.Of(tenant)).ReconciliationRunList(ctx, tenant, ReconcileScope, int32(limit))
	if err != nil {
		return nil, s.readFailed(ctx, "list reconciliation runs", err)
	}
	runs := make([]ReconciliationRun, len(rows))
	for i, r := range rows {
		runs[i] = ReconciliationRun{
			ID: r.ID, WindowFrom: r.WindowFrom.UTC(), WindowTo: r.WindowTo.UTC(), Phase: r.Phase, Compared: r.Compared, Found: r.Found,
			Repaired: r.Repaired, RequestedBy: r.RequestedBy, StartedAt: r.StartedAt.UTC(), UpdatedAt: r.UpdatedAt.UTC(), FinishedAt: utc(r.FinishedAt),
		}
	}
	return runs, nil
}
