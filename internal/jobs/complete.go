package jobs

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/rivertype"

	"invoicebridge/internal/crm"
)

// completer completes running jobs, however many, in one statement on a caller's transaction. River's JobCompleteTx does
// that for one; this is the driver's method that it calls, which is no stable seam either (see driver). Should it go, or do
// something else, TestJobsAreCompletedTogetherWithTheTransaction fails.
type completer struct {
	driver *driver
	now    func() time.Time
}

var _ crm.JobCompleter = (*completer)(nil)

func newCompleter(now func() time.Time) *completer {
	return &completer{driver: newDriver(nil, &pilot{now: now}), now: now}
}

// CompleteJobs implements crm.JobCompleter.
func (c *completer) CompleteJobs(ctx context.Context, tx pgx.Tx, ids []int64) error {
	n, now := len(ids), c.now()
	params := &riverdriver.JobSetStateIfRunningManyParams{
		ID: ids, Attempt: make([]*int, n), ErrData: make([][]byte, n), FinalizedAt: make([]*time.Time, n),
		MetadataDoMerge: make([]bool, n), MetadataUpdates: make([][]byte, n), ScheduledAt: make([]*time.Time, n),
		State: make([]rivertype.JobState, n),
	}
	for i := range ids {
		params.FinalizedAt[i], params.State[i] = &now, rivertype.JobStateCompleted
	}
	if _, err := c.driver.UnwrapExecutor(tx).JobSetStateIfRunningMany(ctx, params); err != nil {
		return fmt.Errorf("set jobs completed: %w", err)
	}
	return nil
}
