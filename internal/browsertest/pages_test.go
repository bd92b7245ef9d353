package browsertest

import (
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
)

// pagesOf are addresses of all pages of both consoles in a world that has something on each.
func (w *world) pagesOf(orderNumber string) (erp, crm []string) {
	w.t.Helper()
	id, _ := w.numberOf(orderNumber)
	var registration string
	if err := w.erp.QueryRow(w.t.Context(), `SELECT id::text FROM registrations LIMIT 1`).Scan(&registration); err != nil {
		w.t.Fatal(err)
	}
	erp = []string{
		"/", "/problems", "/problems/not-found", "/invoices", "/invoices/" + id, "/conflicts", "/registrations",
		"/registrations/" + registration, "/targets", "/divergences", "/tokens", "/audit", "/nowhere",
	}
	crm = []string{
		"/", "/dashboard", "/operations", "/operations/" + w.keyOf(orderNumber), "/replays", "/replays/new", "/resolutions",
		"/divergences", "/reconciliations", "/sources", "/intake", "/imports", "/audit", "/orders/new",
		"/orders/shopify-eu/" + orderNumber,
	}
	return erp, crm
}

// seed has two orders invoiced, one turned away, and a key used for two requests.
func (w *world) seed(customerName string) {
	w.t.Helper()
	w.submit(newOrder("SO-1001", customerName), newOrder("SO-1002", customerName))
	w.settled(2)
	wrong := newOrder("SO-1003", customerName)
	wrong.Currency = "XYZ"
	w.post(w.crmURL+"/v1/orders", w.crmToken, "", asJSON(w.t, wrong))
	for _, quantity := range []string{"1", "2"} {
		request := newOrder("SO-2001", customerName)
		request.Role, request.Lines[0].Quantity = "final", quantity
		w.post(w.erpURL+"/v1/invoices", w.erpToken, "key-of-two-requests", asJSON(w.t, request))
	}
}

// TestEveryPageIsAccessibleAndFitsTheWindow looks at each page as people with a large window, in the dark, and with a phone.
func TestEveryPageIsAccessibleAndFitsTheWindow(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.seed("Müller & Söhne GmbH")
	erp, crm := w.pagesOf("SO-1001")
	for name, side := range map[string]struct {
		base  string
		paths []string
	}{"erp": {w.erpURL, erp}, "crm": {w.crmURL, crm}} {
		b := w.tab(side.base, admin)
		for _, path := range side.paths {
			if status := b.open(path); status != http.StatusOK && path != "/nowhere" {
				t.Errorf("%s %s is answered %d", name, path, status)
				continue
			}
			file := name + "-" + eval[string](b, "document.body.dataset.page")
			for _, dark := range []bool{false, true} {
				b.darkMode(dark)
				b.wantAccessible()
				if dark {
					b.shot(file + "-dark")
				} else {
					b.shot(file + "-light")
				}
			}
			b.darkMode(false)
			b.wantNoSidewaysScroll()
		}
		small := w.tab(side.base, admin)
		small.phone()
		for _, path := range side.paths {
			small.open(path)
			small.wantNoSidewaysScroll()
			small.shot(name + "-" + eval[string](small, "document.body.dataset.page") + "-phone")
		}
	}
}

// TestHostileNamesAreTextOnEveryPage is case O1: the guard of each tab fails the test if anything of it is executed.
func TestHostileNamesAreTextOnEveryPage(t *testing.T) {
	t.Parallel()
	const hostile = `<img src=x onerror=alert(1)>"><svg onload=alert(1)></script><script>alert(1)</script>javascript:alert(1){{7*7}}`
	w := newWorld(t)
	w.seed(hostile)
	erp, crm := w.pagesOf("SO-1001")
	seen := 0
	for base, paths := range map[string][]string{w.erpURL: erp, w.crmURL: crm} {
		b := w.tab(base, admin)
		for _, path := range paths {
			b.open(path)
			if b.count("main img, main svg:not([role=img]), main script") > 0 {
				t.Errorf("%s: a name became an element", path)
			}
			if strings.Contains(b.text("main"), "onerror=alert(1)") {
				seen++
			}
		}
	}
	if seen < 3 {
		t.Errorf("the name is seen on %d pages only", seen)
	}
}

func TestInvoiceIsFoundAndPrintsOnOnePageWithoutTheConsole(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.seed("Müller & Söhne GmbH")
	id, invoiceNumber := w.numberOf("SO-1001")
	b := w.onERP(viewer)
	for _, wanted := range []string{invoiceNumber, "SO-1001", "Müller", w.keyOf("SO-1001")} {
		b.open("/invoices")
		b.fill("main form[role=search] input[type=search]", wanted)
		b.follow("main form[role=search] button.first")
		if !strings.Contains(b.text("main"), invoiceNumber) {
			t.Errorf("%q does not find %s:\n%s", wanted, invoiceNumber, b.text("main"))
		}
	}
	b.open("/invoices/" + id)
	paper := b.print()
	if len(paper) > 2 {
		t.Errorf("%d pages", len(paper))
	}
	for _, part := range []string{invoiceNumber, "Müller & Söhne GmbH", "SO-1001", "1344.72"} {
		if !strings.Contains(strings.Join(strings.Fields(paper[0]), " "), part) {
			t.Errorf("the paper lacks %q:\n%s", part, paper[0])
		}
	}
	for _, part := range []string{"Log out", "Registrations\n"} {
		if strings.Contains(paper[0], part) {
			t.Errorf("the console's %q is on the paper:\n%s", part, paper[0])
		}
	}
}

func TestQueueIsClosedToStrangersAndPlainUsers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.seed("Müller & Söhne GmbH")
	b := w.tab(w.crmURL, stranger)
	b.open("/queue/")
	if !strings.HasPrefix(b.path(), "/login?") {
		t.Errorf("a stranger is shown %s", b.path())
	}
	b = w.onCRM(operator)
	if status := b.open("/queue/"); status != http.StatusForbidden {
		t.Errorf("an operator gets %d", status)
	}
}

func TestMainPathsWorkWithoutScripts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.seed("Müller & Söhne GmbH")
	_, invoiceNumber := w.numberOf("SO-1001")
	b := w.tab(w.erpURL, stranger)
	b.noScripts()
	b.logIn(viewer, password)
	b.open("/invoices")
	b.fill("main form[role=search] input[type=search]", "SO-1001")
	b.follow("main form[role=search] button.first")
	b.wantText("main", invoiceNumber, "UTC")
	b = w.tab(w.crmURL, stranger)
	b.noScripts()
	b.logIn(operator, password)
	b.open("/operations/" + w.keyOf("SO-1001"))
	b.wantText(".standing", "succeeded")
}

// TestPicturesForTheManual makes the pictures of docs/operations.md.
func TestPicturesForTheManual(t *testing.T) {
	if *pictures == "" {
		t.Skip("made with -pictures=<folder>")
	}
	w := newWorld(t)
	w.seed("Müller & Söhne GmbH")
	erp, crm := w.pagesOf("SO-1001")
	wanted := []string{"erp_invoices", "erp_invoice", "erp_conflicts", "crm_dashboard", "crm_operations", "crm_operation", "crm_sources"}
	for base, paths := range map[string][]string{w.erpURL: erp, w.crmURL: crm} {
		b := w.tab(base, admin)
		for _, path := range paths {
			b.open(path)
			if name := eval[string](b, "document.body.dataset.page"); slices.Contains(wanted, name) {
				b.picture(*pictures + string(os.PathSeparator) + name + ".png")
			}
		}
	}
}
