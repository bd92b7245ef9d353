package httpapi

import (
	"encoding/hex"
	"fmt"
	"strconv"

	"github.com/labstack/echo/v4"

	"invoicebridge/internal/crm"
	"invoicebridge/internal/logctx"
	"invoicebridge/web"
)

func (h crmSide) showOperation(c echo.Context) error {
	key, err := pathParam(c, "key")
	if err != nil {
		return err
	}
	return h.showOperationOf(c, key)
}

func (h crmSide) showOperationOf(c echo.Context, key string) error {
	ctx, tenant := logctx.WithOperation(c.Request().Context(), key), identity(c).Tenant
	setContext(ctx, c)
	view, err := h.orders.ViewOperation(ctx, tenant, key)
	if err != nil {
		return err
	}
	detail, err := h.console.OperationDetail(ctx, tenant, key)
	if err != nil {
		return err
	}
	page := h.operationPage(c, view, detail)
	showERPView(&page, view.Operation, h.console.AskERP(ctx, tenant, view.Operation, detail))
	return h.show(c, page)
}

func (h crmSide) operationPage(c echo.Context, v crm.OperationView, d crm.OperationDetail) web.CRMOperation {
	op := v.Operation
	role := roleText(op.Role, op.Sequence)
	page := web.CRMOperation{
		Layout: h.layout(c, op.Order+" "+role+" · operation", operationsPath),
		Source: op.Source, Order: op.Order, Role: role, Key: op.Key, State: web.StateOf(string(op.Status)), Marks: marks(op),
		Standing: standing(v), Live: !op.Status.Final(), Facts: operationFacts(op), Moments: operationTimes(op, d),
		OrderRef: web.Link{Href: orderHref(op.Source, op.Order), Text: op.Source + " / " + op.Order},
		Findings: h.divergenceLines(c, d.Divergences), Audit: crmAuditLines(d.Audit), Versions: versionLines(d.Versions),
		Request: d.Request, RequestHash: hex.EncodeToString(d.RequestHash), Minimised: web.AtPtr(d.MinimisedAt),
	}
	if op.Invoice != nil {
		page.Invoice = op.Invoice.Number
	}
	if v.Pause != nil {
		pause := pausedSource(op.Source, v.Pause)
		page.Pause = &pause
	}
	if d.Supersedes != "" {
		page.Related = append(page.Related, web.Link{About: "Supersedes", Href: operationHref(d.Supersedes), Text: d.Supersedes})
	}
	if d.SupersededBy != "" {
		page.Related = append(page.Related, web.Link{About: "Superseded by", Href: operationHref(d.SupersededBy), Text: d.SupersededBy})
	}
	page.Attempts, page.Waits = attemptLines(op.History)
	if len(op.History) == 0 && op.Attempts > 0 {
		page.Purged = counted(int64(op.Attempts), "attempt") + " were made; they are no longer kept."
	}
	if mayOperate(c) {
		page.Actions = operationActions(c, v, d)
	}
	if v.Proposal != nil {
		proposal := h.resolutionView(c, *v.Proposal)
		page.Proposal = &proposal
	}
	return page
}

// standing says where an operation stands and what comes next.
func standing(v crm.OperationView) string {
	switch op := v.Operation; {
	case op.Status == crm.StatusSucceeded:
		return "Invoiced."
	case op.Status == crm.StatusCancelled:
		return "It was taken back before anything of it was sent."
	case op.Status == crm.StatusFailed && op.SupersededAt != nil:
		return "Proven not applied; a corrected revision has taken its place."
	case op.Status == crm.StatusFailed:
		return "Proven not applied: no invoice came of it. Put right what the ERP says is wrong, by a newer version of the order or a revision."
	case op.FlaggedAt != nil:
		return "Left to an operator: nobody tries it again by itself."
	case v.Pause != nil && op.Status != crm.StatusProcessing:
		return "Held back, as its source is paused."
	case op.Status == crm.StatusProcessing:
		return "An attempt is being made."
	case op.Status == crm.StatusUnknown:
		return "A request may have had its effect. The ERP is asked, or sent the same again under the same key, which makes no second invoice."
	}
	return "Waiting for its next attempt."
}

