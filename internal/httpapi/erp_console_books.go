package httpapi

import (
	"net/url"
	"strings"

	"github.com/labstack/echo/v4"

	"invoicebridge/internal/auth"
	"invoicebridge/internal/invoice"
	"invoicebridge/web"
)

const runsShown = 10

func (e erp) showDivergences(c echo.Context) error {
	values, err := asked(c, "kind", "state", "limit", "after", "before")
	if err != nil {
		return err
	}
	wanted, err := walkOf(values)
	if err != nil {
		return err
	}
	ctx, tenant := c.Request().Context(), identity(c).Tenant
	filter := invoice.DivergenceFilter{Kind: values.Get("kind"), State: invoice.DivergenceState(values.Get("state"))}
	found, err := e.desk.SearchDivergences(ctx, tenant, filter, wanted)
	if err != nil {
		return err
	}
	runs, err := e.desk.Reconciliations(ctx, tenant, runsShown)
	if err != nil {
		return err
	}
	l := listing{divergencesPath, values}
	page := web.ERPDivergences{
		Layout: e.layout(c, "Divergences", divergencesPath), Filter: erpDivergenceFilter(l),
		Pager: l.walker(shown(len(found.Items), "divergence", false), found.Next, found.Previous),
	}
	for _, d := range found.Items {
		page.Lines = append(page.Lines, erpDivergenceLine(c, d))
	}
	if len(found.Items) == 0 {
		page.Empty = &web.Empty{
			Title: "No divergence matches.", Text: "As far as the comparisons have come, the books here and at the targets agree in this.",
			Links: []web.Link{{Href: "#comparisons", Text: "Comparisons", About: "When the books were last compared."}},
		}
		if l.isNarrowed() {
			page.Empty.Links = append(page.Empty.Links, web.Link{Href: divergencesPath, Text: "All divergences"})
		}
	}
	for _, r := range runs {
		page.Runs = append(page.Runs, comparisonLine(r))
	}
	if len(runs) == 0 {
		page.NoRuns = &web.Empty{Title: "Nothing was compared yet.", Text: "That happens by itself at its time, or when an operator presses “Compare now”."}
	}
	if mayOperate(c) {
		a := remembered(c, web.Action{
			ID: "reconcile", Path: divergencesPath + "/reconcile", Button: "Compare now", AskReason: true, WhyNot: invoice.ReconcileAction(runs).Why,
			About: "Asks the targets about what was registered. Nothing is ever sent by it.",
		})
		page.Run = &a
	}
	return e.show(c, page)
}

func erpDivergenceFilter(l listing) web.Filter {
	f := l.filter("Find divergences")
	f.Fields = []web.Field{
		{Form: findForm, Name: "state", Label: "State", Type: web.FieldSelect, Value: l.values.Get("state"), Options: web.Options("any", "open", "accepted", "resolved")},
		{Form: findForm, Name: "kind", Label: "Kind", Type: web.FieldSelect, Value: l.values.Get("kind"), Options: web.Options("any", invoice.DivergenceKinds()...)},
	}
	return f
}

func erpDivergenceLine(c echo.Context, d invoice.DivergenceView) web.DivergenceLine {
	line := web.DivergenceLine{
		ID: "divergence-" + serial(d.ID), Kind: inWordsOf(d.Kind), State: web.State{Tone: web.ToneBad, Text: "open"}, Subject: d.Subject,
		Href: registrationHref(d.Subject), Ours: d.Ours, Theirs: d.Theirs, Told: d.Action, FirstSeen: web.At(d.FirstSeenAt),
		LastSeen: web.At(d.LastSeenAt), Resolved: web.AtPtr(d.ResolvedAt),
	}
	switch d.State() {
	case invoice.DivergenceResolved:
		line.State = web.StateOf("resolved")
	case invoice.DivergenceAccepted:
		line.State = web.State{Tone: web.ToneOff, Text: "accepted"}
	case invoice.DivergenceOpen:
	}
	if d.Invoice != nil {
		line.Subject = d.Invoice.Number
	}
	if d.ResolvedAt == nil {
		line.Owner = "to be put right " + map[string]string{"erp": "here", "target": "at the target"}[d.Owner]
	}
	if d.DecidedBy != "" {
		line.Decided = "by " + d.DecidedBy + ": " + d.DecisionReason
	}
	if !mayOperate(c) {
		return line
	}
	for _, state := range d.Actions() {
		if !state.Available { // the row says so
			continue
		}
		a := web.Action{
			ID: string(state.Name) + "-" + serial(d.ID), Path: divergencesPath + "/" + serial(d.ID) + "/" + string(state.Name), AskReason: true,
			Button: "Accept", About: "It is known and all right as it is: it no longer counts as open.",
		}
		if state.Name == invoice.ActionClose {
			a.Button, a.About = "Close", "It was put right. If it is found again, it opens anew."
		}
		line.Actions = append(line.Actions, remembered(c, a))
	}
	return line
}

