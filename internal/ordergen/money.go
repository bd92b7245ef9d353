package ordergen

import (
	"github.com/bojanz/currency"
	"github.com/shopspring/decimal"

	"invoicebridge/internal/erpapi"
)

// exact is a decimal constant of this package's own tables.
func exact(text string) *erpapi.Decimal {
	d := erpapi.MustDecimal(text)
	return &d
}

// amount writes d with the currency's decimals.
func amount(d decimal.Decimal, digits int32) *erpapi.Decimal {
	out := erpapi.MustDecimal(d.StringFixed(digits))
	return &out
}

// digitsOf is how many decimals amounts of a currency have (ISO 4217).
func digitsOf(code string) int32 {
	digits, _ := currency.GetDigits(code)
	return int32(digits)
}

// round rounds half away from zero, as the ERP does.
func round(d decimal.Decimal, digits int32) decimal.Decimal { return d.Round(digits) }

func net(l *erpapi.Line, digits int32) decimal.Decimal {
	n := l.Quantity.Value().Mul(l.UnitPrice.Value())
	if l.Discount != nil {
		n = n.Sub(l.Discount.Value())
	}
	return round(n, digits)
}

// gross computes what an invoice with these lines comes to: VAT is rounded per category and rate (EN 16931,
// BR-CO-17), never per line. The ERP computes for itself; this only has to come to the same.
func gross(lines []erpapi.Line, digits int32) decimal.Decimal {
	type group struct{ category, rate string }
	groups := map[group]decimal.Decimal{}
	for i := range lines {
		g := group{category: lines[i].VATCategory}
		if lines[i].VATRate != nil {
			g.rate = lines[i].VATRate.Canonical()
		}
		groups[g] = groups[g].Add(net(&lines[i], digits))
	}
	total := decimal.Zero
	for g, sum := range groups {
		total = total.Add(sum)
		if g.rate != "" {
			total = total.Add(round(sum.Mul(decimal.RequireFromString(g.rate)).Shift(-2), digits))
		}
	}
	return total
}