func operationFacts(op crm.Operation) []web.Fact {
	facts := []web.Fact{
		{Heading: "Made from", Text: "version " + strconv.FormatInt(op.OrderVersion, 10) + " of the order"},
		{Heading: "Attempts", Text: attemptsText(op)},
	}
	if text := why(op); text != "" {
		facts = append(facts, web.Fact{Heading: "Reason", Text: text})
	}
	if op.ChangedAfterDeliveryVersion != nil {
		facts = append(facts, web.Fact{
			Heading: "Order changed afterwards",
			Text:    fmt.Sprintf("Version %d of the order wants this invoice otherwise than it was sent. A credit note or a correction puts it right.", *op.ChangedAfterDeliveryVersion),
		})
	}
	return facts
}

func attemptsText(op crm.Operation) string {
	text := strconv.Itoa(int(op.Attempts))
	if op.Waits > 0 {
		text += fmt.Sprintf(", of which %d were told to wait", op.Waits)
	}
	return text
}

func operationTimes(op crm.Operation, d crm.OperationDetail) []web.NamedTime {
	times := []web.NamedTime{{Heading: "Made", At: web.At(op.CreatedAt)}, {Heading: "First sent", At: web.Time{Empty: "not yet"}}}
	if op.FirstSentAt != nil {
		times[1].At = web.At(*op.FirstSentAt)
	}
	for _, t := range []web.NamedTime{
		{Heading: "Next attempt", At: web.AtPtr(op.NextAttemptAt)}, {Heading: "The attempt ends by", At: web.AtPtr(d.LeaseUntil)},
		{Heading: "Left to an operator", At: web.AtPtr(op.FlaggedAt)}, {Heading: "Ended", At: web.AtPtr(op.FinishedAt)},
		{Heading: "Superseded", At: web.AtPtr(op.SupersededAt)},
	} {
		if !t.At.At.IsZero() {
			times = append(times, t)
		}
	}
	return times
}

// attemptLines tells attempts and waits apart.
func attemptLines(history []crm.OperationAttempt) (attempts, waits []web.AttemptLine) {
	for _, a := range history {
		line := web.AttemptLine{
			Number: int(a.Number), Started: web.At(a.StartedAt), Outcome: outcomeState(a.Outcome), Problem: a.ProblemType,
			Detail: a.Detail, Worker: a.Worker,
		}
		if a.HTTPStatus != nil {
			line.Status = strconv.Itoa(int(*a.HTTPStatus))
		}
		if a.FinishedAt != nil {
			line.Duration = web.Duration(a.FinishedAt.Sub(a.StartedAt))
		}
		if a.Outcome == crm.OutcomeWait {
			waits = append(waits, line)
		} else {
			attempts = append(attempts, line)
		}
	}
	return attempts, waits
}

func outcomeState(o crm.AttemptOutcome) web.State {
	switch o {
	case "sent":
		return web.State{Tone: web.ToneBusy, Text: "being sent"}
	case crm.OutcomeReplayed:
		return web.State{Tone: web.ToneGood, Text: "replayed"}
	case crm.OutcomeWait:
		return web.State{Tone: web.ToneWait, Text: "wait"}
	case crm.OutcomeWrongAnswer:
		return web.State{Tone: web.ToneUnknown, Text: "wrong answer"}
	}
	return web.StateOf(string(o))
}

