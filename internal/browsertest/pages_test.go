package browsertest

import (
	"net/http"
	"strings"
	"testing"
)

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
