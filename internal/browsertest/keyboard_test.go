package browsertest

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// press presses keys on whatever has the focus.
func (b *tab) press(keys string) {
	b.t.Helper()
	b.do(chromedp.KeyEvent(keys))
}

// enter presses Enter, which leads to another page.
func (b *tab) enter() int64 {
	b.t.Helper()
	return b.loaded(chromedp.KeyEvent(kb.Enter)).Status
}

// tabTo goes on by Tab until the focus is on what a selector finds. Wherever it comes to must be seen.
func (b *tab) tabTo(selector string) {
	b.t.Helper()
	for range 80 {
		if eval[bool](b, "document.activeElement.matches("+quote(selector)+")") {
			return
		}
		b.press(kb.Tab)
		if unseen := eval[string](b, `(() => {
			const e = document.activeElement, style = getComputedStyle(e), box = e.getBoundingClientRect();
			if (e === document.body) return "";
			const outlined = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2;
			const inWindow = box.width > 0 && box.bottom > 0 && box.right > 0 && box.top < innerHeight && box.left < innerWidth;
			return outlined && inWindow ? "" : style.outline + " " + e.outerHTML.slice(0, 200);
		})()`); unseen != "" {
			b.t.Errorf("%s: the focus is not seen: %s", b.path(), unseen)
		}
	}
	b.t.Fatalf("%s: Tab does not come to %s", b.path(), selector)
}

// TestInvoiceIsFoundByKeyboardAlone logs in, searches, opens an invoice and logs out, with nothing but keys.
func TestInvoiceIsFoundByKeyboardAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.seed("Müller & Söhne GmbH")
	_, invoiceNumber := w.numberOf("SO-1001")
	b := w.tab(w.erpURL, stranger)
	b.open("/invoices")
	b.tabTo("#login-name")
	b.press(viewer)
	b.tabTo("#login-password")
	b.press(password)
	if status := b.enter(); status != 200 || b.path() != "/invoices" {
		t.Fatalf("after the log-in: %d %s", status, b.path())
	}
	b.press(kb.Tab)
	if !eval[bool](b, `document.activeElement.matches(".skip")`) {
		t.Error("the first Tab is not on what skips the menu")
	}
	b.press(kb.Enter)
	if !eval[bool](b, `document.activeElement.id === "main"`) {
		t.Error("the menu is not skipped")
	}
	b.tabTo("input[type=search]")
	b.press("SO-1001")
	b.enter()
	b.tabTo(`table.invoices a`)
	b.enter()
	b.wantText("h1", invoiceNumber)
	b.tabTo(".who button")
	if b.enter(); !strings.HasPrefix(b.path(), "/login") {
		t.Errorf("after the log-out: %s", b.path())
	}
}
