package invoice

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"invoicebridge/internal/erpdb"
	"invoicebridge/internal/kept"
	"invoicebridge/internal/target"
)

// The kinds of divergence between the ERP and its targets.
const (
	DivergenceRegisteredTwice      = "registered_twice"       // the target has more than the one
	DivergenceRegisteredButUnknown = "registered_but_unknown" // it has landed, and nobody here knew
	DivergenceHeldTooLong          = "held_too_long"          // the target has it and does not finish
	DivergenceStatusDiffers        = "status_differs"         // registered here and not there, or the other way round
)

// DivergenceKinds are all kinds that the ERP finds at targets.
func DivergenceKinds() []string {
	return []string{DivergenceRegisteredTwice, DivergenceRegisteredButUnknown, DivergenceHeldTooLong, DivergenceStatusDiffers}
}

// Whose books have to be put right.
const (
	ownerERP    = "erp"
	ownerTarget = "target"
)

// maxSilent questions in a row without an answer, and a target is left to the next run.
const maxSilent = 3

// comparison is one registration that its target is asked about.
type comparison struct {
	id   uuid.UUID
	row  erpdb.RegistrationGetStandingRow
	more erpdb.ReconciliationGetRegistrationRow
}

// told is the registration in the words of a divergence.
func (c *comparison) told() string {
	text := fmt.Sprintf("invoice %s at %s is %s", c.row.Number, c.row.TargetID, c.row.Status)
	if c.row.Reason != "" {
		text += " (" + c.row.Reason + ")"
	}
	if c.more.Reference != "" {
		text += ", reference " + c.more.Reference
	}
	return text
}

func (c *comparison) finding(kind, owner, theirs, action string) targetFinding {
	return targetFinding{
		kind: kind, owner: owner, subject: c.id.String(), source: c.more.Source, order: c.more.OrderID, key: c.row.Key,
		ours: c.told(), theirs: theirs, action: action,
	}
}

// compare asks about one registration. answered says whether what was found, or that nothing was, is the target's word.
func (run *targetRun) compare(ctx context.Context, b *targetBatch, id uuid.UUID) (answered bool, err error) {
	c := &comparison{id: id}
	if c.row, err = run.registrar.standing(ctx, id); errors.Is(err, pgx.ErrNoRows) {
		return true, nil
	}
	if err == nil {
		c.more, err = erpdb.New(run.pool).ReconciliationGetRegistration(ctx, run.tenant, id)
	}
	if err != nil {
		return false, fmt.Errorf("read registration %s: %w", id, err)
	}
	status := RegistrationStatus(c.row.Status)
	switch {
	case status == RegistrationPending:
		return true, nil // nothing has been sent that may have had an effect
	case status == RegistrationProcessing || !c.row.Locatable:
		return false, nil
	case c.row.Paused: // nobody is asked there, and that is no silence either
		b.unanswered++
		return false, nil
	case status == RegistrationUnknown && c.more.AskedToWait: // which is no silence: others may have an answer
		b.unanswered++
		return false, nil
	case run.silent[c.row.TargetID] >= maxSilent:
		b.unanswered++
		return false, nil
	case status == RegistrationUnknown && c.row.Known == "":
		var busy bool
		if answered, busy, err = run.settle(ctx, b, c); busy {
			return false, nil
		}
	default: // of what is begun the registrar sends the rest by itself: here it is only asked about
		answered = run.look(ctx, b, c)
	}
	if err != nil || ctx.Err() != nil {
		return false, err
	}
	if answered {
		run.silent[c.row.TargetID] = 0
		b.compared++
		return true, nil
	}
	run.silent[c.row.TargetID]++
	b.unanswered++
	return false, nil
}

// settle asks by an attempt: what it learns changes the registration under the guard of every attempt. busy: somebody else
// has the registration, and will learn the same.
func (run *targetRun) settle(ctx context.Context, b *targetBatch, c *comparison) (answered, busy bool, err error) {
	a, err := run.registrar.ask(ctx, c.id, c.row)
	if err != nil {
		return false, false, fmt.Errorf("ask about registration %s: %w", c.id, err)
	}
	if a == nil {
		return false, true, nil
	}
	v := &a.verdict
	theirs := string(v.Outcome) + ": " + run.registrar.keepable(a, v.Detail)
	switch v.Outcome {
	case outcomeLanded:
		f := c.finding(DivergenceRegisteredButUnknown, ownerERP, theirs, "succeeded with "+v.Reference)
		f.repaired = true
		b.add(f)
	case outcomeRejected:
		f := c.finding(DivergenceStatusDiffers, ownerERP, theirs, "failed: the target has refused it")
		f.repaired = true
		b.add(f)
	case outcomeForeign:
		b.add(c.finding(DivergenceStatusDiffers, ownerTarget, theirs, actionAsk))
	case outcomeHeld:
		run.held(b, c, theirs)
	case outcomeAbsent: // the registrar's rules say what that proves
	default:
		return false, false, nil
	}
	if v.Reason == ReasonDuplicate {
		b.add(c.finding(DivergenceRegisteredTwice, ownerTarget, theirs, actionAsk))
	}
	return true, false, nil
}

