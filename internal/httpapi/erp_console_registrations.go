package httpapi

import (
	"fmt"
	"net/url"
	"strconv"

	"github.com/labstack/echo/v4"

	"invoicebridge/internal/erpapi"
	"invoicebridge/internal/invoice"
	"invoicebridge/web"
)

func (e erp) showRegistrations(c echo.Context) error {
	values, err := query(c, "status", "target", "flagged", "limit", "after", "before")
	if err != nil {
		return err
	}
	f, err := registrationFilter(values)
	if err != nil {
		return err
	}
	w, err := walkOf(values)
	if err != nil {
		return err
	}
	ctx, tenant := c.Request().Context(), identity(c).Tenant
	found, err := e.desk.WalkRegistrations(ctx, tenant, f, w)
	if err != nil {
		return err
	}
	counts, err := e.desk.CountRegistrations(ctx, tenant)
	if err != nil {
		return err
	}
	l := listing{registrationsPath, values}
	page := web.ERPRegistrations{
		Layout: e.layout(c, "Registrations", registrationsPath), Tiles: registrationTiles(counts), Filter: registrationFilterForm(l),
		Pager: l.walker(shown(len(found.Registrations), "registration", false), found.Next, found.Previous),
	}
	for _, r := range found.Registrations {
		page.Lines = append(page.Lines, registrationLine(r))
	}
	if len(page.Lines) == 0 {
		page.Empty = &web.Empty{
			Title: "No registration is here.", Text: "Each invoice gets one for every target that is set when it is issued.",
			Links: []web.Link{{Href: targetsPath, Text: "Targets"}},
		}
		if l.isNarrowed() {
			page.Empty = &web.Empty{Title: "No registration matches.", Links: []web.Link{{Href: registrationsPath, Text: "All registrations"}}}
		}
	}
	return e.show(c, page)
}

func registrationTiles(counts []invoice.RegistrationCount) (tiles []web.Tile) {
	var flagged int64
	for _, k := range counts {
		flagged += k.Flagged
		if k.Status.Final() {
			continue
		}
		state := web.StateOf(string(k.Status))
		tiles = append(tiles, web.Tile{
			Href: registrationsPath + "?status=" + string(k.Status), State: &state, Value: strconv.FormatInt(k.Count, 10),
			Note: "oldest of", At: web.At(k.OldestAt),
		})
	}
	if flagged > 0 {
		tiles = append(tiles, web.Tile{Href: registrationsPath + "?flagged=true", Label: "for a person", Value: strconv.FormatInt(flagged, 10)})
	}
	return tiles
}

func registrationFilterForm(l listing) web.Filter {
	const id = "find"
	f := web.Filter{ID: id, Path: l.path, Label: "Find registrations"}
	if l.isNarrowed() {
		f.Clear = l.path
	}
	f.Fields = []web.Field{
		{Form: id, Name: "status", Label: "State", Type: web.FieldSelect, Value: l.values.Get("status"), Options: web.Options("any", "pending", "processing", "unknown", "failed", "succeeded")},
		{Form: id, Name: "target", Label: "Target", Value: l.values.Get("target")},
		{Form: id, Name: "flagged", Label: "For a person", Type: web.FieldSelect, Value: l.values.Get("flagged"),
			Options: []web.Option{{Value: "", Text: "any"}, {Value: "true", Text: "yes"}, {Value: "false", Text: "no"}}},
	}
	return f
}

func registrationLine(r erpapi.RegistrationDetail) web.RegistrationLine {
	line := web.RegistrationLine{
		Href: registrationHref(r.ID), InvoiceHref: invoiceHref(r.Invoice.ID), Invoice: r.Invoice.Number, Target: r.Target,
		State: web.StateOf(r.Status), Flag: flagOf(r), Why: inWordsOf(r.Reason), Reference: r.Reference, Attempts: r.Attempts,
		Next: web.AtPtr(r.NextAttemptAt), Created: web.At(r.CreatedAt),
	}
	return line
}

func flagOf(r erpapi.RegistrationDetail) *web.State {
	if !r.Flagged {
		return nil
	}
	return &web.State{Tone: web.ToneUnknown, Text: "for a person"}
}

