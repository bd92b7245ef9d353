package httpapi

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"invoicebridge/internal/auth"
	"invoicebridge/internal/crm"
	"invoicebridge/internal/problem"
	"invoicebridge/web"
)

// Where the pages of the console are.
const (
	dashboardPath       = "/dashboard"
	operationsPath      = "/operations"
	replaysPath         = "/replays"
	newReplayPath       = "/replays/new"
	resolutionsPath     = "/resolutions"
	divergencesPath     = "/divergences"
	reconciliationsPath = "/reconciliations"
	sourcesPath         = "/sources"
	intakePath          = "/intake"
	importsPath         = "/imports"
	auditPath           = "/audit"
	newOrderPath        = "/orders/new"
)

func crmNav() []navLink {
	link := func(href, text string, needs auth.Permission) navLink {
		return navLink{Link: web.Link{Href: href, Text: text}, needs: needs}
	}
	return []navLink{
		link(dashboardPath, "Dashboard", auth.MayRead), link(operationsPath, "Operations", auth.MayRead),
		link(replaysPath, "Replays", auth.MayRead), link(resolutionsPath, "Resolutions", auth.MayRead),
		link(divergencesPath, "Divergences", auth.MayRead), link(reconciliationsPath, "Reconciliation", auth.MayRead),
		link(sourcesPath, "Sources", auth.MayRead), link(intakePath, "Intake", auth.MayRead),
		link(importsPath, "Imports", auth.MayRead), link(auditPath, "Audit", auth.MayRead),
		link(newOrderPath, "By hand", auth.MayWrite),
	}
}

// consolePages registers the pages, and what their buttons send.
func (h crmSide) consolePages() {
	h.page(dashboardPath, auth.MayRead, h.showDashboard)
	h.page(operationsPath, auth.MayRead, h.showOperations)
	h.page("/operations/:key", auth.MayRead, h.showOperation)
	h.form("/operations/:key/replay", auth.MayOperate, h.pressReplay)
	h.form("/operations/:key/cancel", auth.MayOperate, h.pressCancel)
	h.form("/operations/:key/revise", auth.MayOperate, h.pressRevise)
	h.form("/operations/:key/resolve", auth.MayOperate, h.pressPropose)

	h.page(newReplayPath, auth.MayOperate, h.showReplayPreview)
	h.form(newReplayPath, auth.MayOperate, h.pressStartReplays)
	h.page(replaysPath, auth.MayRead, h.showReplays)
	h.page("/replays/:id", auth.MayRead, h.showReplay)
	h.form("/replays/:id/stop", auth.MayOperate, h.pressStopReplay)

	h.page(resolutionsPath, auth.MayRead, h.showResolutions)
	h.form("/resolutions/:id/approve", auth.MayOperate, h.decide(crm.ActionApprove))
	h.form("/resolutions/:id/decline", auth.MayOperate, h.decide(crm.ActionDecline))
	h.form("/resolutions/:id/withdraw", auth.MayOperate, h.decide(crm.ActionWithdraw))

	h.page(newOrderPath, auth.MayWrite, h.showNewOrder)
	h.form(newOrderPath, auth.MayWrite, h.pressNewOrder)
	h.page("/orders/:source/:order", auth.MayRead, h.showOrder)

	h.page(divergencesPath, auth.MayRead, h.showDivergences)
	h.form("/divergences/:id/accept", auth.MayOperate, h.pressDivergence(crm.ActionAccept))
	h.form("/divergences/:id/close", auth.MayOperate, h.pressDivergence(crm.ActionClose))
	h.page(reconciliationsPath, auth.MayRead, h.showReconciliations)
	h.form(reconciliationsPath, auth.MayOperate, h.pressReconcile)
	h.page(sourcesPath, auth.MayRead, h.showSources)
	h.form("/sources/:source/pause", auth.MayOperate, h.pressPause)
	h.form("/sources/:source/resume", auth.MayOperate, h.pressResume)

	h.page(intakePath, auth.MayRead, h.showIntake)
	h.page("/intake/:id", auth.MayRead, h.showRefusal)
	h.page(importsPath, auth.MayRead, h.showImports)
	h.page("/imports/:id", auth.MayRead, h.showImport)
	h.page(auditPath, auth.MayRead, h.showAudit)
}

// maxConsoleForm bounds what a form sends: a request of the largest size has room in it, percent-encoded.
const maxConsoleForm = 4 * maxBody

const pressedKey = "pressed"

// pressed is the button whose action was refused, with what was typed beside it.
type pressed struct {
	action string // the form's id
	form   url.Values
	error  string
}

// refused shows the page again on which a button was pressed in vain: the reason beside the button, what was typed still
// there.
func (h crmSide) refused(c echo.Context, err error, action string, form url.Values, page echo.HandlerFunc) error {
	if p := problem.As(err); p != nil {
		c.Set(pressedKey, pressed{action, form, refusalText(p)})
	}
	return h.again(c, err, page)
}

