package invoice

import (
	"fmt"
	"strings"
	"testing"

	"github.com/bojanz/currency"
	"github.com/google/go-cmp/cmp"
	"github.com/shopspring/decimal"
	"pgregory.net/rapid"

	"invoicebridge/internal/erpapi"
	"invoicebridge/internal/problem"
)

// linesOf is BASE in a currency with lines of "quantity price rate" in category S, or Z where the rate is 0.
func linesOf(t testing.TB, code string, lines ...string) *erpapi.InvoiceRequest {
	t.Helper()
	var list []string
	for _, l := range lines {
		f := strings.Fields(l)
		category := "S"
		if f[2] == "0" {
			category = "Z"
		}
		list = append(list, fmt.Sprintf(
			`{"sku":"P","quantity":"%s","unit_price":"%s","vat_rate":"%s","vat_category":"%s"}`, f[0], f[1], f[2], category))
	}
	r := request(t, `"EUR"`, `"`+code+`"`)
	r.Lines = decode(t, `{"lines":[`+strings.Join(list, ",")+`]}`).Lines
	return r
}

func mustDraft(t testing.TB, r *erpapi.InvoiceRequest) *draft {
	t.Helper()
	d, p := validate(r)
	if p != nil {
		t.Fatalf("%v %v", p, p.Errors)
	}
	return d
}

func TestAmountsOfKnownInvoices(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		currency string
		lines    []string
		want     string // net VAT gross
	}{
		"VAT is rounded per rate, not per line": {"EUR", []string{"1 33.33 19", "1 33.33 19", "1 33.33 19"}, "99.99 19.00 118.99"},
		"one group per rate":                    {"EUR", []string{"1 33.33 19", "1 33.33 19", "1 33.33 19", "1 10.00 7"}, "109.99 19.70 129.69"},
		"19 and 19.00 are one rate":             {"EUR", []string{"1 33.33 19", "1 33.33 19.00", "1 33.33 19.0"}, "99.99 19.00 118.99"},
		"yen have no decimals":                  {"JPY", []string{"3 1980 10"}, "5940 594 6534"},
		"dinars have three, halves go up":       {"BHD", []string{"1 12.345 10"}, "12.345 1.235 13.580"},
		"a fils is kept":                        {"KWD", []string{"1 0.001 0"}, "0.001 0.000 0.001"},
		"4.35 is no float":                      {"EUR", []string{"1 4.35 0"}, "4.35 0.00 4.35"},
		"8.20 is no float":                      {"EUR", []string{"1 8.20 0"}, "8.20 0.00 8.20"},
		"1.15 is no float":                      {"EUR", []string{"1 1.15 0"}, "1.15 0.00 1.15"},
		"17.08 is no float":                     {"EUR", []string{"1 17.08 0"}, "17.08 0.00 17.08"},
		"a large amount is exact":               {"EUR", []string{"1 9999999999999.99 0"}, "9999999999999.99 0.00 9999999999999.99"},
		"three decimals of a quantity":          {"EUR", []string{"0.125 19.96 0"}, "2.50 0.00 2.50"},
		"four decimals of a quantity":           {"EUR", []string{"0.0005 12000.00 0"}, "6.00 0.00 6.00"},
		"six decimals of a price":               {"EUR", []string{"1000 0.051426 0"}, "51.43 0.00 51.43"},
		"a zero-rated line takes no odd cent":   {"EUR", []string{"1 90.30 0", "0.45 3.35 6", "0.28 7.77 6"}, "93.99 0.22 94.21"},
		"halves go away from zero below it":     {"EUR", []string{"-0.125 19.96 0"}, "-2.50 0.00 -2.50"},
		"the smallest negative invoice":         {"EUR", []string{"-1 0.01 0"}, "-0.01 0.00 -0.01"},
		"no negative zero":                      {"EUR", []string{"-0.001 1.00 0"}, "0.00 0.00 0.00"},
		"a final invoice less what was paid":    {"EUR", []string{"1 1000.00 19", "-1 1000.00 19"}, "0.00 0.00 0.00"},
		"1000000 has no exponent":               {"EUR", []string{"1 1000000 0"}, "1000000.00 0.00 1000000.00"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := mustDraft(t, linesOf(t, c.currency, c.lines...))
			if got := d.amount(d.net) + " " + d.amount(d.vat) + " " + d.amount(d.gross); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func TestADiscountIsTakenOffBeforeTheLineIsRounded(t *testing.T) {
	t.Parallel()
	r := linesOf(t, "EUR", "0.125 19.96 19") // 2.495
	for text, want := range map[string]string{"0.50": "2.00", "2.50": "-0.01", "-0.50": "3.00"} {
		discount := erpapi.MustDecimal(text)
		r.Lines[0].Discount = &discount
		d := mustDraft(t, r)
		if got := d.amount(d.net); got != want {
			t.Errorf("2.495 - %s gives %s", text, got)
		}
	}
}

func TestZeroRatedLinesKeepTheirNet(t *testing.T) {
	t.Parallel()
	d := mustDraft(t, linesOf(t, "EUR", "1 90.30 0", "0.45 3.35 6", "0.28 7.77 6"))
	var nets []string
	for _, n := range d.nets {
		nets = append(nets, d.amount(n))
	}
	if diff := cmp.Diff([]string{"90.30", "1.51", "2.18"}, nets); diff != "" {
		t.Error(diff)
	}
}

func TestExpectedGrossThatDiffersIsRefusedNamingBothValues(t *testing.T) {
	t.Parallel()
	r := linesOf(t, "EUR", "1 33.33 19", "1 33.33 19", "1 33.33 19")
	for text, ok := range map[string]bool{"118.99": true, "118.990": true, "118.98": false, "-118.99": false} {
		expected := erpapi.MustDecimal(text)
		r.ExpectedGross = &expected
		_, p := validate(r)
		if (p == nil) != ok {
			t.Errorf("%s: %v", text, p)
		}
		if ok {
			continue
		}
		got := p.Errors[0]
		if got.Pointer != "/expected_gross" || !strings.Contains(got.Detail, "totals differ") ||
			!strings.Contains(got.Detail, text) || !strings.Contains(got.Detail, "118.99") {
			t.Errorf("%s: %+v", text, got)
		}
	}
}

// The library's digits are the ones of ISO 4217, not those that CLDR finds usual.
func TestMinorUnitsAreThoseOfISO4217(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]uint8{
		"EUR": 2, "USD": 2, "GBP": 2, "CHF": 2, "JPY": 0, "KRW": 0, "ISK": 0, "CLP": 0, "VND": 0, "XOF": 0, "UGX": 0,
		"KWD": 3, "BHD": 3, "OMR": 3, "JOD": 3, "TND": 3, "IQD": 3, "LYD": 3, "CLF": 4, "UYW": 4,
		"HUF": 2, "IDR": 2, "COP": 2, "IRR": 2, "LBP": 2, "PKR": 2, "TWD": 2, "MGA": 2, "MRU": 2,
	} {
		if got, ok := currency.GetDigits(code); !ok || got != want {
			t.Errorf("%s has %d decimals here, %d in ISO 4217", code, got, want)
		}
	}
}

// drawDraft draws a valid request of up to eight lines in any currency and computes it.
func drawDraft(t *rapid.T) *draft {
	code := rapid.SampledFrom([]string{"EUR", "JPY", "KWD", "CLF", "HUF"}).Draw(t, "currency")
	digits, _ := currency.GetDigits(code)
	number := func(label string, most int64, decimals int32) *erpapi.Decimal {
		coefficient := rapid.Int64Range(-most, most).Draw(t, label)
		d := erpapi.DecimalOf(decimal.New(coefficient, -rapid.Int32Range(0, decimals).Draw(t, label+" decimals")))
		return &d
	}
	r := &erpapi.InvoiceRequest{Role: erpapi.RoleFinal, Currency: code}
	for range rapid.IntRange(1, 8).Draw(t, "lines") {
		l := erpapi.Line{
			Quantity: number("quantity", 1e9, 6), UnitPrice: number("price", 1e9, min(6, int32(digits)*3)),
			Discount: number("discount", 1e4, int32(digits)), VATCategory: "Z",
		}
		rate := erpapi.DecimalOf(decimal.New(rapid.SampledFrom([]int64{0, 55, 70, 190, 255}).Draw(t, "rate"), -1))
		if !rate.Value().IsZero() {
			l.VATCategory = "S"
		}
		l.VATRate = &rate
		r.Lines = append(r.Lines, l)
	}
	return newDraft(r, int32(digits))
}

func TestAmountsAddUpToTheLastDigit(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		d := drawDraft(t)
		sum := func(amounts ...decimal.Decimal) decimal.Decimal { return decimal.Sum(decimal.Zero, amounts...) }
		var groupNets, groupVATs []decimal.Decimal
		for _, g := range d.groups {
			groupNets, groupVATs = append(groupNets, g.net), append(groupVATs, g.vat)
		}
		if !sum(d.nets...).Equal(d.net) || !sum(groupNets...).Equal(d.net) || !sum(groupVATs...).Equal(d.vat) ||
			!d.net.Add(d.vat).Equal(d.gross) {
			t.Fatalf("%+v", d)
		}
		for _, a := range append([]decimal.Decimal{d.net, d.vat, d.gross}, d.nets...) {
			text := d.amount(a)
			if back := decimal.RequireFromString(text); !back.Equal(a) {
				t.Fatalf("%s is written as %s", a, text)
			}
			if strings.ContainsAny(text, "eE+") || strings.HasPrefix(text, "-0") && a.IsZero() {
				t.Fatalf("%s is written as %s", a, text)
			}
		}
	})
}

