package jobs

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"
)

// ReconcileKind is the kind of the periodic job that compares two sides' books.
const ReconcileKind = "reconcile"

// How reconciliation is scheduled, unless Reconcile says otherwise.
const (
	DefaultReconcileInterval = 15 * time.Minute
	DefaultReconcileRunTime  = 5 * time.Minute

	// queueReconciliation is its own: neither the sweep nor the purge must wait for it.
	queueReconciliation = "reconciliation"
	// reconcileMargin is what a job may take beyond its time: the batch that it is writing.
	reconcileMargin = time.Minute
	// reconcilePause is between two jobs that work on one long run, for others that wait.
	reconcilePause = time.Second
)

// ReconcileArgs has no arguments.
type ReconcileArgs struct{}

// Kind implements river.JobArgs.
func (ReconcileArgs) Kind() string { return ReconcileKind }

// InsertOpts implements river.JobArgsWithInsertOpts. One job at a time for all processes. A failed one is not repeated: the
// next goes on with its run.
func (ReconcileArgs) InsertOpts() river.InsertOpts {
	return river.InsertOpts{MaxAttempts: 1, Queue: queueReconciliation, UniqueOpts: river.UniqueOpts{ByState: []rivertype.JobState{
		rivertype.JobStateAvailable, rivertype.JobStatePending, rivertype.JobStateRetryable, rivertype.JobStateRunning, rivertype.JobStateScheduled,
	}}}
}

// Reconcile is the periodic reconciliation of a Client. Without Run there is none.
type Reconcile struct {
	// Run compares all there is to compare. It can be cut off at any time by its context, and goes on from there when it is
	// called again.
	Run func(ctx context.Context) error
	// RunTenant is Run for one tenant, when a person asks for it. It ends at once if there is no open run. nil: nobody can.
	RunTenant func(ctx context.Context, tenant string) error
	Interval  time.Duration // 0: DefaultReconcileInterval
	RunTime   time.Duration // how long one job works on a run before it makes room; 0: DefaultReconcileRunTime
	Logger    *slog.Logger  // nil discards
}

func (r Reconcile) kinds() []string {
	if r.Run == nil {
		return nil
	}
	if r.RunTenant == nil {
		return []string{ReconcileKind}
	}
	return []string{ReconcileKind, ReconcileTenantKind}
}

// addTo adds the reconciliation to a client's configuration.
func (r Reconcile) addTo(config *river.Config) {
	if r.Run == nil {
		return
	}
	if r.Interval <= 0 {
		r.Interval = DefaultReconcileInterval
	}
	if r.RunTime <= 0 {
		r.RunTime = DefaultReconcileRunTime
	}
	r.Logger = logger(r.Logger)
	river.AddWorker(config.Workers, &ReconcileWorker{reconcile: r})
	if r.RunTenant != nil {
		river.AddWorker(config.Workers, &ReconcileTenantWorker{reconcile: r})
	}
	config.Queues[queueReconciliation] = river.QueueConfig{MaxWorkers: 1}
	config.PeriodicJobs = append(config.PeriodicJobs, river.NewPeriodicJob(
		river.PeriodicInterval(r.Interval),
		func() (river.JobArgs, *river.InsertOpts) { return ReconcileArgs{}, nil },
		&river.PeriodicJobOpts{ID: ReconcileKind, RunOnStart: true},
	))
}

// ReconcileWorker works on a reconciliation for a while.
type ReconcileWorker struct {
	river.WorkerDefaults[ReconcileArgs]
	reconcile Reconcile
}

// Timeout implements river.Worker. River takes a job for dead only when it has been running for longer.
func (w *ReconcileWorker) Timeout(*river.Job[ReconcileArgs]) time.Duration {
	return w.reconcile.RunTime + reconcileMargin
}

// Work goes on with the run that is open, or makes one. A run that takes longer than a job goes on in the next one, so that
// no job is long and a dead process's is soon taken up. One that is interrupted by a shutdown is no failure.
func (w *ReconcileWorker) Work(ctx context.Context, job *river.Job[ReconcileArgs]) error {
	return w.reconcile.work(ctx, job.AttemptedAt, w.reconcile.Run)
}

func (r Reconcile) work(ctx context.Context, began *time.Time, run func(ctx context.Context) error) error {
	limited, cancel := context.WithTimeout(ctx, r.RunTime)
	defer cancel()
	err := run(limited)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		r.Logger.InfoContext(ctx, "reconciliation interrupted, the next run goes on")
		return nil
	case errors.Is(limited.Err(), context.DeadlineExceeded):
		return snoozeUntil(began.Add(r.RunTime+reconcilePause), time.Now)
	}
	r.Logger.ErrorContext(ctx, "reconciliation failed, the next run goes on", "error", err)
	return err
}
