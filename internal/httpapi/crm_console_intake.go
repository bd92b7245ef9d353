package httpapi

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/labstack/echo/v4"

	"invoicebridge/internal/crm"
	"invoicebridge/internal/problem"
	"invoicebridge/web"
)

func refusalFilter(values url.Values) (f crm.RefusalFilter, err error) {
	f = crm.RefusalFilter{
		Problem: problem.Type(values.Get("problem")), Channel: crm.Channel(values.Get("channel")), Source: values.Get("source"), Order: values.Get("order"),
	}
	if f.From, f.To, err = timeRange(values); err != nil {
		return f, err
	}
	f.PageQuery, err = pageQuery(values)
	return f, err
}

func refusalParams() []string {
	return []string{"problem", "channel", "source", "order", "from", "to", "sort", "limit", "cursor"}
}

func (h crmSide) showIntake(c echo.Context) error {
	values, err := query(c, refusalParams()...)
	if err != nil {
		return err
	}
	f, err := refusalFilter(values)
	if err != nil {
		return err
	}
	ctx, tenant := c.Request().Context(), identity(c).Tenant
	found, err := h.console.ListRefusals(ctx, tenant, f)
	if err != nil {
		return err
	}
	full, err := h.console.ListFullHours(ctx, tenant)
	if err != nil {
		return err
	}
	l := listing{intakePath, values}
	page := web.CRMIntake{
		Layout: h.layout(c, "Refused intake", intakePath), Filter: intakeFilter(l),
		Pager: l.pager(shown(len(found.Items), "refusal", f.OldestFirst), found.Next, found.Previous),
	}
	for _, hour := range full {
		page.Full = append(page.Full, web.FullHour{
			From: web.At(hour.Hour),
			Text: fmt.Sprintf("%d calls were refused; the first %d of them are kept here.", hour.Refused, crm.RefusalsPerHour),
		})
	}
	for _, r := range found.Items {
		page.Lines = append(page.Lines, refusalLine(r))
	}
	if len(found.Items) == 0 {
		page.Empty = &web.Empty{
			Title: "Nothing was turned away.", Text: "What can't be read, is not valid, or contradicts a version that is known would stand here.",
			Links: []web.Link{{Href: operationsPath, Text: "Operations", About: "What was taken in."}, {Href: importsPath, Text: "Imports", About: "Files, with the rows that were not taken."}},
		}
		if l.cleared() != "" {
			page.Empty.Title = "No refusal matches."
			page.Empty.Links = append(page.Empty.Links, web.Link{Href: intakePath, Text: "All that was refused"})
		}
	}
	return h.show(c, page)
}

func intakeFilter(l listing) web.Filter {
	f := l.filter("Find what was refused")
	types := []string{
		string(problem.MalformedRequest), string(problem.InvalidOrder), string(problem.VersionConflict),
		string(problem.ContentTooLarge), string(problem.UnsupportedMediaType),
	}
	f.Fields = []web.Field{
		{Form: findForm, Name: "problem", Label: "Problem", Type: web.FieldSelect, Value: l.values.Get("problem"), Options: web.Options("any", types...)},
		{Form: findForm, Name: "source", Label: "Source", Value: l.values.Get("source")},
		{Form: findForm, Name: "order", Label: "Order", Value: l.values.Get("order")},
	}
	f.More = append(l.rangeFields(), web.Field{
		Form: findForm, Name: "channel", Label: "By", Type: web.FieldSelect, Value: l.values.Get("channel"),
		Options: web.Options("any", string(crm.ChannelAPI), string(crm.ChannelImport)),
	})
	return f
}

func refusalLine(r crm.IntakeRefusal) web.RefusalLine {
	line := web.RefusalLine{
		Href: intakePath + "/" + strconv.FormatInt(r.ID, 10), Received: web.At(r.ReceivedAt), Channel: string(r.Channel),
		Source: r.Source, Order: r.Order, Problem: problemLink(r.Problem), Detail: r.Detail, Errors: len(r.Errors),
	}
	if len(r.Errors) > 0 {
		line.Detail = strings.TrimSpace(line.Detail + " " + r.Errors[0].Pointer + " " + r.Errors[0].Detail)
	}
	return line
}

func problemLink(t problem.Type) web.Link {
	link := web.Link{Href: ProblemPath(t), Text: string(t)}
	if k, ok := kindOf(t); ok {
		link.Text = k.title
	}
	return link
}

