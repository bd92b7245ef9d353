package invoice

import (
	"crypto/rand"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"invoicebridge/internal/problem"
)

func TestAnyOtherMemberUnderAUsedKeyIsRefusedWithItsPointer(t *testing.T) {
	t.Parallel()
	e := setup(t)
	e.mustIssue("K1", decode(t, rich))
	for pointer, edit := range map[string][2]string{
		"/source":                   {`shopify-eu`, `shopify-us`},
		"/order":                    {`"SO-1"`, `"SO-2"`},
		"/role":                     {`partial`, `advance`},
		"/sequence":                 {`"sequence":2`, `"sequence":3`},
		"/currency":                 {`EUR`, `USD`},
		"/issue_date":               {`2026-03-02`, `2026-03-03`},
		"/due_date":                 {`2026-04-01`, `2026-04-02`},
		"/customer/name":            {`Müller`, `Mueller`},
		"/customer/country":         {`"DE"`, `"AT"`},
		"/customer/vat_id":          {`DE123456789`, `DE123456788`},
		"/customer/email":           {`a@example`, `b@example`},
		"/customer/address":         {`Street 1`, `Street 2`},
		"/lines/0/sku":              {`P-1`, `p-1`},
		"/lines/0/description":      {`Screws`, `Screw`},
		"/lines/0/quantity":         {`"2.00"`, `"2.01"`},
		"/lines/0/unit_price":       {`"unit_price":10`, `"unit_price":10.000001`},
		"/lines/0/discount":         {`"1.50"`, `"1.51"`},
		"/lines/0/vat_rate":         {`"19"`, `"19.1"`},
		"/lines/2/vat_category":     {`"AE"`, `"Z"`},
		"/lines/3/exemption_reason": {`Insurance`, `insurance`},
		"/order_total":              {`"100"`, `"101"`},
		"/expected_gross":           {`"47.93"`, `"47.94"`},
		"/note":                     {`"note":"n"`, `"note":"m"`},
		"/metadata/b":               {`"b":"2"`, `"b":"3"`},
		"/corrects":                 {`"note"`, `"corrects":"x","note"`},
	} {
		body := strings.Replace(rich, edit[0], edit[1], 1)
		if body == rich {
			t.Fatalf("%s: nothing was edited", pointer)
		}
		p := wantProblem(t, e.issue("K1", decode(t, body)), problem.IdempotencyKeyReused)
		if diff := cmp.Diff([]string{pointer}, p.Differences); diff != "" {
			t.Error(diff)
		}
	}
	lines := decode(t, rich)
	lines.Lines[0], lines.Lines[1] = lines.Lines[1], lines.Lines[0]
	wantRefused(t, e.issue("K1", lines), problem.IdempotencyKeyReused)
	if !e.mustIssue("K1", decode(t, rich)).Replayed {
		t.Error("the request itself is no replay any more")
	}
}

func TestAUsedKeyIsToldBeforeTheMistakesOfTheOtherRequest(t *testing.T) {
	t.Parallel()
	e := setup(t)
	e.mustIssue("K1", request(t))
	p := wantProblem(t, e.issue("K1", request(t, `"19"`, `null`)), problem.IdempotencyKeyReused)
	if diff := cmp.Diff([]string{"/lines/0/vat_rate"}, p.Differences); diff != "" {
		t.Error(diff)
	}
}

func TestOrderIDsAreTextToTheLastDigit(t *testing.T) {
	t.Parallel()
	e := setup(t)
	for i, order := range []string{"9007199254741993", "9007199254741992", "00123", "123", "a-1", "A-1", "12345678901234567890"} {
		a := e.mustIssue(fmt.Sprint("K", i), orderOf(t, order))
		if got := document(t, a).Order; a.Replayed || got != order {
			t.Errorf("%s became %s", order, got)
		}
	}
	wantRefused(t, e.issue("K0", orderOf(t, "9007199254741992")), problem.IdempotencyKeyReused)
}

// Two spellings of one letter are one order, and the invoice keeps the spelling it came in.
func TestOneOrderInTwoUnicodeSpellingsIsOneClaim(t *testing.T) {
	t.Parallel()
	e := setup(t)
	a := e.mustIssue("K1", orderOf(t, "Cafe\u0301"))
	if got := document(t, a).Order; got != "Cafe\u0301" {
		t.Errorf("kept as %q", got)
	}
	p := wantProblem(t, e.issue("K2", orderOf(t, "Caf\u00e9")), problem.AlreadyInvoiced)
	if !p.SameContent {
		t.Error("not the same content")
	}
	if !e.mustIssue("K1", orderOf(t, "Caf\u00e9")).Replayed {
		t.Error("no replay")
	}
	items, _, err := e.List(t.Context(), tenant, Filter{Order: "Cafe\u0301"}, Page{})
	if err != nil || len(items) != 1 {
		t.Errorf("found %d, %v", len(items), err)
	}
}

func TestKeysOfAnyLengthAreKeptWhole(t *testing.T) {
	t.Parallel()
	e := setup(t)
	long := strings.Repeat("k", 199)
	random := make([]byte, 255)
	if _, err := rand.Read(random); err != nil {
		t.Fatal(err)
	}
	for i := range random {
		random[i] = '!' + random[i]%('~'-'!'+1) // visible ASCII
	}
	quoted := `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(string(random)) + `"`
	for i, key := range []string{"k", long + "a", long + "b", quoted} {
		r := orderOf(t, fmt.Sprint("SO-", i))
		if e.mustIssue(key, r).Replayed || !e.mustIssue(key, r).Replayed {
			t.Errorf("key %d", i)
		}
	}
}