func comparisonLine(r invoice.ReconciliationRun) web.ReconciliationLine {
	line := web.ReconciliationLine{
		State: web.StateOf("running"), Phase: r.Phase, By: r.RequestedBy, From: web.At(r.WindowFrom), To: web.At(r.WindowTo), Compared: r.Compared,
		Found: r.Found, Repaired: r.Repaired, Started: web.At(r.StartedAt), Finished: web.AtPtr(r.FinishedAt), Updated: web.At(r.UpdatedAt),
	}
	if r.FinishedAt != nil {
		line.State, line.Phase = web.State{Tone: web.ToneGood, Text: "done"}, ""
	}
	if line.By == "" {
		line.By = "schedule"
	}
	return line
}

func (e erp) pressReconcile(c echo.Context) error {
	form, err := readForm(c, maxConsoleForm)
	if err != nil {
		return err
	}
	if _, err := e.desk.StartReconciliation(c.Request().Context(), identity(c).Tenant, by(c, form.Get("reason"))); err != nil {
		return e.refused(c, err, "reconcile", form, e.showDivergences)
	}
	return e.done(c, divergencesPath+"#comparisons", "A comparison has begun.")
}

func (e erp) pressDivergence(action invoice.ActionName) echo.HandlerFunc {
	return func(c echo.Context) error {
		id, err := serialParam(c)
		if err != nil {
			return err
		}
		form, err := readForm(c, maxConsoleForm)
		if err != nil {
			return err
		}
		do, told := e.desk.AcceptDivergence, "The divergence is accepted."
		if action == invoice.ActionClose {
			do, told = e.desk.CloseDivergence, "The divergence is closed."
		}
		if err := do(c.Request().Context(), identity(c).Tenant, id, by(c, form.Get("reason"))); err != nil {
			return e.refused(c, err, string(action)+"-"+serial(id), form, e.showDivergences)
		}
		return e.done(c, divergencesPath, told)
	}
}

func (e erp) showConflicts(c echo.Context) error {
	values, err := query(c, "key", "limit", "after", "before")
	if err != nil {
		return err
	}
	wanted, err := walkOf(values)
	if err != nil {
		return err
	}
	found, err := e.desk.ListConflicts(c.Request().Context(), identity(c).Tenant, values.Get("key"), wanted)
	if err != nil {
		return err
	}
	l := listing{conflictsPath, values}
	page := web.ERPConflicts{
		Layout: e.layout(c, "Key conflicts", conflictsPath), Filter: l.filter("Find key conflicts"),
		Pager: l.walker(shown(len(found.Items), "conflict", false), found.Next, found.Previous),
	}
	page.Filter.Fields = []web.Field{{Form: findForm, Name: "key", Label: "Operation key", Value: values.Get("key")}}
	for _, k := range found.Items {
		line := web.ConflictLine{At: web.At(k.OccurredAt), Key: k.Key, Caller: k.CallerLabel, Token: k.Caller, Differences: k.Differences}
		if k.InvoiceID != nil {
			line.Invoice = web.Link{Href: invoiceHref(k.InvoiceID.String()), Text: k.InvoiceNumber}
		}
		page.Lines = append(page.Lines, line)
	}
	if len(found.Items) == 0 {
		page.Empty = &web.Empty{
			Title: "No key came back with other content.", Text: "That is as it should be: a key is made once for each intention.",
			Links: []web.Link{{Href: ProblemPath("idempotency-key-reused"), Text: "What a caller is told then"}},
		}
		if l.isNarrowed() {
			page.Empty = &web.Empty{
				Title: "No conflict of this key.", Text: "Keys are compared whole.", Links: []web.Link{{Href: conflictsPath, Text: "All key conflicts"}},
			}
		}
	}
	return e.show(c, page)
}

func (e erp) showAudit(c echo.Context) error {
	values, err := query(c, "actor", "action", "subject", "from", "to", "limit", "after", "before")
	if err != nil {
		return err
	}
	filter, err := erpAuditFilter(values)
	if err != nil {
		return err
	}
	wanted, err := walkOf(values)
	if err != nil {
		return err
	}
	found, err := e.desk.ListAudit(c.Request().Context(), identity(c).Tenant, filter, wanted)
	if err != nil {
		return err
	}
	l := listing{auditPath, values}
	page := web.ERPAudit{
		Layout: e.layout(c, "Audit", auditPath), Filter: l.filter("Find in the audit"),
		Pager: l.walker(shown(len(found.Items), "entry", false), found.Next, found.Previous),
	}
	for _, field := range []struct{ name, label, hint string }{
		{"actor", "Who", "log-in name or token id"}, {"action", "What", "target.pause"}, {"subject", "On what", "id, key or number"},
	} {
		page.Filter.Fields = append(page.Filter.Fields, web.Field{Form: findForm, Name: field.name, Label: field.label, Value: values.Get(field.name), Hint: field.hint})
	}
	page.Filter.More = l.rangeFields()
	for _, a := range found.Items {
		page.Lines = append(page.Lines, erpAuditLine(c, a))
	}
	if len(found.Items) == 0 {
		page.Empty = &web.Empty{Title: "Nobody has changed anything by hand.", Text: "Every button of this console, and every command that changes something, leaves an entry here."}
		if l.isNarrowed() {
			page.Empty = &web.Empty{Title: "No entry matches.", Text: "Texts are compared whole.", Links: []web.Link{{Href: auditPath, Text: "The whole audit"}}}
		}
	}
	return e.show(c, page)
}

