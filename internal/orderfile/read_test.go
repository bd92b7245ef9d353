package orderfile_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"invoicebridge/internal/crm"
	"invoicebridge/internal/erpapi"
	"invoicebridge/internal/orderfile"
)

// shop is how the files of CASES.md are declared: three columns with names of their own, and the rest the same for
// all rows.
func shop(delimiter, decimal rune) orderfile.Options {
	return orderfile.Options{Format: orderfile.CSV, DefaultSource: "crm-1", CSV: orderfile.CSVOptions{
		Delimiter: delimiter, Decimal: decimal,
		Rename: map[string]string{"customer": "customer_name", "amount": "unit_price"},
		Constants: map[string]string{
			"currency": "EUR", "issue_date": "2026-03-02", "customer_country": "DE", "quantity": "1",
			"vat_category": "S", "vat_rate": "19",
		},
	}}
}

const bom = "\xEF\xBB\xBF"

func read(t *testing.T, text string, o orderfile.Options) *orderfile.File {
	t.Helper()
	f, err := orderfile.Read(strings.NewReader(text), o)
	if err != nil {
		t.Fatalf("read: %v", err)
	}
	return f
}

// refusal reads a file that must be refused as a whole and gives the reason.
func refusal(t *testing.T, text string, o orderfile.Options) string {
	t.Helper()
	f, err := orderfile.Read(strings.NewReader(text), o)
	var refused *orderfile.FileError
	if !errors.As(err, &refused) {
		t.Fatalf("read gave %+v, %v; want the file refused as a whole", f, err)
	}
	return refused.Error()
}

func wantContains(t *testing.T, got string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(got, part) {
			t.Errorf("%q does not say %q", got, part)
		}
	}
}

func equalOrders(t *testing.T, want, got []crm.Order) {
	t.Helper()
	if len(want) != len(got) {
		t.Fatalf("%d orders, want %d", len(got), len(want))
	}
	for i := range want {
		if diff := cmp.Diff(orderText(t, want[i]), orderText(t, got[i])); diff != "" {
			t.Fatalf("order %d (-want +got):\n%s", i, diff)
		}
	}
}

func ordersOf(f *orderfile.File) []crm.Order {
	orders := make([]crm.Order, len(f.Entries))
	for i := range f.Entries {
		orders[i] = f.Entries[i].Order
	}
	return orders
}

func ids(f *orderfile.File) string {
	var out []string
	for i := range f.Entries {
		out = append(out, f.Entries[i].Order.Order)
	}
	return strings.Join(out, "|")
}

// N1.
func TestAByteOrderMarkAndAnyDeclaredSeparatorGiveTheSameOrder(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text      string
		delimiter rune
		decimal   rune
	}{
		"semicolons":          {bom + "order;customer;amount\r\nA-1;Test;10,00\r\n", ';', ','},
		"quoted header":       {bom + "\"order\";\"customer\";\"amount\"\r\nA-1;Test;10,00\r\n", ';', ','},
		"no byte order mark":  {"order;customer;amount\nA-1;Test;10,00", ';', ','},
		"commas":              {bom + "order,customer,amount\r\nA-1,Test,10.00\r\n", ',', '.'},
		"commas, quoted mark": {bom + "order,customer,amount\r\nA-1,Test,\"10,00\"\r\n", ',', ','},
		"tabs":                {bom + "order\tcustomer\tamount\r\nA-1\tTest\t10,00\r\n", '\t', ','},
		"sep line":            {bom + "sep=;\r\norder;customer;amount\r\nA-1;Test;10,00\r\n", ';', ','},
		"blanks in header":    {bom + " order ;\u00a0customer;amount \r\nA-1;Test;10,00\r\n", ';', ','},
		"blank rows":          {bom + "order;customer;amount\r\n;;\r\n\r\nA-1;Test;10,00\r\n; ;\r\n", ';', ','},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := read(t, c.text, shop(c.delimiter, c.decimal))
			if len(f.Rows) != 1 {
				t.Fatalf("%d rows, want 1", len(f.Rows))
			}
			quantity, price, rate := erpapi.MustDecimal("1"), erpapi.MustDecimal("10.00"), erpapi.MustDecimal("19")
			equalOrders(t, []crm.Order{{
				Source: "crm-1", Order: "A-1", Currency: "EUR", IssueDate: "2026-03-02",
				Customer: erpapi.Customer{Name: "Test", Country: "DE"},
				Lines:    []erpapi.Line{{Quantity: &quantity, UnitPrice: &price, VATRate: &rate, VATCategory: "S"}},
			}}, ordersOf(f))
		})
	}
}

