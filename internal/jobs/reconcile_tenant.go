package jobs

import (
	"context"
	"time"

	"github.com/riverqueue/river"
)

// ReconcileTenantKind is the kind of the job by which a person has one tenant's books compared now.
const ReconcileTenantKind = "reconcile_tenant"

// ReconcileTenantArgs name a tenant, whose open run is gone on with.
type ReconcileTenantArgs struct {
	Tenant string `json:"tenant"`
}

// Kind implements river.JobArgs.
func (ReconcileTenantArgs) Kind() string { return ReconcileTenantKind }

// InsertOpts implements river.JobArgsWithInsertOpts. A failed one is not repeated: the schedule's next goes on with its run.
func (ReconcileTenantArgs) InsertOpts() river.InsertOpts {
	return river.InsertOpts{MaxAttempts: 1, Queue: queueReconciliation}
}

// ReconcileTenantWorker works on a tenant's reconciliation for a while, as ReconcileWorker does on all.
type ReconcileTenantWorker struct {
	river.WorkerDefaults[ReconcileTenantArgs]
	reconcile Reconcile
}

// Timeout implements river.Worker.
func (w *ReconcileTenantWorker) Timeout(*river.Job[ReconcileTenantArgs]) time.Duration {
	return w.reconcile.RunTime + reconcileMargin
}

// Work goes on with the tenant's run.
func (w *ReconcileTenantWorker) Work(ctx context.Context, job *river.Job[ReconcileTenantArgs]) error {
	return w.reconcile.work(ctx, job.AttemptedAt, func(ctx context.Context) error {
		return w.reconcile.RunTenant(ctx, job.Args.Tenant)
	})
}
