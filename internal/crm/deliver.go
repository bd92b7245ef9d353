package crm

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"invoicebridge/internal/crmdb"
	"invoicebridge/internal/erpapi"
	"invoicebridge/internal/tracectx"
)

// DefaultTotalTime is how long after its first attempt an open operation is tried before an operator is asked.
const DefaultTotalTime = 24 * time.Hour

const (
	writeTimeLimit = 10 * time.Second // for recording an attempt or its outcome, also while shutting down
	leaseMargin    = 15 * time.Second // what an attempt may take beyond its calls: writeTimeLimit, and pauses of the machine
	callsPerLease  = 2                // an attempt may first ask what became of its key
	endTries       = 3                // a broken connection must not cost an outcome that is known
)

// ERP is the other side, as the deliverer needs it. *erpapi.Client is the real one.
type ERP interface {
	CreateInvoice(ctx context.Context, token, key string, body []byte) erpapi.Exchange
	GetOperation(ctx context.Context, token, key string) erpapi.Exchange
	// AttemptTimeout is the longest that either call takes.
	AttemptTimeout() time.Duration
}

// DeliveryObserver counts what happens; it must not block. internal/jobs has one for Prometheus.
type DeliveryObserver interface {
	AttemptEnded(outcome AttemptOutcome)
	OperationFlagged(reason Reason)
	// Committed is told how many operations one transaction has brought a step further.
	Committed(step GroupStep, operations int)
}

// GroupStep is what deliveries share transactions for.
type GroupStep string

// The steps.
const (
	GroupBegin GroupStep = "begin" // of attempts
	GroupEnd   GroupStep = "end"   // outcomes, with the completion of their jobs
)

// GroupSteps are all of them.
func GroupSteps() []GroupStep { return []GroupStep{GroupBegin, GroupEnd} }

type nobody struct{}

func (nobody) AttemptEnded(AttemptOutcome) {}
func (nobody) OperationFlagged(Reason)     {}
func (nobody) Committed(GroupStep, int)    {}

// DelivererOptions are a Deliverer's settings. Zero values are usable, except that without Token every tenant is
// without one.
type DelivererOptions struct {
	// Token gives the ERP's token of a tenant, or "" if none is configured.
	Token     func(tenant string) string
	Worker    string        // names this process in the attempts
	TotalTime time.Duration // 0: DefaultTotalTime
	BackOff   BackOff       // zero: DefaultBackOff
	Jitter    func() float64
	Logger    *slog.Logger     // nil discards
	Observer  DeliveryObserver // nil: nobody
}

// Deliverer brings operations to the ERP. It is safe for concurrent use, also by several processes on one database.
type Deliverer struct {
	pool   *pgxpool.Pool
	erp    ERP
	opts   DelivererOptions
	begins together[beginning]
	ends   together[ending]
}

