package httpapi

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"invoicebridge/internal/crm"
	"invoicebridge/internal/problem"
	"invoicebridge/web"
)

// bulkReplay leads from a list to the replay of all that match it, or says why it does not.
func bulkReplay(l listing, f crm.OperationSearch, found int) (*web.Link, *web.Action) {
	not := func(why string) (*web.Link, *web.Action) {
		return nil, &web.Action{ID: "replay-all", Button: "Replay all that match", WhyNot: why}
	}
	switch {
	case f.Status != "" && f.Status.Final():
		return not("These have come to their end and stay so: there is nothing to replay.")
	case f.Status == crm.StatusProcessing:
		return not("These are being worked on.")
	case f.Due:
		return not("These are queued already.")
	case f.Role != "" || f.Order != "" || f.Key != "" || f.Text != "" || !f.CreatedFrom.IsZero() || !f.CreatedTo.IsZero():
		return not("Many are replayed by state, reason, source and age: clear the other filters.")
	case found == 0:
		return nil, nil
	}
	only := listing{newReplayPath, url.Values{}}
	return &web.Link{
		Href: only.href("status", string(f.Status), "reason", string(f.Reason), "source", f.Source, "older_than", l.values.Get("older_than")),
		Text: "Replay all that match …", About: "Of those that are left to an operator. A preview comes first.",
	}, nil
}

// filterPrefix stands before the filter's parameters in the form: its reason is another than the one that is typed there.
const filterPrefix = "filter_"

func replayParams() []string { return []string{"status", "reason", "source", "older_than"} }

// replayFilter reads the filter of a replay of many.
func replayFilter(values url.Values) (f crm.ReplayFilter, err error) {
	f = crm.ReplayFilter{
		Status: crm.OperationStatus(values.Get("status")), Reason: crm.Reason(values.Get("reason")), Source: values.Get("source"),
	}
	if text := values.Get("older_than"); text != "" {
		if f.MinAge, err = time.ParseDuration(text); err != nil {
			return f, problem.New(problem.MalformedRequest, "The parameter older_than must be a time such as 15m or 24h.")
		}
	}
	return f, nil
}

func matches(f crm.ReplayFilter) string {
	text := "Operations that are left to an operator"
	var parts []string
	if f.Status != "" {
		parts = append(parts, "are "+string(f.Status))
	}
	if f.Reason != "" {
		parts = append(parts, "have the reason “"+inWordsOf(string(f.Reason))+"”")
	}
	if f.Source != "" {
		parts = append(parts, "came from "+f.Source)
	}
	if f.MinAge > 0 {
		parts = append(parts, "are older than "+web.Duration(f.MinAge))
	}
	if len(parts) == 0 {
		return text + "."
	}
	return text + ", and " + strings.Join(parts, ", and ") + "."
}

func (h crmSide) showReplayPreview(c echo.Context) error {
	values, err := query(c, replayParams()...)
	if err != nil {
		return err
	}
	return h.showPreviewOf(c, values)
}

func (h crmSide) showPreviewOf(c echo.Context, values url.Values) error {
	f, err := replayFilter(values)
	if err != nil {
		return err
	}
	preview, err := h.orders.PreviewReplays(c.Request().Context(), identity(c).Tenant, f)
	if err != nil {
		return err
	}
	var filter []string // names and values
	for _, name := range replayParams() {
		filter = append(filter, name, values.Get(name))
	}
	page := web.CRMReplayPreview{
		Layout: h.layout(c, "Replay many operations", replaysPath), Matches: matches(f), Lines: operationLines(preview.Sample),
		Count: counted(preview.Count, "operation"), Back: listing{operationsPath, url.Values{}}.href(filter...),
	}
	take := min(preview.Count, crm.MaxReplays)
	start := web.Action{
		ID: "start", Path: newReplayPath, Button: "Replay " + counted(take, "operation"), AskReason: true, Open: true,
		About: "Each keeps its key and its request, so none can make a second invoice.",
	}
	for i := 0; i+1 < len(filter); i += 2 {
		start.Hidden = append(start.Hidden, web.Hidden{Name: filterPrefix + filter[i], Value: filter[i+1]})
	}
	start.Hidden = append(start.Hidden, web.Hidden{Name: "expected", Value: strconv.FormatInt(preview.Count, 10)})
	if preview.Count > take {
		page.Count = fmt.Sprintf("The oldest %d of %d operations", take, preview.Count)
	}
	page.Start = remembered(c, start)
	if preview.Count == 0 {
		page.Empty = &web.Empty{
			Title: "There is nothing to replay.",
			Text:  "Only what is left to an operator is replayed by hand; everything else is tried again by itself.",
			Links: []web.Link{{Href: page.Back, Text: "Back to the list"}, {Href: replaysPath, Text: "Earlier replays"}},
		}
	}
	return h.show(c, page)
}

