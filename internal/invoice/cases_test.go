package invoice

import (
	"fmt"
	"strings"
	"testing"

	"github.com/shopspring/decimal"

	"invoicebridge/internal/erpapi"
	"invoicebridge/internal/problem"
)

// Case B5: a key is compared with its request on every path: after the first request's end, while it is at work, at once,
// after a restart, and after the first was rolled back.
func TestAUsedKeyIsComparedOnEveryPath(t *testing.T) {
	t.Parallel()
	e := setup(t)
	other := func(order string) *erpapi.InvoiceRequest {
		return request(t, `"SO-1001"`, `"`+order+`"`, "10.00", "900.00")
	}

	// (v) The first is rolled back after its number was taken; the new body is then the first.
	e.exec(`CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$
		BEGIN RAISE EXCEPTION 'as told' USING ERRCODE = 'external_routine_exception'; END $$;
		CREATE TRIGGER fail BEFORE INSERT ON invoices FOR EACH ROW EXECUTE FUNCTION fail()`)
	if r := e.issue("K0", orderOf(t, "SO-0")); r.Err == nil || problem.As(r.Err) != nil {
		t.Fatalf("got %+v, want an internal error", r)
	}
	e.exec("DROP TRIGGER fail ON invoices")
	if inv := document(t, e.mustIssue("K0", other("SO-0"))); inv.Gross != "2142.00" {
		t.Errorf("gross %s, want that of the body that came through", inv.Gross)
	}

	// (ii) While the first is at work, on the same service and on another.
	g := e.closeGate()
	first := e.background(t.Context(), command(t, "K1", orderOf(t, "SO-1")))
	g.awaitWaiting(1)
	replica := e.replica()
	for _, service := range []erp{e, replica} {
		r := service.issue("K1", other("SO-1"))
		if !problem.Is(r.Err, problem.OperationInProgress) && !problem.Is(r.Err, problem.IdempotencyKeyReused) {
			t.Errorf("while the first is at work: %+v", r)
		}
	}
	g.open()
	if r := first()[0]; r.Err != nil {
		t.Fatal(r.Err)
	}
	// (i) After it, also through the group commit; (iv) after a restart; (iii) is TestTwoContentsUnderOneKeyAtOnceMakeOneInvoiceAndNeverMixAnswers.
	for name, r := range map[string]Result{
		"afterwards": e.issue("K1", other("SO-1")), "another order": e.issue("K1", other("SO-9")), "after a restart": e.replica().issue("K1", other("SO-1")),
		"in a group": NewBatcher(e.Service).Issue(t.Context(), []Command{command(t, "K1", other("SO-1"))})[0],
	} {
		if p := wantProblem(t, r, problem.IdempotencyKeyReused); len(p.Differences) == 0 {
			t.Errorf("%s: no differences", name)
		}
	}
	if inv := document(t, e.mustIssue("K1", orderOf(t, "SO-1"))); inv.Gross != "23.80" || e.invoices() != 2 {
		t.Errorf("gross %s, %d invoices", inv.Gross, e.invoices())
	}
	e.wantNumbers(tenant, "INV", 2)
}

// Cases M1, G3 and G4: an amount has one text, in the answer, in the columns, read back and in a replay: no exponent, no lost zero, no
// negative zero; and the amounts computed anew from what was stored are those that were stored.
func TestAmountsKeepTheirTextWhereverTheyAreRead(t *testing.T) {
	t.Parallel()
	e := setup(t)
	for i, c := range []struct{ currency, line, net, gross string }{
		{"EUR", "-1 0.01 0", "-0.01", "-0.01"}, {"EUR", "1 0.00 0", "0.00", "0.00"}, {"EUR", "-1 0.00 0", "0.00", "0.00"}, {"EUR", "1 0.05 0", "0.05", "0.05"},
		{"EUR", "1 10000000000.00 0", "10000000000.00", "10000000000.00"}, {"EUR", "1 0.051426 0", "0.05", "0.05"}, {"EUR", "1 1000000 0", "1000000.00", "1000000.00"},
		{"EUR", "1 20.10 0", "20.10", "20.10"}, {"EUR", "0.125 19.96 0", "2.50", "2.50"}, {"EUR", "0.0005 12000.00 0", "6.00", "6.00"},
		{"JPY", "3 1980 10", "5940", "6534"}, {"BHD", "1 12.345 10", "12.345", "13.580"}, {"KWD", "1 0.001 0", "0.001", "0.001"}, {"EUR", "1 9999999999999.99 0", "9999999999999.99", "9999999999999.99"},
	} {
		key := fmt.Sprint("K", i)
		r := linesOf(t, c.currency, c.line)
		r.Order = fmt.Sprint("SO-", i)
		first := e.mustIssue(key, r)
		inv := document(t, first)
		if inv.Net != c.net || inv.Gross != c.gross || inv.Payable != c.gross || inv.Lines[0].Net != c.net {
			t.Errorf("%s %s: net %s, gross %s, line %s; want %s and %s", c.line, c.currency, inv.Net, inv.Gross, inv.Lines[0].Net, c.net, c.gross)
		}
		if price := strings.Fields(c.line)[1]; inv.Lines[0].UnitPrice.String() != price {
			t.Errorf("the price %s is told as %s", price, inv.Lines[0].UnitPrice)
		}
		var net, gross string
		if err := e.pool.QueryRow(t.Context(), "SELECT net::text, gross::text FROM invoices WHERE operation_key = $1", key).Scan(&net, &gross); err != nil {
			t.Fatal(err)
		}
		if !decimal.RequireFromString(net).Equal(decimal.RequireFromString(c.net)) || !decimal.RequireFromString(gross).Equal(decimal.RequireFromString(c.gross)) {
			t.Errorf("%s: the columns hold %s and %s", c.line, net, gross)
		}
		again := e.mustIssue(key, r)
		if !again.Replayed || string(again.Document) != string(first.Document) {
			t.Errorf("%s: not the same again", c.line)
		}
		// Read back and computed anew.
		read, err := readDocument(first.Document)
		if err != nil {
			t.Fatal(err)
		}
		d := mustDraft(t, read.Request())
		if d.amount(d.net) != c.net || d.amount(d.gross) != c.gross {
			t.Errorf("%s: computed anew net %s, gross %s", c.line, d.amount(d.net), d.amount(d.gross))
		}
	}
}

