package crm

import (
	"context"
	"fmt"
	"time"

	"invoicebridge/internal/crmdb"
	"invoicebridge/internal/problem"
)

// DashboardMost is as far as the dashboard counts: further on, more tells nobody more, and costs more.
const DashboardMost = 100_000

// Dashboard is how things stand for one tenant.
type Dashboard struct {
	At time.Time `json:"at"` // by the database's clock
	// States are all states, in the order in which an operation may meet them.
	States    []StateCount   `json:"states"`
	Attention AttentionCount `json:"attention"`
	// Due are the open operations whose time has come and that nobody works on: what waits for a worker.
	Due BoundedCount `json:"due"`
	// Activity are the attempts of the last 24 hours by the hour in which they began, oldest first; the last hour is running.
	Activity []HourOfAttempts `json:"activity"`
	// Divergences are the open ones by kind.
	Divergences []DivergenceCount `json:"divergences"`
	// RefusedIntake is how many calls were turned away in the last 24 hours.
	RefusedIntake int64 `json:"refused_intake"`
	// ReconciledAt is when reconciliation last came to its end; nil: never.
	ReconciledAt *time.Time `json:"reconciled_at"`
}

// BoundedCount is a number up to DashboardMost.
type BoundedCount struct {
	Count int64 `json:"count"`
	More  bool  `json:"more"` // there are more than Count
}

func bounded(n int64) BoundedCount {
	if n > DashboardMost {
		return BoundedCount{Count: DashboardMost, More: true}
	}
	return BoundedCount{Count: n}
}

// StateCount is how many operations are in one state, and since when the oldest of them is there; of those that have
// succeeded, the oldest says nothing and is not looked for.
type StateCount struct {
	Status OperationStatus `json:"status"`
	BoundedCount
	OldestAt *time.Time `json:"oldest_at"`
}

// AttentionCount is how many operations need a person, and how long the oldest of them has been there.
type AttentionCount struct {
	BoundedCount
	OldestSeconds float64 `json:"oldest_seconds"`
}

// HourOfAttempts is what became of the attempts that began in one hour.
type HourOfAttempts struct {
	Hour time.Time `json:"hour"`
	// Delivered made the invoice; Replayed were answered with the invoice that an earlier attempt had made.
	Delivered int64 `json:"delivered"`
	Replayed  int64 `json:"replayed"`
	// Other did neither: waits, lost answers, refusals, and those at work right now.
	Other int64 `json:"other"`
}

// DivergenceCount is how many divergences of one kind are open.
type DivergenceCount struct {
	Kind     DivergenceKind `json:"kind"`
	Count    int64          `json:"count"`
	OldestAt time.Time      `json:"oldest_at"`
}

// activityFor is how long the figures of the last 24 hours are kept.
const activityFor = 30 * time.Second

type keptActivity struct {
	at    time.Time
	hours []HourOfAttempts
}

// Dashboard gives the figures of one tenant. Their cost is bounded however many operations there are; the attempts of the
// last 24 hours are counted at most twice a minute.
func (c *Console) Dashboard(ctx context.Context, tenant string) (d Dashboard, err error) {
	err = readConsole(ctx, c.db.Of(tenant), func(queries *crmdb.Queries) error {
		if d.States, err = countStates(ctx, queries, tenant); err != nil {
			return fmt.Errorf("count states: %w", err)
		}
		attention, err := queries.DashboardCountAttention(ctx, tenant, DashboardMost+1)
		if err != nil {
			return fmt.Errorf("count what needs attention: %w", err)
		}
		d.Attention = AttentionCount{bounded(attention.Operations), attention.OldestSeconds}
		due, err := queries.DashboardCountDue(ctx, tenant, DashboardMost+1)
		if err != nil {
			return fmt.Errorf("count what is due: %w", err)
		}
		d.Due = bounded(due)
		rows, err := queries.DashboardListDivergences(ctx, tenant)
		if err != nil {
			return fmt.Errorf("count divergences: %w", err)
		}
		d.Divergences = make([]DivergenceCount, len(rows))
		for i, r := range rows {
			d.Divergences[i] = DivergenceCount{DivergenceKind(r.Kind), r.Divergences, r.OldestAt}
		}
		rest, err := queries.DashboardGetRuns(ctx, tenant)
		if err != nil {
			return fmt.Errorf("get the newest run: %w", err)
		}
		d.At, d.ReconciledAt, d.RefusedIntake = rest.Now, sinceEpoch(rest.ReconciledAt), rest.Refused
		d.Activity, err = c.lastHours(ctx, queries, tenant, rest.Now)
		return err
	})
	if err != nil {
		return Dashboard{}, fmt.Errorf("dashboard: %w", err)
	}
	return d, nil
}