func (h crmSide) pressStartReplays(c echo.Context) error {
	form, err := readForm(c, maxConsoleForm)
	if err != nil {
		return err
	}
	values := url.Values{}
	for _, name := range replayParams() {
		values.Set(name, form.Get(filterPrefix+name))
	}
	again := func(c echo.Context) error { return h.showPreviewOf(c, values) }
	f, err := replayFilter(values)
	if err != nil {
		return err
	}
	expected, err := strconv.ParseInt(form.Get("expected"), 10, 64)
	if err != nil {
		return problem.New(problem.MalformedRequest, "The field expected must be the count of the preview.")
	}
	run, err := h.orders.StartReplays(c.Request().Context(), identity(c).Tenant, f, expected, by(c, form.Get("reason")))
	if err != nil {
		return h.refused(c, err, "start", form, again)
	}
	return h.done(c, replaysPath+"/"+run.ID.String(), fmt.Sprintf("The replay of %s has begun.", counted(int64(run.Total), "operation")))
}

func (h crmSide) showReplays(c echo.Context) error {
	values, err := query(c, "limit", "cursor")
	if err != nil {
		return err
	}
	asked, err := pageQuery(values)
	if err != nil {
		return err
	}
	found, err := h.orders.ListReplayRuns(c.Request().Context(), identity(c).Tenant, asked)
	if err != nil {
		return err
	}
	l := listing{replaysPath, values}
	page := web.CRMReplays{
		Layout: h.layout(c, "Replays", replaysPath), Pager: l.pager(shown(len(found.Items), "replay", false), found.Next, found.Previous),
	}
	for _, run := range found.Items {
		page.Lines = append(page.Lines, replayLine(run))
	}
	if len(found.Items) == 0 {
		page.Empty = &web.Empty{
			Title: "Nobody has replayed many operations at once.",
			Text:  "Filter the operations, then replay all that match; a preview comes first.",
			Links: []web.Link{{Href: operationsPath + "?attention=yes&sort=oldest", Text: "Operations that need a person"}},
		}
	}
	return h.show(c, page)
}

func replayLine(run crm.ReplayRun) web.ReplayLine {
	line := web.ReplayLine{
		Href: replaysPath + "/" + run.ID.String(), Matches: matches(run.Filter), State: web.StateOf("running"),
		Total: strconv.Itoa(run.Total), Queued: run.Queued, Refused: run.Refused, Stopped: run.Stopped, Waiting: run.Waiting(),
		By: run.By.Actor, Reason: run.By.Reason, Started: web.At(run.StartedAt), Finished: web.AtPtr(run.FinishedAt),
	}
	line.Finished.Empty = "not yet"
	switch {
	case run.StoppedBy != "":
		line.State = web.State{Tone: web.ToneOff, Text: "stopped by " + run.StoppedBy}
	case run.FinishedAt != nil:
		line.State = web.State{Tone: web.ToneGood, Text: "finished"}
	}
	return line
}

func (h crmSide) showReplay(c echo.Context) error {
	id, err := pathID(c)
	if err != nil {
		return err
	}
	values, err := query(c, "limit", "cursor")
	if err != nil {
		return err
	}
	asked, err := pageQuery(values)
	if err != nil {
		return err
	}
	ctx, tenant := c.Request().Context(), identity(c).Tenant
	run, err := h.orders.GetReplayRun(ctx, tenant, id)
	if err != nil {
		return err
	}
	found, err := h.orders.ListReplayItems(ctx, tenant, id, crm.ReplayItemFilter{PageQuery: asked})
	if err != nil {
		return err
	}
	line := replayLine(run)
	page := web.CRMReplay{
		Layout: h.layout(c, "Replay of "+counted(int64(run.Total), "operation"), replaysPath), Replay: line,
		Pager: listing{line.Href, values}.pager(counted(int64(len(found.Items)), "operation")+", in the order of their turns", found.Next, found.Previous),
	}
	if left := run.Matched - int64(run.Total); left > 0 {
		page.Left = fmt.Sprintf("%d more matched; one replay takes at most %d", left, crm.MaxReplays)
	}
	for _, item := range found.Items {
		page.Items = append(page.Items, web.ReplayItemLine{
			Position: int(item.Position), Href: operationHref(item.Key), Key: item.Key, Result: web.StateOf(string(item.Result)),
			State: web.StateOf(string(item.Status)), Detail: item.Detail, Done: web.AtPtr(item.DoneAt),
		})
	}
	if mayOperate(c) && run.FinishedAt == nil {
		stop := remembered(c, web.Action{
			ID: "stop", Path: line.Href + "/stop", Button: "Stop the replay", AskReason: true, Grave: true,
			About: "What is queued already goes on; what waits stays as it is.",
		})
		page.Stop = &stop
	}
	return h.show(c, page)
}

func (h crmSide) pressStopReplay(c echo.Context) error {
	id, err := pathID(c)
	if err != nil {
		return err
	}
	form, err := readForm(c, maxConsoleForm)
	if err != nil {
		return err
	}
	run, err := h.orders.StopReplayRun(c.Request().Context(), identity(c).Tenant, id, by(c, form.Get("reason")))
	if err != nil {
		return h.refused(c, err, "stop", form, h.showReplay)
	}
	return h.done(c, replaysPath+"/"+id.String(), fmt.Sprintf("The replay is stopped; %d of %d were queued.", run.Queued, run.Total))
}
