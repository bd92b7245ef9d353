package httpapi

import (
	"fmt"
	"net/url"
	"strconv"

	"github.com/labstack/echo/v4"

	"invoicebridge/internal/crm"
	"invoicebridge/internal/problem"
	"invoicebridge/web"
)

func divergenceSearch(values url.Values) (f crm.DivergenceSearch, err error) {
	f = crm.DivergenceSearch{
		Kind: crm.DivergenceKind(values.Get("kind")), Key: values.Get("key"), Source: values.Get("source"), Order: values.Get("order"),
	}
	yes, no := true, false
	switch values.Get("status") {
	case "", "all":
	case "open":
		f.Resolved, f.Accepted = &no, &no
	case "accepted":
		f.Resolved, f.Accepted = &no, &yes
	case "resolved":
		f.Resolved = &yes
	default:
		return f, problem.New(problem.MalformedRequest, "The parameter status must be open, accepted, resolved or all.")
	}
	f.PageQuery, err = pageQuery(values)
	return f, err
}

func (h crmSide) showDivergences(c echo.Context) error {
	values, err := query(c, "status", "kind", "key", "source", "order", "sort", "limit", "cursor")
	if err != nil {
		return err
	}
	f, err := divergenceSearch(values)
	if err != nil {
		return err
	}
	found, err := h.console.SearchDivergences(c.Request().Context(), identity(c).Tenant, f)
	if err != nil {
		return err
	}
	l := listing{divergencesPath, values}
	page := web.CRMDivergences{
		Layout: h.layout(c, "Divergences", divergencesPath), Filter: crmDivergenceFilter(l), Lines: h.divergenceLines(c, found.Items),
		Pager: l.pager(shown(len(found.Items), "divergence", f.OldestFirst), found.Next, found.Previous),
	}
	if len(found.Items) == 0 {
		page.Empty = &web.Empty{
			Title: "No divergence matches.", Text: "As far as the runs of reconciliation have come, both sides' books agree in this.",
			Links: []web.Link{{Href: reconciliationsPath, Text: "Runs of reconciliation", About: "When the books were last compared."}},
		}
		if l.cleared() != "" {
			page.Empty.Links = append(page.Empty.Links, web.Link{Href: divergencesPath, Text: "All divergences"})
		}
	}
	return h.show(c, page)
}

func crmDivergenceFilter(l listing) web.Filter {
	f := l.filter("Find divergences")
	kinds := []string{}
	for _, k := range crm.DivergenceKinds() {
		kinds = append(kinds, string(k))
	}
	f.Fields = []web.Field{
		{Form: findForm, Name: "status", Label: "State", Type: web.FieldSelect, Value: l.values.Get("status"), Options: web.Options("any", "open", "accepted", "resolved")},
		{Form: findForm, Name: "kind", Label: "Kind", Type: web.FieldSelect, Value: l.values.Get("kind"), Options: web.Options("any", kinds...)},
		{Form: findForm, Name: "key", Label: "Key", Value: l.values.Get("key")},
	}
	f.More = []web.Field{
		{Form: findForm, Name: "source", Label: "Source", Value: l.values.Get("source")},
		{Form: findForm, Name: "order", Label: "Order", Value: l.values.Get("order")},
	}
	return f
}

func (h crmSide) divergenceLines(c echo.Context, found []crm.Divergence) (lines []web.DivergenceLine) {
	for _, d := range found {
		line := web.DivergenceLine{
			ID: "divergence-" + strconv.FormatInt(d.ID, 10), Kind: inWordsOf(string(d.Kind)), State: crmDivergenceState(d),
			Subject: d.Subject, Ours: d.Ours, Theirs: d.Theirs, Told: d.Action, FirstSeen: web.At(d.FirstSeenAt),
			LastSeen: web.At(d.LastSeenAt), Resolved: web.AtPtr(d.ResolvedAt),
		}
		if d.ResolvedAt == nil {
			line.Owner = "to be put right in the " + map[string]string{"crm": "CRM", "erp": "ERP"}[d.Owner]
		}
		if d.DecidedBy != "" {
			line.Decided = "by " + d.DecidedBy + ": " + d.DecisionReason
		}
		switch {
		case d.Key != "" && d.Kind != crm.DivergenceMissingInCRM: // that key is the ERP's own: there is no operation of it
			line.Href = operationHref(d.Key)
		case d.Order != "" && d.Kind != crm.DivergenceMissingInCRM:
			line.Href = orderHref(d.Source, d.Order)
		}
		if mayOperate(c) && d.ResolvedAt == nil {
			line.Actions = divergenceActions(c, d)
		}
		lines = append(lines, line)
	}
	return lines
}