// sinceEpoch is nil for the beginning of 1970, by which queries say that there is no such time.
func sinceEpoch(t time.Time) *time.Time {
	if t.Unix() == 0 {
		return nil
	}
	return &t
}

// countStates gives the succeeded as what is left of all: only the other states are in an index of their own.
func countStates(ctx context.Context, queries *crmdb.Queries, tenant string) ([]StateCount, error) {
	all, err := queries.DashboardCountAll(ctx, tenant, DashboardMost+1)
	if err != nil {
		return nil, err
	}
	statuses := OperationStatuses()
	names := make([]string, len(statuses))
	for i, s := range statuses {
		names[i] = string(s)
	}
	rows, err := queries.DashboardCountStates(ctx, names, tenant, DashboardMost+1)
	if err != nil {
		return nil, err
	}
	counts, others := make([]StateCount, len(statuses)), int64(0)
	for i, s := range statuses {
		counts[i].Status = s
		for _, r := range rows {
			if OperationStatus(r.Status) == s && s != StatusSucceeded {
				counts[i].BoundedCount, counts[i].OldestAt = bounded(r.Operations), sinceEpoch(r.OldestAt)
				others += r.Operations
			}
		}
	}
	for i := range counts {
		if counts[i].Status == StatusSucceeded {
			counts[i].Count, counts[i].More = max(0, min(all, DashboardMost)-others), all > DashboardMost
		}
	}
	return counts, nil
}

func (c *Console) lastHours(ctx context.Context, queries *crmdb.Queries, tenant string, now time.Time) ([]HourOfAttempts, error) {
	c.mu.Lock()
	kept, ok := c.activity[tenant]
	c.mu.Unlock()
	if ok && c.opts.Now().Sub(kept.at) < activityFor {
		return kept.hours, nil
	}
	rows, err := queries.DashboardListAttempts(ctx, tenant)
	if err != nil {
		return nil, fmt.Errorf("count attempts: %w", err)
	}
	last := now.UTC().Truncate(time.Hour)
	hours := make([]HourOfAttempts, 24)
	for i := range hours {
		hours[i].Hour = last.Add(time.Duration(i-23) * time.Hour)
	}
	for _, r := range rows {
		i := 23 + int(r.Hour.Sub(last)/time.Hour)
		if i < 0 || i > 23 {
			continue
		}
		switch AttemptOutcome(r.Outcome) {
		case OutcomeDelivered:
			hours[i].Delivered += r.Attempts
		case OutcomeReplayed:
			hours[i].Replayed += r.Attempts
		default:
			hours[i].Other += r.Attempts
		}
	}
	c.mu.Lock()
	c.activity[tenant] = keptActivity{c.opts.Now(), hours}
	c.mu.Unlock()
	return hours, nil
}

// QueueDepth tells how many jobs the queue of the whole service holds, of all tenants. The problem is unavailable where
// that is not known.
func (c *Console) QueueDepth(ctx context.Context) ([]QueueState, error) {
	if c.opts.Queue == nil {
		return nil, problem.New(problem.Unavailable, "Nothing here knows the queue.")
	}
	return c.opts.Queue.QueueDepth(ctx)
}