func erpAuditLine(c echo.Context, a invoice.AuditEntry) web.AuditLine {
	line := web.AuditLine{
		At: web.At(a.OccurredAt), Actor: a.Actor, Action: a.Action, Subject: a.Subject, Href: erpSubjectHref(c, a), Reason: a.Reason, Way: a.Via,
		Request: a.RequestID,
	}
	if a.Address != "" {
		line.Way += ", " + a.Address
	}
	return line
}

// erpSubjectHref is the page of what somebody acted on; "" where it has none, or none for who looks.
func erpSubjectHref(c echo.Context, a invoice.AuditEntry) string {
	what, _, _ := strings.Cut(a.Action, ".")
	switch {
	case what == "registration":
		return registrationHref(a.Subject)
	case what == "target":
		id, _, _ := strings.Cut(a.Subject, " ") // with all that was set behind it
		return targetsPath + "#target-" + url.PathEscape(id)
	case what == "divergence":
		return divergencesPath + "#divergence-" + url.PathEscape(a.Subject)
	case what == "reconciliation":
		return divergencesPath + "#comparisons"
	case what == "token" && identity(c).May(auth.MayAdminister):
		return tokensPath + "#token-" + url.PathEscape(a.Subject)
	}
	return ""
}

func (e erp) showTokens(c echo.Context) error { return e.showTokensWith(c, nil) }

func (e erp) showTokensWith(c echo.Context, made *web.NewToken) error {
	tokens, err := e.tokens.ListTokens(c.Request().Context(), identity(c).Tenant)
	if err != nil {
		return err
	}
	roles := web.Options("choose", "reader", "writer", "admin")
	if identity(c).Service { // the figures are the whole service's
		roles = append(roles, web.Option{Value: "metrics", Text: "metrics"})
	}
	page := web.ERPTokens{
		Layout: e.layout(c, "Tokens", tokensPath), New: made,
		Make: remembered(c, web.Action{
			ID: "make", Path: tokensPath, Button: "Make a token", AskReason: true, About: "For a program that calls the API. Its secret is shown once.",
			Fields: []web.Field{
				{Form: "make", Name: "label", Label: "What it is for", Required: true, Hint: "the CRM"},
				{Form: "make", Name: "role", Label: "Role", Type: web.FieldSelect, Required: true, Options: roles},
			},
		}),
	}
	for _, t := range tokens {
		page.Lines = append(page.Lines, tokenLine(c, t))
	}
	if len(tokens) == 0 {
		page.Empty = &web.Empty{Title: "There is no token.", Text: "Without one no program can issue invoices. Make one above."}
	}
	return e.show(c, page)
}

func tokenLine(c echo.Context, t auth.Token) web.TokenLine {
	line := web.TokenLine{
		ID: t.ID, Label: t.Label, Role: string(t.Role), Owner: "a machine's", State: web.StateOf("active"), Created: web.At(t.CreatedAt), Revoked: web.AtPtr(t.RevokedAt),
	}
	if t.Owner != nil {
		line.Owner = t.Owner.Name
	}
	if t.RevokedAt != nil {
		line.State = web.State{Tone: web.ToneOff, Text: "revoked"}
		return line
	}
	line.Actions = []web.Action{remembered(c, web.Action{
		ID: "revoke-" + t.ID, Path: tokensPath + "/" + t.ID + "/revoke", Button: "Revoke", AskReason: true, Grave: true,
		About: "From the next request on it opens nothing. Nobody takes it back.",
	})}
	return line
}

// pressMakeToken answers with the page itself: the secret is to stand nowhere but on it.
func (e erp) pressMakeToken(c echo.Context) error {
	form, err := readForm(c, maxConsoleForm)
	if err != nil {
		return err
	}
	role := auth.Role(form.Get("role"))
	if role == auth.RoleMetrics && !identity(c).Service {
		role = "" // is told as no role
	}
	id, text, err := e.tokens.CreateTokenByHand(c.Request().Context(), identity(c).Tenant, role, form.Get("label"), by(c, form.Get("reason")))
	if err != nil {
		return e.refused(c, err, "make", form, e.showTokens)
	}
	return e.showTokensWith(c, &web.NewToken{ID: id, Label: form.Get("label"), Text: text})
}

func (e erp) pressRevokeToken(c echo.Context) error {
	form, err := readForm(c, maxConsoleForm)
	if err != nil {
		return err
	}
	id := c.Param("id")
	if _, err := e.tokens.RevokeTokenByHand(c.Request().Context(), identity(c).Tenant, id, by(c, form.Get("reason"))); err != nil {
		return e.refused(c, err, "revoke-"+id, form, e.showTokens)
	}
	return e.done(c, tokensPath, "The token is revoked.")
}
