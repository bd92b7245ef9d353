package invoice

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

	"invoicebridge/internal/backoff"
	"invoicebridge/internal/erpdb"
	"invoicebridge/internal/target"
	"invoicebridge/internal/tracectx"
)

// Limits and pauses of registrations, unless RegistrarOptions says otherwise.
const (
	DefaultRegistrationTime  = 24 * time.Hour
	DefaultHeldTime          = 4 * time.Hour
	DefaultRegistrationLease = 30 * time.Second
)

// DefaultRegistrationBackOff is how pauses at targets grow: an authority may take hours, and asking costs it something.
func DefaultRegistrationBackOff() backoff.BackOff {
	return backoff.BackOff{Base: 2 * time.Second, Cap: 15 * time.Minute, Slow: 30 * time.Minute}
}

const (
	registerWriteLimit = 10 * time.Second // for recording an attempt or its outcome, also while shutting down
	registerEndTries   = 3                // a broken connection must not cost an outcome that is known
	beatsPerLease      = 3
)

// RegistrationObserver counts what happens; it must not block. internal/jobs has one for Prometheus.
type RegistrationObserver interface {
	RegistrationAttemptEnded(outcome string)
	RegistrationFlagged(reason RegistrationReason)
	// TargetNotAuthorised is called, beside RegistrationAttemptEnded, for each attempt that a target's credential has
	// stopped: it is missing, or not taken.
	TargetNotAuthorised(tenant, target string)
}

// RegistrarOptions are a Registrar's settings. Kinds and Credential are required, the zero values of the rest usable.
type RegistrarOptions struct {
	Kinds TargetKinds
	// Credential reads what a target's credential_ref names.
	Credential func(ref string) (target.Secret, error)
	Worker     string // names this process in the attempts
	// TotalTime is how long a registration is tried before an operator is told; HeldTime the same while the target works
	// on it. Being told changes no rule: what is safe goes on, slowly.
	TotalTime, HeldTime time.Duration
	Lease               time.Duration // how long an attempt is its worker's after each sign of life
	BackOff             backoff.BackOff
	Jitter              func() float64
	Logger              *slog.Logger // nil discards
	Observer            RegistrationObserver
}

// Registrar makes invoices known at targets. It is safe for concurrent use, also by several processes on one database.
type Registrar struct {
	pool    *pgxpool.Pool
	opts    RegistrarOptions
	targets *openTargets
}

// NewRegistrar makes a Registrar on the ERP's database. Close it when it has no more to do.
func NewRegistrar(pool *pgxpool.Pool, opts RegistrarOptions) *Registrar {
	if opts.TotalTime <= 0 {
		opts.TotalTime = DefaultRegistrationTime
	}
	if opts.HeldTime <= 0 {
		opts.HeldTime = DefaultHeldTime
	}
	if opts.Lease <= 0 {
		opts.Lease = DefaultRegistrationLease
	}
	if opts.BackOff == (backoff.BackOff{}) {
		opts.BackOff = DefaultRegistrationBackOff()
	}
	if opts.Jitter == nil {
		opts.Jitter = rand.Float64
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	return &Registrar{pool: pool, opts: opts, targets: newOpenTargets(opts)}
}

// Close closes idle connections to targets.
func (r *Registrar) Close() { r.targets.close() }

// LongestAttempt is the longest that Register takes.
func (r *Registrar) LongestAttempt() time.Duration {
	return r.opts.Kinds.LongestRequest + (1+registerEndTries)*registerWriteLimit
}

// Next says what is left to do for a registration.
type Next struct {
	// Done: nothing, or nothing before a person acts.
	Done bool
	// At, unless Done, is when Register is worth calling again, by the database's clock.
	At time.Time
}

// Register makes the next attempt at a registration, if one is due and nobody else is making it, and says what is left to
// do. It may be called at any time, any number of times, by anybody.
//
// Before a request leaves, the attempt is committed; no transaction is open during the call. The outcome is one more
// transaction: attempt and registration together, and, when the registration has come to its end, whatever complete
// does with that transaction (nil: nothing). An attempt that was overtaken meanwhile writes nothing. If ctx ends during
// the call, the outcome is still written.
//
// An attempt is its worker's for as long as it shows signs of life in the database. Whoever finds one without makes its
// registration unknown first.
//
// An error means that the database failed; the registration is then worked on by whoever comes after its lease.
func (r *Registrar) Register(ctx context.Context, id uuid.UUID, complete func(ctx context.Context, tx pgx.Tx) error) (Next, error) {
	row, err := r.standing(ctx, id)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		r.opts.Logger.WarnContext(ctx, "a job names a registration that is not there", "registration_id", id)
		return Next{Done: true}, nil
	case err != nil:
		return Next{}, fmt.Errorf("read registration %s: %w", id, err)
	case RegistrationStatus(row.Status).Final() || r.stopped(row):
		return Next{Done: true}, nil
	case row.Paused && row.Status != string(RegistrationProcessing): // its job comes again when the target is resumed
		return Next{Done: true}, nil
	case !row.Due || row.Status == string(RegistrationProcessing): // the latter: somebody was quicker
		return Next{At: row.DueAt}, nil
	}
	tracectx.Set(ctx, tracectx.Tenant, row.TenantID)
	tracectx.Set(ctx, tracectx.OperationKey, row.Key)
	tracectx.Set(ctx, tracectx.InvoiceNumber, row.Number)
	a := r.newAttempt(id, row)
	if a.action == actNone {
		return r.stop(ctx, a)
	}
	// From here on, so that a request never leaves later than its attempt's record lets others expect, however long this
	// process is kept from running in between.
	calls, cancel := context.WithTimeout(ctx, r.opts.Kinds.LongestRequest)
	defer cancel()
	if err := r.begin(ctx, a); errors.Is(err, pgx.ErrNoRows) { // somebody was quicker, or has paused the target
		return Next{At: row.DueAt}, nil
	} else if err != nil {
		return Next{}, fmt.Errorf("begin an attempt at registration %s: %w", id, err)
	}
	r.call(calls, a)
	tracectx.Set(ctx, tracectx.Outcome, string(a.verdict.Outcome))
	return r.end(ctx, a, complete)
}