// N1.
func TestAFileThatIsNotWhatWasDeclaredIsRefusedAsAWhole(t *testing.T) {
	t.Parallel()
	utf16 := "\xFF\xFEo\x00r\x00d\x00e\x00r\x00"
	for name, c := range map[string]struct {
		text string
		says []string
	}{
		"semicolons read with commas": {bom + "order;customer;amount\r\nA-1;Test;10,00\r\n", []string{"order;customer;amount", "--delimiter ';'"}},
		"tabs read with commas":       {"order\tcustomer\tamount\n", []string{"--delimiter tab"}},
		"UTF-16 with mark":            {utf16, []string{"UTF-16"}},
		"UTF-16 without mark":         {utf16[2:], []string{"line 1", "UTF-16"}},
		"Latin-1":                     {"order,customer,amount\nA-1,M\xFCller,1.00\n", []string{"line 2", "0xFC", "UTF-8"}},
		"ends within a character":     {"order,customer,amount\nA-1,M\xC3", []string{"line 2", "middle of a character"}},
		"empty":                       {"", []string{"empty"}},
		"only a mark":                 {bom, []string{"empty"}},
		"only blank lines":            {"\n\r\n\n", []string{"empty"}},
		"blank header":                {",,\nA-1,Test,1.00\n", []string{"header is blank"}},
		"unknown column":              {"order,customer,amont\nA-1,Test,1.00\n", []string{`unknown column "amont"`, `"unit_price" is missing`, "metadata.<key>"}},
		"column in another case":      {"Order,customer,amount\n", []string{`did you mean "order"?`}},
		"doubled column":              {"order,customer,amount,amount\n", []string{`"amount" stands twice`}},
		"renamed and original":        {"order,customer,amount,unit_price\n", []string{`"unit_price" stands twice`}},
		"missing column":              {"order,customer\n", []string{`"unit_price" is missing`}},
		"sep says otherwise":          {"sep=;\norder,customer,amount\n", []string{"line 1", "--delimiter ';'"}},
		"CR as line ends":             {"order,customer,amount\rA-1,Test,1.00\r", []string{"bare CR"}},
		"bare quote":                  {"order,customer,amount\nA-1,Te\"st,1.00\n", []string{"line 2", "quote"}},
		"quote never closed":          {"order,customer,amount\nA-1,\"Test,1.00\nA-2,Test,1.00\n", []string{"line 2", "quoted value"}},
		"text after a quote":          {"order,customer,amount\nA-1,\"Te\"st,1.00\n", []string{"line 2", "quoted value"}},
		"fields missing":              {"order,customer,amount\nA-1,Test\nA-2,Test,1.00\nA-3,Test,10,00\n", []string{"line 2 has 2", "line 4 has 4", "3 fields"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wantContains(t, refusal(t, c.text, shop(',', '.')), c.says...)
		})
	}
}

// N1.
func TestAHeaderAloneIsNoErrorAndNoRow(t *testing.T) {
	t.Parallel()
	f := read(t, bom+"order;customer;amount\r\n", shop(';', ','))
	if len(f.Rows) != 0 || len(f.Entries) != 0 {
		t.Fatalf("rows %v, entries %v; want none", f.Rows, f.Entries)
	}
}