// What is done about what is not settled by itself.
const (
	actionAsk  = "to be cleared with the target: nothing was changed"
	actionLook = "to be looked at: nothing was changed"
	actionWait = "asked again by itself; to be cleared with the target"
)

func (run *targetRun) held(b *targetBatch, c *comparison, theirs string) {
	since := time.Duration(c.more.TriedSeconds * float64(time.Second))
	if since > run.registrar.opts.HeldTime {
		b.add(c.finding(DivergenceHeldTooLong, ownerTarget, fmt.Sprintf("for %s: %s", since.Round(time.Second), theirs), actionWait))
	}
}

// look asks about a registration and changes nothing here.
func (run *targetRun) look(ctx context.Context, b *targetBatch, c *comparison) (answered bool) {
	t, secret, err := run.registrar.targets.get(c.row)
	if err != nil {
		run.log.WarnContext(ctx, "a target can't be opened", "target", c.row.TargetID, "error", err)
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, run.registrar.opts.Kinds.LongestRequest)
	defer cancel()
	l := t.Locate(ctx, target.Query{Reference: c.row.Key, Number: c.row.Number})
	if l.State == target.Inconclusive && l.ForeignInvoice == "" {
		run.log.WarnContext(ctx, "left to the next reconciliation", "target", c.row.TargetID, "key", c.row.Key,
			"detail", kept.Text(l.Detail, secret.Reveal(), maxToldLength))
		return false
	}
	run.judge(b, c, l, kept.Text(toldLocated(l), secret.Reveal(), maxToldLength))
	return true
}

// judge compares what is on record with what the target says, in the words of theirs.
func (run *targetRun) judge(b *targetBatch, c *comparison, l target.Located, theirs string) {
	if len(l.Duplicates) > 0 {
		b.add(c.finding(DivergenceRegisteredTwice, ownerTarget, theirs+"; more than the one: "+strings.Join(l.Duplicates, ", "), actionAsk))
	}
	switch status := RegistrationStatus(c.row.Status); {
	case status == RegistrationUnknown && l.State == target.Landed:
		b.add(c.finding(DivergenceRegisteredButUnknown, ownerERP, theirs, "settled by the next attempt"))
	case status == RegistrationUnknown && l.State == target.StateHeld:
		run.held(b, c, theirs)
	case status == RegistrationUnknown:
	case l.ForeignInvoice != "":
		if status == RegistrationSucceeded {
			b.add(c.finding(DivergenceStatusDiffers, ownerTarget, theirs, actionAsk))
		}
	case status == RegistrationFailed && (l.State == target.Landed || l.State == target.StateHeld):
		b.add(c.finding(DivergenceStatusDiffers, ownerERP, theirs, actionLook))
	case status == RegistrationFailed:
	case l.State == target.Landed && l.Reference == c.more.Reference:
	case l.State == target.Absent && !run.absenceProves(c):
	default:
		b.add(c.finding(DivergenceStatusDiffers, ownerTarget, theirs, actionAsk))
	}
}

// absenceProves: where it does not, the target may show later what it has.
func (run *targetRun) absenceProves(c *comparison) bool {
	can := run.registrar.standingOf(c.row).Can
	return can.AbsenceAuthoritative && time.Duration(c.more.LastSentSeconds*float64(time.Second)) > can.SettleTime
}

func toldLocated(l target.Located) string {
	text := string(l.State)
	switch {
	case l.ForeignInvoice != "":
		text = "another invoice, " + l.ForeignInvoice
	case l.Reference != "":
		text += ", reference " + l.Reference
	}
	return text + ": " + l.Detail
}

// ask makes an attempt that asks, whatever the next one would have been, and whenever it would have been due. It gives the
// attempt whose outcome it has written; nil if somebody else has the registration.
func (r *Registrar) ask(ctx context.Context, id uuid.UUID, row erpdb.RegistrationGetStandingRow) (*registration, error) {
	a := r.newAttempt(id, row)
	if a.action == actNone {
		a.open, a.secret, a.openErr = r.targets.get(row)
	}
	a.action = actLocate
	if a.openErr != nil {
		a.verdict = verdict{Outcome: outcomeInconclusive, Detail: a.openErr.Error()}
		return a, nil
	}
	if _, err := erpdb.New(r.pool).ReconciliationMakeDue(ctx, id, row.Attempt); err != nil {
		return nil, err
	}
	calls, cancel := context.WithTimeout(ctx, r.opts.Kinds.LongestRequest)
	defer cancel()
	if err := r.begin(ctx, a); errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	r.call(calls, a)
	if _, err := r.end(ctx, a, nil); err != nil {
		return nil, err
	}
	after, err := erpdb.New(r.pool).RegistrationGetStanding(context.WithoutCancel(ctx), id)
	if err != nil || after.Attempt != a.number || after.Status != string(a.verdict.Status) {
		return nil, err
	}
	return a, nil
}
