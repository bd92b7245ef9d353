package crm

import (
	"bytes"
	"context"
	"crypto/sha256"
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
}

// DelivererOptions are a Deliverer's settings. Zero values are usable, except that without Token every tenant is
// without one.
type DelivererOptions struct {
	// Token gives the ERP's token of a tenant, or "" if none is configured.
	Token     func(tenant string) string
	Worker    string        // names this process in the attempts
	TotalTime time.Duration // 0: DefaultTotalTime
	BackOff   BackOff       // zero: DefaultBackOff
	Jitter    func() float64
	Logger    *slog.Logger // nil discards
	Observer  DeliveryObserver
}

// Deliverer brings operations to the ERP. It is safe for concurrent use, also by several processes on one database.
type Deliverer struct {
	pool *pgxpool.Pool
	erp  ERP
	opts DelivererOptions
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
	return &Deliverer{pool: pool, erp: erp, opts: opts}
}

// Lease is how long an attempt holds its operation at most: its calls, and then some. A Deliver takes no longer.
func (d *Deliverer) Lease() time.Duration { return callsPerLease*d.erp.AttemptTimeout() + leaseMargin }

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
// transaction: attempt and operation together, and, when the operation has come to its end, whatever complete does
// with that transaction (nil: nothing). An attempt that was overtaken meanwhile writes nothing. If ctx ends during the
// call, the outcome (lost, or not sent) is still written, within 10 seconds.
//
// An error means that the database failed; the operation is then delivered by whoever comes after its lease.
func (d *Deliverer) Deliver(ctx context.Context, operationID uuid.UUID, complete func(ctx context.Context, tx pgx.Tx) error) (Next, error) {
	row, err := d.begin(ctx, operationID)
	if errors.Is(err, pgx.ErrNoRows) {
		return d.standing(ctx, operationID)
	}
	if err != nil {
		return Next{}, fmt.Errorf("begin an attempt at operation %s: %w", operationID, err)
	}
	a := d.newAttempt(row)
	a.log.DebugContext(ctx, "attempt begins")
	a.make(ctx, d.erp)
	return d.end(ctx, a, complete)
}

// begin commits the attempt. Once it has started it runs to its end: cut off, it would leave an attempt of which nobody
// knows, and the operation waiting for the end of its lease.
func (d *Deliverer) begin(ctx context.Context, id uuid.UUID) (crmdb.DeliveryBeginRow, error) {
	if err := ctx.Err(); err != nil {
		return crmdb.DeliveryBeginRow{}, err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeTimeLimit)
	defer cancel()
	return crmdb.New(d.pool).DeliveryBegin(ctx, d.Lease().Seconds(), id, d.opts.Worker)
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
	d.opts.Logger.DebugContext(ctx, "nothing to deliver now", "tenant", row.TenantID, "key", row.Key,
		"status", row.Status, "flagged", row.Flagged)
	if row.Flagged || OperationStatus(row.Status).Final() {
		return Next{Done: true}, nil
	}
	return Next{At: row.DueAt}, nil
}

// attempt is one attempt from its beginning to its outcome.
type attempt struct {
	row      crmdb.DeliveryBeginRow
	token    string
	log      *slog.Logger
	decision Decision
	exchange erpapi.Exchange // the one that was decided on; empty if there was no call
}

func (d *Deliverer) newAttempt(row crmdb.DeliveryBeginRow) *attempt {
	return &attempt{
		row: row, token: d.opts.Token(row.TenantID),
		log: d.opts.Logger.With("tenant", row.TenantID, "key", row.Key, "attempt", row.Attempt),
	}
}

func (a *attempt) asked() Asked {
	return Asked{
		Key: a.row.Key, Source: a.row.Source, Order: a.row.OrderID, Role: erpapi.Role(a.row.Role),
		Sequence: int64(a.row.Sequence), MayHaveArrived: a.row.MayHaveArrived,
	}
}