func crmDivergenceState(d crm.Divergence) web.State {
	switch {
	case d.ResolvedAt != nil:
		return web.StateOf("resolved")
	case d.AcceptedAt != nil:
		return web.State{Tone: web.ToneOff, Text: "accepted"}
	}
	return web.State{Tone: web.ToneBad, Text: "open"}
}

func divergenceActions(c echo.Context, d crm.Divergence) (actions []web.Action) {
	id := strconv.FormatInt(d.ID, 10)
	for _, state := range d.Actions() {
		if !state.Available { // one that was taken already says so in the row
			continue
		}
		a := web.Action{
			ID: string(state.Name) + "-" + id, Path: divergencesPath + "/" + id + "/" + string(state.Name), AskReason: true,
			Button: "Accept", About: "It is known and all right as it is: it does not count as open any more.",
		}
		if state.Name == crm.ActionClose {
			a.Button, a.About = "Close", "It was put right. If reconciliation finds it again, that is a new one."
		}
		actions = append(actions, remembered(c, a))
	}
	return actions
}

func (h crmSide) pressDivergence(action crm.ActionName) echo.HandlerFunc {
	return func(c echo.Context) error {
		id, err := numberParam(c)
		if err != nil {
			return err
		}
		form, err := readForm(c, maxConsoleForm)
		if err != nil {
			return err
		}
		do, told := h.orders.AcceptDivergence, "The divergence is accepted."
		if action == crm.ActionClose {
			do, told = h.orders.CloseDivergence, "The divergence is closed."
		}
		d, err := do(c.Request().Context(), identity(c).Tenant, id, by(c, form.Get("reason")))
		if problem.Is(err, problem.NotFound) {
			return err
		}
		if err != nil {
			return h.refused(c, err, string(action)+"-"+strconv.FormatInt(id, 10), form, h.showDivergences)
		}
		return h.done(c, listing{divergencesPath, url.Values{}}.href("key", d.Key, "kind", string(d.Kind)), told)
	}
}

func (h crmSide) showReconciliations(c echo.Context) error {
	values, err := query(c, "limit", "cursor")
	if err != nil {
		return err
	}
	asked, err := pageQuery(values)
	if err != nil {
		return err
	}
	found, err := h.orders.ListReconciliations(c.Request().Context(), identity(c).Tenant, asked)
	if err != nil {
		return err
	}
	l := listing{reconciliationsPath, values}
	page := web.CRMReconciliations{
		Layout: h.layout(c, "Reconciliation", reconciliationsPath), Pager: l.pager(shown(len(found.Items), "run", false), found.Next, found.Previous),
	}
	running := false
	for _, run := range found.Items {
		running = running || run.FinishedAt == nil
		page.Lines = append(page.Lines, reconciliationLine(run))
	}
	if mayOperate(c) {
		run := web.Action{
			ID: "run", Path: reconciliationsPath, Button: "Run now", AskReason: true, About: "Compares both sides' books. It can be pressed at any time.",
		}
		if running {
			run.WhyNot = "A run is on its way."
		}
		run = remembered(c, run)
		page.Run = &run
	}
	if len(found.Items) == 0 {
		page.Empty = &web.Empty{Title: "The books were not compared yet.", Text: "That happens by itself at its time, or when an operator presses “Run now”."}
	}
	return h.show(c, page)
}

func reconciliationLine(run crm.ReconciliationRun) web.ReconciliationLine {
	line := web.ReconciliationLine{
		State: web.StateOf("running"), Phase: inWordsOf(run.Phase), By: run.RequestedBy, From: web.At(run.WindowFrom), To: web.At(run.WindowTo),
		Compared: run.Compared, Found: run.Found, Repaired: run.Repaired, Started: web.At(run.StartedAt),
		Finished: web.AtPtr(run.FinishedAt), Updated: web.At(run.UpdatedAt),
	}
	if run.WindowFrom.Unix() <= 0 {
		line.From = web.Time{Empty: "the beginning"}
	}
	if run.FinishedAt != nil {
		line.State, line.Phase = web.State{Tone: web.ToneGood, Text: "finished"}, ""
	}
	if line.By == "" {
		line.By = "the schedule"
	}
	return line
}

