package jobs

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"riverqueue.com/riverui"
)

// UI is River's own pages for people, River UI, and the JSON API that they use. Its buttons change rows of the queue and
// nothing else: an operation or a registration whose job is cancelled or deleted stays due and is enqueued again by the
// sweep, and one whose job is retried too often is made by whoever holds its lease. It is safe for concurrent use.
//
// It knows nothing of log-in or audit: whoever mounts it sees to both.
type UI struct {
	handler *riverui.Handler
	river   *river.Client[pgx.Tx]
}

// NewUI makes the pages for addresses below prefix, such as /queue.
func NewUI(pool *pgxpool.Pool, prefix string, log *slog.Logger) (*UI, error) {
	log = logger(log)
	client, err := river.NewClient(newDriver(pool, &pilot{now: time.Now}), &river.Config{Logger: log})
	if err != nil {
		return nil, fmt.Errorf("make River UI's client: %w", err)
	}
	handler, err := riverui.NewHandler(&riverui.HandlerOpts{
		Endpoints: riverui.NewEndpoints(client, nil), Logger: log, Prefix: prefix,
	})
	if err != nil {
		return nil, fmt.Errorf("make River UI: %w", err)
	}
	return &UI{handler: handler, river: client}, nil
}

// Start lets River UI count the jobs of each state from time to time, until ctx ends. Without it each look counts anew,
// and large counts are estimated.
func (u *UI) Start(ctx context.Context) error {
	if err := u.handler.Start(ctx); err != nil {
		return fmt.Errorf("start River UI: %w", err)
	}
	return nil
}

// ServeHTTP implements http.Handler.
func (u *UI) ServeHTTP(w http.ResponseWriter, r *http.Request) { u.handler.ServeHTTP(w, r) }

// maxDescribed is how many jobs River UI takes in one request.
const maxDescribed = 1000

// Describe says what the jobs with these ids are about: kind and arguments, which are ids (DeliverArgs, RegisterArgs).
// Those that are not there any more, and all beyond the first 1000, are left out.
func (u *UI) Describe(ctx context.Context, ids []int64) (map[int64]string, error) {
	if len(ids) == 0 {
		return map[int64]string{}, nil
	}
	ids = ids[:min(len(ids), maxDescribed)]
	found, err := u.river.JobList(ctx, river.NewJobListParams().IDs(ids...).First(len(ids)))
	if err != nil {
		return nil, fmt.Errorf("look up %d jobs: %w", len(ids), err)
	}
	about := make(map[int64]string, len(found.Jobs))
	for _, job := range found.Jobs {
		about[job.ID] = job.Kind + " " + string(job.EncodedArgs)
	}
	return about, nil
}
