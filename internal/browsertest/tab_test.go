package browsertest

import (
	"context"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/audits"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"invoicebridge/internal/testdb"
)

// tabLimit is for everything that one tab does, on a machine that runs other tests beside it.
const tabLimit = 8 * time.Minute

// viewersZone is where the viewer sits: not in UTC, so that a time that was not written anew is seen.
const viewersZone = "Asia/Kolkata"

// tab is one tab in a profile of its own: its cookies are nobody else's.
type tab struct {
	t     *testing.T
	ctx   context.Context
	base  string // address of the service, such as http://127.0.0.1:8080
	guard *guard

	faultsExpected bool // only where the guard itself is tried
}

// newTab opens a tab for a person who uses the service at base, and may be led to the other ones. When the test ends,
// it fails if a page did what no page may do.
func newTab(t *testing.T, base string, others ...string) *tab {
	t.Helper()
	g := &guard{}
	for _, address := range append([]string{base}, others...) {
		g.hosts = append(g.hosts, strings.TrimPrefix(address, "http://"))
	}
	limited, cancel := context.WithTimeout(browser(t), tabLimit)
	t.Cleanup(cancel)
	ctx, closeTab := chromedp.NewContext(limited, chromedp.WithNewBrowserContext(), chromedp.WithListener(g.listen))
	tab := &tab{t: t, ctx: ctx, base: base, guard: g}
	t.Cleanup(func() {
		closeTab()
		if tab.faultsExpected {
			return
		}
		for _, fault := range g.take() {
			t.Errorf("%s: %s", base, fault)
		}
	})
	tab.do(chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		if _, err := cdp.Call(ctx, target, audits.Enable, cdp.Empty{}); err != nil {
			return err
		}
		_, err := cdp.Call(ctx, target, emulation.SetTimezoneOverride, emulation.SetTimezoneOverrideParams{TimezoneID: viewersZone})
		return err
	}))
	dialogs := chromedp.Events(ctx, page.JavascriptDialogOpening)
	go func() { // a page that shows a dialog waits for ever
		for _, err := range dialogs {
			if err != nil {
				return
			}
			_, _ = chromedp.Call(ctx, page.HandleJavaScriptDialog, page.HandleJavaScriptDialogParams{Accept: true})
		}
	}()
	return tab
}

func (b *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if err := chromedp.Do(b.ctx, steps...); err != nil {
		b.t.Fatalf("in the browser: %v", err)
	}
}

func run[T any](b *tab, action chromedp.Action[T]) T {
	b.t.Helper()
	result, err := chromedp.Run(b.ctx, action)
	if err != nil {
		b.t.Fatalf("in the browser: %v", err)
	}
	return result
}

func call[P, R any](b *tab, command cdp.Command[P, R], params P) R {
	b.t.Helper()
	result, err := chromedp.Call(b.ctx, command, params)
	if err != nil {
		b.t.Fatalf("in the browser: %s: %v", command.Method, err)
	}
	return result
}

// open goes to a path of the service and gives the answer's status.
func (b *tab) open(path string) int64 {
	b.t.Helper()
	return b.loaded(chromedp.Navigate(b.base + path)).Status
}

// loaded does something that leads to another page, and waits for it.
func (b *tab) loaded(steps ...chromedp.Action[chromedp.Void]) *network.Response {
	b.t.Helper()
	response, err := chromedp.RunResponse(b.ctx, steps...)
	if err != nil {
		b.t.Fatalf("in the browser, at %s: %v", b.path(), err)
	}
	return response
}

// follow clicks on what a selector finds, and waits for the page it leads to.
func (b *tab) follow(selector string) int64 {
	b.t.Helper()
	b.wantVisible(selector)
	return b.loaded(chromedp.Click(chromedp.CSS(selector))).Status
}

// click clicks on what stays on the page.
func (b *tab) click(selector string) {
	b.t.Helper()
	b.wantVisible(selector)
	b.do(chromedp.Click(chromedp.CSS(selector)))
}

