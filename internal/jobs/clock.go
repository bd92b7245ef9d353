package jobs

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/rivertype"
)

// JobInsertMany inserts jobs; those that do not wait for a time are due now by the database's clock. River has periodic
// jobs due at the leader's clock: from one that is fast they would come late, the sweep among them.
func (p *pilot) JobInsertMany(ctx context.Context, tx riverdriver.ExecutorTx, params *riverdriver.JobInsertFastManyParams) ([]*riverdriver.JobInsertFastResult, error) {
	if err := dueByDatabase(ctx, tx, params.Jobs); err != nil {
		return nil, err
	}
	return p.StandardPilot.JobInsertMany(ctx, tx, params)
}

// JobInsertFastManyNoReturning does the same for jobs that are inserted without being read back.
func (e executorTx) JobInsertFastManyNoReturning(ctx context.Context, params *riverdriver.JobInsertFastManyParams) (int, error) {
	if err := dueByDatabase(ctx, e.ExecutorTx, params.Jobs); err != nil {
		return 0, err
	}
	return e.ExecutorTx.JobInsertFastManyNoReturning(ctx, params)
}

// dueByDatabase changes the jobs in place: the queues of those that are available then are notified.
func dueByDatabase(ctx context.Context, tx riverdriver.ExecutorTx, jobs []*riverdriver.JobInsertFastParams) error {
	now, err := databaseNow(ctx, tx)
	if err != nil {
		return err
	}
	for _, job := range jobs {
		waits := job.State == rivertype.JobStateScheduled && job.ScheduledAt != nil && job.ScheduledAt.After(now)
		if job.State == rivertype.JobStateAvailable || job.State == rivertype.JobStateScheduled && !waits {
			job.State, job.ScheduledAt = rivertype.JobStateAvailable, &now
		}
	}
	return nil
}

// JobSetStateIfRunningMany ends runs. The time of the next one is by the database's clock, and so is whether the job waits
// for it as scheduled or as available.
func (p *pilot) JobSetStateIfRunningMany(ctx context.Context, exec riverdriver.Executor, params *riverdriver.JobSetStateIfRunningManyParams) ([]*rivertype.JobRow, error) {
	if !slices.ContainsFunc(params.ScheduledAt, func(at *time.Time) bool { return at != nil }) {
		return p.StandardPilot.JobSetStateIfRunningMany(ctx, exec, params)
	}
	now, err := databaseNow(ctx, exec)
	if err != nil {
		return nil, err
	}
	ahead := p.now().Sub(now)
	dated := *params // River tries again with the same params
	dated.ScheduledAt, dated.State = slices.Clone(params.ScheduledAt), slices.Clone(params.State)
	for i, at := range params.ScheduledAt {
		if at == nil {
			continue
		}
		snoozed, err := isSnooze(params.MetadataUpdates[i])
		switch {
		case err != nil:
			return nil, err
		case !snoozed: // failed or interrupted: River has reckoned from this machine's clock
			due := at.Add(-ahead)
			dated.ScheduledAt[i] = &due
		case at.After(now.Add(scheduleAhead)): // work has given the database's time
			dated.State[i] = rivertype.JobStateScheduled
		default:
			dated.State[i] = rivertype.JobStateAvailable
		}
	}
	return p.StandardPilot.JobSetStateIfRunningMany(ctx, exec, &dated)
}

// isSnooze tells a snooze from the other ends of a run that have a next one: only a snooze is counted.
func isSnooze(metadataUpdates []byte) (bool, error) {
	if len(metadataUpdates) == 0 {
		return false, nil
	}
	var updates struct {
		Snoozes *int `json:"snoozes"`
	}
	if err := json.Unmarshal(metadataUpdates, &updates); err != nil {
		return false, fmt.Errorf("read a job's metadata: %w", err)
	}
	return updates.Snoozes != nil, nil
}
