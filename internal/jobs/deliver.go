// Package jobs is the only place that works River jobs: their arguments, their workers, the periodic schedule and the
// decision when a failed run is repeated. The queue is a means, not the record: what is to be done and what became of it
// stands in the tables of internal/crm and internal/invoice, and a job that is lost, doubled or run in halves changes nothing about it.
package jobs

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/riverqueue/river"

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
	Deliver(ctx context.Context, operationID uuid.UUID, job *crm.Job) (crm.Next, error)
}

// DeliverWorker makes one attempt per run.
type DeliverWorker struct {
	river.WorkerDefaults[DeliverArgs]
	deliverer deliverer
	completer *completer
	now       func() time.Time
}

// Work makes the attempt that is due. The job completes in the transaction in which its operation ends; until then it is
// snoozed to the time of the next attempt.
func (w *DeliverWorker) Work(ctx context.Context, job *river.Job[DeliverArgs]) error {
	n, err := w.deliverer.Deliver(ctx, job.Args.OperationID, &crm.Job{ID: job.ID, Completer: w.completer})
	if err != nil || n.Done {
		return err
	}
	return snoozeUntil(n.At, w.now)
}
