package browsertest

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"

	"invoicebridge/internal/crm"
	"invoicebridge/internal/target/targetsim"
	"invoicebridge/internal/testdb"
)

// naming says what the i-th thing of a world is called.
type naming struct {
	order, customer func(i int) string
	source          string // one that is paused
}

// everyday are names as a company has them.
func everyday() naming {
	customers := []string{"Müller & Söhne GmbH", "Nordlicht Bürobedarf AG", "O’Neill Books Ltd", "Çelik Mobilya A.Ş."}
	return naming{
		order:    func(i int) string { return fmt.Sprintf("SO-%d", 1001+i) },
		customer: func(i int) string { return customers[i%len(customers)] },
		source:   "marketplace",
	}
}

// everything is a world that has something on every page of both consoles, and where to find it.
type everything struct {
	*world
	naming

	invoice, credited, credit                string // ids
	refusedThere, pendingThere, registration string // registrations
	succeeded, failed, unknown, held         string // keys of operations
	refusal                                  int
	file                                     uuid.UUID
	replay                                   string
}

const webshop, shopify = "webshop", "shopify-eu"

func newEverything(t *testing.T, n naming) *everything {
	t.Helper()
	e := &everything{world: newWorld(t), naming: n}
	testdb.Await(t, "the reconciliation that begins with the service is over: it would settle what is to stay unknown", func() bool {
		return number(t, e.crm, `SELECT count(*) FROM reconciliation_runs WHERE finished_at IS NOT NULL`) > 0
	})
	e.invoices()
	e.failure()
	e.registrations()
	e.replayed()
	e.turnedAway()
	e.differences() // a reconciliation, which would settle what follows
	e.resolved()
	e.paused()
	return e
}

func (e *everything) newOrder(i int, source string) order {
	o := newOrder(e.order(i), e.customer(i))
	o.Source = source
	return o
}

// invoices has invoices in two currencies, of large and small amounts, and a credit note.
func (e *everything) invoices() {
	e.t.Helper()
	large, yen := e.newOrder(1, shopify), e.newOrder(2, shopify)
	large.Lines = append(large.Lines, line{SKU: "S-3", Description: "Server, set up", Quantity: "12", UnitPrice: "102345.678", VATRate: "19", VATCategory: "S"})
	large.Note, large.Customer.Email = "Thank you for your order, "+e.customer(1), "books@customer.example"
	large.Metadata = map[string]string{"shop": e.customer(1)}
	yen.Currency, yen.Lines = "JPY", []line{{SKU: "Y-1", Description: "Ink", Quantity: "3", UnitPrice: "1200", VATRate: "10", VATCategory: "S"}}
	e.submit(e.newOrder(0, shopify), large, yen)
	e.settled(3)
	e.invoice, _ = e.numberOf(e.order(1))
	e.succeeded = e.keyOf(e.order(0))
	var invoiceNumber string
	e.credited, invoiceNumber = e.numberOf(e.order(0))
	credit := e.newOrder(0, shopify)
	credit.Role, credit.Corrects, credit.Note = "credit_note", invoiceNumber, "Came back"
	if status, answer := e.post(e.erpURL+"/v1/invoices", e.erpToken, "key-of-the-credit-note", asJSON(e.t, credit)); status != http.StatusCreated {
		e.t.Fatalf("no credit note: %d %s", status, answer)
	}
	e.credit = text(e.t, e.erp, `SELECT id::text FROM invoices WHERE role = 'credit_note'`)
	for _, quantity := range []string{"1", "2"} {
		request := e.newOrder(3, shopify)
		request.Role, request.Lines[0].Quantity, request.Customer.Name = "final", quantity, e.customer(3)+" "+quantity
		e.post(e.erpURL+"/v1/invoices", e.erpToken, "key-of-two-requests", asJSON(e.t, request))
	}
}

// failure has the ERP refuse an order, in its own words.
func (e *everything) failure() {
	e.t.Helper()
	e.wire.refusal.Store(new("There is no account for " + e.customer(4) + "."))
	e.wire.mode.Store(answersRefuse)
	e.submit(e.newOrder(4, shopify))
	testdb.Await(e.t, "an operation has failed", func() bool {
		return number(e.t, e.crm, `SELECT count(*) FROM operations WHERE status = 'failed'`) == 1
	})
	e.wire.mode.Store(answersArrive)
	e.failed = e.keyOf(e.order(4))
}