func TestARowMayNotTakeMoreMemoryThanAllowed(t *testing.T) {
	t.Parallel()
	o := shop(',', '.')
	o.MaxRowBytes = 1000
	long := "order,customer,amount\nA-1,Test,1.00\nA-2,\"" + strings.Repeat("x,\n", 100_000)
	wantContains(t, refusal(t, long, o), "line 3", "longer than 1000 bytes")

	o.Format = orderfile.JSONLines
	f := read(t, `{"source":"s","order":"A-1"}`+"\n{\""+strings.Repeat("x", 100_000)+"\n\n"+`{"source":"s","order":"A-3"}`, o)
	if got := ids(f); got != "A-1|A-3" || f.Blank != 1 || len(f.Rows) != 3 {
		t.Fatalf("orders %s, %d blank, %d rows", got, f.Blank, len(f.Rows))
	}
	wantContains(t, f.Rows[1].Reason, "longer than 1000 bytes")
}

func TestManyShortRowsAreWithinTheBoundOfOne(t *testing.T) {
	t.Parallel()
	o := shop(',', '.')
	o.MaxRowBytes = 100
	var text strings.Builder
	text.WriteString("order,customer,amount\n")
	for range 5_000 {
		text.WriteString("A-1,Test,1.00\n")
	}
	if f := read(t, text.String(), o); len(f.Rows) != 5_000 || len(f.Entries) != 1 {
		t.Fatalf("%d rows, %d orders", len(f.Rows), len(f.Entries))
	}
}

// N3.
func TestIdsAreText(t *testing.T) {
	t.Parallel()
	text := "order,customer,amount\n" + strings.Join([]string{
		"00123,T,1", "123,T,1", "12345678901234567890,T,1", "A-1 ,T,1", "A-1,T,1", "A-1\u00a0,T,1", "a-1,T,1", "12E4,T,1",
	}, "\n")
	f := read(t, text, shop(',', '.'))
	if want := "00123|123|12345678901234567890|A-1|a-1|12E4"; ids(f) != want {
		t.Fatalf("orders %s, want %s", ids(f), want)
	}
	if lines := f.Entries[3].Order.Lines; len(lines) != 3 {
		t.Fatalf("A-1 has %d lines, want its three rows", len(lines))
	}
}

// N3.
func TestWhatASpreadsheetMakesOfIdsIsRefused(t *testing.T) {
	t.Parallel()
	for id, says := range map[string]string{
		"1E+05": "spreadsheet", `"1,00E+05"`: "spreadsheet", `"8,21E+15"`: "spreadsheet", "8.21e-15": "spreadsheet",
		`"=""00123"""`: "formula", "#REF!": "error mark", "########": "error mark", "-": "no id", "––": "no id", "": "order is empty",
		"\u00a0": "order is empty",
	} {
		f := read(t, "order,customer,amount\n"+id+",T,1\nB-1,T,1\n", shop(',', '.'))
		if f.Rows[0].Outcome != orderfile.Refused {
			t.Errorf("id %s was taken as %q", id, f.Rows[0].Order)
		}
		wantContains(t, f.Rows[0].Reason, says)
		if ids(f) != "B-1" {
			t.Errorf("after id %s the good order is %q", id, ids(f))
		}
	}
}

func TestAmountsArePlainInTheDeclaredMark(t *testing.T) {
	t.Parallel()
	for cell, want := range map[string]string{
		"10,00": "10.00", "\u00a010,5\u00a0": "10.5", "-5,00": "-5.00", "-0,01": "-0.01", "0": "0", "1000000": "1000000",
	} {
		f := read(t, "order;customer;amount\nA-1;T;"+cell+"\n", shop(';', ','))
		if got := f.Entries[0].Order.Lines[0].UnitPrice.String(); got != want {
			t.Errorf("%q is read as %s, want %s", cell, got, want)
		}
	}
	for cell, says := range map[string]string{
		"1.000,00": "thousands", "10.00": "--decimal", "1,00E+05": "plain decimal", "1e5": "plain decimal", "EUR 5": "plain decimal",
		"5 €": "plain decimal", "1 000,00": "plain decimal", "10,": "plain decimal", ",5": "plain decimal", "+5": "plain decimal",
		"1,000,00": "plain decimal", "007": "plain decimal", "NaN": "plain decimal", "٣": "plain decimal", "'-5,00": "plain decimal",
	} {
		f := read(t, "order;customer;amount\nA-1;T;"+cell+"\n", shop(';', ','))
		if len(f.Entries) != 0 {
			t.Errorf("%q was taken as %s", cell, f.Entries[0].Order.Lines[0].UnitPrice)
			continue
		}
		wantContains(t, f.Rows[0].Reason, "unit_price", says)
	}
}