// make makes the call. It always comes to a decision.
func (a *attempt) make(ctx context.Context, erp ERP) {
	asked := a.asked()
	if hash := sha256.Sum256(a.row.Request); !bytes.Equal(hash[:], a.row.RequestHash) {
		a.decision = again(asked, OutcomeNotSent, StepAttention, ReasonRequestDamaged,
			"Nothing was sent: the stored request is not the one that was frozen.")
		return
	}
	if a.token == "" {
		a.decision = again(asked, OutcomeNotAuthorised, StepSlow, ReasonNotAuthorised,
			"Nothing was sent: no ERP token is configured for this tenant.")
		return
	}
	if Reason(a.row.Reason) == ReasonAnswerIncomplete {
		// The answer itself could be what breaks each time (too long, say); this one is short.
		x := erp.GetOperation(ctx, a.token, a.row.Key)
		if decision, settled := DecideSettled(asked, &x); settled {
			a.exchange, a.decision = x, decision
			return
		}
	}
	a.exchange = erp.CreateInvoice(ctx, a.token, a.row.Key, a.row.Request)
	a.decision = Decide(asked, &a.exchange)
}

// end writes the outcome, come what may of ctx.
func (d *Deliverer) end(ctx context.Context, a *attempt, complete func(ctx context.Context, tx pgx.Tx) error) (Next, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeTimeLimit)
	defer cancel()
	params := d.endParams(a)
	row, err := d.writeEnd(ctx, params, complete)
	for try := 1; try < endTries && err != nil && !errors.Is(err, pgx.ErrNoRows); try++ {
		a.log.WarnContext(ctx, "writing the outcome of an attempt failed, trying again", "outcome", a.decision.Outcome, "error", err)
		row, err = d.writeEnd(ctx, params, complete)
	}
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

// writeEnd is one transaction; where there is nothing to complete, one statement.
func (d *Deliverer) writeEnd(ctx context.Context, params crmdb.DeliveryEndParams, complete func(ctx context.Context, tx pgx.Tx) error) (row crmdb.DeliveryEndRow, err error) {
	if complete == nil || !OperationStatus(params.Status).Final() {
		return crmdb.New(d.pool).DeliveryEnd(ctx, params)
	}
	err = pgx.BeginFunc(ctx, d.pool, func(tx pgx.Tx) error {
		if row, err = crmdb.New(tx).DeliveryEnd(ctx, params); err != nil {
			return err
		}
		return complete(ctx, tx)
	})
	return row, err
}

func (d *Deliverer) endParams(a *attempt) crmdb.DeliveryEndParams {
	params := crmdb.DeliveryEndParams{
		ID: a.row.ID, Attempt: a.row.Attempt,
		Outcome: string(a.decision.Outcome), Status: string(a.decision.Status), Reason: string(a.decision.Reason),
		Detail:       keepable(a.decision.Detail, a.token),
		ProblemType:  keepable(string(problemType(&a.exchange)), a.token),
		PauseSeconds: d.pause(a).Seconds(), Attention: a.decision.Step == StepAttention,
		TotalSeconds: d.opts.TotalTime.Seconds(),
	}
	if a.decision.Step == StepWait {
		params.Waits = 1
	}
	if a.exchange.Status != 0 {
		status := int32(a.exchange.Status)
		params.HttpStatus = &status
	}
	if inv := a.decision.Invoice; inv != nil {
		params.InvoiceID, params.InvoiceNumber = &inv.ID, &inv.Number
	}
	return params
}

// report tells log and metrics, after the commit.
func (d *Deliverer) report(ctx context.Context, a *attempt, row crmdb.DeliveryEndRow) {
	log := a.log.With("outcome", a.decision.Outcome, "status", a.decision.Status, "reason", a.decision.Reason,
		"http_status", a.exchange.Status, "detail", keepable(a.decision.Detail, a.token))
	switch {
	case row.Flagged:
		log.WarnContext(ctx, "operation needs an operator")
	case a.decision.Status == StatusFailed:
		log.WarnContext(ctx, "operation failed")
	case a.decision.Step == StepSlow:
		log.ErrorContext(ctx, "the ERP does not accept our token", "next_attempt_at", row.DueAt)
	case a.decision.Step == StepDone:
		log.InfoContext(ctx, "operation delivered", "invoice_number", a.decision.Invoice.Number)
	default:
		log.InfoContext(ctx, "attempt will be repeated", "next_attempt_at", row.DueAt)
	}
	if d.opts.Observer == nil {
		return
	}
	d.opts.Observer.AttemptEnded(a.decision.Outcome)
	if row.Flagged {
		d.opts.Observer.OperationFlagged(a.decision.Reason)
	}
}