func TestAPurgedReservationStillNeverMakesASecondInvoice(t *testing.T) {
	t.Parallel()
	e := setup(t)
	first := e.issue("K1", request(t))
	e.exec("DELETE FROM idempotency_records")
	again := e.issue("K1", request(t))
	if again.Err != nil || !again.Answer.Replayed || string(again.Answer.Document) != string(first.Answer.Document) {
		t.Errorf("again: %+v", again)
	}
	if !again.FirstSeen.Equal(first.FirstSeen) || !again.Expires.IsZero() {
		t.Errorf("first seen %v, expires %v", again.FirstSeen, again.Expires)
	}
	p := wantProblem(t, e.issue("K1", request(t, "10.00", "11.00")), problem.IdempotencyKeyReused)
	if diff := cmp.Diff([]string{"/lines/0/unit_price"}, p.Differences); diff != "" {
		t.Error(diff)
	}
	wantRefused(t, e.issue("K2", request(t, "10.00", "11.00")), problem.AlreadyInvoiced)
	if n := e.count("SELECT count(*) FROM idempotency_records"); n != 0 || e.invoices() != 1 {
		t.Errorf("%d reservations", n)
	}
}

// A fingerprint of older rules says nothing about today's: it is made again from the document.
func TestAnInvoiceWithAFingerprintOfOtherRulesIsStillReplayed(t *testing.T) {
	t.Parallel()
	e := setup(t)
	first := e.mustIssue("K1", decode(t, rich))
	e.exec("ALTER TABLE invoices DISABLE TRIGGER invoices_never_change")
	e.exec("UPDATE invoices SET fingerprint_version = 0, fingerprint = sha256('older rules')")
	e.exec("UPDATE idempotency_records SET fingerprint_version = 0, fingerprint = sha256('older rules')")
	again := e.mustIssue("K1", decode(t, rich))
	if !again.Replayed || string(again.Document) != string(first.Document) {
		t.Errorf("%+v", again)
	}
	other := decode(t, strings.Replace(rich, "Screws", "Nails", 1))
	wantRefused(t, e.issue("K1", other), problem.IdempotencyKeyReused)
	if p := wantProblem(t, e.issue("K2", decode(t, rich)), problem.AlreadyInvoiced); !p.SameContent {
		t.Error("K2: not the same content")
	}
	if p := wantProblem(t, e.issue("K2", other), problem.AlreadyInvoiced); p.SameContent {
		t.Error("K2 with other content: the same")
	}
}

// What the database holds is what the document says, digit for digit.
func TestColumnsAndDocumentHoldTheSameNumbers(t *testing.T) {
	t.Parallel()
	e := setup(t)
	for i, c := range []struct{ currency, line, net string }{
		{"EUR", "-1 0.01 0", "-0.01"}, {"EUR", "1 0.00 0", "0.00"}, {"EUR", "1 -0.00 0", "0.00"}, {"EUR", "1 0.05 0", "0.05"},
		{"EUR", "1 10000000000.00 0", "10000000000.00"}, {"EUR", "1 0.051426 0", "0.05"}, {"EUR", "1 1000000 0", "1000000.00"},
		{"EUR", "1 20.10 0", "20.10"}, {"EUR", "1 9999999999999.99 0", "9999999999999.99"}, {"JPY", "3 1980 0", "5940"},
		{"KWD", "1 0.001 0", "0.001"}, {"CLF", "1 0.0001 0", "0.0001"},
	} {
		r := linesOf(t, c.currency, c.line)
		r.Order = fmt.Sprint("SO-", i)
		key := fmt.Sprint("K", i)
		a := e.mustIssue(key, r)
		inv := document(t, a)
		if inv.Net != c.net || inv.Gross != c.net || inv.Lines[0].Net != c.net || inv.VATBreakdown[0].Net != c.net {
			t.Errorf("%s: document %s", c.line, a.Document)
		}
		price := strings.TrimPrefix(strings.Fields(c.line)[1], "-")
		if got := inv.Lines[0].UnitPrice.String(); got != price {
			t.Errorf("unit price %s became %s", price, got)
		}
		if n := e.count(`SELECT count(*) FROM invoices i JOIN invoice_lines l ON l.invoice_id = i.id WHERE i.id = $1
			AND i.net::text = $2 AND i.gross::text = $2 AND i.payable::text = $2 AND l.net::text = $2 AND l.unit_price::text = $3`,
			a.InvoiceID, c.net, price); n != 1 {
			t.Errorf("%s: the columns differ from the document", c.line)
		}
		if again := e.mustIssue(key, r); !again.Replayed || string(again.Document) != string(a.Document) {
			t.Errorf("%s: no replay", c.line)
		}
	}
}

func TestNaNAndInfinityCanNotBeStored(t *testing.T) {
	t.Parallel()
	e := setup(t)
	e.mustIssue("K1", request(t))
	e.exec("ALTER TABLE invoices DISABLE TRIGGER invoices_never_change")
	e.exec("ALTER TABLE invoice_lines DISABLE TRIGGER invoice_lines_never_change")
	for _, sql := range []string{
		"UPDATE invoices SET net = 'NaN', gross = 'NaN', payable = 'NaN'", "UPDATE invoice_lines SET net = 'NaN'",
		"UPDATE invoice_lines SET quantity = 'Infinity'", "UPDATE order_balances SET invoiced_gross = 'NaN'",
		"UPDATE invoices SET due_date = 'infinity'", "UPDATE invoices SET created_at = '-infinity'",
		"UPDATE idempotency_records SET expires_at = 'infinity'", "UPDATE idempotency_records SET expires_at = '-infinity'",
	} {
		if _, err := e.pool.Exec(t.Context(), sql); err == nil {
			t.Errorf("%s: stored", sql)
		}
	}
}
