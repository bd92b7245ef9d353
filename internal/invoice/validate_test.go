package invoice

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"invoicebridge/internal/problem"
)

// pointersOf are the places of all mistakes, sorted; nil where there are none.
func pointersOf(p *problem.Problem) (pointers []string) {
	if p == nil {
		return nil
	}
	for _, e := range p.Errors {
		pointers = append(pointers, e.Pointer)
	}
	slices.Sort(pointers)
	return slices.Compact(pointers)
}

func TestValidateNamesThePlaceOfEachMistake(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		edit []string
		want string // "" where the request is fine
	}{
		"BASE":                         {nil, ""},
		"no source":                    {[]string{`"crm-1"`, `""`}, "/source"},
		"source too long":              {[]string{`"crm-1"`, `"` + strings.Repeat("s", 65) + `"`}, "/source"},
		"source of the full length":    {[]string{`"crm-1"`, `"` + strings.Repeat("ß", 64) + `"`}, ""},
		"order with an outer blank":    {[]string{`"SO-1001"`, `"SO-1001 "`}, "/order"},
		"order with U+00A0":            {[]string{`"SO-1001"`, `"SO-1001` + "\u00a0" + `"`}, "/order"},
		"order with a control":         {[]string{`"SO-1001"`, `"SO\u0007"`}, "/order"},
		"order with U+200B":            {[]string{`"SO-1001"`, `"SO` + "\u200b" + `"`}, "/order"},
		"order too long":               {[]string{`"SO-1001"`, `"` + strings.Repeat("o", 129) + `"`}, "/order"},
		"order above 2^53":             {[]string{`"SO-1001"`, `"9007199254741993"`}, ""},
		"no role":                      {[]string{`"role":"final",`, ``}, "/role"},
		"an unknown role":              {[]string{`"final"`, `"Final"`}, "/role"},
		"a second final":               {[]string{`"role"`, `"sequence":2,"role"`}, "/sequence"},
		"sequence 0":                   {[]string{`"role":"final"`, `"sequence":0,"role":"partial"`}, "/sequence"},
		"sequence beyond the limit":    {[]string{`"role":"final"`, `"sequence":1000000,"role":"partial"`}, "/sequence"},
		"sequence of a part":           {[]string{`"role":"final"`, `"sequence":12,"role":"partial"`}, ""},
		"corrects on a final":          {[]string{`"role"`, `"corrects":"INV-1","role"`}, "/corrects"},
		"a credit note of nothing":     {[]string{`"final"`, `"credit_note"`}, "/corrects"},
		"a correction of something":    {[]string{`"final"`, `"correction","corrects":"INV-1"`}, ""},
		"no currency":                  {[]string{`"currency":"EUR",`, ``}, "/currency"},
		"currency in small letters":    {[]string{`"EUR"`, `"eur"`}, "/currency"},
		"currency EURO":                {[]string{`"EUR"`, `"EURO"`}, "/currency"},
		"currency XXX":                 {[]string{`"EUR"`, `"XXX"`}, "/currency"},
		"no issue date":                {[]string{`"issue_date":"2026-03-02",`, ``}, "/issue_date"},
		"the 30th of February":         {[]string{`2026-03-02`, `2026-02-30`}, "/issue_date"},
		"the 29th in a leap year":      {[]string{`2026-03-02`, `2024-02-29`}, ""},
		"the year 0":                   {[]string{`2026-03-02`, `0000-03-02`}, "/issue_date"},
		"the year 1":                   {[]string{`2026-03-02`, `0001-01-01`}, ""},
		"the year 9999":                {[]string{`2026-03-02`, `9999-12-31`}, ""},
		"the year 10000":               {[]string{`2026-03-02`, `10000-01-01`}, "/issue_date"},
		"a date with a time":           {[]string{`2026-03-02`, `2026-03-02T00:00:00Z`}, "/issue_date"},
		"a date in another form":       {[]string{`2026-03-02`, `2.3.2026`}, "/issue_date"},
		"due before issued":            {[]string{`"role"`, `"due_date":"2026-03-01","role"`}, "/due_date"},
		"due on the day":               {[]string{`"role"`, `"due_date":"2026-03-02","role"`}, ""},
		"due at infinity":              {[]string{`"role"`, `"due_date":"infinity","role"`}, "/due_date"},
		"no customer name":             {[]string{`"Test Customer A"`, `" "`}, "/customer/name"},
		"a name with a line break":     {[]string{`"Test Customer A"`, `"A\nB"`}, "/customer/name"},
		"a name as a script":           {[]string{`"Test Customer A"`, `"<img src=x onerror=alert(1)>"`}, ""},
		"no country":                   {[]string{`"DE"`, `""`}, "/customer/country"},
		"country de":                   {[]string{`"DE"`, `"de"`}, "/customer/country"},
		"country DEU":                  {[]string{`"DE"`, `"DEU"`}, "/customer/country"},
		"country DD, withdrawn":        {[]string{`"DE"`, `"DD"`}, "/customer/country"},
		"country UK, reserved":         {[]string{`"DE"`, `"UK"`}, "/customer/country"},
		"country XK, Kosovo":           {[]string{`"DE"`, `"XK"`}, ""},
		"no lines":                     {[]string{`"lines":[`, `"lines":[],"metadata":{},"note":"`, `}]}`, `"}`, `{"sku":"P-1","quantity":"2","unit_price":"10.00","vat_rate":"19","vat_category":"S"`, ``}, "/lines"},
		"neither sku nor description":  {[]string{`"sku":"P-1",`, ``}, "/lines/0/description"},
		"a description alone":          {[]string{`"sku":"P-1"`, `"description":"Work\nand more"`}, ""},
		"no quantity":                  {[]string{`"quantity":"2",`, ``}, "/lines/0/quantity"},
		"quantity 0":                   {[]string{`"quantity":"2"`, `"quantity":"0.00"`}, "/lines/0/quantity"},
		"a quantity of 7 decimals":     {[]string{`"quantity":"2"`, `"quantity":"1.2345678"`}, "/lines/0/quantity"},
		"a quantity of 6 decimals":     {[]string{`"quantity":"2"`, `"quantity":"1.234567"`}, ""},
		"a quantity with a comma":      {[]string{`"quantity":"2"`, `"quantity":"1,5"`}, "/lines/0/quantity"},
		"a quantity NaN":               {[]string{`"quantity":"2"`, `"quantity":"NaN"`}, "/lines/0/quantity"},
		"a quantity in exponents":      {[]string{`"quantity":"2"`, `"quantity":"1e2"`}, "/lines/0/quantity"},
		"no price":                     {[]string{`"unit_price":"10.00",`, ``}, "/lines/0/unit_price"},
		"a price of 0":                 {[]string{`"10.00"`, `"0"`}, ""},
		"a negative price":             {[]string{`"10.00"`, `"-10.00"`}, ""},
		"a price of 7 decimals":        {[]string{`"10.00"`, `"0.0000001"`}, "/lines/0/unit_price"},
		"a fraction of a yen":          {[]string{`"EUR"`, `"JPY"`, `"10.00"`, `"1980.50"`}, "/lines/0/unit_price"},
		"whole yen with decimals":      {[]string{`"EUR"`, `"JPY"`, `"10.00"`, `"1980.00"`}, ""},
		"a fraction of a cent":         {[]string{`"10.00"`, `"0.051426"`}, ""},
		"a discount finer than a cent": {[]string{`"sku"`, `"discount":"0.005","sku"`}, "/lines/0/discount"},
		"an order total of 0":          {[]string{`"role"`, `"order_total":"0","role"`}, "/order_total"},
		"a negative order total":       {[]string{`"role"`, `"order_total":"-1","role"`}, "/order_total"},
		"an order total of half cents": {[]string{`"role"`, `"order_total":"0.005","role"`}, "/order_total"},
		"an empty expected gross":      {[]string{`"role"`, `"expected_gross":"","role"`}, "/expected_gross"},
		"metadata with a long value":   {[]string{`"role"`, `"metadata":{"a/b":"` + strings.Repeat("v", 501) + `"},"role"`}, "/metadata/a~1b"},
		"metadata without a name":      {[]string{`"role"`, `"metadata":{"":"v"},"role"`}, "/metadata/"},
		"one name in two spellings":    {[]string{`"role"`, `"metadata":{"é":"1","e` + "\u0301" + `":"2"},"role"`}, "/metadata/é"},
		"no VAT rate":                  {[]string{`"vat_rate":"19",`, ``}, "/lines/0/vat_rate"},
		"VAT rate null":                {[]string{`"vat_rate":"19"`, `"vat_rate":null`}, "/lines/0/vat_rate"},
		"VAT rate empty":               {[]string{`"vat_rate":"19"`, `"vat_rate":""`}, "/lines/0/vat_rate"},
		"a VAT rate of 5 decimals":     {[]string{`"vat_rate":"19"`, `"vat_rate":"19.00001"`}, "/lines/0/vat_rate"},
		"a VAT rate above 100":         {[]string{`"vat_rate":"19"`, `"vat_rate":"100.1"`}, "/lines/0/vat_rate"},
		"a negative VAT rate":          {[]string{`"vat_rate":"19"`, `"vat_rate":"-19"`}, "/lines/0/vat_rate"},
		"no VAT category":              {[]string{`,"vat_category":"S"`, ``}, "/lines/0/vat_category"},
		"VAT category s":               {[]string{`"S"`, `"s"`}, "/lines/0/vat_category"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, p := validate(request(t, c.edit...))
			var want []string
			if c.want != "" {
				want = []string{c.want}
			}
			if diff := cmp.Diff(want, pointersOf(p)); diff != "" {
				t.Errorf("%v\n%s", p, diff)
			}
		})
	}
}

