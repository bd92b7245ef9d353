package browsertest

import (
	"fmt"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"invoicebridge/internal/httpapi"
)

// view is a page as somebody finds it.
type view struct {
	route string // pattern of the page, "" for one that is no route's
	path  string
	name  string // tells several views of one route apart
	// order and customer are which thing's names stand on it: by their numbers.
	order, customer []int
	status          int64 // 0 is 200
}

// viewsOfERP are all pages of the ERP's console, with what is on them.
func (e *everything) viewsOfERP() []view {
	return []view{
		{route: "/", path: "/"}, {route: "/problems", path: "/problems"}, {route: "/problems/:slug", path: "/problems/not-found"},
		{route: "/docs", path: "/docs"}, {route: "/login", path: "/login"},
		{route: "/invoices", path: "/invoices", order: []int{0, 1, 2}, customer: []int{0, 1}},
		{route: "/invoices", path: "/invoices?q=nothing+like+this", name: "none"},
		{route: "/invoices", path: "/invoices?" + url.Values{"q": {e.order(1)}}.Encode(), name: "search", order: []int{1}},
		{route: "/invoices/:id", path: "/invoices/" + e.invoice, order: []int{1}, customer: []int{1}},
		{route: "/invoices/:id", path: "/invoices/" + e.credit, name: "credit-note", order: []int{0}, customer: []int{0}},
		{route: "/invoices/:id", path: "/invoices/" + e.credited, name: "credited", order: []int{0}, customer: []int{0}},
		{route: "/conflicts", path: "/conflicts"}, {route: "/conflicts", path: "/conflicts?key=none", name: "none"},
		{route: "/registrations", path: "/registrations"}, {route: "/registrations/:id", path: "/registrations/" + e.registration},
		{route: "/registrations/:id", path: "/registrations/" + e.refusedThere, name: "refused"},
		{route: "/registrations/:id", path: "/registrations/" + e.pendingThere, name: "pending"},
		{route: "/targets", path: "/targets"}, {route: "/divergences", path: "/divergences", customer: []int{3}}, {route: "/tokens", path: "/tokens"},
		{route: "/audit", path: "/audit", customer: []int{3}},
		{path: "/nowhere/" + url.PathEscape(e.order(0)), name: "not-found", status: http.StatusNotFound},
		{path: "/audit?" + url.Values{e.order(0): {"1"}}.Encode(), name: "wrong-question", status: http.StatusBadRequest},
	}
}

// viewsOfCRM are all pages of the CRM side's console.
func (e *everything) viewsOfCRM() []view {
	operation := func(key string) string { return "/operations/" + key }
	return []view{
		{route: "/", path: "/"}, {route: "/problems", path: "/problems"}, {route: "/problems/:slug", path: "/problems/invalid-order"},
		{route: "/docs", path: "/docs"}, {route: "/login", path: "/login"},
		{route: "/dashboard", path: "/dashboard"}, {route: "/operations", path: "/operations", order: []int{0, 1, 4, 9}},
		{route: "/operations", path: "/operations?status=unknown", name: "unknown", order: []int{9}},
		{route: "/operations", path: "/operations?key=none", name: "none"},
		{route: "/operations/:key", path: operation(e.succeeded), order: []int{0}, customer: []int{0}},
		{route: "/operations/:key", path: operation(e.failed), name: "failed", order: []int{4}, customer: []int{4}},
		{route: "/operations/:key", path: operation(e.unknown), name: "unknown", order: []int{9}, customer: []int{9}},
		{route: "/operations/:key", path: operation(e.held), name: "held-back", order: []int{11}, customer: []int{11}},
		{route: "/replays", path: "/replays"}, {route: "/replays/:id", path: "/replays/" + e.replay},
		{route: "/replays/new", path: "/replays/new", order: []int{9}}, {route: "/replays/new", path: "/replays/new?source=none", name: "none"},
		{route: "/resolutions", path: "/resolutions", order: []int{8, 9}, customer: []int{8, 9}},
		{route: "/orders/:source/:order", path: "/orders/" + shopify + "/" + url.PathEscape(e.order(0)), order: []int{0}, customer: []int{0}},
		{route: "/orders/new", path: "/orders/new"}, {route: "/orders/new", path: "/orders/new?form=json", name: "as-json"},
		{route: "/divergences", path: "/divergences", order: []int{3}, customer: []int{3}}, {route: "/reconciliations", path: "/reconciliations"},
		{route: "/sources", path: "/sources", customer: []int{11}}, {route: "/intake", path: "/intake", order: []int{12}},
		{route: "/intake/:id", path: fmt.Sprintf("/intake/%d", e.refusal), order: []int{12}, customer: []int{12}},
		{route: "/imports", path: "/imports", customer: []int{14}},
		{route: "/imports/:id", path: "/imports/" + e.file.String(), order: []int{14, 15}, customer: []int{14, 15}},
		{route: "/audit", path: "/audit", customer: []int{3}},
		{path: "/orders/" + shopify + "/" + url.PathEscape(e.order(99)), name: "not-found", status: http.StatusNotFound},
	}
}