// standing reads what is on record. An attempt without signs of life is overtaken first.
func (r *Registrar) standing(ctx context.Context, id uuid.UUID) (erpdb.RegistrationGetStandingRow, error) {
	queries := erpdb.New(r.pool)
	row, err := queries.RegistrationGetStanding(ctx, id)
	if err != nil || row.Status != string(RegistrationProcessing) || !row.Due {
		return row, err
	}
	if _, err := overtake(ctx, queries, &id, 1); err != nil {
		return row, err
	}
	return queries.RegistrationGetStanding(ctx, id)
}

// stopped: nothing is safe, which a person was told. A target that can be asked now goes on.
func (r *Registrar) stopped(row erpdb.RegistrationGetStandingRow) bool {
	return row.Flagged && RegistrationReason(row.Reason) == ReasonNothingIsSafe && plan(r.standingOf(row)) == actNone
}

// standingOf reads what is on record. A settle time that the longest request outlasts was refused at the start; where it has
// been set since, by a command that was told of another time limit, it is not believed.
func (r *Registrar) standingOf(row erpdb.RegistrationGetStandingRow) standing {
	can := capabilitiesOf(row.KeyWindowSeconds, row.Locatable, row.AbsentAfterSeconds)
	if can.AbsenceAuthoritative {
		can.SettleTime = max(can.SettleTime, r.opts.Kinds.LongestRequest)
	}
	return standing{
		Status: RegistrationStatus(row.Status), Known: row.Known, Claimed: row.Claimed, Refused: row.Refused,
		FirstSent:      time.Duration(row.FirstSentSeconds * float64(time.Second)),
		Can:            can,
		LongestRequest: r.opts.Kinds.LongestRequest,
	}
}

// stop leaves a registration to a person.
func (r *Registrar) stop(ctx context.Context, a *registration) (Next, error) {
	flagged, err := erpdb.New(r.pool).RegistrationStop(ctx, erpdb.RegistrationStopParams{
		ID: a.id, SeenAttempt: a.row.Attempt, Reason: string(ReasonNothingIsSafe),
		Detail: "What became of the newest request is not known, and this target can neither be asked nor be sent the same again.",
	})
	if err != nil {
		return Next{}, fmt.Errorf("stop registration %s: %w", a.id, err)
	}
	if len(flagged) == 1 && flagged[0] {
		a.log.ErrorContext(ctx, "registration needs an operator", "reason", ReasonNothingIsSafe)
		r.observeFlag(ReasonNothingIsSafe)
	}
	return Next{Done: true}, nil
}

func (r *Registrar) observeFlag(reason RegistrationReason) {
	if r.opts.Observer != nil {
		r.opts.Observer.RegistrationFlagged(reason)
	}
}
