package browsertest

import (
	"fmt"
	"strings"
	"testing"

	"invoicebridge/internal/testdb"
)

// TestOperationThatLostItsAnswerIsFollowedToItsEnd has somebody look at one page, which is never loaded again, from the
// lost answer to the invoice.
func TestOperationThatLostItsAnswerIsFollowedToItsEnd(t *testing.T) {
	t.Parallel()
	const attempts = `section[aria-labelledby="attempts"]`
	w := newWorld(t)
	b := w.onCRM(operator)
	w.wire.mode.Store(answersAreLost)
	w.submit(newOrder("SO-1001", "Müller & Söhne GmbH"))
	b.open("/operations/" + w.keyOf("SO-1001"))
	eval[bool](b, `(window.sameDocument = true)`)
	testdb.Await(t, "an answer is lost", func() bool {
		return number(t, w.crm, `SELECT count(*) FROM attempts WHERE outcome = 'lost'`) > 0
	})
	b.await(attempts, "lost")

	w.wire.mode.Store(answersArrive)
	w.settled(1)
	b.await(".standing .state", "succeeded")
	if !eval[bool](b, "window.sameDocument === true") {
		t.Error("the page was loaded again")
	}
	_, invoiceNumber := w.numberOf("SO-1001")
	b.wantText(".facts", invoiceNumber)
	b.await(".verdict", "Both sides agree")
	if n := b.count("table.compare tr.differs"); n != 0 {
		t.Errorf("%d rows differ: %s", n, b.text("table.compare"))
	}
	if n := strings.Count(b.text("table.compare"), invoiceNumber); n != 2 {
		t.Errorf("the invoice's number stands %d times in the two views:\n%s", n, b.text("table.compare"))
	}
	b.await(attempts, "replayed")
	if n := number(t, w.erp, `SELECT count(*) FROM invoices`); n != 1 {
		t.Errorf("%d invoices", n)
	}
	b.shot("flow-operation-that-lost-its-answer")
}

// unknownOperations makes operations whose invoices are there and that are left to an operator all the same.
func (w *world) unknownOperations(orders ...order) {
	w.t.Helper()
	testdb.Await(w.t, "the reconciliation that begins with the service is over: it would settle them", func() bool {
		return number(w.t, w.crm, `SELECT count(*) FROM reconciliation_runs WHERE finished_at IS NOT NULL`) > 0
	})
	w.wire.mode.Store(answersAreAlien)
	w.submit(orders...)
	testdb.Await(w.t, "all are left to an operator", func() bool {
		return number(w.t, w.crm, `SELECT count(*) FROM operations WHERE status = 'unknown' AND flagged_at IS NOT NULL`) == len(orders)
	})
	w.wire.mode.Store(answersArrive)
}

func TestManyAreReplayedAfterAPreviewAndMakeNoSecondInvoice(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.onCRM(operator)
	const n = 3
	var orders []order
	for i := range n {
		orders = append(orders, newOrder(fmt.Sprintf("SO-%d", 1001+i), "Müller & Söhne GmbH"))
	}
	w.unknownOperations(orders...)
	b.open("/operations?status=unknown")
	b.follow("main .toolbar a.button")
	b.wantText("h1", "Replay many")
	b.wantText(".count", "3")
	if got := b.count("table.operations tbody tr"); got != n {
		t.Errorf("the preview shows %d operations:\n%s", got, b.text("main"))
	}
	b.shot("flow-replay-preview")
	form := b.attribute("main form[method=post]", "id")
	if b.count("#"+form+"-reason") == 1 && !eval[bool](b, "document.querySelector('#"+form+"-reason').checkVisibility()") {
		b.click("details:has(#" + form + ") > summary")
	}
	b.fill("#"+form+"-reason", "The line to the ERP was down")
	if b.count("#"+form+"-confirm") == 1 {
		b.click("#" + form + "-confirm")
	}
	b.follow("#" + form + " button")
	if !strings.HasPrefix(b.path(), "/replays/") {
		t.Fatalf("after the start: %s %s", b.path(), b.text("main"))
	}
	b.await(`[data-live="replay"] .waiting`, "0")
	w.settled(n)
	b.await(`[data-live="items"]`, "succeeded")
	b.shot("flow-replay")
	if got := number(t, w.erp, `SELECT count(*) FROM invoices`); got != n {
		t.Errorf("%d invoices, want %d", got, n)
	}
}

func TestUnknownIsResolvedByTwoPeopleAndNeverByOne(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	olga := w.onCRM(operator)
	w.unknownOperations(newOrder("SO-1001", "Müller & Söhne GmbH"))
	key := w.keyOf("SO-1001")
	id, invoiceNumber := w.numberOf("SO-1001")

	olga.open("/operations/" + key)
	olga.click("details:has(#resolve) > summary")
	olga.choose("#resolve-verdict", "applied")
	olga.fill("#resolve-invoice_id", id)
	olga.fill("#resolve-invoice_number", invoiceNumber)
	olga.fill("#resolve-evidence", "Seen in the ERP's list of invoices.")
	olga.fill("#resolve-reason", "The answer was lost, the invoice is there.")
	olga.shot("flow-resolve-propose")
	olga.follow("#resolve button")
	if olga.count(".resolution") == 0 {
		t.Fatalf("the proposal is not taken: %s", olga.text("main"))
	}
	olga.wantText(".resolution", invoiceNumber, "Seen in the ERP", "olga")
	if olga.count(".resolution button:not([disabled])") == 0 {
		t.Error("who has proposed can't withdraw")
	}
	approve := `.resolution .action:has(> button[disabled])`
	olga.wantText(approve, "Approve")

	otto := w.onCRM(second)
	otto.open("/resolutions")
	otto.wantText(".resolution", invoiceNumber, "olga")
	form := otto.attribute(`form[action$="/approve"]`, "id")
	otto.click("details:has(#" + form + ") > summary")
	otto.fill("#"+form+"-reason", "I have seen it, too.")
	otto.shot("flow-resolve-approve")
	otto.follow("#" + form + " button")
	otto.wantText(".flash", "")
	olga.open("/operations/" + key)
	olga.wantText(".standing .state", "succeeded")
	olga.wantText(".facts", invoiceNumber)
	olga.wantText("table.audit", "olga", "otto")
	olga.shot("flow-resolved")
}
