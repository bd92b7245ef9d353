package invoice

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"invoicebridge/internal/erpdb"
)

// Limits of a sweep, unless SweeperOptions says otherwise.
const (
	DefaultSweepMargin = time.Minute
	DefaultSweepBatch  = 1000
)

// SweeperOptions are a Sweeper's settings. JobKind and JobTimeout are required.
type SweeperOptions struct {
	JobKind    string        // the kind that RegistrationQueue inserts
	JobTimeout time.Duration // a job that has been running for longer has no client any more
	Margin     time.Duration // how long a registration must have been due; 0: DefaultSweepMargin
	Batch      int32         // the most of each that one sweep takes; 0: DefaultSweepBatch
}

// Sweeper finds registrations that nobody works on: because a worker died between sending and hearing the answer, or
// because the queue lost their job or gave it up.
type Sweeper struct {
	pool  *pgxpool.Pool
	queue RegistrationQueue
	opts  SweeperOptions
}

// NewSweeper makes a Sweeper on the ERP's database.
func NewSweeper(pool *pgxpool.Pool, queue RegistrationQueue, opts SweeperOptions) *Sweeper {
	if opts.Margin <= 0 {
		opts.Margin = DefaultSweepMargin
	}
	if opts.Batch <= 0 {
		opts.Batch = DefaultSweepBatch
	}
	return &Sweeper{pool: pool, queue: queue, opts: opts}
}

// Swept is what a sweep has found.
type Swept struct {
	Overtaken int // attempts without a worker: their registrations are unknown now, and enqueued
	Enqueued  int // registrations without a job
}

// Sweep makes registrations unknown whose attempt has no live worker, and enqueues them and those that are open, due and
// without a live job, all in one transaction. Calling it again right after finds none of them. Two at once may enqueue a
// registration twice, which does no harm: the registration's own lease decides who works on it.
func (s *Sweeper) Sweep(ctx context.Context) (swept Swept, err error) {
	err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		queries := erpdb.New(tx)
		ids, err := overtake(ctx, queries, nil, s.opts.Batch)
		if err != nil {
			return err
		}
		swept.Overtaken = len(ids)
		if err := queries.RegistrationListByHash(ctx); err != nil {
			return fmt.Errorf("plan the list of registrations without a job: %w", err)
		}
		lost, err := queries.RegistrationListWithoutJob(ctx, erpdb.RegistrationListWithoutJobParams{
			StopReason: string(ReasonNothingIsSafe), MarginSeconds: s.opts.Margin.Seconds(), JobKind: s.opts.JobKind,
			JobTimeoutSeconds: s.opts.JobTimeout.Seconds(), MaxItems: s.opts.Batch,
		})
		if err != nil {
			return fmt.Errorf("list registrations without a job: %w", err)
		}
		swept.Enqueued = len(lost)
		return s.queue.InsertRegistrations(ctx, tx, append(ids, lost...), time.Time{})
	})
	if err != nil {
		return Swept{}, fmt.Errorf("sweep registrations: %w", err)
	}
	if swept != (Swept{}) {
		s.queue.Wake()
	}
	return swept, nil
}

// overtake makes registrations unknown whose attempt shows no signs of life: that one, or the oldest.
func overtake(ctx context.Context, queries *erpdb.Queries, id *uuid.UUID, most int32) ([]uuid.UUID, error) {
	ids, err := queries.RegistrationOvertake(ctx, erpdb.RegistrationOvertakeParams{
		ID: id, MaxItems: most, Reason: string(ReasonWorkerDied),
		Detail: "The worker showed no more signs of life. Whether its request had an effect is not known.",
	})
	if err != nil {
		return nil, fmt.Errorf("overtake attempts without a worker: %w", err)
	}
	return ids, nil
}
