package httpapi

import (
	"net/url"
	"strconv"

	"github.com/labstack/echo/v4"

	"invoicebridge/internal/auth"
	"invoicebridge/internal/invoice"
	"invoicebridge/internal/problem"
	"invoicebridge/web"
)

// Where the ERP's pages are, besides those that both consoles have.
const (
	invoicesPath      = "/invoices"
	exportPath        = "/invoices/export.csv"
	conflictsPath     = "/conflicts"
	registrationsPath = "/registrations"
	targetsPath       = "/targets"
	tokensPath        = "/tokens"
)

func erpNav() []navLink {
	link := func(href, text string, needs auth.Permission) navLink {
		return navLink{Link: web.Link{Href: href, Text: text}, needs: needs}
	}
	return []navLink{
		link(invoicesPath, "Invoices", auth.MayRead), link(registrationsPath, "Registrations", auth.MayRead),
		link(targetsPath, "Targets", auth.MayRead), link(divergencesPath, "Divergences", auth.MayRead),
		link(conflictsPath, "Key conflicts", auth.MayRead), link(tokensPath, "Tokens", auth.MayAdminister),
		link(auditPath, "Audit", auth.MayRead),
	}
}

// consolePages registers the pages, and what their buttons send.
func (e erp) consolePages() {
	e.page(invoicesPath, auth.MayRead, e.showInvoices)
	e.page(exportPath, auth.MayRead, e.exportInvoices)
	e.page("/invoices/:id", auth.MayRead, e.showInvoice)
	e.page(conflictsPath, auth.MayRead, e.showConflicts)
	e.page(auditPath, auth.MayRead, e.showAudit)
	e.page(registrationsPath, auth.MayRead, e.showRegistrations)
	e.page("/registrations/:id", auth.MayRead, e.showRegistration)
	e.form("/registrations/:id/replay", auth.MayOperate, e.pressRegistration(invoice.ActionReplay))
	e.form("/registrations/:id/resolve", auth.MayOperate, e.pressRegistration(invoice.ActionResolve))
	e.form("/registrations/:id/acknowledge", auth.MayOperate, e.pressRegistration(invoice.ActionAcknowledge))
	e.page(targetsPath, auth.MayRead, e.showTargets)
	e.form("/targets/:id/pause", auth.MayOperate, e.pressPause)
	e.form("/targets/:id/resume", auth.MayOperate, e.pressResume)
	e.page(divergencesPath, auth.MayRead, e.showDivergences)
	e.form("/divergences/reconcile", auth.MayOperate, e.pressReconcile)
	e.form("/divergences/:id/accept", auth.MayOperate, e.pressDivergence(invoice.ActionAccept))
	e.form("/divergences/:id/close", auth.MayOperate, e.pressDivergence(invoice.ActionClose))
	e.page(tokensPath, auth.MayAdminister, e.showTokens)
	e.form(tokensPath, auth.MayAdminister, e.pressMakeToken)
	e.form("/tokens/:id/revoke", auth.MayAdminister, e.pressRevokeToken)
}

// refused shows the page again on which a button was pressed in vain: the reason beside the button, what was typed still
// there.
func (e erp) refused(c echo.Context, err error, action string, form url.Values, page echo.HandlerFunc) error {
	p := problem.As(err)
	if p != nil && p.Type == problem.NotFound {
		return err
	}
	if p != nil {
		c.Set(pressedKey, pressed{action, form, refusalText(p)})
	}
	return e.again(c, err, page)
}

// asked are the query's parameters of a page; a page that tells of a refusal stands at its button's address, which has none.
func asked(c echo.Context, known ...string) (url.Values, error) {
	if isRefused(c) {
		return url.Values{}, nil
	}
	return query(c, known...)
}

// walkOf reads which page of a list is wanted.
func walkOf(values url.Values) (invoice.Walk, error) {
	page, err := pageOf(values)
	return invoice.Walk{Limit: page.Limit, After: values.Get("after"), Before: values.Get("before")}, err
}

// walker leads to the neighbours of a page of a Walk.
func (l listing) walker(shown, next, previous string) web.Pager {
	p := web.Pager{Shown: shown}
	if l.values.Get("after") != "" || l.values.Get("before") != "" {
		p.First = l.href("after", "", "before", "")
	}
	if next != "" {
		p.Next = l.href("after", next, "before", "")
	}
	if previous != "" {
		p.Previous = l.href("before", previous, "after", "")
	}
	return p
}

func (l listing) isNarrowed() bool {
	for name, given := range l.values {
		if name != "after" && name != "before" && name != "limit" && name != "cursor" && given[0] != "" {
			return true
		}
	}
	return false
}

func invoiceHref(id string) string { return invoicesPath + "/" + url.PathEscape(id) }

func registrationHref(id string) string { return registrationsPath + "/" + url.PathEscape(id) }

func serial(id int64) string { return strconv.FormatInt(id, 10) }

// isRefused says whether the page is shown because a button was pressed in vain.
func isRefused(c echo.Context) bool { return refusal(c) != nil }
