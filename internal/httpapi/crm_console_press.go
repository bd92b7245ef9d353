package httpapi

import (
	"net/url"
	"strings"

	"github.com/labstack/echo/v4"

	"invoicebridge/internal/crm"
	"invoicebridge/internal/erpapi"
	"invoicebridge/internal/logctx"
	"invoicebridge/internal/problem"
	"invoicebridge/web"
)

// pressOn reads which operation a button was pressed on, and what was typed beside it.
func (h crmSide) pressOn(c echo.Context) (key string, form url.Values, err error) {
	if key, err = pathParam(c, "key"); err != nil {
		return "", nil, err
	}
	setContext(logctx.WithOperation(c.Request().Context(), key), c)
	form, err = readForm(c, maxConsoleForm)
	return key, form, err
}

func (h crmSide) pressReplay(c echo.Context) error {
	key, form, err := h.pressOn(c)
	if err != nil {
		return err
	}
	if _, err = h.orders.Replay(c.Request().Context(), identity(c).Tenant, key, by(c, form.Get("reason"))); err != nil {
		return h.refused(c, err, string(crm.ActionReplay), form, h.showOperation)
	}
	return h.done(c, operationHref(key), "The operation is queued again, under the same key.")
}

func (h crmSide) pressCancel(c echo.Context) error {
	key, form, err := h.pressOn(c)
	if err != nil {
		return err
	}
	if _, err = h.orders.Cancel(c.Request().Context(), identity(c).Tenant, key, by(c, form.Get("reason"))); err != nil {
		return h.refused(c, err, string(crm.ActionCancel), form, h.showOperation)
	}
	return h.done(c, operationHref(key), "The operation is cancelled. Nothing of it was sent.")
}

func (h crmSide) pressRevise(c echo.Context) error {
	key, form, err := h.pressOn(c)
	if err != nil {
		return err
	}
	request, err := erpapi.DecodeInvoiceRequest([]byte(form.Get("request")))
	var revision crm.Operation
	if err == nil {
		revision, err = h.orders.Revise(c.Request().Context(), identity(c).Tenant, key, request, by(c, form.Get("reason")))
	}
	if err != nil {
		return h.refused(c, err, string(crm.ActionRevise), form, h.showOperation)
	}
	return h.done(c, operationHref(revision.Key), "This revision has taken the place of the rejected operation, and is queued.")
}

func (h crmSide) pressPropose(c echo.Context) error {
	key, form, err := h.pressOn(c)
	if err != nil {
		return err
	}
	p := crm.Proposal{Verdict: crm.Verdict(form.Get("verdict")), Evidence: form.Get("evidence")}
	link := erpapi.InvoiceLink{ID: strings.TrimSpace(form.Get("invoice_id")), Number: strings.TrimSpace(form.Get("invoice_number"))}
	if link != (erpapi.InvoiceLink{}) {
		p.Invoice = &link
	}
	if _, err = h.orders.ProposeResolution(c.Request().Context(), identity(c).Tenant, key, p, by(c, form.Get("reason"))); err != nil {
		return h.refused(c, err, string(crm.ActionResolve), form, h.showOperation)
	}
	return h.done(c, operationHref(key), "The resolution is proposed. A second person has to approve it before it counts.")
}

// decide answers the buttons of a proposal. Where it is refused, the page of the operation tells why.
func (h crmSide) decide(action crm.ActionName) echo.HandlerFunc {
	return func(c echo.Context) error {
		id, err := pathID(c)
		if err != nil {
			return err
		}
		form, err := readForm(c, maxConsoleForm)
		if err != nil {
			return err
		}
		ctx, tenant := c.Request().Context(), identity(c).Tenant
		do, told := h.orders.ApproveResolution, "The resolution is approved and carried out."
		switch action {
		case crm.ActionDecline:
			do, told = h.orders.DeclineResolution, "The resolution is declined. The operation stays as it is."
		case crm.ActionWithdraw:
			do, told = h.orders.WithdrawResolution, "The resolution is withdrawn. The operation stays as it is."
		}
		resolution, err := do(ctx, tenant, id, by(c, form.Get("reason")))
		if err == nil {
			return h.done(c, operationHref(resolution.Key), told)
		}
		if problem.Is(err, problem.NotFound) {
			return err
		}
		return h.refused(c, err, string(action)+"-"+id.String(), form, func(c echo.Context) error {
			proposal, err := h.orders.GetResolution(ctx, tenant, id)
			if err != nil {
				return err
			}
			return h.showOperationOf(c, proposal.Key)
		})
	}
}

