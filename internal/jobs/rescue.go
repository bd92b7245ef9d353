package jobs

import (
	"context"
	"slices"
	"time"

	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/rivershared/riverpilot"
	"github.com/riverqueue/river/rivertype"
)

// pilot is what driver does differently.
//
// River's rescuer, which runs on one client for all, discards stuck jobs of kinds that this client does not know: while
// versions are being replaced, an old binary would so throw away a newer one's work. With this pilot it does not see
// them; a client that knows them rescues them when it leads.
type pilot struct {
	riverpilot.StandardPilot
	kinds       []string         // that this client knows
	rescueAfter time.Duration    // River's RescueStuckJobsAfter
	now         func() time.Time // the clock that River reads
}

// JobGetStuck gives up to params.Max stuck jobs of known kinds, stuck for rescueAfter by the database's clock: by a clock
// that is fast, jobs that live would be taken for dead. Fewer tell the rescuer that there are no more, so it reads on
// until the batch is full or the table is at its end.
func (p *pilot) JobGetStuck(ctx context.Context, exec riverdriver.Executor, params *riverdriver.JobGetStuckParams) ([]*rivertype.JobRow, error) {
	now, err := databaseNow(ctx, exec)
	if err != nil {
		return nil, err
	}
	page := *params
	page.StuckHorizon = now.Add(-p.rescueAfter)
	ahead := params.StuckHorizon.Sub(page.StuckHorizon)
	var known []*rivertype.JobRow
	for {
		jobs, err := p.StandardPilot.JobGetStuck(ctx, exec, &page)
		if err != nil {
			return nil, err
		}
		for _, job := range jobs {
			if slices.Contains(p.kinds, job.Kind) {
				known = append(known, onRescuersClock(job, ahead))
			}
			if len(known) == params.Max {
				return known, nil
			}
		}
		if len(jobs) < page.Max {
			return known, nil
		}
		page.AfterID = jobs[len(jobs)-1].ID
	}
}

// onRescuersClock puts the beginning of the job's run where the rescuer, who compares it with its own clock and the limit of
// the job's kind, sees the run's true age.
func onRescuersClock(job *rivertype.JobRow, ahead time.Duration) *rivertype.JobRow {
	if job.AttemptedAt != nil {
		attemptedAt := job.AttemptedAt.Add(ahead)
		job.AttemptedAt = &attemptedAt
	}
	return job
}

// JobRescueMany rescues those of the jobs that are still stuck by the database's clock. They have waited long enough: what
// is to be repeated is due at once.
func (p *pilot) JobRescueMany(ctx context.Context, exec riverdriver.Executor, params *riverdriver.JobRescueManyParams) (*struct{}, error) {
	now, err := databaseNow(ctx, exec)
	if err != nil {
		return nil, err
	}
	judged := *params
	judged.StuckHorizon = now.Add(-p.rescueAfter)
	judged.ScheduledAt = slices.Clone(params.ScheduledAt)
	for i, state := range params.State {
		if state == string(rivertype.JobStateRetryable) {
			judged.ScheduledAt[i] = now
		}
	}
	return p.StandardPilot.JobRescueMany(ctx, exec, &judged)
}