// remembered gives an action back what was typed before it was refused.
func remembered(c echo.Context, a web.Action) web.Action {
	was, ok := c.Get(pressedKey).(pressed)
	if !ok || was.action != a.ID {
		return a
	}
	a.Error, a.Open, a.Reason = was.error, true, was.form.Get("reason")
	for i := range a.Fields {
		if value, typed := was.form[a.Fields[i].Name]; typed {
			a.Fields[i].Value = value[0]
		}
	}
	return a
}

func mayOperate(c echo.Context) bool { return identity(c).May(auth.MayOperate) }

func numberParam(c echo.Context) (int64, error) {
	id, err := strconv.ParseInt(c.Param("id"), 10, 64)
	if err != nil {
		return 0, problem.New(problem.NotFound, "There is no such thing.")
	}
	return id, nil
}

// pageQuery reads how a list is paged.
func pageQuery(values url.Values) (crm.PageQuery, error) {
	asked, err := pageOf(values)
	q := crm.PageQuery{Limit: asked.Limit, Cursor: asked.Cursor}
	if err != nil {
		return q, err
	}
	switch values.Get("sort") {
	case "", "newest":
	case "oldest":
		q.OldestFirst = true
	default:
		err = problem.New(problem.MalformedRequest, "The parameter sort must be newest or oldest.")
	}
	return q, err
}

// moment reads a time, or a day, which stands for its beginning in UTC; as the end of a range, for the end of the day.
func moment(values url.Values, name string, end bool) (time.Time, error) {
	text := values.Get(name)
	if text == "" {
		return time.Time{}, nil
	}
	if day, err := time.Parse(time.DateOnly, text); err == nil {
		if end {
			day = day.AddDate(0, 0, 1)
		}
		return day, nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}, problem.New(problem.MalformedRequest, "The parameter %s must be a day such as 2026-03-02, or a time such as 2026-03-02T10:00:00Z.", name)
	}
	return at, nil
}

func timeRange(values url.Values) (from, to time.Time, err error) {
	if from, err = moment(values, "from", false); err == nil {
		to, err = moment(values, "to", true)
	}
	return from, to, err
}

// listing is a list's address with its filter.
type listing struct {
	path   string
	values url.Values
}

// href is the list with some parameters changed, given as name and value; an empty value leaves one out.
func (l listing) href(changes ...string) string {
	values := url.Values{}
	for name, given := range l.values {
		if given[0] != "" {
			values.Set(name, given[0])
		}
	}
	for i := 0; i+1 < len(changes); i += 2 {
		if values.Del(changes[i]); changes[i+1] != "" {
			values.Set(changes[i], changes[i+1])
		}
	}
	if len(values) == 0 {
		return l.path
	}
	return l.path + "?" + values.Encode()
}

// pager leads to the neighbours of a page.
func (l listing) pager(shown, next, previous string) web.Pager {
	p := web.Pager{Shown: shown}
	if l.values.Get("cursor") != "" {
		p.First = l.href("cursor", "")
	}
	if next != "" {
		p.Next = l.href("cursor", next)
	}
	if previous != "" {
		p.Previous = l.href("cursor", previous)
	}
	return p
}

// cleared is where the list without its filter is; "" if it has none.
func (l listing) cleared() string {
	for name, given := range l.values {
		if given[0] != "" && !slices.Contains([]string{"cursor", "limit", "sort"}, name) {
			return l.path
		}
	}
	return ""
}

// findForm is the id of a list's form of filters.
const findForm = "find"

func (l listing) filter(label string) web.Filter {
	f := web.Filter{ID: findForm, Path: l.path, Label: label, Clear: l.cleared()}
	if limit := l.values.Get("limit"); limit != "" {
		f.Hidden = append(f.Hidden, web.Hidden{Name: "limit", Value: limit})
	}
	return f
}

// rangeFields ask for a range of days.
func (l listing) rangeFields() []web.Field {
	return []web.Field{
		{Form: findForm, Name: "from", Label: "From day (UTC)", Type: web.FieldDate, Value: l.values.Get("from")},
		{Form: findForm, Name: "to", Label: "To day (UTC)", Type: web.FieldDate, Value: l.values.Get("to")},
	}
}

func shown(n int, what string, oldestFirst bool) string {
	order := "newest first"
	if oldestFirst {
		order = "oldest first"
	}
	return counted(int64(n), what) + ", " + order
}

func counted(n int64, what string) string {
	if stem, y := strings.CutSuffix(what, "y"); n != 1 && y {
		what = stem + "ies"
	} else if n != 1 {
		what += "s"
	}
	return strconv.FormatInt(n, 10) + " " + what
}

// inWordsOf is a word of ours as people read it.
func inWordsOf(word string) string { return strings.ReplaceAll(word, "_", " ") }

func operationHref(key string) string { return operationsPath + "/" + url.PathEscape(key) }

func orderHref(source, order string) string {
	return "/orders/" + url.PathEscape(source) + "/" + url.PathEscape(order)
}
