package jobs

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"

	"invoicebridge/internal/crm"
)

// The kinds of job that work off replays of many operations.
const (
	ReplayRunKind    = "replay_operations"
	SweepReplaysKind = "sweep_replays"
)

const (
	// queueReplays is its own: neither deliveries nor the sweep must wait for it.
	queueReplays = "replays"
	// DefaultReplayPause is between two batches of a run. With the batch's 50 operations, the ERP sees some 50 a second.
	DefaultReplayPause = time.Second
	// replayTimeout is the longest that a batch takes.
	replayTimeout = time.Minute
)

var _ crm.ActionJobs = (*Inserter)(nil)

// ReplayRunArgs are an id, no data.
type ReplayRunArgs struct {
	RunID uuid.UUID `json:"run_id"` // the query of runs without a job reads this member
}

// Kind implements river.JobArgs.
func (ReplayRunArgs) Kind() string { return ReplayRunKind }

// InsertOpts implements river.JobArgsWithInsertOpts.
func (ReplayRunArgs) InsertOpts() river.InsertOpts {
	return river.InsertOpts{MaxAttempts: maxAttempts, Queue: queueReplays}
}

// SweepReplaysArgs has no arguments.
type SweepReplaysArgs struct{}

// Kind implements river.JobArgs.
func (SweepReplaysArgs) Kind() string { return SweepReplaysKind }

// InsertOpts implements river.JobArgsWithInsertOpts. A failed sweep is not repeated: the next one does the same.
func (SweepReplaysArgs) InsertOpts() river.InsertOpts {
	return river.InsertOpts{MaxAttempts: 1, Queue: queueReplays}
}

// ReplayRuns is *crm.Service, as the worker of replays needs it.
type ReplayRuns interface {
	WorkReplayRun(ctx context.Context, id uuid.UUID) (finished bool, err error)
	RequeueReplayRuns(ctx context.Context, opt crm.RequeueOptions) (int, error)
}

// Replays works off replays of many operations. Without Runs there are none.
type Replays struct {
	Runs   ReplayRuns
	Pause  time.Duration // between two batches; 0: DefaultReplayPause
	Margin time.Duration // how long a run must have stood still before it is looked for; 0: crm.DefaultSweepMargin
	Logger *slog.Logger  // nil discards
}

func (r Replays) kinds() []string {
	if r.Runs == nil {
		return nil
	}
	return []string{ReplayRunKind, SweepReplaysKind}
}

// addTo adds the replays to a client's configuration. now must be the clock that River itself reads.
func (r Replays) addTo(config *river.Config, interval time.Duration, now func() time.Time) {
	if r.Runs == nil {
		return
	}
	if r.Pause <= 0 {
		r.Pause = DefaultReplayPause
	}
	if r.Margin <= 0 {
		r.Margin = crm.DefaultSweepMargin
	}
	r.Logger = logger(r.Logger)
	river.AddWorker(config.Workers, &ReplayRunWorker{replays: r, now: now})
	river.AddWorker(config.Workers, &SweepReplaysWorker{replays: r})
	config.Queues[queueReplays] = river.QueueConfig{MaxWorkers: 1}
	config.PeriodicJobs = append(config.PeriodicJobs, sweepSchedule(SweepReplaysArgs{}, interval)...)
}

// ReplayRunWorker replays one batch per run of the job. A job that is lost, doubled or killed changes nothing: the list of
// operations and what became of each are in the database.
type ReplayRunWorker struct {
	river.WorkerDefaults[ReplayRunArgs]
	replays Replays
	now     func() time.Time
}

// Timeout implements river.Worker.
func (w *ReplayRunWorker) Timeout(*river.Job[ReplayRunArgs]) time.Duration { return replayTimeout }

// Work replays the next batch, and comes back after a pause for the one after it.
func (w *ReplayRunWorker) Work(ctx context.Context, job *river.Job[ReplayRunArgs]) error {
	finished, err := w.replays.Runs.WorkReplayRun(ctx, job.Args.RunID)
	if err != nil || finished {
		return err
	}
	return snoozeUntil(job.AttemptedAt.Add(w.replays.Pause), w.now)
}

// SweepReplaysWorker enqueues runs again that lost their job.
type SweepReplaysWorker struct {
	river.WorkerDefaults[SweepReplaysArgs]
	replays Replays
}

// Work sweeps once.
func (w *SweepReplaysWorker) Work(ctx context.Context, _ *river.Job[SweepReplaysArgs]) error {
	n, err := w.replays.Runs.RequeueReplayRuns(ctx, crm.RequeueOptions{JobKind: ReplayRunKind, JobTimeout: replayTimeout, Margin: w.replays.Margin})
	if err != nil {
		return err
	}
	if n > 0 {
		w.replays.Logger.WarnContext(ctx, "replays without a job enqueued again", "replays", n)
	}
	return nil
}

// InsertReplayRun implements crm.ActionJobs.
func (i *Inserter) InsertReplayRun(ctx context.Context, tx pgx.Tx, runID uuid.UUID) error {
	return i.insertOne(ctx, tx, ReplayRunArgs{RunID: runID})
}

// InsertReconciliation implements crm.ActionJobs.
func (i *Inserter) InsertReconciliation(ctx context.Context, tx pgx.Tx, tenant string) error {
	return i.insertOne(ctx, tx, ReconcileTenantArgs{Tenant: tenant})
}

func (i *Inserter) insertOne(ctx context.Context, tx pgx.Tx, args river.JobArgs) error {
	if _, err := i.river.InsertManyFastTx(ctx, tx, []river.InsertManyParams{{Args: args}}); err != nil {
		return fmt.Errorf("insert a job of kind %s: %w", args.Kind(), err)
	}
	return nil
}