func TestValidateTellsAllMistakesAtOnce(t *testing.T) {
	t.Parallel()
	_, p := validate(decode(t, `{"lines":[{"quantity":"x","discount":"y","vat_category":"E","vat_rate":"19"}]}`))
	want := []string{
		"/currency", "/customer/country", "/customer/name", "/issue_date", "/lines/0/description", "/lines/0/discount",
		"/lines/0/exemption_reason", "/lines/0/quantity", "/lines/0/unit_price", "/lines/0/vat_rate", "/order", "/role",
		"/source",
	}
	if diff := cmp.Diff(want, pointersOf(p)); diff != "" {
		t.Error(diff)
	}
}

func TestValidateBoundsWhatItTells(t *testing.T) {
	t.Parallel()
	many := `{"lines":[` + strings.TrimSuffix(strings.Repeat(`{},`, maxLines), ",") + `]}`
	if _, p := validate(decode(t, many)); len(p.Errors) != maxFieldErrors {
		t.Errorf("%d mistakes told", len(p.Errors))
	}
	tooMany := `{"lines":[` + strings.TrimSuffix(strings.Repeat(`{},`, maxLines+1), ",") + `]}`
	if _, p := validate(decode(t, tooMany)); !slices.Contains(pointersOf(p), "/lines") {
		t.Error("more lines than allowed")
	}
}

