package jobs

import (
	"context"
	"time"

	"github.com/riverqueue/river"

	"invoicebridge/internal/crm"
)

// SweepKind is the kind of the periodic job that enqueues operations again whose job is lost.
const SweepKind = "sweep_operations"

// queueMaintenance keeps the sweep from waiting behind the deliveries it is there to help.
const queueMaintenance = "maintenance"

// SweepArgs has no arguments.
type SweepArgs struct{}

// Kind implements river.JobArgs.
func (SweepArgs) Kind() string { return SweepKind }

// InsertOpts implements river.JobArgsWithInsertOpts. A failed sweep is not repeated: the next one does the same.
func (SweepArgs) InsertOpts() river.InsertOpts {
	return river.InsertOpts{MaxAttempts: 1, Queue: queueMaintenance}
}

// SweepWorker runs crm.Sweeper.
type SweepWorker struct {
	river.WorkerDefaults[SweepArgs]
	sweeper *crm.Sweeper
	deps    Deps
}

// Work sweeps once.
func (w *SweepWorker) Work(ctx context.Context, _ *river.Job[SweepArgs]) error {
	n, err := w.sweeper.Sweep(ctx)
	if err != nil {
		w.deps.Logger.ErrorContext(ctx, "sweep failed", "error", err)
		return err
	}
	if n > 0 {
		w.deps.Logger.WarnContext(ctx, "operations without a job enqueued again", "operations", n)
		if w.deps.Metrics != nil {
			w.deps.Metrics.swept(n)
		}
	}
	return nil
}

// sweepSchedule runs a sweep at the start and from then on in the interval.
func sweepSchedule(args river.JobArgs, interval time.Duration) []*river.PeriodicJob {
	return []*river.PeriodicJob{river.NewPeriodicJob(
		river.PeriodicInterval(interval),
		func() (river.JobArgs, *river.InsertOpts) { return args, nil },
		&river.PeriodicJobOpts{ID: args.Kind(), RunOnStart: true},
	)}
}