func TestDatesAndWholeNumbersHaveOneForm(t *testing.T) {
	t.Parallel()
	header := "source,order,version,currency,customer_name,customer_country,issue_date,quantity,unit_price,vat_category\n"
	for cells, says := range map[string]string{
		"02.03.2026|1": "issue_date", "2026-02-30|1": "issue_date", "2026-03-02|1.0": "version", "2026-03-02|-1": "version", "2026-03-02|0": "version",
	} {
		date, version, _ := strings.Cut(cells, "|")
		f := read(t, header+"s,A-1,"+version+",EUR,T,DE,"+date+",1,1,S\n", orderfile.Options{Format: orderfile.CSV})
		if len(f.Entries) != 0 {
			t.Errorf("%s was taken", cells)
		}
		wantContains(t, f.Rows[0].Reason, says)
	}
}

func TestJSONLinesAreDecodedStrictlyOnePerLine(t *testing.T) {
	t.Parallel()
	text := bom + strings.Join([]string{
		`{"order":"A-1"}`, "", `{"source":"other","order":"A-2"} `, `{"Order":"A-3"}`, `{"order":"A-4"} {}`, `{"order":"A-5","order":"A-5"}`,
		`[{"order":"A-6"}]`, `{"order":9007199254740993}`, `{"order":"A-7`, "\t", `{"order":"A-8"}`,
	}, "\r\n")
	f := read(t, text, orderfile.Options{Format: orderfile.JSONLines, DefaultSource: "crm-1"})
	if got := ids(f); got != "A-1|A-2|A-8" {
		t.Fatalf("orders %s", got)
	}
	if f.Blank != 2 || len(f.Rows) != 9 {
		t.Fatalf("%d blank lines, %d rows; want 2 and 9", f.Blank, len(f.Rows))
	}
	var lines []int
	for _, r := range f.Rows {
		if r.Outcome == orderfile.Refused {
			lines = append(lines, r.Line)
			if r.Reason == "" {
				t.Errorf("line %d is refused without a reason", r.Line)
			}
		}
	}
	if diff := cmp.Diff([]int{4, 5, 6, 7, 8, 9}, lines); diff != "" {
		t.Fatalf("refused lines (-want +got):\n%s", diff)
	}
	if f.Entries[0].Order.Source != "crm-1" || f.Entries[1].Order.Source != "other" {
		t.Fatal("the default source is for orders that name none")
	}
	wantContains(t, refusal(t, "\n\n", orderfile.Options{Format: orderfile.JSONLines}), "empty")
}

func TestFormatIsToldByTheExtensionOrAskedFor(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]orderfile.Format{"a.csv": "csv", "b/A.CSV": "csv", "x.jsonl": "jsonl", "x.ndjson": "jsonl", "x.json": "", "x": "", "-": ""} {
		got, err := orderfile.FormatOf(name)
		if got != want || (err != nil) != (want == "") {
			t.Errorf("%s: %q, %v; want %q", name, got, err, want)
		}
	}
}

func TestADialectIsWrittenAsPeopleWriteIt(t *testing.T) {
	t.Parallel()
	for given, want := range map[[2]string]orderfile.CSVOptions{
		{";", ","}: {Delimiter: ';', Decimal: ','}, {"tab", "."}: {Delimiter: '\t', Decimal: '.'}, {`\t`, "."}: {Delimiter: '\t', Decimal: '.'},
	} {
		got, err := orderfile.ParseDialect(given[0], given[1])
		if err != nil || got.Delimiter != want.Delimiter || got.Decimal != want.Decimal {
			t.Errorf("%q: %+v, %v", given, got, err)
		}
	}
	for _, wrong := range [][2]string{{"", "."}, {";;", "."}, {"\"", "."}, {"\n", "."}, {"=", "."}, {",", ""}, {",", "'"}, {"\xff", "."}} {
		if got, err := orderfile.ParseDialect(wrong[0], wrong[1]); err == nil {
			t.Errorf("%q was taken as %+v", wrong, got)
		}
	}
}
