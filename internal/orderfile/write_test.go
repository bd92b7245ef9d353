package orderfile_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"invoicebridge/internal/crm"
	"invoicebridge/internal/erpapi"
	"invoicebridge/internal/orderfile"
	"invoicebridge/internal/ordergen"
)

func generated(t testing.TB, mix ordergen.Mix, seed uint64, count int) []crm.Order {
	t.Helper()
	g, err := ordergen.New(ordergen.Options{Seed: seed, Mix: mix, Start: time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC)})
	if err != nil {
		t.Fatal(err)
	}
	var orders []crm.Order
	for o := range g.Orders(count) {
		orders = append(orders, o)
	}
	return orders
}

func writtenCSV(t testing.TB, orders []crm.Order, o orderfile.CSVOptions) string {
	t.Helper()
	var b bytes.Buffer
	if err := orderfile.WriteCSV(&b, orders, o); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// notesBelow gives the orders as rows say them: with the order's note on each of its invoices.
func notesBelow(orders []crm.Order) []crm.Order {
	orders = slices.Clone(orders)
	for i := range orders {
		o := &orders[i]
		if len(o.Invoices) == 0 {
			continue
		}
		o.Invoices = slices.Clone(o.Invoices)
		for j := range o.Invoices {
			o.Invoices[j].Note = o.Note
		}
		o.Note = ""
	}
	return orders
}

func TestGeneratedOrdersComeBackFromFilesAsTheyWere(t *testing.T) {
	t.Parallel()
	for _, mix := range []ordergen.Mix{ordergen.MixShop, ordergen.MixCRM} {
		orders := generated(t, mix, 5, 200)
		for _, dialect := range []orderfile.CSVOptions{{}, {Delimiter: ';', Decimal: ','}, {Delimiter: '\t'}, {Delimiter: ',', Decimal: ','}} {
			text := writtenCSV(t, orders, dialect)
			equalOrders(t, notesBelow(orders), ordersOf(read(t, text, orderfile.Options{Format: orderfile.CSV, CSV: dialect})))
			resaved := bom + strings.ReplaceAll(text, "\n", "\r\n")
			equalOrders(t, notesBelow(orders), ordersOf(read(t, resaved, orderfile.Options{Format: orderfile.CSV, CSV: dialect})))
		}
		var lines bytes.Buffer
		if err := orderfile.WriteJSONLines(&lines, orders); err != nil {
			t.Fatal(err)
		}
		equalOrders(t, orders, ordersOf(read(t, lines.String(), orderfile.Options{Format: orderfile.JSONLines})))
	}
}

// N6, and every other text: names, notes and amounts survive the way out and back in.
func TestAnyTextAndAmountComesBackFromCSV(t *testing.T) {
	t.Parallel()
	nasty := rapid.SampledFrom([]string{"=1+1", "+49 30 1", "-2+3", "@x", "\t=1", "'=1", "''@", "Miller, \"M\"; x", "a\rb", "\r=1", "two\nlines", " blanks ", "'"})
	word := rapid.OneOf(nasty, rapid.StringMatching(`[^\r\x00]{0,20}`).Filter(func(s string) bool { return s == strings.ToValidUTF8(s, "") }))
	amount := rapid.OneOf(rapid.SampledFrom([]string{"-5.00", "-0.01", "0.00", "20.10"}), rapid.StringMatching(`-?(0|[1-9][0-9]{0,9})(\.[0-9]{1,6})?`))
	mark := rapid.SampledFrom([]rune{'.', ','})
	delimiter := rapid.SampledFrom([]rune{',', ';', '\t', '|'})
	rapid.Check(t, func(t *rapid.T) {
		decimal := func(name string) *erpapi.Decimal {
			d, err := erpapi.ParseDecimal(amount.Draw(t, name))
			if err != nil {
				t.Fatal(err)
			}
			return &d
		}
		o := crm.Order{
			Source: "s", Order: "A-1", Currency: "EUR", IssueDate: "2026-03-02", Note: word.Draw(t, "note"),
			Customer: erpapi.Customer{Name: word.Draw(t, "name"), Address: word.Draw(t, "address"), Country: "DE"},
		}
		if v := word.Draw(t, "metadata"); v != "" {
			o.Metadata = map[string]string{"k": v}
		}
		for range rapid.IntRange(1, 3).Draw(t, "lines") {
			o.Lines = append(o.Lines, erpapi.Line{
				Description: word.Draw(t, "description"), Quantity: decimal("quantity"), UnitPrice: decimal("price"), VATCategory: "S",
			})
		}
		dialect := orderfile.CSVOptions{Delimiter: delimiter.Draw(t, "delimiter"), Decimal: mark.Draw(t, "mark")}
		var b bytes.Buffer
		if err := orderfile.WriteCSV(&b, []crm.Order{o}, dialect); err != nil {
			t.Fatal(err)
		}
		f, err := orderfile.Read(&b, orderfile.Options{Format: orderfile.CSV, CSV: dialect})
		if err != nil {
			t.Fatal(err)
		}
		if len(f.Entries) != 1 {
			t.Fatalf("rows %v", f.Rows)
		}
		want, got := orderText(t, o), orderText(t, f.Entries[0].Order)
		if want != got {
			t.Fatalf("\n%s came back as\n%s", want, got)
		}
	})
}

// N6.
func TestNumbersAreWrittenAsNumbersAndFormulasHarmless(t *testing.T) {
	t.Parallel()
	price := erpapi.MustDecimal("-5.00")
	text := writtenCSV(t, []crm.Order{{
		Source: "s", Order: "-A1", Customer: erpapi.Customer{Name: "=1+1"}, Lines: []erpapi.Line{{Quantity: &price, UnitPrice: &price}},
	}}, orderfile.CSVOptions{Delimiter: ';', Decimal: ','})
	wantContains(t, text, ";'=1+1;", ";-5,00;-5,00;", ";'-A1;")
}