// Case G5: what is refused for its VAT is refused before a number is taken.
func TestARefusalForItsVATTakesNoNumber(t *testing.T) {
	t.Parallel()
	e := setup(t)
	for i, edit := range [][]string{
		{`"19","vat_category":"S"`, `"0","vat_category":"E"`},   // no reason
		{`"19","vat_category":"S"`, `"19","vat_category":"AE"`}, // a rate
		{`"vat_id":"XX000000001"`, `"vat_id":""`, `"19","vat_category":"S"`, `"0","vat_category":"AE"`},
		{`"vat_rate":"19",`, ``}, {`"vat_rate":"19"`, `"vat_rate":null`}, {`"vat_rate":"19"`, `"vat_rate":""`},
	} {
		wantRefused(t, e.issue(fmt.Sprint("bad", i), request(t, edit...)), problem.InvalidInvoice)
	}
	if n := e.count("SELECT count(*) FROM idempotency_records") + e.count("SELECT count(*) FROM invoice_counters") + e.invoices(); n != 0 {
		t.Errorf("%d rows of what was refused", n)
	}
	zero := document(t, e.mustIssue("K1", request(t, `"19","vat_category":"S"`, `"0","vat_category":"Z"`)))
	if zero.VAT != "0.00" || zero.Number != "INV-2026-000001" {
		t.Errorf("VAT %s, number %s", zero.VAT, zero.Number)
	}
	mixed := orderOf(t, "SO-2")
	mixed.Lines = append(mixed.Lines, linesOf(t, "EUR", "1 5.00 0").Lines...)
	mixed.Lines[1].VATCategory = "AE"
	if inv := document(t, e.mustIssue("K2", mixed)); len(inv.VATBreakdown) != 2 || inv.VAT != "3.80" {
		t.Errorf("VAT %s in %+v", inv.VAT, inv.VATBreakdown)
	}
	e.wantNumbers(tenant, "INV", 2)
}

// Case I1: advance, parts and final of one order of 1000.00, in parts whose shares do not add up as floats; each sent twice.
func TestPartsThatDoNotAddUpAsFloatsInvoiceTheWholeOrder(t *testing.T) {
	t.Parallel()
	e := setup(t)
	part := func(role string, sequence int64, gross string) *erpapi.InvoiceRequest {
		r := linesOf(t, "EUR", "1 "+gross+" 0")
		total := erpapi.MustDecimal("1000.00")
		r.Role, r.Order, r.OrderTotal = erpapi.Role(role), "SO-1020", &total
		if sequence > 0 {
			r.Sequence = &sequence
		}
		return r
	}
	for _, c := range []struct {
		key string
		r   *erpapi.InvoiceRequest
	}{
		{"advance", part("advance", 1, "200.00")}, {"part 1", part("partial", 1, "700.00")}, {"part 2", part("partial", 2, "100.00")}, {"final", part("final", 0, "0.00")},
	} {
		if e.mustIssue(c.key, c.r).Replayed || !e.mustIssue(c.key, c.r).Replayed {
			t.Errorf("%s: not once and then the same", c.key)
		}
	}
	wantRefused(t, e.issue("part 1 anew", part("partial", 1, "700.00")), problem.AlreadyInvoiced)
	wantRefused(t, e.issue("final anew", part("final", 0, "0.00")), problem.AlreadyInvoiced)
	wantRefused(t, e.issue("a cent more", part("partial", 3, "0.01")), problem.InvalidInvoice)
	var rest string
	err := e.pool.QueryRow(t.Context(), "SELECT (1000.00 - invoiced_gross)::text FROM order_balances").Scan(&rest)
	if err != nil || !decimal.RequireFromString(rest).IsZero() || e.invoices() != 4 {
		t.Errorf("%s is left, %d invoices, %v", rest, e.invoices(), err)
	}
}
