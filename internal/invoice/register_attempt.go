package invoice

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"invoicebridge/internal/backoff"
	"invoicebridge/internal/erpdb"
	"invoicebridge/internal/kept"
	"invoicebridge/internal/target"
)

// maxRegistrationDetail bounds what is kept of a target's words, in bytes: they are kept in full, within reason.
const maxRegistrationDetail = 64 << 10

// registration is one attempt at a registration, from its planning to its outcome.
type registration struct {
	id     uuid.UUID
	row    erpdb.RegistrationGetStandingRow
	can    target.Capabilities
	action action
	log    *slog.Logger

	open    Target // nil: it could not be opened, openErr says why
	openErr error
	secret  target.Secret

	number     int32 // of the attempt
	lastSent   time.Duration
	verdict    verdict
	httpStatus int
}

// newAttempt plans, and opens the target before anything is on record: what can't be opened sends nothing.
func (r *Registrar) newAttempt(id uuid.UUID, row erpdb.RegistrationGetStandingRow) *registration {
	s := r.standingOf(row)
	a := &registration{
		id: id, row: row, can: s.Can, action: plan(s),
		log: r.opts.Logger.With("tenant", row.TenantID, "key", row.Key, "target", row.TargetID, "registration_id", id, "attempt", row.Attempt+1),
	}
	if a.action != actNone {
		a.open, a.secret, a.openErr = r.targets.get(row)
	}
	return a
}

// begin commits the attempt. Once it has started it runs to its end: cut off, it would leave an attempt of which nobody
// knows, and the registration waiting for the end of its lease.
func (r *Registrar) begin(ctx context.Context, a *registration) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), registerWriteLimit)
	defer cancel()
	recorded := a.action
	if recorded == actResume {
		recorded = actSend
	}
	params := erpdb.RegistrationBeginParams{
		ID: a.id, SeenAttempt: a.row.Attempt, Action: string(recorded), Worker: r.opts.Worker,
		Sends: recorded == actSend && a.openErr == nil, LeaseSeconds: r.opts.Lease.Seconds(),
	}
	if a.action == actSend && a.row.Status == string(RegistrationUnknown) {
		covers := keyCovers(a.can, r.opts.Kinds.LongestRequest).Seconds()
		params.KeyCoversSeconds = &covers
	}
	row, err := erpdb.New(r.pool).RegistrationBegin(ctx, params)
	a.number = row.Attempt
	a.lastSent = time.Duration(row.LastSentSeconds * float64(time.Second))
	return err
}

// call makes the call. It always comes to a verdict.
func (r *Registrar) call(ctx context.Context, a *registration) {
	asked := asked{
		Action: a.action, Known: a.row.Known, Doubt: a.row.Status == string(RegistrationUnknown),
		Claimed: a.row.Claimed, LastSent: a.lastSent, Can: a.can,
	}
	if a.openErr != nil {
		a.verdict = decideSent(asked, a.notOpened())
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	beating := r.beat(ctx, a, cancel)
	switch a.action {
	case actLocate:
		l := a.open.Locate(ctx, target.Query{Reference: a.row.Key, Number: a.row.Number})
		a.verdict, a.httpStatus = decideLocated(asked, l), l.HTTPStatus
	case actSend, actResume:
		s := a.open.Send(ctx, target.Submission{
			Key: a.row.Key, Reference: a.row.Key, Number: a.row.Number, Document: a.row.Document, Known: a.row.Known,
		})
		a.verdict, a.httpStatus = decideSent(asked, s), s.HTTPStatus
	case actNone:
	}
	cancel()
	<-beating
}

// notOpened is the answer of a target that could not be opened. Nothing has changed by it.
func (a *registration) notOpened() target.Sent {
	s := target.Sent{
		Outcome: target.Misconfigured, NotApplied: true, ID: a.row.Known, Resume: a.row.Known != "",
		Detail: "nothing was sent: " + a.openErr.Error(),
	}
	if a.secret.IsZero() {
		s.Outcome = target.NotAuthorised
	}
	return s
}

// beat shows signs of life until ctx ends. An attempt that was overtaken is cut off: nobody waits for its outcome, and
// what it still sends is only a risk. The channel is closed when it has ended.
func (r *Registrar) beat(ctx context.Context, a *registration, cutOff context.CancelFunc) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(r.opts.Lease / beatsPerLease)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			n, err := erpdb.New(r.pool).RegistrationExtend(ctx, r.opts.Lease.Seconds(), a.id, a.number)
			switch {
			case err != nil && ctx.Err() == nil:
				a.log.WarnContext(ctx, "a sign of life could not be written", "error", err)
			case err == nil && n == 0:
				a.log.WarnContext(ctx, "attempt was overtaken during its call")
				cutOff()
				return
			}
		}
	}()
	return done
}

// end writes the outcome, come what may of ctx.
func (r *Registrar) end(ctx context.Context, a *registration, complete func(ctx context.Context, tx pgx.Tx) error) (Next, error) {
	params := r.endParams(a)
	var row erpdb.RegistrationEndRow
	var err error
	for range registerEndTries {
		row, err = r.writeEnd(ctx, params, complete)
		if err == nil || errors.Is(err, pgx.ErrNoRows) {
			break
		}
		a.log.WarnContext(ctx, "writing the outcome of an attempt failed", "outcome", a.verdict.Outcome, "error", err)
	}
	if errors.Is(err, pgx.ErrNoRows) {
		a.log.WarnContext(ctx, "attempt was overtaken, its outcome is not written", "outcome", a.verdict.Outcome)
		return r.after(ctx, a.id)
	}
	if err != nil {
		return Next{}, fmt.Errorf("end attempt %d at registration %s: %w", a.number, a.id, err)
	}
	r.report(ctx, a, row)
	return Next{Done: a.verdict.Status.Final(), At: row.DueAt}, nil
}