// resolutionView is a proposal with the buttons that the viewer has on it.
func (h crmSide) resolutionView(c echo.Context, r crm.Resolution) web.ResolutionView {
	v := web.ResolutionView{
		Href: operationHref(r.Key), Key: r.Key, State: web.StateOf(string(r.Status)), Verdict: "Applied: the ERP made an invoice",
		Evidence: r.Evidence, Reason: r.Reason, By: r.ProposedBy, At: web.At(r.ProposedAt), DecidedAt: web.AtPtr(r.DecidedAt), ERPSaid: r.ERPSaid,
	}
	if r.Verdict == crm.VerdictNotApplied {
		v.Verdict = "Not applied: no invoice was made"
	}
	if r.Invoice != nil {
		v.Invoice = r.Invoice.Number + " (" + r.Invoice.ID + ")"
	}
	if r.DecidedBy != "" {
		v.Decided = "by " + r.DecidedBy + ": " + r.DecisionReason
	}
	if r.Status != crm.ResolutionOpen || !mayOperate(c) {
		return v
	}
	for _, state := range r.Actions(by(c, "")) {
		a := web.Action{
			ID: string(state.Name) + "-" + r.ID.String(), Path: resolutionsPath + "/" + r.ID.String() + "/" + string(state.Name),
			WhyNot: state.Why, AskReason: true,
		}
		switch state.Name {
		case crm.ActionApprove:
			a.Button, a.Grave, a.About = "Approve", true, "Carries it out, for good. The ERP is asked once more before."
		case crm.ActionDecline:
			a.Button, a.About = "Decline", "Ends the proposal without effect."
		case crm.ActionWithdraw:
			a.Button, a.About = "Withdraw", "Ends the proposal without effect."
		}
		v.Actions = append(v.Actions, remembered(c, a))
	}
	return v
}

func (h crmSide) showResolutions(c echo.Context) error {
	values, err := query(c, "status", "limit", "cursor")
	if err != nil {
		return err
	}
	asked, err := pageQuery(values)
	if err != nil {
		return err
	}
	found, err := h.orders.ListResolutions(c.Request().Context(), identity(c).Tenant, crm.ResolutionFilter{
		Status: crm.ResolutionStatus(values.Get("status")), PageQuery: asked,
	})
	if err != nil {
		return err
	}
	l := listing{resolutionsPath, values}
	page := web.CRMResolutions{
		Layout: h.layout(c, "Resolutions", resolutionsPath), Filter: l.filter("Find resolutions"),
		Pager: l.pager(shown(len(found.Items), "resolution", false), found.Next, found.Previous),
	}
	page.Filter.Fields = []web.Field{{
		Form: findForm, Name: "status", Label: "State", Type: web.FieldSelect, Value: values.Get("status"),
		Options: web.Options("any", string(crm.ResolutionOpen), string(crm.ResolutionApproved), string(crm.ResolutionDeclined), string(crm.ResolutionWithdrawn)),
	}}
	for _, r := range found.Items {
		page.List = append(page.List, h.resolutionView(c, r))
	}
	if len(found.Items) == 0 {
		page.Empty = &web.Empty{
			Title: "There is no resolution.",
			Text:  "One is proposed on the page of an operation that is unknown, where nobody but a person can find out what became of it.",
			Links: []web.Link{{Href: operationsPath + "?status=unknown&sort=oldest", Text: "Operations that are unknown"}},
		}
	}
	return h.show(c, page)
}