func TestVATCategories(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		vatID string
		lines string // of "category rate reason"
		want  string
	}{
		"S above 0":                     {"", "S 19 -", ""},
		"S at 0":                        {"", "S 0 -", "/lines/0/vat_rate"},
		"S with a reason":               {"", "S 19 because", "/lines/0/exemption_reason"},
		"Z at 0":                        {"", "Z 0 -", ""},
		"Z at 0.00":                     {"", "Z 0.00 -", ""},
		"Z above 0":                     {"", "Z 7 -", "/lines/0/vat_rate"},
		"E with a reason":               {"", "E 0 because", ""},
		"E without a reason":            {"", "E 0 -", "/lines/0/exemption_reason"},
		"E above 0":                     {"", "E 7 because", "/lines/0/vat_rate"},
		"AE":                            {"DE1", "AE 0 -", ""},
		"AE with a reason":              {"DE1", "AE 0 because", ""},
		"AE without the buyer's VAT id": {"", "AE 0 -", "/customer/vat_id"},
		"AE above 0":                    {"DE1", "AE 19 -", "/lines/0/vat_rate"},
		"AE without a rate":             {"DE1", "AE - -", "/lines/0/vat_rate"},
		"K":                             {"DE1", "K 0 -", ""},
		"K without the buyer's VAT id":  {"", "K 0 -", "/customer/vat_id"},
		"K above 0":                     {"DE1", "K 19 -", "/lines/0/vat_rate"},
		"G":                             {"", "G 0 -", ""},
		"G above 0":                     {"", "G 19 -", "/lines/0/vat_rate"},
		"O without a rate":              {"", "O - -", ""},
		"O at 0":                        {"", "O 0 -", ""},
		"O above 0":                     {"", "O 19 -", "/lines/0/vat_rate"},
		"O with the buyer's VAT id":     {"DE1", "O - -", "/customer/vat_id"},
		"O beside S":                    {"", "O - -|S 19 -", "/lines"},
		"S beside AE":                   {"DE1", "S 19 -|AE 0 -", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := request(t, `"XX000000001"`, `"`+c.vatID+`"`)
			var lines []string
			for l := range strings.SplitSeq(c.lines, "|") {
				f := strings.Fields(l)
				line := fmt.Sprintf(`{"sku":"P","quantity":1,"unit_price":1,"vat_category":%q`, f[0])
				if f[1] != "-" {
					line += fmt.Sprintf(`,"vat_rate":%q`, f[1])
				}
				if f[2] != "-" {
					line += fmt.Sprintf(`,"exemption_reason":%q`, f[2])
				}
				lines = append(lines, line+"}")
			}
			r.Lines = decode(t, `{"lines":[`+strings.Join(lines, ",")+`]}`).Lines
			_, p := validate(r)
			if got := strings.Join(pointersOf(p), " "); got != c.want {
				t.Errorf("got %q, want %q: %v", got, c.want, p)
			}
		})
	}
}

func TestCountriesAreThoseOfISO3166AndKosovo(t *testing.T) {
	t.Parallel()
	n := 0
	for a := 'A'; a <= 'Z'; a++ {
		for b := 'A'; b <= 'Z'; b++ {
			if isCountry(string([]rune{a, b})) {
				n++
			}
		}
	}
	if n != 249+1 {
		t.Errorf("%d codes are countries", n)
	}
}
