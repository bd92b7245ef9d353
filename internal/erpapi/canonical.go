package erpapi

import (
	"fmt"
	"maps"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/text/unicode/norm"
)

// CanonicalVersion is the version of the rules that Canonical follows. It stands in front of the fingerprint.
const CanonicalVersion = 1

// Canonical gives the one JSON text of all equal requests (RFC 8785): equal decimals are equal, absent = null =
// default, text in Unicode NFC, the order of lines kept. Decimals stand in it as strings, because RFC 8785 writes
// numbers as doubles. The result is itself a valid body of POST /v1/invoices and decodes to an equal request.
//
// A default is left out, so a member added later does not change the form of requests that do not use it.
// It fails only for text that is not UTF-8, which a decoded request cannot hold.
func (r *InvoiceRequest) Canonical() ([]byte, error) {
	c := InvoiceRequest{
		Source: nfc(r.Source), Order: nfc(r.Order), Role: Role(nfc(string(r.Role))), Currency: nfc(r.Currency),
		IssueDate: nfc(r.IssueDate), DueDate: nfc(r.DueDate), Customer: r.Customer.normalised(),
		OrderTotal: r.OrderTotal.normalised(), ExpectedGross: r.ExpectedGross.normalised(),
		Corrects: nfc(r.Corrects), Note: nfc(r.Note),
	}
	if s := r.EffectiveSequence(); s != 1 {
		c.Sequence = &s
	}
	for i := range r.Lines {
		c.Lines = append(c.Lines, r.Lines[i].normalised())
	}
	if len(r.Metadata) > 0 {
		c.Metadata = make(map[string]string, len(r.Metadata))
		// In order, so that of two names that are one in NFC (validation refuses them) always the same stays.
		for _, k := range slices.Sorted(maps.Keys(r.Metadata)) {
			c.Metadata[nfc(k)] = nfc(r.Metadata[k])
		}
	}
	return CanonicalJSON(&c)
}

// CanonicalJSON writes v by RFC 8785. v must not hold floats or integers beyond 2^53.
func CanonicalJSON(v any) ([]byte, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("canonical form: %w", err)
	}
	text := jsontext.Value(b)
	if err := text.Canonicalize(); err != nil {
		return nil, fmt.Errorf("canonical form: %w", err)
	}
	return text, nil
}

func (c Customer) normalised() Customer {
	return Customer{
		Name: nfc(c.Name), Country: nfc(c.Country), VATID: nfc(c.VATID), Email: nfc(c.Email), Address: nfc(c.Address),
	}
}

func (l Line) normalised() Line {
	n := Line{
		SKU: nfc(l.SKU), Description: nfc(l.Description), Quantity: l.Quantity.normalised(),
		UnitPrice: l.UnitPrice.normalised(), Discount: l.Discount.normalised(), VATRate: l.VATRate.normalised(),
		VATCategory: nfc(l.VATCategory), ExemptionReason: nfc(l.ExemptionReason),
	}
	if n.Discount != nil && n.Discount.valid && n.Discount.value.IsZero() {
		n.Discount = nil // the default
	}
	return n
}

func (d *Decimal) normalised() *Decimal {
	if d == nil {
		return nil
	}
	n := *d
	n.text = d.Canonical()
	return &n
}

func nfc(s string) string { return norm.NFC.String(s) }
