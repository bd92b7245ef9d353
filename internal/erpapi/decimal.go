package erpapi

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/shopspring/decimal"
)

// Decimal is an exact decimal number that keeps the text it was received in ("2.00" stays "2.00").
//
// In JSON it may be a string or a number and never passes through a float. A text that is no decimal is kept, too,
// and reported by Valid, so that a request's mistakes can be told all at once, each with its pointer.
// The zero Decimal is an invalid one; absent members are nil pointers.
type Decimal struct {
	text  string
	value decimal.Decimal
	valid bool
}

// Strings are plain decimals: no exponent, no plus sign, no blanks, no leading zeros, nothing a spreadsheet would
// make of it. JSON numbers may have an exponent (RFC 8259), bounded so that 1e999999999 costs nothing.
var (
	plainDecimal  = regexp.MustCompile(`^-?(0|[1-9][0-9]{0,39})(\.[0-9]{1,40})?$`)
	numberDecimal = regexp.MustCompile(`^-?(0|[1-9][0-9]{0,39})(\.[0-9]{1,40})?([eE][+-]?[0-9]{1,2})?$`)
)

// ParseDecimal reads a plain decimal such as "-12.50".
func ParseDecimal(text string) (Decimal, error) {
	d := parse(text, plainDecimal)
	if !d.valid {
		return d, fmt.Errorf("%q is not a plain decimal number such as 12.50", text)
	}
	return d, nil
}

// MustDecimal is ParseDecimal for constants; it panics where the text is no decimal.
func MustDecimal(text string) Decimal {
	d, err := ParseDecimal(text)
	if err != nil {
		panic(err)
	}
	return d
}

// DecimalOf gives d with exactly the decimals it has (1.50 with exponent -2 is "1.50").
func DecimalOf(d decimal.Decimal) Decimal {
	return Decimal{text: fixed(d), value: d, valid: true}
}

func parse(text string, form *regexp.Regexp) Decimal {
	d := Decimal{text: text}
	if !form.MatchString(text) {
		return d
	}
	v, err := decimal.NewFromString(text)
	if err != nil {
		return d
	}
	plain := text
	if strings.ContainsAny(text, "eE") || (v.IsZero() && strings.HasPrefix(text, "-")) {
		plain = fixed(v) // plain digits, and no "-0.00"
	}
	if !plainDecimal.MatchString(plain) {
		return d // 1e99: as plain digits it could not be read again, so the canonical form would say something else
	}
	return Decimal{text: plain, value: v, valid: true}
}

// Valid says whether the text was a decimal.
func (d Decimal) Valid() bool { return d.valid }

// Value is the number; zero where d is not valid.
func (d Decimal) Value() decimal.Decimal { return d.value }

// String is the number as received, without exponent.
func (d Decimal) String() string { return d.text }

// Decimals is how many digits stand behind the point in the text ("2.50" has 2).
func (d Decimal) Decimals() int32 { return max(0, -d.value.Exponent()) }

// Canonical is the one text of all equal decimals: no trailing zeros, no exponent, no negative zero. An invalid
// one is its own text.
func (d Decimal) Canonical() string {
	if !d.valid {
		return d.text
	}
	return d.value.String()
}

// MarshalJSONTo writes the text as a JSON string.
func (d Decimal) MarshalJSONTo(enc *jsontext.Encoder) error {
	return enc.WriteToken(jsontext.String(d.text))
}

// UnmarshalJSONFrom takes a JSON string or number.
func (d *Decimal) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	tok, err := dec.ReadToken()
	if err != nil {
		return err
	}
	switch tok.Kind() {
	case '"':
		*d = parse(tok.String(), plainDecimal)
	case '0':
		*d = parse(tok.String(), numberDecimal)
	default:
		return fmt.Errorf("a decimal is a JSON string or number, not %v", tok.Kind())
	}
	return nil
}

func fixed(d decimal.Decimal) string { return d.StringFixed(max(0, -d.Exponent())) }
