package jobs

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
)

// baselineKind is the kind of the jobs that do nothing.
const baselineKind = "nothing"

type baselineArgs struct{}

// Kind implements river.JobArgs.
func (baselineArgs) Kind() string { return baselineKind }

type baselineWorker struct {
	river.WorkerDefaults[baselineArgs]
}

// Work implements river.Worker.
func (*baselineWorker) Work(context.Context, *river.Job[baselineArgs]) error { return nil }

// NewBaseline makes a Client that has the settings of the CRM side's and works jobs that do nothing: what the queue alone can
// do, for measuring deliveries against it. The pool is to be as that of NewClient.
func NewBaseline(pool *pgxpool.Pool, cfg Config, log *slog.Logger) (*Client, error) {
	workers := river.NewWorkers()
	river.AddWorker(workers, &baselineWorker{})
	config, err := baseConfig(cfg.withDefaults(), workers, nil, time.Minute, logger(log))
	if err != nil {
		return nil, err
	}
	return newClient(pool, config, []string{baselineKind}, time.Now)
}

// InsertBaseline puts n jobs that do nothing into the queue.
func (c *Client) InsertBaseline(ctx context.Context, n int) error {
	params := make([]river.InsertManyParams, n)
	for i := range params {
		params[i] = river.InsertManyParams{Args: baselineArgs{}}
	}
	if _, err := c.river.InsertManyFast(ctx, params); err != nil {
		return fmt.Errorf("insert %d jobs that do nothing: %w", n, err)
	}
	return nil
}