func (h crmSide) showRefusal(c echo.Context) error {
	id, err := numberParam(c)
	if err != nil {
		return err
	}
	r, err := h.console.GetRefusal(c.Request().Context(), identity(c).Tenant, id)
	if err != nil {
		return err
	}
	title := "Refused: "
	if r.Order != "" {
		title = r.Order + " refused: "
	}
	page := web.CRMRefusal{
		Layout: h.layout(c, title+problemLink(r.Problem).Text, intakePath), Received: web.At(r.ReceivedAt), Channel: string(r.Channel),
		Source: r.Source, Order: r.Order, Problem: problemLink(r.Problem), Detail: r.Detail, Body: r.Body,
		Facts: []web.Fact{{Heading: "By", Text: string(r.Channel)}},
	}
	for _, e := range r.Errors {
		pointer := e.Pointer
		if pointer == "" {
			pointer = "the whole"
		}
		page.Errors = append(page.Errors, web.Fact{Heading: pointer, Text: e.Detail})
	}
	for _, fact := range []web.Fact{{Heading: "Sent by", Text: r.Actor}, {Heading: "Request", Text: r.RequestID}} {
		if fact.Text != "" {
			page.Facts = append(page.Facts, fact)
		}
	}
	switch {
	case r.BodySize == 0:
		page.BodyNote = "Nothing of it was read."
	case r.BodySize > crm.MaxRefusedBody:
		page.BodyNote = fmt.Sprintf("The first %d of %d bytes.", crm.MaxRefusedBody, r.BodySize)
	default:
		page.BodyNote = counted(r.BodySize, "byte") + ", as they came."
	}
	if r.Source != "" && r.Order != "" {
		page.OrderRef = orderHref(r.Source, r.Order)
	}
	if r.ImportID != nil {
		page.Import = &web.Link{Href: importsPath + "/" + r.ImportID.String(), Text: "The file's report"}
		page.BodyNote = "The rows are in the file's report."
	}
	return h.show(c, page)
}

func (h crmSide) showImports(c echo.Context) error {
	values, err := query(c, "sort", "limit", "cursor")
	if err != nil {
		return err
	}
	q, err := pageQuery(values)
	if err != nil {
		return err
	}
	found, err := h.console.ListImports(c.Request().Context(), identity(c).Tenant, q)
	if err != nil {
		return err
	}
	l := listing{importsPath, values}
	page := web.CRMImports{
		Layout: h.layout(c, "Imports", importsPath), Pager: l.pager(shown(len(found.Items), "import", q.OldestFirst), found.Next, found.Previous),
	}
	for _, i := range found.Items {
		page.Lines = append(page.Lines, importLine(i))
	}
	if len(found.Items) == 0 {
		page.Empty = &web.Empty{
			Title: "No file was imported yet.", Text: "Files of orders (CSV or JSON Lines) are carried in by the command: crm-worker import --tenant … FILE",
			Links: byHand(c, "For a single order."),
		}
	}
	return h.show(c, page)
}

func importLine(i crm.Import) web.ImportLine {
	line := web.ImportLine{
		Href: importsPath + "/" + i.ID.String(), File: i.File, State: web.StateOf("running"), Rows: i.Rows, Orders: i.Orders,
		NotTaken: i.NotTaken(), Actor: i.Actor, Started: web.At(i.StartedAt), Finished: web.AtPtr(i.FinishedAt),
	}
	line.Finished.Empty = "not yet"
	switch {
	case i.FinishedAt == nil:
	case i.Failure != "":
		line.State = web.State{Tone: web.ToneUnknown, Text: "broken off"}
	case i.Refusal != "" || !i.Stored && line.NotTaken > 0:
		line.State = web.State{Tone: web.ToneBad, Text: "refused"}
	case line.NotTaken > 0:
		line.State = web.State{Tone: web.ToneUnknown, Text: "taken in part"}
	default:
		line.State = web.State{Tone: web.ToneGood, Text: "taken"}
	}
	return line
}

func (h crmSide) showImport(c echo.Context) error {
	id, err := pathID(c)
	if err != nil {
		return err
	}
	i, err := h.console.GetImport(c.Request().Context(), identity(c).Tenant, id)
	if err != nil {
		return err
	}
	page := web.CRMImport{
		Layout: h.layout(c, i.File+" · import", importsPath), Import: importLine(i), Facts: importFacts(i), Wrong: i.Refusal + i.Failure,
		Removed: web.AtPtr(i.MinimisedAt), Live: i.FinishedAt == nil,
	}
	for _, count := range i.Counts {
		page.Counts = append(page.Counts, web.OutcomeCount{Outcome: web.StateOf(count.Outcome), Rows: count.Rows})
	}
	for _, row := range i.Refused {
		page.Rows = append(page.Rows, web.ImportRowLine{Line: row.Line, Order: row.Order, Outcome: web.StateOf(row.Outcome), Reason: row.Reason})
	}
	if n := i.NotTaken(); n > int64(len(i.Refused)) && len(i.Refused) > 0 {
		page.RowNote = fmt.Sprintf("The first %d of %d. The command's --report has all.", len(i.Refused), n)
	}
	return h.show(c, page)
}