func (e erp) showRegistration(c echo.Context) error {
	id, err := registrationID(c)
	if err != nil {
		return err
	}
	if _, err := asked(c); err != nil {
		return err
	}
	ctx, tenant := c.Request().Context(), identity(c).Tenant
	r, err := e.registrations.GetRegistration(ctx, tenant, id)
	if err != nil {
		return err
	}
	page := web.ERPRegistration{
		Layout: e.layout(c, r.Invoice.Number+" at "+r.Target, registrationsPath), State: web.StateOf(r.Status), Flag: flagOf(r), Target: r.Target,
		Invoice: web.Link{Href: invoiceHref(r.Invoice.ID), Text: r.Invoice.Number}, TargetHref: targetsPath + "#target-" + r.Target,
		Facts: []web.Fact{
			{Heading: "Key", Text: r.Key}, {Heading: "Reference", Text: r.Reference}, {Heading: "Why", Text: inWordsOf(r.Reason)},
			{Heading: "Attempts", Text: strconv.FormatInt(r.Attempts, 10)},
		},
		Times: []web.TimeFact{
			{Heading: "Written down", At: web.At(r.CreatedAt)}, {Heading: "First sent", At: web.AtPtr(r.FirstSentAt)}, {Heading: "Last sent", At: web.AtPtr(r.LastSentAt)},
			{Heading: "Next attempt", At: web.AtPtr(r.NextAttemptAt)}, {Heading: "A person was told", At: web.AtPtr(r.FlaggedAt)}, {Heading: "Ended", At: web.AtPtr(r.FinishedAt)},
		},
		Detail: r.Detail, Warnings: r.Warnings,
	}
	for _, a := range r.History {
		page.Attempts = append(page.Attempts, registrationAttemptLine(a))
	}
	if len(page.Attempts) == 0 {
		page.NoAttempts = &web.Empty{Title: "Nothing was tried yet.", Text: "The next attempt comes by itself, unless the target is paused."}
	}
	if mayOperate(c) {
		states, err := e.desk.RegistrationActions(ctx, tenant, id)
		if err != nil {
			return err
		}
		for _, state := range states {
			page.Actions = append(page.Actions, remembered(c, registrationAction(r.ID, state)))
		}
	}
	return e.show(c, page)
}

func registrationAttemptLine(a erpapi.RegistrationAttempt) web.RegistrationAttemptLine {
	line := web.RegistrationAttemptLine{
		Number: a.Number, What: "sent", Started: web.At(a.StartedAt), Outcome: web.StateOf(a.Outcome), Detail: a.Detail, Worker: a.Worker,
	}
	if a.Action == "locate" {
		line.What = "asked"
	}
	if a.FinishedAt != nil {
		line.Took = web.Duration(a.FinishedAt.Sub(a.StartedAt))
	}
	if a.HTTPStatus != nil {
		line.Status = strconv.Itoa(int(*a.HTTPStatus))
	}
	return line
}

func registrationAction(id string, state invoice.ActionState) web.Action {
	name := string(state.Name)
	a := web.Action{ID: name, Path: registrationHref(id) + "/" + name, WhyNot: state.Why, AskReason: true}
	switch state.Name {
	case invoice.ActionReplay:
		a.Button, a.About = "Replay", "Tries again at once, under the same key. What is in doubt is asked for, and never sent anew."
	case invoice.ActionResolve:
		a.Button, a.Grave, a.About = "Resolve by hand", true, "Says what is at the target, for what no request can find out. Nobody takes it back."
		a.Fields = []web.Field{
			{Form: name, Name: "status", Label: "What is there", Type: web.FieldSelect, Required: true, Options: []web.Option{
				{Value: "", Text: "choose"}, {Value: "succeeded", Text: "the invoice is registered"}, {Value: "failed", Text: "it is not, and will not be"},
			}},
			{Form: name, Name: "reference", Label: "The target's reference", Help: "Where it is registered."},
			{Form: name, Name: "evidence", Label: "Evidence", Required: true, Wide: true, Help: "Where that is to be seen, such as a ticket."},
		}
		a.Confirm = "I have looked at the target."
	case invoice.ActionAcknowledge:
		a.Button, a.About = "Acknowledge", "Puts on record that a person has dealt with it. Nothing else changes."
	}
	return a
}