// registrations has one refused by a target, and one that waits.
func (e *everything) registrations() {
	e.t.Helper()
	e.await("SELECT count(*) FROM registrations WHERE status <> 'succeeded'", 0)
	if err := e.targets.Script(targetsim.AnyReference, targetsim.Reject); err != nil {
		e.t.Fatal(err)
	}
	e.act(e.erpURL+"/admin/v1/targets/books/pause", `{"reason": "Their books are closed until Monday"}`)
	e.submit(e.newOrder(5, shopify))
	e.await("SELECT count(*) FROM registrations WHERE status = 'failed'", 1)
	e.refusedThere = text(e.t, e.erp, `SELECT id::text FROM registrations WHERE status = 'failed'`)
	e.pendingThere = text(e.t, e.erp, `SELECT id::text FROM registrations WHERE status = 'pending'`)
	e.registration = text(e.t, e.erp, `SELECT id::text FROM registrations WHERE status = 'succeeded' ORDER BY created_at LIMIT 1`)
}

// await waits until a query of the ERP gives a number.
func (e *everything) await(query string, want int) {
	e.t.Helper()
	testdb.Await(e.t, query, func() bool { return number(e.t, e.erp, query) == want })
}

// replayed has two that were left to an operator replayed at once.
func (e *everything) replayed() {
	e.t.Helper()
	e.leave(e.newOrder(6, webshop), e.newOrder(7, webshop))
	answer := e.act(e.crmURL+"/admin/v1/replays", `{"filter": {"source": "webshop"}, "expected_count": 2, "reason": "The line to the ERP was down"}`)
	e.replay = answer["id"].(string)
	testdb.Await(e.t, "they are replayed", func() bool {
		return number(e.t, e.crm, `SELECT count(*) FROM operations WHERE source = 'webshop' AND status = 'succeeded'`) == 2
	})
}

// leave has operations left to an operator.
func (e *everything) leave(orders ...order) {
	e.t.Helper()
	e.wire.mode.Store(answersAreAlien)
	e.submit(orders...)
	testdb.Await(e.t, "all are left to an operator", func() bool {
		return number(e.t, e.crm, `SELECT count(*) FROM operations WHERE status = 'unknown' AND flagged_at IS NOT NULL`) == len(orders)
	})
	e.wire.mode.Store(answersArrive)
}

// resolved has one resolved by two people, and one whose resolution waits for the second.
func (e *everything) resolved() {
	e.t.Helper()
	propose := func(i int) map[string]any {
		e.leave(e.newOrder(i, webshop))
		id, invoiceNumber := e.numberOf(e.order(i))
		return e.act(e.crmURL+"/admin/v1/operations/"+e.keyOf(e.order(i))+"/resolutions", asJSON(e.t, map[string]any{
			"verdict": "applied", "invoice": map[string]string{"id": id, "number": invoiceNumber},
			"evidence": "Seen in the ERP's list, for " + e.customer(i), "reason": "The answer of " + e.order(i) + " was lost",
		}))
	}
	first := propose(8)
	e.actBy(e.approverToken, e.crmURL+"/admin/v1/resolutions/"+first["id"].(string)+"/approve", `{"reason": "I have seen it, too"}`)
	propose(9)
	e.unknown = e.keyOf(e.order(9))
}

// paused has a source whose orders wait.
func (e *everything) paused() {
	e.t.Helper()
	e.submit(e.newOrder(10, e.source))
	testdb.Await(e.t, "the source is known", func() bool {
		return number(e.t, e.crm, `SELECT count(*) FROM operations WHERE source = $1 AND status = 'succeeded'`, e.source) == 1
	})
	e.act(e.crmURL+"/admin/v1/sources/"+url.PathEscape(e.source)+"/pause", asJSON(e.t, map[string]string{"reason": "Asked for by " + e.customer(11)}))
	e.submit(e.newOrder(11, e.source))
	e.held = e.keyOf(e.order(11))
}