// fill replaces what stands in a field by typing.
func (b *tab) fill(selector, text string) {
	b.t.Helper()
	b.wantVisible(selector)
	eval[bool](b, "document.querySelector("+quote(selector)+").select() === undefined")
	b.do(chromedp.SendKeys(chromedp.CSS(selector), text))
}

// choose takes an option of a select.
func (b *tab) choose(selector, value string) {
	b.t.Helper()
	b.wantVisible(selector)
	b.do(chromedp.SetValue(chromedp.CSS(selector), value))
}

func (b *tab) path() string {
	address, err := chromedp.Run(b.ctx, chromedp.Location())
	if err != nil {
		return "an unknown page"
	}
	u, err := url.Parse(address)
	if err != nil {
		return address
	}
	return u.RequestURI()
}

// eval is the value of an expression in the page.
func eval[T any](b *tab, expression string) T {
	b.t.Helper()
	return run(b, chromedp.Evaluate[T](expression))
}

// count is how many elements a selector finds.
func (b *tab) count(selector string) int {
	b.t.Helper()
	return eval[int](b, "document.querySelectorAll("+quote(selector)+").length")
}

// text is what a person reads in the first element that a selector finds.
func (b *tab) text(selector string) string {
	b.t.Helper()
	return eval[string](b, "document.querySelector("+quote(selector)+")?.innerText.trim() ?? ''")
}

func (b *tab) wantVisible(selector string) {
	b.t.Helper()
	if !eval[bool](b, "document.querySelector("+quote(selector)+")?.checkVisibility() ?? false") {
		b.t.Fatalf("%s: nothing to see for %s; the page says:\n%s", b.path(), selector, b.text("main"))
	}
}

func (b *tab) wantText(selector string, parts ...string) {
	b.t.Helper()
	got := b.text(selector)
	for _, part := range parts {
		if !strings.Contains(got, part) {
			b.t.Errorf("%s: %s says %q, want %q in it", b.path(), selector, got, part)
		}
	}
}

// await waits until the page says something, without being loaded again.
func (b *tab) await(selector, part string) {
	b.t.Helper()
	defer func() {
		if b.t.Failed() {
			b.t.Logf("%s says:\n%s", b.path(), b.text("main"))
		}
	}()
	testdb.Await(b.t, selector+" says "+part, func() bool { return strings.Contains(b.text(selector), part) })
}

// quote is a string in JavaScript.
func quote(text string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(text) + `"`
}

// darkMode has pages shown as to somebody who prefers the dark, or not.
func (b *tab) darkMode(dark bool) {
	b.t.Helper()
	value := "light"
	if dark {
		value = "dark"
	}
	call(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: value}},
	})
}

// noScripts has pages work without scripts. What the test itself evaluates still runs.
func (b *tab) noScripts() {
	b.t.Helper()
	call(b, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
}

const phoneWidth = 375

// phone makes the window as small as a phone's.
func (b *tab) phone() {
	b.t.Helper()
	b.do(chromedp.EmulateViewport(phoneWidth, 667, chromedp.EmulateScale(2)))
}

// logIn logs somebody in by the form, in a tab where nobody is.
func (b *tab) logIn(name, password string) {
	b.t.Helper()
	b.open("/login")
	b.fill("#login-name", name)
	b.fill("#login-password", password)
	if status := b.follow("#login button"); status != 200 || b.count(".who button") != 1 {
		b.t.Fatalf("%s can't log in: %d %s", name, status, b.text("main"))
	}
}

// value is what stands in a field.
func (b *tab) value(selector string) string {
	b.t.Helper()
	return eval[string](b, "document.querySelector("+quote(selector)+").value")
}

// attribute is an attribute of the first element that a selector finds; the test fails if there is none.
func (b *tab) attribute(selector, name string) string {
	b.t.Helper()
	got := eval[string](b, "document.querySelector("+quote(selector)+")?.getAttribute("+quote(name)+") ?? ''")
	if got == "" {
		b.t.Fatalf("%s: no %s of %s; the page says:\n%s", b.path(), name, selector, b.text("main"))
	}
	return got
}
