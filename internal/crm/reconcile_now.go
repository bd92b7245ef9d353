package crm

import (
	"context"
	"time"

	"github.com/google/uuid"

	"invoicebridge/internal/audit"
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

// StartReconciliation begins a run of a tenant's reconciliation now: run, job and audit entry in one transaction. One that
// is running already is refused with wrong-state.
func (s *Service) StartReconciliation(ctx context.Context, tenant string, by audit.By) (ReconciliationRun, error) {
	return ReconciliationRun{}, errNotYet()
}

// ListReconciliations gives one page of a tenant's runs, the newest first, and the cursor of the next page; "" after the
// last.
func (s *Service) ListReconciliations(ctx context.Context, tenant string, f PageFilter) (page []ReconciliationRun, next string, err error) {
	return nil, "", errNotYet()
}
