package crm

import (
	"bytes"
	"context"
	"crypto/sha256"
	"log/slog"

	"invoicebridge/internal/crmdb"
	"invoicebridge/internal/erpapi"
)

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
		log: d.opts.Logger.With("tenant", row.TenantID, "operation_key", row.Key, "attempt", row.Attempt),
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

// endParams are the outcomes of a group, each at its place. What an outcome has not is 0 or "".
func (d *Deliverer) endParams(group []*ending) crmdb.DeliveryEndParams {
	p := crmdb.DeliveryEndParams{Members: int32(len(group)), TotalSeconds: d.opts.TotalTime.Seconds()}
	for _, e := range group {
		a, waits := e.a, int32(0)
		if a.decision.Step == StepWait {
			waits = 1
		}
		invoice := IssuedInvoice{}
		if a.decision.Invoice != nil {
			invoice = *a.decision.Invoice
		}
		p.Ids = append(p.Ids, a.row.ID)
		p.Attempts = append(p.Attempts, a.row.Attempt)
		p.Outcomes = append(p.Outcomes, string(a.decision.Outcome))
		p.Statuses = append(p.Statuses, string(a.decision.Status))
		p.Reasons = append(p.Reasons, string(a.decision.Reason))
		p.Details = append(p.Details, keepable(a.decision.Detail, a.token))
		p.ProblemTypes = append(p.ProblemTypes, keepable(string(problemType(&a.exchange)), a.token))
		p.HttpStatuses = append(p.HttpStatuses, int32(a.exchange.Status))
		p.InvoiceIds = append(p.InvoiceIds, invoice.ID)
		p.InvoiceNumbers = append(p.InvoiceNumbers, invoice.Number)
		p.PauseSeconds = append(p.PauseSeconds, d.pause(a).Seconds())
		p.Attentions = append(p.Attentions, a.decision.Step == StepAttention)
		p.Waits = append(p.Waits, waits)
	}
	return p
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
	d.opts.Observer.AttemptEnded(a.decision.Outcome)
	if row.Flagged {
		d.opts.Observer.OperationFlagged(a.decision.Reason)
	}
}
