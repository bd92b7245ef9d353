package jobs

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"

	"invoicebridge/internal/erpdb"
	"invoicebridge/internal/invoice"
)

// Kinds of the ERP's jobs.
const (
	RegisterKind           = "register_invoice"
	SweepRegistrationsKind = "sweep_registrations"
)

// RegisterArgs are a registration's arguments: an id, no data.
type RegisterArgs struct {
	RegistrationID uuid.UUID `json:"registration_id"` // queries read this member
}

// Kind implements river.JobArgs.
func (RegisterArgs) Kind() string { return RegisterKind }

// InsertOpts implements river.JobArgsWithInsertOpts.
func (RegisterArgs) InsertOpts() river.InsertOpts {
	return river.InsertOpts{MaxAttempts: maxAttempts, Queue: river.QueueDefault}
}

// RegisterWorker makes one attempt per run.
type RegisterWorker struct {
	river.WorkerDefaults[RegisterArgs]
	registrar *invoice.Registrar
	now       func() time.Time
}

// Work makes the attempt that is due.
func (w *RegisterWorker) Work(ctx context.Context, job *river.Job[RegisterArgs]) error {
	return work(ctx, job, w.now, func(ctx context.Context, complete func(ctx context.Context, tx pgx.Tx) error) (next, error) {
		n, err := w.registrar.Register(ctx, job.Args.RegistrationID, complete)
		return next(n), err
	})
}

// SweepRegistrationsArgs has no arguments.
type SweepRegistrationsArgs struct{}

// Kind implements river.JobArgs.
func (SweepRegistrationsArgs) Kind() string { return SweepRegistrationsKind }

// InsertOpts implements river.JobArgsWithInsertOpts. A failed sweep is not repeated: the next one does the same.
func (SweepRegistrationsArgs) InsertOpts() river.InsertOpts {
	return river.InsertOpts{MaxAttempts: 1, Queue: queueMaintenance}
}

// SweepRegistrationsWorker runs invoice.Sweeper.
type SweepRegistrationsWorker struct {
	river.WorkerDefaults[SweepRegistrationsArgs]
	sweeper *invoice.Sweeper
	deps    ERPDeps
}

// Work sweeps once.
func (w *SweepRegistrationsWorker) Work(ctx context.Context, _ *river.Job[SweepRegistrationsArgs]) error {
	swept, err := w.sweeper.Sweep(ctx)
	if err != nil {
		w.deps.Logger.ErrorContext(ctx, "sweep failed", "error", err)
		return err
	}
	if swept != (invoice.Swept{}) {
		w.deps.Logger.WarnContext(ctx, "registrations that nobody worked on enqueued again",
			"worker_died", swept.Overtaken, "job_lost", swept.Enqueued)
		if w.deps.Metrics != nil {
			w.deps.Metrics.swept(swept.Overtaken + swept.Enqueued)
		}
	}
	return nil
}

// ERPDeps are the things that a Client of the ERP works with. Registrar and Inserter are required.
type ERPDeps struct {
	Registrar *invoice.Registrar
	Inserter  invoice.RegistrationQueue
	Metrics   *ERPMetrics  // nil: nothing is counted
	Logger    *slog.Logger // nil discards
}

// NewERPClient makes a Client of the ERP that works nothing until Start; see NewClient.
func NewERPClient(pool *pgxpool.Pool, deps ERPDeps, cfg Config) (*Client, error) {
	cfg, deps.Logger = cfg.withDefaults(), logger(deps.Logger)
	jobTimeout := registerTimeout(deps.Registrar.LongestAttempt())
	workers := river.NewWorkers()
	river.AddWorker(workers, &RegisterWorker{registrar: deps.Registrar, now: time.Now})
	river.AddWorker(workers, &SweepRegistrationsWorker{deps: deps, sweeper: invoice.NewSweeper(pool, deps.Inserter, invoice.SweeperOptions{
		JobKind: RegisterKind, JobTimeout: jobTimeout, Margin: cfg.SweepMargin,
	})})
	config, err := baseConfig(cfg, workers, sweepSchedule(SweepRegistrationsArgs{}, cfg.SweepInterval), jobTimeout, deps.Logger)
	if err != nil {
		return nil, err
	}
	return newClient(pool, config, cfg.addTo(config, []string{RegisterKind, SweepRegistrationsKind}), time.Now)
}

func registerTimeout(longestAttempt time.Duration) time.Duration { return longestAttempt + jobMargin }

// ERPInserter puts the ERP's jobs into its queue and works none. It is safe for concurrent use.
type ERPInserter struct {
	inserter       *Inserter
	longestAttempt time.Duration
}

var _ invoice.RegistrationQueue = (*ERPInserter)(nil)

// NewERPInserter makes an ERPInserter; see NewInserter. longestAttempt is the Registrar's: a job that has been running
// for longer has no client any more.
func NewERPInserter(pool *pgxpool.Pool, longestAttempt time.Duration, log *slog.Logger, options ...InserterOption) (*ERPInserter, error) {
	inserter, err := NewInserter(pool, log, options...)
	if err != nil {
		return nil, err
	}
	return &ERPInserter{inserter, longestAttempt}, nil
}

// InsertRegistrations implements invoice.RegistrationQueue, by COPY.
func (i *ERPInserter) InsertRegistrations(ctx context.Context, tx pgx.Tx, ids []uuid.UUID, at time.Time) error {
	return i.inserter.insert(ctx, tx, ids, at, tracesOfRegistrations, func(id uuid.UUID) river.JobArgs { return RegisterArgs{RegistrationID: id} })
}

// Wake implements invoice.RegistrationQueue.
func (i *ERPInserter) Wake() { i.inserter.Wake() }

// RegistrationIsQueued implements invoice.RegistrationQueue.
func (i *ERPInserter) RegistrationIsQueued(ctx context.Context, tx pgx.Tx, id uuid.UUID) (bool, error) {
	queued, err := erpdb.New(tx).RegistrationIsQueued(ctx, RegisterKind, id.String(), registerTimeout(i.longestAttempt).Seconds())
	if err != nil {
		return false, fmt.Errorf("look for a job of registration %s: %w", id, err)
	}
	return queued, nil
}

func tracesOfRegistrations(ctx context.Context, tx pgx.Tx, ids []uuid.UUID) (map[uuid.UUID]string, error) {
	rows, err := erpdb.New(tx).RegistrationListTraceContexts(ctx, ids)
	carried := make(map[uuid.UUID]string, len(rows))
	for _, row := range rows {
		carried[row.ID] = row.TraceContext
	}
	return carried, err
}
