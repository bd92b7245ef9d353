package invoice

import (
	"fmt"
	"slices"

	"github.com/shopspring/decimal"

	"invoicebridge/internal/erpapi"
	"invoicebridge/internal/problem"
)

// draft is a valid request with its amounts, before it has a number.
type draft struct {
	request *erpapi.InvoiceRequest
	digits  int32             // decimals of the currency
	nets    []decimal.Decimal // of the lines
	groups  []vatGroup
	net     decimal.Decimal
	vat     decimal.Decimal
	gross   decimal.Decimal
}

// vatGroup is the VAT of all lines with one category and rate (EN 16931 BG-23).
type vatGroup struct {
	category vatCategory
	rate     decimal.Decimal
	reasons  []string // distinct, in the order of the lines
	net      decimal.Decimal
	vat      decimal.Decimal
}

// newDraft computes the amounts of a request whose members are valid.
//
// A line's net is quantity times price less discount, rounded (BT-131). VAT is computed per group from the sum of
// the rounded nets (BR-S-9 and its like, BR-CO-17), never per line, and rounded once. Rounding is half away from zero
// to the currency's decimals. So the nets add up to the net total, and net plus VAT is the gross, to the last digit.
func newDraft(r *erpapi.InvoiceRequest, digits int32) *draft {
	d := &draft{request: r, digits: digits}
	for i := range r.Lines {
		net := lineNet(&r.Lines[i], digits)
		d.nets = append(d.nets, net)
		d.net = d.net.Add(net)
		d.addToGroup(&r.Lines[i], net)
	}
	for i := range d.groups {
		g := &d.groups[i]
		g.vat = g.net.Mul(g.rate).Shift(-2).Round(digits)
		d.vat = d.vat.Add(g.vat)
	}
	d.gross = d.net.Add(d.vat)
	return d
}

func lineNet(l *erpapi.Line, digits int32) decimal.Decimal {
	net := l.Quantity.Value().Mul(l.UnitPrice.Value())
	if l.Discount != nil {
		net = net.Sub(l.Discount.Value())
	}
	return net.Round(digits)
}

func (d *draft) addToGroup(l *erpapi.Line, net decimal.Decimal) {
	category, _ := vatCategoryOf(l.VATCategory)
	rate := decimal.Zero
	if l.VATRate != nil {
		rate = l.VATRate.Value()
	}
	i := slices.IndexFunc(d.groups, func(g vatGroup) bool {
		return g.category.code == category.code && g.rate.Equal(rate)
	})
	if i < 0 {
		i = len(d.groups)
		d.groups = append(d.groups, vatGroup{category: category, rate: rate})
	}
	g := &d.groups[i]
	g.net = g.net.Add(net)
	if reason := l.ExemptionReason; reason != "" && !slices.Contains(g.reasons, reason) {
		g.reasons = append(g.reasons, reason)
	}
}

// check tells what is wrong with the amounts as a whole.
func (d *draft) check() []problem.FieldError {
	for i, net := range d.nets {
		if net.Abs().GreaterThan(maxAmount()) {
			return []problem.FieldError{{Pointer: fmt.Sprintf("/lines/%d", i), Detail: "has a net amount beyond " + maxAmount().String()}}
		}
	}
	for _, total := range []decimal.Decimal{d.net, d.vat, d.gross} {
		if total.Abs().GreaterThan(maxAmount()) {
			return []problem.FieldError{{Pointer: "/lines", Detail: "add up to more than " + maxAmount().String()}}
		}
	}
	if d.request.Role == erpapi.RoleCreditNote && !d.gross.IsPositive() {
		return []problem.FieldError{{Pointer: "/lines",
			Detail: "a credit note's amounts are positive, this one comes to " + d.amount(d.gross)}}
	}
	if expected := d.request.ExpectedGross; expected != nil && !expected.Value().Equal(d.gross) {
		return []problem.FieldError{{Pointer: "/expected_gross", Detail: fmt.Sprintf(
			"totals differ: %s was expected, the lines come to %s", expected, d.amount(d.gross))}}
	}
	return nil
}

// amount writes a sum of money with exactly the currency's decimals; there is no negative zero.
func (d *draft) amount(a decimal.Decimal) string { return a.StringFixed(d.digits) }
