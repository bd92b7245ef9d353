package crm

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"invoicebridge/internal/crmdb"
)

// Limits of a sweep, unless SweeperOptions says otherwise.
const (
	DefaultSweepMargin = time.Minute
	DefaultSweepBatch  = 1000
)

// SweeperOptions are a Sweeper's settings. JobKind and JobTimeout are required.
type SweeperOptions struct {
	JobKind    string        // the kind that JobInserter inserts
	JobTimeout time.Duration // a job that has been running for longer has no client any more
	Margin     time.Duration // how long an operation must have been due; 0: DefaultSweepMargin
	Batch      int32         // the most that one sweep enqueues; 0: DefaultSweepBatch
}

// Sweeper finds operations that nobody is going to deliver, because the queue lost their job or gave it up. The queue
// is a means; that an operation is open and due is on record here.
type Sweeper struct {
	pool *pgxpool.Pool
	jobs JobInserter
	opts SweeperOptions
}

// NewSweeper makes a Sweeper on the CRM side's database.
func NewSweeper(pool *pgxpool.Pool, jobs JobInserter, opts SweeperOptions) *Sweeper {
	if opts.Margin <= 0 {
		opts.Margin = DefaultSweepMargin
	}
	if opts.Batch <= 0 {
		opts.Batch = DefaultSweepBatch
	}
	return &Sweeper{pool: pool, jobs: jobs, opts: opts}
}

// Sweep enqueues, in one transaction, operations that are open, due, not flagged and without a live job, and says how
// many. Calling it again right after finds none of them. Two at once may enqueue an operation twice, which does no
// harm: the operation's own lease decides who delivers it.
func (s *Sweeper) Sweep(ctx context.Context) (enqueued int, err error) {
	err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		queries := crmdb.New(tx)
		if err := queries.DeliveryListByHash(ctx); err != nil {
			return fmt.Errorf("plan the list of operations without a job: %w", err)
		}
		ids, err := queries.DeliveryListWithoutJob(ctx, crmdb.DeliveryListWithoutJobParams{
			MarginSeconds: s.opts.Margin.Seconds(), JobTimeoutSeconds: s.opts.JobTimeout.Seconds(),
			JobKind: s.opts.JobKind, MaxItems: s.opts.Batch,
		})
		if err != nil {
			return fmt.Errorf("list operations without a job: %w", err)
		}
		enqueued = len(ids)
		return s.insert(ctx, tx, ids)
	})
	if err != nil {
		return 0, fmt.Errorf("sweep: %w", err)
	}
	if enqueued > 0 {
		s.jobs.Wake()
	}
	return enqueued, nil
}

func (s *Sweeper) insert(ctx context.Context, tx pgx.Tx, ids []uuid.UUID) error {
	if len(ids) == 0 {
		return nil
	}
	if err := s.jobs.InsertDeliveries(ctx, tx, ids, time.Time{}); err != nil {
		return fmt.Errorf("enqueue operations without a job: %w", err)
	}
	return nil
}

// RequeueOptions say what a run of replays without a job is.
type RequeueOptions struct {
	JobKind    string        // the kind that ActionJobs inserts
	JobTimeout time.Duration // a job that has been running for longer has no client any more
	Margin     time.Duration // how long nothing must have happened
}

// RequeueReplayRuns enqueues, in one transaction, runs of replays that are not finished and have no live job, and says how
// many. Two at once may enqueue one twice, which does no harm: its jobs take turns.
func (s *Service) RequeueReplayRuns(ctx context.Context, opt RequeueOptions) (enqueued int, err error) {
	err = pgx.BeginFunc(ctx, s.db.Unscoped(), func(tx pgx.Tx) error {
		runs, err := crmdb.New(tx).ReplayRunListWithoutJob(ctx, opt.Margin.Seconds(), opt.JobKind, opt.JobTimeout.Seconds())
		if err != nil {
			return fmt.Errorf("list replays without a job: %w", err)
		}
		for _, id := range runs {
			if err := s.opts.Actions.InsertReplayRun(ctx, tx, id); err != nil {
				return fmt.Errorf("enqueue a replay without a job: %w", err)
			}
		}
		enqueued = len(runs)
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("sweep replays: %w", err)
	}
	return enqueued, nil
}
