package jobs

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
)

// next is crm.Next and invoice.Next.
type next struct {
	Done bool
	At   time.Time
}

// attempt makes the attempt that is due. When that ends what it is about, complete belongs to its transaction.
type attempt func(ctx context.Context, complete func(ctx context.Context, tx pgx.Tx) error) (next, error)

// work runs one attempt for a job. The job completes in the transaction in which its matter ends; until then it is snoozed
// to the time of the next attempt. now is the clock that River reads.
func work[A river.JobArgs](ctx context.Context, job *river.Job[A], now func() time.Time, try attempt) error {
	n, err := try(ctx, func(ctx context.Context, tx pgx.Tx) error {
		_, err := river.JobCompleteTx[*riverpgxv5.Driver](ctx, tx, job)
		if errors.Is(err, river.ErrNotFound) {
			return nil // the row is gone or in other hands; the outcome is worth more than the job
		}
		return err
	})
	if err != nil || n.Done {
		return err
	}
	return snoozeUntil(n.At, now)
}

// snoozeUntil snoozes a job until a time by the database's clock. River adds the duration to this machine's clock, now.
// Taken off the same clock here, what it arrives at is just that time, however wrong the clock is. That needs negative
// durations, too, which river.JobSnooze refuses.
func snoozeUntil(at time.Time, now func() time.Time) error {
	return &river.JobSnoozeError{Duration: at.Sub(now())}
}