type side struct {
	name, base string
	views      []view
}

func (e *everything) sides() []side {
	return []side{{"erp", e.erpURL, e.viewsOfERP()}, {"crm", e.crmURL, e.viewsOfCRM()}}
}

// TestNoPageIsLeftOutOfTheWalk holds the views to the routes: a new page without one fails.
func TestNoPageIsLeftOutOfTheWalk(t *testing.T) {
	t.Parallel()
	e := &everything{naming: everyday()}
	erp, err := httpapi.NewERP(httpapi.ERPDeps{})
	if err != nil {
		t.Fatal(err)
	}
	crm, err := httpapi.NewCRM(httpapi.CRMDeps{Orders: noOrders{}})
	if err != nil {
		t.Fatal(err)
	}
	for name, side := range map[string]struct {
		handler http.Handler
		views   []view
	}{"erp": {erp, e.viewsOfERP()}, "crm": {crm, e.viewsOfCRM()}} {
		routes := side.handler.(interface{ Pages() []string }).Pages()
		routes = slices.DeleteFunc(routes, func(route string) bool { // a file, and what leads to River's own pages
			return route == "/invoices/export.csv" || route == httpapi.QueuePrefix
		})
		var walked []string
		for _, v := range side.views {
			if v.route != "" {
				walked = append(walked, v.route)
			}
		}
		slices.Sort(walked)
		if diff := cmp.Diff(routes, slices.Compact(walked)); diff != "" || len(routes) < 10 {
			t.Errorf("%s: routes (-), walked (+):\n%s", name, diff)
		}
	}
}

type noOrders struct{ httpapi.Orders }

// look opens a view, and gives the name of its picture.
func (b *tab) look(side string, v view) (picture string) {
	b.t.Helper()
	if want := max(v.status, http.StatusOK); b.open(v.path) != want {
		b.t.Errorf("%s %s is not answered %d", side, v.path, want)
	}
	if title := eval[string](b, "document.title"); !strings.Contains(title, " · invoicebridge ") || strings.HasPrefix(title, " ") {
		b.t.Errorf("%s %s has the title %q", side, v.path, title)
	}
	picture = side + "-" + strings.TrimPrefix(eval[string](b, "document.body.dataset.page"), side+"_")
	if v.name != "" {
		picture += "-" + v.name
	}
	return picture
}

