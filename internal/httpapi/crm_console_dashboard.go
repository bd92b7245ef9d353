package httpapi

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"invoicebridge/internal/auth"
	"invoicebridge/internal/crm"
	"invoicebridge/web"
)

func (h crmSide) showDashboard(c echo.Context) error {
	ctx, tenant := c.Request().Context(), identity(c).Tenant
	d, err := h.console.Dashboard(ctx, tenant)
	if err != nil {
		return err
	}
	sources, err := h.orders.ListSources(ctx, tenant)
	if err != nil {
		return err
	}
	proposals, err := h.orders.ListResolutions(ctx, tenant, crm.ResolutionFilter{Status: crm.ResolutionOpen})
	if err != nil {
		return err
	}
	page := web.CRMDashboard{
		Layout: h.layout(c, "Dashboard", dashboardPath), At: web.At(d.At), Activity: activityPlot(d.Activity),
		Attend: attendTiles(d, len(proposals.Items), proposals.Next != ""), Paused: pausedSources(sources),
	}
	for _, s := range d.States {
		page.States = append(page.States, stateTile(s, d.At))
	}
	page.Work = h.workTiles(c, d, len(page.Paused))
	if nothingYet(d) {
		page.Empty = nothingCameIn(c)
	}
	return h.show(c, page)
}

func nothingYet(d crm.Dashboard) bool {
	for _, s := range d.States {
		if s.Count > 0 {
			return false
		}
	}
	return true
}

func nothingCameIn(c echo.Context) *web.Empty {
	return &web.Empty{
		Title: "No order has come in yet.",
		Text:  "Orders come by POST /v1/orders, from files with crm-worker import, or by hand.",
		Links: append([]web.Link{{Href: "/docs", Text: "API reference", About: "How a source sends its orders."}}, byHand(c, "Write one order here.")...),
	}
}

// byHand leads whoever may write to the page where an order is written by hand; nobody else, as they would be refused there.
func byHand(c echo.Context, about string) []web.Link {
	if !identity(c).May(auth.MayWrite) {
		return nil
	}
	return []web.Link{{Href: newOrderPath, Text: "Invoice by hand", About: about}}
}

func boundedText(n crm.BoundedCount) string {
	if n.More {
		return "over " + strconv.FormatInt(n.Count, 10)
	}
	return strconv.FormatInt(n.Count, 10)
}

func attendTiles(d crm.Dashboard, proposals int, more bool) []web.Tile {
	attention := web.Tile{Label: "Operations need a person", Value: boundedText(d.Attention.BoundedCount), Href: operationsPath + "?attention=yes&sort=oldest"}
	if d.Attention.Count > 0 {
		attention.Note = "oldest " + age(time.Duration(d.Attention.OldestSeconds*float64(time.Second)))
	}
	open := web.Tile{Label: "Open divergences", Href: divergencesPath + "?status=open"}
	var kinds []string
	total := int64(0)
	for _, k := range d.Divergences {
		total += k.Count
		kinds = append(kinds, fmt.Sprintf("%d %s", k.Count, inWordsOf(string(k.Kind))))
	}
	open.Value, open.Note = strconv.FormatInt(total, 10), strings.Join(kinds, ", ")
	waiting := web.Tile{Label: "Proposals wait for approval", Value: strconv.Itoa(proposals), Href: resolutionsPath + "?status=open"}
	if more {
		waiting.Value = "over " + waiting.Value
	}
	refused := web.Tile{Label: "Calls refused", Value: strconv.FormatInt(d.RefusedIntake, 10), Note: "in the last 24 hours", Href: intakePath}
	return []web.Tile{attention, open, waiting, refused}
}

func stateTile(s crm.StateCount, now time.Time) web.Tile {
	state := web.StateOf(string(s.Status))
	tile := web.Tile{State: &state, Value: boundedText(s.BoundedCount), Href: operationsPath + "?status=" + string(s.Status)}
	if s.OldestAt != nil {
		tile.Note = "oldest " + age(now.Sub(*s.OldestAt))
		tile.Href += "&sort=oldest"
	}
	return tile
}

// age is a duration that grows: whole seconds are near enough.
func age(d time.Duration) string { return web.Duration(max(0, d).Truncate(time.Second)) }

func (h crmSide) workTiles(c echo.Context, d crm.Dashboard, paused int) []web.Tile {
	tiles := []web.Tile{
		{Label: "Due, waiting for a worker", Value: boundedText(d.Due), Href: operationsPath + "?due=yes&sort=oldest"},
		{Label: "Paused sources", Value: strconv.Itoa(paused), Href: sourcesPath},
	}
	reconciled := web.Tile{Label: "Last reconciliation", Value: "never", Href: reconciliationsPath}
	if d.ReconciledAt != nil {
		reconciled.Value = age(d.At.Sub(*d.ReconciledAt)) + " ago"
	}
	tiles = append(tiles, reconciled)
	if identity(c).May(auth.MayQueue) {
		tiles = append(tiles, h.queueTile(c))
	}
	return tiles
}

// queueTile is for those only whom the queue of all tenants concerns.
func (h crmSide) queueTile(c echo.Context) web.Tile {
	tile := web.Tile{Label: "Jobs in the queue, all tenants", Href: "/queue/"}
	states, err := h.console.QueueDepth(c.Request().Context())
	if err != nil {
		h.log.WarnContext(c.Request().Context(), "the depth of the queue can't be told", "error", err)
		tile.Value = "not known"
		return tile
	}
	total := int64(0)
	var parts []string
	for _, s := range states {
		total += s.Jobs
		parts = append(parts, fmt.Sprintf("%d %s", s.Jobs, s.State))
	}
	tile.Value, tile.Note = strconv.FormatInt(total, 10), strings.Join(parts, ", ")
	return tile
}

func activityPlot(hours []crm.HourOfAttempts) web.Plot {
	series := []web.PlotSeries{
		{Name: "made the invoice", Tone: web.ToneGood}, {Name: "replayed its answer", Tone: web.ToneBusy},
		{Name: "other attempts", Tone: web.ToneUnknown},
	}
	bars := make([]web.PlotBar, len(hours))
	for i, h := range hours {
		bars[i] = web.PlotBar{From: web.At(h.Hour), Values: []int{int(h.Delivered), int(h.Replayed), int(h.Other)}}
	}
	return web.NewPlot("activity", "Attempts of the last 24 hours, by the hour", "attempts", series, bars)
}

func pausedSources(sources []crm.Source) (paused []web.PausedSource) {
	for _, s := range sources {
		if s.Pause != nil {
			paused = append(paused, pausedSource(s.Source, s.Pause))
		}
	}
	return paused
}

func pausedSource(source string, p *crm.SourcePause) web.PausedSource {
	return web.PausedSource{Source: source, Href: sourcesPath, By: p.PausedBy, Reason: p.Reason, Since: web.At(p.PausedAt)}
}