// Half away from zero, said in another way than the library does it: no rounded value is further than half a unit from
// the exact one, and a half goes to the greater magnitude.
func TestRoundingIsHalfAwayFromZero(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		d := drawDraft(t)
		half := decimal.New(5, -d.digits-1)
		check := func(exact, rounded decimal.Decimal) {
			off := rounded.Abs().Sub(exact.Abs())
			if off.GreaterThan(half) || off.LessThanOrEqual(half.Neg()) {
				t.Fatalf("%s was rounded to %s", exact, rounded)
			}
		}
		for i, l := range d.request.Lines {
			check(l.Quantity.Value().Mul(l.UnitPrice.Value()).Sub(l.Discount.Value()), d.nets[i])
		}
		for _, g := range d.groups {
			check(g.net.Mul(g.rate).Div(decimal.New(100, 0)), g.vat)
		}
	})
}

func TestAmountsBeyondTheColumnsAreRefused(t *testing.T) {
	t.Parallel()
	for name, lines := range map[string][]string{
		"a price":                         {"1 1000000000000000.01 0"},
		"a line":                          {"1000000 1000000000.01 0"},
		"a total":                         {"1 900000000000000 0", "1 900000000000000 0"},
		"with VAT":                        {"1 900000000000000 19"},
		"a huge number in few characters": {"1 " + strings.Repeat("9", 40) + " 0"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, p := validate(linesOf(t, "EUR", lines...)); p == nil || p.Type != problem.InvalidInvoice {
				t.Errorf("got %v", p)
			}
		})
	}
}