// wantTimesAndMoney fails the test for a time that is not in the viewer's zone with UTC on hover, and for money that is not on
// the right.
func (b *tab) wantTimesAndMoney() {
	b.t.Helper()
	if wrong := eval[[]string](b, `[...document.querySelectorAll("main time")].filter((time) => {
		const written = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" }).format(new Date(time.dateTime));
		return time.textContent !== written || !time.title.endsWith(" UTC");
	}).concat([...document.querySelectorAll("main [data-utc]")], [...document.querySelectorAll("main [data-clock]")].filter((label) => {
		const at = new Date(label.dataset.clock), two = (n) => String(n).padStart(2, "0");
		return label.textContent !== two(at.getHours()) + ":" + two(at.getMinutes());
	})).concat([...document.querySelectorAll("main td .money")].filter((money) => getComputedStyle(money.closest("td")).textAlign !== "right")).map((e) => e.outerHTML)`); len(wrong) > 0 {
		b.t.Errorf("%s: %s", b.path(), strings.Join(wrong, "\n"))
	}
}

// TestEveryPageIsAccessibleAndFitsTheWindow looks at each page as people with a large window, in the dark, and with a phone.
func TestEveryPageIsAccessibleAndFitsTheWindow(t *testing.T) {
	t.Parallel()
	for _, side := range newEverything(t, everyday()).sides() {
		walkViews(t, side, "")
	}
}

// TestEveryPageOfNothingIsAccessibleAndSaysWhatToDoNext looks at the pages of a company that has just begun.
func TestEveryPageOfNothingIsAccessibleAndSaysWhatToDoNext(t *testing.T) {
	t.Parallel()
	e := &everything{world: newWorld(t), naming: everyday()}
	for _, side := range e.sides() {
		side.views = slices.DeleteFunc(side.views, func(v view) bool {
			return v.route == "" || v.name != "" || strings.Contains(v.route, ":") || slices.Contains([]string{"/", "/problems", "/docs", "/login"}, v.route)
		})
		walkViews(t, side, "-of-nothing")
	}
}

func walkViews(t *testing.T, side side, suffix string) {
	t.Helper()
	b, small := newTab(t, side.base), newTab(t, side.base)
	b.guard.tolerated = []string{"/docs"}
	walkLogIn(t, side, suffix)
	b.logIn(admin, password)
	small.logIn(admin, password)
	small.phone()
	for _, v := range side.views {
		name := b.look(side.name, v) + suffix
		for _, dark := range []bool{false, true} {
			b.darkMode(dark)
			b.wantAccessible()
			b.shot(name + map[bool]string{false: "-light", true: "-dark"}[dark])
		}
		b.darkMode(false)
		b.wantNoSidewaysScroll()
		b.wantTimesAndMoney()
		if rows := eval[int](b, `new Set([...document.querySelectorAll(".top nav > ul > li")].map((li) => li.offsetTop)).size`); rows != 1 {
			t.Errorf("%s: the menu has %d rows", b.path(), rows)
		}
		if empty := b.count(".empty"); empty > 0 && b.count(".empty a, .empty p:not(.empty-title)") == 0 {
			t.Errorf("%s: the empty list says not what to do next", b.path())
		}
		small.look(side.name, v)
		small.wantAccessible()
		small.wantNoSidewaysScroll()
		small.shot(name + "-phone")
	}
	small.click(".top nav summary")
	small.wantNoSidewaysScroll()
	small.wantAccessible()
	small.shot(side.name + "-menu-phone")
}

// walkLogIn looks at what a stranger is shown first: who has logged in is led on from there.
func walkLogIn(t *testing.T, side side, suffix string) {
	t.Helper()
	stranger := newTab(t, side.base)
	name := stranger.look(side.name, view{path: "/login"}) + suffix
	if stranger.count("#login-password") != 1 {
		t.Errorf("%s: a stranger is not asked who they are", side.name)
	}
	for _, way := range []string{"light", "dark", "phone"} {
		stranger.darkMode(way == "dark")
		if way == "phone" {
			stranger.phone()
		}
		stranger.wantAccessible()
		stranger.wantNoSidewaysScroll()
		stranger.shot(name + "-" + way)
	}
}