// turnedAway has an order refused, what is no order, and a file with rows that were not taken.
func (e *everything) turnedAway() {
	e.t.Helper()
	wrong := e.newOrder(12, shopify)
	wrong.Role = "nonsense"
	for _, body := range []string{asJSON(e.t, wrong), asJSON(e.t, map[string]string{e.customer(12): e.order(12)})} {
		if status, answer := e.post(e.crmURL+"/v1/orders", e.crmToken, "", body); status < http.StatusBadRequest {
			e.t.Fatalf("what is wrong was taken: %d %s", status, answer)
		}
	}
	testdb.Await(e.t, "what was turned away is kept", func() bool {
		return number(e.t, e.crm, `SELECT count(*) FROM intake_refusals`) == 2
	})
	e.refusal = number(e.t, e.crm, `SELECT min(id) FROM intake_refusals`)
	e.act(e.crmURL+"/admin/v1/orders", asJSON(e.t, map[string]any{"reason": "The shop is away", "order": e.newOrder(13, "by-hand")}))
	console := crm.NewConsole(e.crm, crm.ConsoleOptions{})
	told := crm.Import{File: "orders of " + strings.ReplaceAll(e.customer(14), "/", "") + ".csv", Format: "csv", KeepGood: true, Actor: "nightly"}
	var err error
	if e.file, err = console.BeginImport(e.t.Context(), tenant, told); err != nil {
		e.t.Fatal(err)
	}
	told.ID, told.Rows, told.Orders, told.Size, told.Stored = e.file, 40, 38, 4096, true
	told.Counts = []crm.ImportCount{{Outcome: "created", Rows: 38}, {Outcome: "refused", Rows: 2}}
	told.Refused = []crm.ImportRow{
		{Line: 7, Order: e.order(14), Outcome: "refused", Reason: "/currency is no currency of ISO 4217"},
		{Line: 21, Order: e.order(15), Outcome: "refused", Reason: "/customer/name: " + e.customer(15)},
	}
	if err := console.FinishImport(e.t.Context(), tenant, told); err != nil {
		e.t.Fatal(err)
	}
}

// differences has the books of both services differ from their neighbours', in one thing that is open and one that was accepted.
func (e *everything) differences() {
	e.t.Helper()
	accept := func(side string, admin string, n int) {
		testdb.Await(e.t, "differences are found", func() bool {
			pool := e.crm
			if side == "erp" {
				pool = e.erp
			}
			return number(e.t, pool, `SELECT count(*) FROM divergences WHERE resolved_at IS NULL`) >= n
		})
		pool := e.crm
		if side == "erp" {
			pool = e.erp
		}
		id := number(e.t, pool, `SELECT min(id) FROM divergences WHERE resolved_at IS NULL`)
		e.act(fmt.Sprintf("%s/admin/v1/divergences/%d/accept", admin, id), asJSON(e.t, map[string]string{"reason": "Known: written by " + e.customer(3)}))
	}
	second := e.newOrder(16, shopify)
	second.Role = "final"
	e.post(e.erpURL+"/v1/invoices", e.erpToken, "key-of-nobody", asJSON(e.t, second))
	e.act(e.crmURL+"/admin/v1/reconciliations", `{"reason": "Looking for what is missing"}`)
	accept("crm", e.crmURL, 2)

	if _, err := e.erp.Exec(e.t.Context(), `UPDATE registrations SET reference = 'REF-0' WHERE status = 'succeeded' AND target_id = 'gateway'`); err != nil {
		e.t.Fatal(err)
	}
	e.act(e.erpURL+"/admin/v1/reconciliations", `{"reason": "Their list has doubles"}`)
	accept("erp", e.erpURL, 2)
	e.await(`SELECT count(*) FROM reconciliation_runs WHERE finished_at IS NULL`, 0)
}

// act presses a button by the API in somebody's name, and gives the answer.
func (e *everything) act(address, body string) map[string]any {
	e.t.Helper()
	token := e.actorTokens.crm
	if strings.HasPrefix(address, e.erpURL) {
		token = e.actorTokens.erp
	}
	return e.actBy(token, address, body)
}

func (e *everything) actBy(token, address, body string) (answer map[string]any) {
	e.t.Helper()
	status, text := e.post(address, token, "", body)
	if status >= http.StatusMultipleChoices {
		e.t.Fatalf("%s is answered %d %s", address, status, text)
	}
	if err := json.Unmarshal([]byte(text), &answer); err != nil {
		e.t.Fatalf("%s: %v", address, err)
	}
	return answer
}