// operationActions are the buttons, each with the reason where it is not available.
func operationActions(c echo.Context, v crm.OperationView, d crm.OperationDetail) []web.Action {
	path := operationHref(v.Key) + "/"
	var actions []web.Action
	for _, state := range v.Actions {
		a := web.Action{ID: string(state.Name), Path: path + string(state.Name), WhyNot: state.Why, AskReason: true}
		switch state.Name {
		case crm.ActionReplay:
			a.Button, a.About = "Replay", "One more attempt at once, under the same key and with the same request. It can make no second invoice."
		case crm.ActionCancel:
			a.Button, a.Grave, a.About = "Cancel", true, "Takes it back for good. Nothing of it has been sent."
		case crm.ActionRevise:
			a.Button, a.About = "Revise", "A new operation under a new key takes its place, with the corrected request."
			a.Fields = []web.Field{{
				Form: a.ID, Name: "request", Label: "Corrected request", Type: web.FieldArea, Value: d.Request, Required: true, Wide: true,
				Help: "JSON, in the form of the ERP's POST /v1/invoices. Source, order, role and sequence stay.",
			}}
		case crm.ActionResolve:
			a.Button, a.About = "Propose a resolution", "Says what became of it. It counts when a second person has approved it."
			a.Fields = proposalFields(a.ID)
		}
		actions = append(actions, remembered(c, a))
	}
	return actions
}

func proposalFields(form string) []web.Field {
	return []web.Field{
		{
			Form: form, Name: "verdict", Label: "What became of it", Type: web.FieldSelect, Required: true,
			Options: []web.Option{
				{Value: "", Text: "choose"}, {Value: string(crm.VerdictApplied), Text: "applied: the ERP made an invoice"},
				{Value: string(crm.VerdictNotApplied), Text: "not applied: no invoice was made"},
			},
		},
		{Form: form, Name: "invoice_id", Label: "Invoice id", Help: "If applied."},
		{Form: form, Name: "invoice_number", Label: "Invoice number", Help: "If applied."},
		{
			Form: form, Name: "evidence", Label: "Evidence", Type: web.FieldArea, Required: true, Wide: true,
			Help: "Where it was looked up, who was asked, what they said.",
		},
	}
}

// showERPView puts both views side by side.
func showERPView(page *web.CRMOperation, op crm.Operation, v crm.ERPView) {
	page.Asked, page.Silent = web.At(v.AskedAt), v.Silent
	page.Views = web.Compare{Caption: "What is known of this operation", Left: "Here", Right: "At the ERP"}
	for _, r := range v.Rows {
		page.Views.Rows = append(page.Views.Rows, web.CompareRow{Label: r.Name, Left: r.Ours, Right: r.Theirs, Differs: r.Differs})
	}
	n := page.Views.Differences()
	page.Differs = n > 0
	switch {
	case v.Elsewhere != nil:
		page.Differs = true
		page.Verdict = fmt.Sprintf("The ERP does not know this key. For the same order and role it has invoice %s, under the key %s.", v.Elsewhere.Number, v.Elsewhere.OperationKey)
	case !v.Known && op.Status == crm.StatusSucceeded:
		page.Verdict = "It has succeeded here, and the ERP does not know the key. Reconciliation shows what to do."
	case !v.Known && op.Status.Final():
		page.Verdict = "Neither side has an invoice of it."
	case !v.Known:
		page.Verdict = "The ERP does not know the key so far. While a request may be on its way, that proves nothing."
	case n == 0:
		page.Verdict = "Both sides agree."
	case n == 1:
		page.Verdict = "One member differs."
	default:
		page.Verdict = strconv.Itoa(n) + " members differ."
	}
}

func versionLines(versions []crm.OrderVersion) (lines []web.VersionLine) {
	for _, v := range versions {
		lines = append(lines, web.VersionLine{
			Received: web.At(v.ReceivedAt), Version: strconv.FormatInt(v.Version, 10), Channel: string(v.Channel),
			MessageID: v.MessageID, Outcome: web.StateOf(string(v.Outcome)), Detail: v.Detail,
		})
	}
	return lines
}