// hostile are names as in case O1, each a whole attack.
func hostile() naming {
	names := []string{
		`<img src=x onerror=alert(1)>`, `"><svg onload=alert(1)>`, `</script><script>alert(1)</script>`, `javascript:alert(1)`, `{{7*7}}`,
		`' onmouseover='alert(1)`, `</title><script>alert(1)</script>`,
	}
	return naming{
		order:    func(i int) string { return fmt.Sprintf("%s %d", names[i%len(names)], i) },
		customer: func(i int) string { return fmt.Sprintf("%s Ltd %d", names[(i+3)%len(names)], i) },
		source:   `<img src=x onerror=alert(2)>`,
	}
}

// TestHostileNamesAreTextOnEveryPage is case O1: the guard of each tab fails the test if anything of it is executed, or was
// only kept from it by the content security policy.
func TestHostileNamesAreTextOnEveryPage(t *testing.T) {
	t.Parallel()
	e := newEverything(t, hostile())
	for _, side := range e.sides() {
		b := newTab(t, side.base)
		b.logIn(admin, password)
		for _, v := range side.views {
			if v.route == "/docs" {
				continue
			}
			b.look(side.name, v)
			b.wantNothingOfNames()
			said := eval[string](b, "document.body.textContent + document.title")
			for _, i := range v.order {
				if !strings.Contains(said, e.order(i)) {
					t.Errorf("%s %s does not show the order %q", side.name, v.path, e.order(i))
				}
			}
			for _, i := range v.customer {
				if !strings.Contains(said, e.customer(i)) {
					t.Errorf("%s %s does not show the customer %q", side.name, v.path, e.customer(i))
				}
			}
		}
	}
	b := e.onCRM(admin)
	b.open("/operations/" + e.succeeded)
	if title := eval[string](b, "document.title"); !strings.Contains(title, e.order(0)) {
		t.Errorf("the title is %q", title)
	}
	b.open("/sources") // a message that was told once
	b.click(`details:has(form[action$="/resume"]) > summary`)
	b.fill(`form[action$="/resume"] [name=reason]`, e.customer(0))
	b.follow(`form[action$="/resume"] button`)
	b.wantText(".flash", e.source)
	b.wantNothingOfNames()
	if n := number(t, e.erp, `SELECT count(*) FROM invoices WHERE customer_name = $1`, e.customer(1)); n != 1 {
		t.Errorf("%d invoices have the name as it was given", n)
	}
}

// wantNothingOfNames fails the test if a name became an element, an attribute or an address.
func (b *tab) wantNothingOfNames() {
	b.t.Helper()
	if found := eval[[]string](b, `[...document.querySelectorAll("body *, head *")].filter((e) =>
		(e.closest("main") !== null && ["IMG", "SCRIPT", "IFRAME"].includes(e.tagName)) || (e.tagName === "SVG" && e.getAttribute("role") !== "img") ||
		(e.tagName === "SCRIPT" && !e.src) || [...e.attributes].some((a) => a.name.startsWith("on")) ||
		["href", "src", "action"].some((a) => /^\s*javascript:/i.test(e.getAttribute(a) ?? ""))).map((e) => e.outerHTML)`); len(found) > 0 {
		b.t.Errorf("%s: a name became more than text:\n%s", b.path(), strings.Join(found, "\n"))
	}
}

// TestPicturesForTheManual makes the pictures of docs/operations.md.
func TestPicturesForTheManual(t *testing.T) {
	if *pictures == "" {
		t.Skip("made with -pictures=<folder>")
	}
	wanted := []string{
		"erp-invoices", "erp-invoice", "erp-conflicts", "erp-registration-refused", "crm-dashboard", "crm-operations", "crm-operation-unknown",
		"crm-replay", "crm-sources",
	}
	for _, side := range newEverything(t, everyday()).sides() {
		b := newTab(t, side.base)
		b.logIn(admin, password)
		for _, v := range side.views {
			if v.route == "/docs" {
				continue
			}
			if name := b.look(side.name, v); slices.Contains(wanted, name) {
				b.picture(*pictures+string(os.PathSeparator)+name+".png", top)
			}
		}
	}
}
