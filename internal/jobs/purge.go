package jobs

import (
	"context"
	"log/slog"
	"time"

	"github.com/riverqueue/river"

	"invoicebridge/internal/retention"
)

// PurgeKind is the kind of the periodic job that removes what has been kept long enough.
const PurgeKind = "purge"

const (
	// queueRetention is the purge's own: a run takes a minute, and the sweep must not wait for it.
	queueRetention = "retention"
	// purgeMargin is what a run may take beyond its time: its last batch, and the pause after it.
	purgeMargin = time.Minute
)

// PurgeArgs has no arguments.
type PurgeArgs struct{}

// Kind implements river.JobArgs.
func (PurgeArgs) Kind() string { return PurgeKind }

// InsertOpts implements river.JobArgsWithInsertOpts. A failed run is not repeated: the next one goes on.
func (PurgeArgs) InsertOpts() river.InsertOpts {
	return river.InsertOpts{MaxAttempts: 1, Queue: queueRetention}
}

// Purge is the periodic purge of a Client. Without a Purger there is none.
type Purge struct {
	Purger   *retention.Purger
	Schedule retention.Schedule // the Purger's RunTime is Schedule.RunTime
	Logger   *slog.Logger       // nil discards
}

func (p Purge) kinds() []string {
	if p.Purger == nil {
		return nil
	}
	return []string{PurgeKind}
}

// addTo adds the purge to a client's configuration.
func (p Purge) addTo(config *river.Config) {
	if p.Purger == nil {
		return
	}
	p.Schedule, p.Logger = p.Schedule.WithDefaults(), logger(p.Logger)
	river.AddWorker(config.Workers, &PurgeWorker{purge: p})
	config.Queues[queueRetention] = river.QueueConfig{MaxWorkers: 1}
	config.PeriodicJobs = append(config.PeriodicJobs, river.NewPeriodicJob(
		river.PeriodicInterval(p.Schedule.Interval),
		func() (river.JobArgs, *river.InsertOpts) { return PurgeArgs{}, nil },
		&river.PeriodicJobOpts{ID: PurgeKind, RunOnStart: true},
	))
}

// PurgeWorker makes one run of a retention.Purger.
type PurgeWorker struct {
	river.WorkerDefaults[PurgeArgs]
	purge Purge
}

// Timeout implements river.Worker. River takes a job for dead only when it has been running for longer.
func (w *PurgeWorker) Timeout(*river.Job[PurgeArgs]) time.Duration {
	return w.purge.Schedule.RunTime + purgeMargin
}

// Work makes one run. One that is interrupted, by a shutdown say, is no failure: what it did is done.
func (w *PurgeWorker) Work(ctx context.Context, _ *river.Job[PurgeArgs]) error {
	results, err := w.purge.Purger.Purge(ctx, nil)
	for _, r := range results {
		if r.Rows > 0 || r.Refused > 0 {
			w.purge.Logger.InfoContext(ctx, "kept long enough", "table", r.Table, "rows", r.Rows, "refused", r.Refused, "more", r.More)
		}
	}
	if err != nil && ctx.Err() == nil {
		w.purge.Logger.ErrorContext(ctx, "purge failed, the next run goes on", "error", err)
		return err
	}
	return nil
}