// after says what is left to do where somebody else has written.
func (r *Registrar) after(ctx context.Context, id uuid.UUID) (Next, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), registerWriteLimit)
	defer cancel()
	row, err := erpdb.New(r.pool).RegistrationGetStanding(ctx, id)
	if err != nil {
		return Next{}, fmt.Errorf("read registration %s: %w", id, err)
	}
	return Next{Done: RegistrationStatus(row.Status).Final() || r.stopped(row), At: row.DueAt}, nil
}

// writeEnd is one transaction; where there is nothing to complete, one statement.
func (r *Registrar) writeEnd(ctx context.Context, params erpdb.RegistrationEndParams, complete func(ctx context.Context, tx pgx.Tx) error) (row erpdb.RegistrationEndRow, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), registerWriteLimit)
	defer cancel()
	if complete == nil || !RegistrationStatus(params.Status).Final() {
		return erpdb.New(r.pool).RegistrationEnd(ctx, params)
	}
	err = pgx.BeginFunc(ctx, r.pool, func(tx pgx.Tx) error {
		if row, err = erpdb.New(tx).RegistrationEnd(ctx, params); err != nil {
			return err
		}
		return complete(ctx, tx)
	})
	return row, err
}

func (r *Registrar) endParams(a *registration) erpdb.RegistrationEndParams {
	v := &a.verdict
	params := erpdb.RegistrationEndParams{
		ID: a.id, Attempt: a.number, Outcome: string(v.Outcome), Status: string(v.Status), Reason: string(v.Reason),
		Detail: r.keepable(a, v.Detail), Reference: r.keepable(a, v.Reference), Known: r.keepable(a, v.Known),
		Warnings: make([]string, len(v.Warnings)), Attention: v.Attention,
		Unsent:       v.Outcome == outcomeNotSent && v.Status == RegistrationPending,
		PauseSeconds: r.pause(a).Seconds(), FlaggedPauseSeconds: r.opts.BackOff.Slow.Seconds(),
		LimitSeconds: r.limit(v).Seconds(),
	}
	for i, warning := range v.Warnings {
		params.Warnings[i] = r.keepable(a, warning)
	}
	if v.Pace == paceWait && v.RetryAfter > 0 {
		params.Waits = 1
	}
	if a.httpStatus != 0 {
		status := int32(a.httpStatus)
		params.HttpStatus = &status
	}
	return params
}

func (r *Registrar) keepable(a *registration, text string) string {
	return kept.Text(text, a.secret.Reveal(), maxRegistrationDetail)
}

// limit is how long this may go on before a person is told.
func (r *Registrar) limit(v *verdict) time.Duration {
	if v.Held {
		return min(r.opts.HeldTime, r.opts.TotalTime)
	}
	return r.opts.TotalTime
}

// pause is how long to wait after an attempt: never less than the target asked for.
func (r *Registrar) pause(a *registration) time.Duration {
	v, jitter := &a.verdict, r.opts.Jitter()
	wanted := backoff.Asked(v.RetryAfter, jitter)
	growing := r.opts.BackOff.Pause(int(a.number-a.row.Waits), jitter)
	switch v.Pace {
	case paceWait:
		if v.RetryAfter > 0 {
			return wanted
		}
		return growing
	case paceGrow:
		return max(wanted, growing)
	case paceSettle:
		return max(wanted, min(growing, v.Settle))
	case paceSlow:
		return max(wanted, r.opts.BackOff.SlowPause(jitter))
	case paceDone, paceSoon:
	}
	return 0
}

// refused: there is no credential, or the target does not take it.
func (a *registration) refused() bool {
	return a.verdict.Outcome == outcomeNotAuthorised || a.verdict.NotAuthorised
}

// report tells log and metrics, after the commit.
func (r *Registrar) report(ctx context.Context, a *registration, row erpdb.RegistrationEndRow) {
	v := &a.verdict
	log := a.log.With("outcome", v.Outcome, "status", v.Status, "reason", v.Reason, "http_status", a.httpStatus,
		"detail", kept.Text(v.Detail, a.secret.Reveal(), 1000))
	switch {
	case row.NewlyFlagged:
		log.ErrorContext(ctx, "registration needs an operator")
	case v.Status == RegistrationFailed:
		log.WarnContext(ctx, "registration failed")
	case v.Status == RegistrationSucceeded:
		log.InfoContext(ctx, "invoice registered", "reference", v.Reference)
	case !a.refused():
		log.InfoContext(ctx, "registration goes on", "next_attempt_at", row.DueAt)
	}
	if a.refused() { // each time, and long before the flag: all that the tenant issues waits for it
		log.ErrorContext(ctx, "the target's credential is missing or not taken: put a valid one where credential_ref says, "+
			"or name another place with erp-api target set", "credential_ref", a.row.CredentialRef, "next_attempt_at", row.DueAt)
	}
	if r.opts.Observer != nil {
		r.opts.Observer.RegistrationAttemptEnded(string(v.Outcome))
		if a.refused() {
			r.opts.Observer.TargetNotAuthorised(a.row.TenantID, a.row.TargetID)
		}
	}
	if row.NewlyFlagged {
		r.observeFlag(v.Reason)
	}
}