func (e erp) pressRegistration(action invoice.ActionName) echo.HandlerFunc {
	return func(c echo.Context) error {
		id, err := registrationID(c)
		if err != nil {
			return err
		}
		form, err := readForm(c, maxConsoleForm)
		if err != nil {
			return err
		}
		ctx, tenant, who := c.Request().Context(), identity(c).Tenant, by(c, form.Get("reason"))
		told := "The registration is queued again, under the same key."
		switch action {
		case invoice.ActionResolve:
			told = "The registration is settled by hand."
			err = e.registrations.ResolveRegistration(ctx, tenant, id, invoice.Resolution{
				Status: invoice.RegistrationStatus(form.Get("status")), Reference: form.Get("reference"), Evidence: form.Get("evidence"),
			}, who)
		case invoice.ActionAcknowledge:
			told = "It is on record that somebody has dealt with it."
			err = e.registrations.AcknowledgeRegistration(ctx, tenant, id, who)
		default:
			err = e.registrations.ReplayRegistration(ctx, tenant, id, who)
		}
		if err != nil {
			return e.refused(c, err, string(action), form, e.showRegistration)
		}
		return e.done(c, registrationHref(id.String()), told)
	}
}

func (e erp) showTargets(c echo.Context) error {
	if _, err := asked(c); err != nil {
		return err
	}
	targets, err := e.desk.Targets(c.Request().Context(), identity(c).Tenant)
	if err != nil {
		return err
	}
	page := web.ERPTargets{Layout: e.layout(c, "Targets", targetsPath)}
	for _, t := range targets {
		page.Lines = append(page.Lines, targetLine(c, t))
	}
	if len(targets) == 0 {
		page.Empty = &web.Empty{Title: "No target is set.", Text: "Invoices are registered nowhere. The command erp-api target set adds one; invoices issued from then on are registered there."}
	}
	return e.show(c, page)
}

func targetLine(c echo.Context, t invoice.TargetView) web.TargetLine {
	open := listing{registrationsPath, url.Values{"target": {t.ID}}}
	line := web.TargetLine{
		ID: t.ID, Kind: t.Kind, Address: t.BaseURL, Credential: t.CredentialRef, Can: capable(t.Can), State: web.StateOf("active"),
		Pending: t.Pending, Processing: t.Processing, Unknown: t.Unknown, Flagged: t.Flagged, Oldest: web.AtPtr(t.OldestAt),
		PendingHref: open.href("status", "pending"), ProcessingHref: open.href("status", "processing"),
		UnknownHref: open.href("status", "unknown"), FlaggedHref: open.href("flagged", "true"),
	}
	if t.DisabledAt != nil {
		line.State = web.State{Tone: web.ToneOff, Text: "disabled"}
	}
	if t.Pause != nil {
		line.State = web.State{Tone: web.ToneUnknown, Text: "paused"}
		line.Pause = &web.PausedSource{By: t.Pause.By, Reason: t.Pause.Reason, Since: web.At(t.Pause.At)}
	}
	if !mayOperate(c) {
		return line
	}
	for _, state := range t.Actions() {
		if !state.Available { // the row says so
			continue
		}
		a := web.Action{
			ID: string(state.Name) + "-" + t.ID, Path: targetsPath + "/" + t.ID + "/" + string(state.Name), AskReason: true,
			Button: "Pause", About: "No new attempt begins there, neither a sending nor a question.",
		}
		if state.Name == invoice.ActionResume {
			a.Button, a.About = "Resume", "What waits there and is due goes on at once."
		}
		line.Actions = append(line.Actions, remembered(c, a))
	}
	return line
}

func (e erp) pressPause(c echo.Context) error {
	form, err := readForm(c, maxConsoleForm)
	if err != nil {
		return err
	}
	id := c.Param("id")
	if err := e.desk.PauseTarget(c.Request().Context(), identity(c).Tenant, id, by(c, form.Get("reason"))); err != nil {
		return e.refused(c, err, "pause-"+id, form, e.showTargets)
	}
	return e.done(c, targetsPath, "The target "+id+" is paused.")
}

func (e erp) pressResume(c echo.Context) error {
	form, err := readForm(c, maxConsoleForm)
	if err != nil {
		return err
	}
	id := c.Param("id")
	queued, err := e.desk.ResumeTarget(c.Request().Context(), identity(c).Tenant, id, by(c, form.Get("reason")))
	if err != nil {
		return e.refused(c, err, "resume-"+id, form, e.showTargets)
	}
	return e.done(c, targetsPath, fmt.Sprintf("The target %s is called again; %s at once.", id, counted(int64(queued), "registration")))
}