func (h crmSide) pressReconcile(c echo.Context) error {
	form, err := readForm(c, maxConsoleForm)
	if err != nil {
		return err
	}
	if _, err := h.orders.StartReconciliation(c.Request().Context(), identity(c).Tenant, by(c, form.Get("reason"))); err != nil {
		return h.refused(c, err, "run", form, h.showReconciliations)
	}
	return h.done(c, reconciliationsPath, "Reconciliation has begun.")
}

func (h crmSide) showSources(c echo.Context) error {
	if _, err := query(c); err != nil {
		return err
	}
	sources, err := h.orders.ListSources(c.Request().Context(), identity(c).Tenant)
	if err != nil {
		return err
	}
	page := web.CRMSources{Layout: h.layout(c, "Sources", sourcesPath)}
	for _, s := range sources {
		page.Lines = append(page.Lines, sourceLine(c, s))
	}
	if len(sources) == 0 {
		page.Empty = nothingCameIn(c)
	}
	return h.show(c, page)
}

func sourceLine(c echo.Context, s crm.Source) web.SourceLine {
	list := func(changes ...string) string {
		return listing{operationsPath, url.Values{"source": {s.Source}}}.href(changes...)
	}
	line := web.SourceLine{
		Source: s.Source, Href: list(), State: web.State{Tone: web.ToneGood, Text: "going on"}, Pending: s.Pending, Working: s.Processing,
		Unknown: s.Unknown, Flagged: s.Flagged, PendingHref: list("status", "pending"), WorkingHref: list("status", "processing"),
		UnknownHref: list("status", "unknown"), FlaggedHref: list("flagged", "yes"),
	}
	if s.Pause != nil {
		pause := pausedSource(s.Source, s.Pause)
		line.Pause, line.State = &pause, web.State{Tone: web.ToneOff, Text: "paused"}
	}
	if !mayOperate(c) {
		return line
	}
	for _, state := range s.Actions() {
		if !state.Available { // the row says whether it is paused, and by whom
			continue
		}
		a := web.Action{
			ID: string(state.Name) + "-" + url.PathEscape(s.Source), Path: sourcesPath + "/" + url.PathEscape(s.Source) + "/" + string(state.Name),
			AskReason: true, Button: "Pause", About: "No attempt begins from then on. Orders go on being taken.",
		}
		if state.Name == crm.ActionResume {
			a.Button, a.About = "Resume", "What is due is queued at once."
		}
		line.Actions = append(line.Actions, remembered(c, a))
	}
	return line
}

// pressOnSource reads which source a button was pressed on.
func pressOnSource(c echo.Context) (source string, form url.Values, err error) {
	if source, err = pathParam(c, "source"); err != nil {
		return "", nil, err
	}
	form, err = readForm(c, maxConsoleForm)
	return source, form, err
}

func (h crmSide) pressPause(c echo.Context) error {
	source, form, err := pressOnSource(c)
	if err != nil {
		return err
	}
	if _, err := h.orders.PauseSource(c.Request().Context(), identity(c).Tenant, source, by(c, form.Get("reason"))); err != nil {
		return h.refused(c, err, string(crm.ActionPause)+"-"+url.PathEscape(source), form, h.showSources)
	}
	return h.done(c, sourcesPath, "Deliveries of "+source+" are paused. Attempts that are being made end as they would.")
}

func (h crmSide) pressResume(c echo.Context) error {
	source, form, err := pressOnSource(c)
	if err != nil {
		return err
	}
	queued, err := h.orders.ResumeSource(c.Request().Context(), identity(c).Tenant, source, by(c, form.Get("reason")))
	if err != nil {
		return h.refused(c, err, string(crm.ActionResume)+"-"+url.PathEscape(source), form, h.showSources)
	}
	return h.done(c, sourcesPath, fmt.Sprintf("Deliveries of %s go on; %s were due and are queued.", source, counted(int64(queued), "operation")))
}
