// Package jobs is the only place that works River jobs: their arguments, their workers, the periodic schedule and the
// decision when a failed run is repeated. The queue is a means, not the record: what is to be done and what became of it
// stands in the tables of internal/crm, and a job that is lost, doubled or run in halves changes nothing about it.
package jobs

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"

	"invoicebridge/internal/crm"
)

// DeliverKind is the kind of the job that delivers one operation.
const DeliverKind = "deliver_operation"

// maxAttempts only counts runs that end in an error of ours (the database was away, say): a pause between two attempts
// at an operation is a snooze, which River takes off the count again. It is never to be reached; if it is, the sweep
// enqueues the operation anew.
const maxAttempts = 30_000 // the column is a smallint

// DeliverArgs are a delivery's arguments: an id, no data.
type DeliverArgs struct {
	OperationID uuid.UUID `json:"operation_id"` // the sweep's query reads this member
}

// Kind implements river.JobArgs.
func (DeliverArgs) Kind() string { return DeliverKind }

// InsertOpts implements river.JobArgsWithInsertOpts.
func (DeliverArgs) InsertOpts() river.InsertOpts {
	return river.InsertOpts{MaxAttempts: maxAttempts, Queue: river.QueueDefault}
}

// deliverer is crm.Deliverer.
type deliverer interface {
	Deliver(ctx context.Context, operationID uuid.UUID, complete func(ctx context.Context, tx pgx.Tx) error) (crm.Next, error)
}

// DeliverWorker makes one attempt per run.
type DeliverWorker struct {
	river.WorkerDefaults[DeliverArgs]
	deliverer deliverer
	now       func() time.Time
}

// Work makes the attempt that is due. The job completes in the transaction in which its operation ends; until then it
// is snoozed to the time of the next attempt.
func (w *DeliverWorker) Work(ctx context.Context, job *river.Job[DeliverArgs]) error {
	next, err := w.deliverer.Deliver(ctx, job.Args.OperationID, func(ctx context.Context, tx pgx.Tx) error {
		_, err := river.JobCompleteTx[*riverpgxv5.Driver](ctx, tx, job)
		if errors.Is(err, river.ErrNotFound) {
			return nil // the row is gone or in other hands; the outcome is worth more than the job
		}
		return err
	})
	if err != nil || next.Done {
		return err
	}
	// River adds the duration to this machine's clock. Taken off the same clock here, what it arrives at is just
	// next.At, a time by the database's clock, however wrong ours is. That needs negative durations, too, which
	// river.JobSnooze refuses.
	return &river.JobSnoozeError{Duration: next.At.Sub(w.now())}
}