func importFacts(i crm.Import) []web.Fact {
	mode := "one bad row keeps the whole file out"
	if i.KeepGood {
		mode = "good orders are taken, whatever others are"
	}
	facts := []web.Fact{{Heading: "Format", Text: i.Format}, {Heading: "Mode", Text: mode}}
	if i.FinishedAt == nil {
		return facts
	}
	facts = append(facts, web.Fact{Heading: "Rows", Text: strconv.Itoa(i.Rows)}, web.Fact{Heading: "Blank rows", Text: strconv.Itoa(i.BlankRows)},
		web.Fact{Heading: "Orders", Text: strconv.Itoa(i.Orders)}, web.Fact{Heading: "Bytes", Text: strconv.FormatInt(i.Size, 10)})
	if i.SHA256 != "" {
		facts = append(facts, web.Fact{Heading: "SHA-256", Text: i.SHA256})
	}
	return facts
}

func crmAuditFilter(values url.Values) (f crm.AuditFilter, err error) {
	f = crm.AuditFilter{Actor: values.Get("actor"), Action: values.Get("action"), Subject: values.Get("subject")}
	if f.From, f.To, err = timeRange(values); err != nil {
		return f, err
	}
	f.PageQuery, err = pageQuery(values)
	return f, err
}

func crmAuditParams() []string {
	return []string{"actor", "action", "subject", "from", "to", "sort", "limit", "cursor"}
}

func (h crmSide) showAudit(c echo.Context) error {
	values, err := query(c, crmAuditParams()...)
	if err != nil {
		return err
	}
	f, err := crmAuditFilter(values)
	if err != nil {
		return err
	}
	found, err := h.console.ListAudit(c.Request().Context(), identity(c).Tenant, f)
	if err != nil {
		return err
	}
	l := listing{auditPath, values}
	page := web.CRMAudit{
		Layout: h.layout(c, "Audit", auditPath), Filter: l.filter("Find in the audit"), Lines: crmAuditLines(found.Items),
		Pager: l.pager(shown(len(found.Items), "entry", f.OldestFirst), found.Next, found.Previous),
	}
	for _, field := range []struct{ name, label, hint string }{
		{"actor", "Who", "log-in name or token id"}, {"action", "What", "operation.replay"}, {"subject", "On what", "key of an operation"},
	} {
		page.Filter.Fields = append(page.Filter.Fields, web.Field{
			Form: findForm, Name: field.name, Label: field.label, Value: l.values.Get(field.name), Hint: field.hint,
		})
	}
	page.Filter.More = l.rangeFields()
	if len(found.Items) == 0 {
		page.Empty = &web.Empty{Title: "Nobody has changed anything by hand.", Text: "Every button of this console, and every command that changes something, leaves an entry here."}
		if l.cleared() != "" {
			page.Empty = &web.Empty{Title: "No entry matches.", Text: "Texts are compared whole.", Links: []web.Link{{Href: auditPath, Text: "The whole audit"}}}
		}
	}
	return h.show(c, page)
}

func crmAuditLines(entries []crm.AuditEntry) (lines []web.AuditLine) {
	for _, e := range entries {
		line := web.AuditLine{
			At: web.At(e.OccurredAt), Actor: e.Actor, Action: e.Action, Subject: e.Subject, Reason: e.Reason, Way: e.Via, Request: e.RequestID,
		}
		if e.Address != "" {
			line.Way += ", " + e.Address
		}
		line.Href = subjectHref(e)
		lines = append(lines, line)
	}
	return lines
}

// subjectHref is the page of what somebody acted on; "" where it has none.
func subjectHref(e crm.AuditEntry) string {
	what, _, _ := strings.Cut(e.Action, ".")
	switch what {
	case "operation", "resolution":
		return operationHref(e.Subject)
	case "order":
		return "/orders/" + e.Subject // written as a path
	case "replay":
		return replaysPath + "/" + url.PathEscape(e.Subject)
	case "source":
		return sourcesPath
	case "divergence":
		return divergencesPath
	case "reconciliation":
		return reconciliationsPath
	}
	return ""
}
