package jobs

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"go.opentelemetry.io/otel/trace"

	"invoicebridge/internal/crm"
)

// How River is set, unless Config says otherwise.
const (
	DefaultWorkers            = 64 // they share transactions, so more of them cost few more commits
	DefaultSweepInterval      = time.Minute
	DefaultSoftStopTimeout    = 20 * time.Second
	DefaultCompletedRetention = time.Hour // completed jobs tell nothing that operations and attempts don't

	workCooldown = 10 * time.Millisecond // the rate is capped at workers / cooldown (DESIGN 9)
	jobMargin    = 15 * time.Second      // what a job may take beyond its attempt's lease
	rescueMargin = 30 * time.Second      // a job is rescued only when it has surely been cancelled
	rescueLimit  = 9 * time.Minute       // with River's rescue interval of 30 s: every job of a dead client within 10 min
)

// Config is what a Client is told. Zero values take the defaults.
type Config struct {
	Workers            int // attempts at once
	SweepInterval      time.Duration
	SweepMargin        time.Duration        // how long something must have been due before a sweep looks at it
	SoftStopTimeout    time.Duration        // how long Stop lets running attempts end by themselves
	CompletedRetention time.Duration        // how long River keeps completed jobs
	Purge              Purge                // of this side's database
	Reconcile          Reconcile            // of this side's books with the next one's
	Replays            Replays              // of many operations, on the CRM side
	Traces             trace.TracerProvider // of runs; nil: nothing is traced
	PollOnly           bool                 // look for jobs once a second, and never LISTEN: for a pooler in transaction mode
}

// Deps are the things a Client works with. Deliverer and Inserter are required.
type Deps struct {
	Deliverer *crm.Deliverer
	Inserter  crm.JobInserter
	Metrics   *Metrics     // nil: nothing is counted
	Logger    *slog.Logger // nil discards
}

// Client works the jobs of one side.
type Client struct {
	river    *river.Client[pgx.Tx]
	stopping *endAtStop
	started  atomic.Bool
}

// SessionSettings are those of a pool that belongs to a Client: River's one query for fetching is planned once, and its
// bookkeeping does not wait for the disk. A crash of PostgreSQL may then take back, together with everything committed after
// it, that a job was fetched or is done: it is fetched again, and finds what it was about as the last transaction on the
// service's own pool has left it. That one waits for the disk, and with it for all that was committed before it in any
// session, before a request leaves or an answer is given.
//
// See https://www.postgresql.org/docs/current/wal-async-commit.html.
func SessionSettings() map[string]string {
	return map[string]string{
		"plan_cache_mode":    "force_generic_plan", // measured: docs/architecture.md
		"synchronous_commit": "off",
	}
}

// NewClient makes a Client of the CRM side that works nothing until Start. The pool should belong to it alone and have
// SessionSettings as its RuntimeParams (DESIGN 9).
func NewClient(pool *pgxpool.Pool, deps Deps, cfg Config) (*Client, error) {
	config, err := riverConfig(pool, deps, cfg, time.Now)
	if err != nil {
		return nil, err
	}
	return newClient(pool, config, cfg.addTo(config, crmKinds()), time.Now)
}

// addTo adds the periodic jobs that both sides have, and gives the kinds with theirs.
func (cfg Config) addTo(config *river.Config, kinds []string) []string {
	cfg.Purge.addTo(config)
	cfg.Reconcile.addTo(config)
	cfg.Replays.addTo(config, cfg.withDefaults().SweepInterval, time.Now)
	return slices.Concat(kinds, cfg.Purge.kinds(), cfg.Reconcile.kinds(), cfg.Replays.kinds())
}

// crmKinds are the kinds of job that the CRM side's clients know.
func crmKinds() []string { return []string{DeliverKind, SweepKind} }

// newClient makes a client that knows these kinds. now must be the clock that River itself reads.
func newClient(pool *pgxpool.Pool, config *river.Config, kinds []string, now func() time.Time) (*Client, error) {
	p := &pilot{kinds: kinds, rescueAfter: config.RescueStuckJobsAfter, now: now}
	stopping := newEndAtStop(PurgeKind, ReconcileKind, ReconcileTenantKind)
	config.Middleware = append(config.Middleware, stopping)
	client, err := river.NewClient(newDriver(pool, p), config)
	if err != nil {
		return nil, fmt.Errorf("make the working River client: %w", err)
	}
	return &Client{river: client, stopping: stopping}, nil
}