// NewDeliverer makes a Deliverer on the CRM side's database.
func NewDeliverer(pool *pgxpool.Pool, erp ERP, opts DelivererOptions) *Deliverer {
	if opts.Token == nil {
		opts.Token = func(string) string { return "" }
	}
	if opts.TotalTime <= 0 {
		opts.TotalTime = DefaultTotalTime
	}
	if opts.BackOff == (BackOff{}) {
		opts.BackOff = DefaultBackOff()
	}
	if opts.Jitter == nil {
		opts.Jitter = rand.Float64
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	if opts.Observer == nil {
		opts.Observer = nobody{}
	}
	d := &Deliverer{pool: pool, erp: erp, opts: opts}
	d.begins.do, d.ends.do = d.beginTogether, d.endTogether
	return d
}

// Lease is how long an attempt holds its operation at most: its calls, and what it takes to write their outcome.
func (d *Deliverer) Lease() time.Duration { return callsPerLease*d.erp.AttemptTimeout() + leaseMargin }

// Job is the queue's entry for which an operation is delivered.
type Job struct {
	ID        int64
	Completer JobCompleter
}

// JobCompleter completes jobs. internal/jobs has the real one. Two of them must be comparable.
type JobCompleter interface {
	// CompleteJobs completes jobs on the caller's transaction: they are completed at its commit, or none is. A job that is
	// gone or in other hands is passed over: an outcome is worth more than its job.
	CompleteJobs(ctx context.Context, tx pgx.Tx, ids []int64) error
}

// Next says what is left to do for an operation.
type Next struct {
	// Done: nothing, or nothing before a person acts.
	Done bool
	// At, unless Done, is when Deliver is worth calling again, by the database's clock.
	At time.Time
}

// Deliver makes the next attempt at an operation, if one is due and nobody else is making it, and says what is left to
// do. It may be called at any time, any number of times, by anybody.
//
// Before the request leaves, the attempt is committed; no transaction is open during the call. The outcome is one more
// transaction: attempt and operation together, and, when the operation has come to its end, job is completed (nil: none).
// Both are shared with the other deliveries of this Deliverer that are waiting for the same; each is judged by itself. An
// attempt that was overtaken meanwhile writes nothing. If ctx ends during the call, the outcome (lost, or not sent) is
// still written, within 10 seconds.
//
// An error means that the database failed; the operation is then delivered by whoever comes after its lease.
func (d *Deliverer) Deliver(ctx context.Context, operationID uuid.UUID, job *Job) (Next, error) {
	// From here on, so that no request leaves after the lease that is on record, however long this process is kept from
	// running in between: others may have proven by then that the operation was not applied.
	calls, cancel := context.WithTimeout(ctx, d.Lease())
	defer cancel()
	row, err := d.begin(ctx, operationID)
	if errors.Is(err, pgx.ErrNoRows) {
		return d.standing(ctx, operationID)
	}
	if err != nil {
		return Next{}, fmt.Errorf("begin an attempt at operation %s: %w", operationID, err)
	}
	a := d.newAttempt(row)
	tracectx.Set(ctx, tracectx.Tenant, row.TenantID)
	tracectx.Set(ctx, tracectx.OperationKey, row.Key)
	a.log.DebugContext(ctx, "attempt begins")
	a.make(calls, d.erp)
	tracectx.Set(ctx, tracectx.Outcome, string(a.decision.Outcome))
	return d.end(ctx, a, job)
}

// begin commits the attempt. Once that has started it runs to its end: cut off, it would leave an attempt of which nobody
// knows, and the operation waiting for the end of its lease.
func (d *Deliverer) begin(ctx context.Context, id uuid.UUID) (crmdb.DeliveryBeginRow, error) {
	if err := ctx.Err(); err != nil {
		return crmdb.DeliveryBeginRow{}, err
	}
	b := beginning{id: id, trace: tracectx.Of(ctx)}
	if err := d.begins.join(ctx, &b); err != nil {
		return crmdb.DeliveryBeginRow{}, err
	}
	if b.row != nil {
		tracectx.Link(ctx, b.shared)
		return *b.row, nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeTimeLimit)
	defer cancel()
	return d.beginAlone(ctx, id)
}

// standing answers for an operation that could not be begun.
func (d *Deliverer) standing(ctx context.Context, id uuid.UUID) (Next, error) {
	row, err := crmdb.New(d.pool).DeliveryGet(ctx, id)
	if errors.Is(err, pgx.ErrNoRows) {
		d.opts.Logger.WarnContext(ctx, "a job names an operation that is not there", "operation_id", id)
		return Next{Done: true}, nil
	}
	if err != nil {
		return Next{}, fmt.Errorf("read operation %s: %w", id, err)
	}
	d.opts.Logger.DebugContext(ctx, "nothing to deliver now", "tenant", row.TenantID, "operation_key", row.Key,
		"status", row.Status, "flagged", row.Flagged, "paused", row.Paused)
	if row.Flagged || row.Paused || OperationStatus(row.Status).Final() { // whoever takes that off queues it again
		return Next{Done: true}, nil
	}
	return Next{At: row.DueAt}, nil
}

// end writes the outcome, come what may of ctx.
func (d *Deliverer) end(ctx context.Context, a *attempt, job *Job) (Next, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeTimeLimit)
	defer cancel()
	e := ending{a: a, job: job, trace: tracectx.Of(ctx)}
	row, err := d.writeEnd(ctx, &e)
	if errors.Is(err, pgx.ErrNoRows) {
		a.log.WarnContext(ctx, "attempt was overtaken, its outcome is not written", "outcome", a.decision.Outcome)
		return d.standing(ctx, a.row.ID)
	}
	if err != nil {
		a.log.ErrorContext(ctx, "the outcome of an attempt could not be written", "outcome", a.decision.Outcome, "error", err)
		return Next{}, fmt.Errorf("end attempt %d at operation %s: %w", a.row.Attempt, a.row.ID, err)
	}
	d.report(ctx, a, row)
	return Next{Done: a.decision.Step == StepDone || row.Flagged, At: row.DueAt}, nil
}

// writeEnd writes the outcome with those of others or, where that can't be, alone, more than once if need be.
func (d *Deliverer) writeEnd(ctx context.Context, e *ending) (row crmdb.DeliveryEndRow, err error) {
	if err := d.ends.join(ctx, e); err != nil {
		return row, err
	}
	if e.row != nil {
		tracectx.Link(ctx, e.shared)
		return *e.row, nil
	}
	for range endTries - 1 {
		row, err = d.endAlone(ctx, e)
		if err == nil || errors.Is(err, pgx.ErrNoRows) {
			return row, err
		}
		e.a.log.WarnContext(ctx, "writing the outcome of an attempt failed", "outcome", e.a.decision.Outcome, "error", err)
	}
	return row, err
}