// riverConfig sets River for the CRM side. now must be the clock that River itself reads.
func riverConfig(pool *pgxpool.Pool, deps Deps, cfg Config, now func() time.Time) (*river.Config, error) {
	cfg, deps.Logger = cfg.withDefaults(), logger(deps.Logger)
	workers := river.NewWorkers()
	river.AddWorker(workers, &DeliverWorker{deliverer: deps.Deliverer, completer: newCompleter(now), now: now})
	river.AddWorker(workers, &SweepWorker{deps: deps, sweeper: NewSweeper(pool, deps.Inserter, deps.Deliverer, cfg.SweepMargin)})
	return baseConfig(cfg, workers, sweepSchedule(SweepArgs{}, cfg.SweepInterval), deliverTimeout(deps.Deliverer), deps.Logger)
}

// NewSweeper makes a Sweeper that knows how long these deliveries take as jobs of this package. margin is how long an
// operation must have been due; 0: crm.DefaultSweepMargin.
func NewSweeper(pool *pgxpool.Pool, inserter crm.JobInserter, deliverer *crm.Deliverer, margin time.Duration) *crm.Sweeper {
	return crm.NewSweeper(pool, inserter, crm.SweeperOptions{JobKind: DeliverKind, JobTimeout: deliverTimeout(deliverer), Margin: margin})
}

// deliverTimeout is the longest that a delivery takes as a job.
func deliverTimeout(deliverer *crm.Deliverer) time.Duration { return deliverer.Lease() + jobMargin }

// baseConfig is what both sides have in common. jobTimeout is the longest that a job takes.
func baseConfig(cfg Config, workers *river.Workers, periodic []*river.PeriodicJob, jobTimeout time.Duration, log *slog.Logger) (*river.Config, error) {
	rescueAfter := jobTimeout + rescueMargin
	if rescueAfter > rescueLimit {
		return nil, fmt.Errorf("the time limit per attempt is too long: jobs of a dead process would be taken up only after %v, more than %v",
			rescueAfter, rescueLimit)
	}
	return &river.Config{
		CompletedJobRetentionPeriod: cfg.CompletedRetention,
		FetchCooldown:               workCooldown,
		FetchOnlyKnownKinds:         true, // a newer binary's jobs are left to it
		JobTimeout:                  jobTimeout,
		Logger:                      log,
		MaxAttempts:                 maxAttempts,
		Middleware:                  middleware(cfg.Traces),
		PeriodicJobs:                periodic,
		PollOnly:                    cfg.PollOnly,
		Queues: map[string]river.QueueConfig{
			river.QueueDefault: {MaxWorkers: cfg.Workers},
			queueMaintenance:   {MaxWorkers: 1},
		},
		RescueStuckJobsAfter: rescueAfter,
		RetryPolicy:          newRetryPolicy(),
		SoftStopTimeout:      cfg.SoftStopTimeout,
		Workers:              workers,
	}, nil
}

// Start begins to work jobs and returns. When ctx ends, the Client stops as by Stop.
func (c *Client) Start(ctx context.Context) error {
	if err := c.river.Start(ctx); err != nil {
		return fmt.Errorf("start working jobs: %w", err)
	}
	context.AfterFunc(ctx, c.stopping.begin)
	c.started.Store(true)
	return nil
}

// Working says whether jobs are worked on: the Client has been started and has not stopped.
func (c *Client) Working() bool {
	if !c.started.Load() {
		return false
	}
	select {
	case <-c.river.Stopped():
		return false
	default:
		return true
	}
}

// Stop fetches no more jobs and returns when the running ones have ended. Those still running after SoftStopTimeout are
// interrupted: their attempts end as lost or not sent. The purge and the reconciliation are interrupted at once; the next run
// goes on. When ctx ends first, Stop returns its error and work goes on.
func (c *Client) Stop(ctx context.Context) error {
	c.stopping.begin()
	if err := c.river.Stop(ctx); err != nil {
		return fmt.Errorf("stop working jobs: %w", err)
	}
	return nil
}

// Stopped is closed when the Client has stopped, however that began.
func (c *Client) Stopped() <-chan struct{} { return c.river.Stopped() }

func (cfg Config) withDefaults() Config {
	if cfg.Workers <= 0 {
		cfg.Workers = DefaultWorkers
	}
	if cfg.SweepInterval <= 0 {
		cfg.SweepInterval = DefaultSweepInterval
	}
	if cfg.SoftStopTimeout <= 0 {
		cfg.SoftStopTimeout = DefaultSoftStopTimeout
	}
	if cfg.CompletedRetention <= 0 {
		cfg.CompletedRetention = DefaultCompletedRetention
	}
	return cfg
}
