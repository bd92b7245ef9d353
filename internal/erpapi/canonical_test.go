package erpapi

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func canonical(t interface{ Fatal(...any) }, r *InvoiceRequest) string {
	c, err := r.Canonical()
	if err != nil {
		t.Fatal(err)
	}
	return string(c)
}

func mustDecode(t interface{ Fatal(...any) }, body string) *InvoiceRequest {
	r, err := DecodeInvoiceRequest([]byte(body))
	if err != nil {
		t.Fatal(err, body)
	}
	return r
}

// full is a request that uses every member.
func full() *InvoiceRequest {
	sequence := int64(2)
	dec := func(s string) *Decimal { d := MustDecimal(s); return &d }
	line := func(sku string) Line {
		return Line{
			SKU: sku, Description: "d", Quantity: dec("2"), UnitPrice: dec("10"), Discount: dec("1"), VATRate: dec("19"),
			VATCategory: "S", ExemptionReason: "r",
		}
	}
	return &InvoiceRequest{
		Source: "crm-1", Order: "SO-1", Role: RoleCorrection, Sequence: &sequence, Currency: "EUR",
		IssueDate: "2026-03-02", DueDate: "2026-04-02",
		Customer: Customer{Name: "n", Country: "DE", VATID: "v", Email: "e", Address: "a"},
		Lines:    []Line{line("P-1"), line("P-2")}, OrderTotal: dec("100"), ExpectedGross: dec("45.22"), Corrects: "INV-1",
		Note: "n", Metadata: map[string]string{"k": "v"},
	}
}

// A member added to the request without a decision about Canonical fails here: it is found by reflection, changed, and
// the change must show, at its own place.
func TestEveryRequestMemberIsInTheCanonicalForm(t *testing.T) {
	t.Parallel()
	seen := map[string]string{canonical(t, full()): "the request itself"}
	visitMembers(t, reflect.TypeFor[InvoiceRequest](), nil, "", func(path string, index []int) {
		r := full()
		change(t, path, reflect.ValueOf(r).Elem(), index)
		form := canonical(t, r)
		if other, same := seen[form]; same {
			t.Errorf("a change of %s gives the canonical form of %s", path, other)
		}
		seen[form] = path
		if name := path[strings.LastIndex(path, ".")+1:]; !strings.Contains(form, `"`+name+`":`) {
			t.Errorf("%s is not a member of the canonical form", path)
		}
	})
	if len(seen) < 25 {
		t.Errorf("only %d members were tried", len(seen))
	}
}

// visitMembers calls visit with each member that is no object or list of objects. An index of -1 means the first element.
func visitMembers(t *testing.T, typ reflect.Type, index []int, path string, visit func(string, []int)) {
	for i := range typ.NumField() {
		f := typ.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" {
			t.Fatalf("%s.%s has no name in JSON", typ, f.Name)
		}
		at, here := append(append([]int{}, index...), i), path+"."+name
		switch {
		case f.Type.Kind() == reflect.Struct:
			visitMembers(t, f.Type, at, here, visit)
		case f.Type.Kind() == reflect.Slice:
			visitMembers(t, f.Type.Elem(), append(at, -1), here, visit)
		default:
			visit(here, at)
		}
	}
}

func change(t *testing.T, path string, v reflect.Value, index []int) {
	for _, i := range index {
		if i < 0 {
			v = v.Index(0)
		} else {
			v = v.Field(i)
		}
	}
	if v.IsZero() {
		t.Fatalf("full() does not use %s", path)
	}
	switch member := v.Addr().Interface().(type) {
	case *string:
		*member += "x"
	case *Role:
		*member += "x"
	case **int64:
		n := **member + 1
		*member = &n
	case **Decimal:
		d := DecimalOf((*member).Value().Add(MustDecimal("0.000001").Value()))
		*member = &d
	case *map[string]string:
		*member = map[string]string{"k": "other"}
	default:
		t.Fatalf("no way to change %s of type %T: teach this test", path, member)
	}
}

func TestEqualRequestsHaveOneCanonicalForm(t *testing.T) {
	t.Parallel()
	const plain = `{"source":"c","order":"1","role":"final","currency":"EUR","issue_date":"2026-03-02",` +
		`"customer":{"name":"Zoë","country":"DE"},"lines":[{"sku":"P","quantity":"2","unit_price":"10","vat_rate":"19","vat_category":"S"}]}`
	want := canonical(t, mustDecode(t, plain))
	for name, edit := range map[string][]string{
		"decimals with zeros":    {`"quantity":"2"`, `"quantity":"2.00"`},
		"a decimal as a number":  {`"quantity":"2"`, `"quantity":2.0`},
		"a number with exponent": {`"unit_price":"10"`, `"unit_price":1e1`},
		"null is absent":         {`"role":"final"`, `"role":"final","note":null,"due_date":null,"corrects":null`},
		"empty is absent":        {`"role":"final"`, `"role":"final","note":"","metadata":{}`},
		"the default sequence":   {`"role":"final"`, `"role":"final","sequence":1`},
		"the default discount":   {`"quantity":"2"`, `"quantity":"2","discount":"0.00"`},
		"negative zero":          {`"quantity":"2"`, `"quantity":"2","discount":-0.0`},
		"another order":          {`{"source":"c","order":"1"`, `{"order":"1","source":"c"`},
		"white space":            {`,"role"`, "\r\n\t, \"role\""},
		"escapes":                {`Zoë`, `\u005ao\u00eb`},
		"decomposed letters":     {`Zoë`, `Zoe` + "\u0308"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			body := strings.Replace(plain, edit[0], edit[1], 1)
			if body == plain {
				t.Fatal("nothing was edited")
			}
			if got := canonical(t, mustDecode(t, body)); got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
		})
	}
}

func TestDifferentRequestsHaveDifferentCanonicalForms(t *testing.T) {
	t.Parallel()
	forms := map[string]string{}
	for _, body := range []string{
		`{"order":"9007199254741993"}`, `{"order":"9007199254741992"}`,
		`{"order":"00123"}`, `{"order":"123"}`, `{"order":"a-1"}`, `{"order":"A-1"}`, `{"order":"A-1 "}`,
		`{"lines":[{"quantity":9007199254740993}]}`, `{"lines":[{"quantity":9007199254740992}]}`,
		`{"lines":[{"quantity":"0.1"}]}`, `{"lines":[{"quantity":"0.10000000000000000001"}]}`,
		`{"lines":[{"vat_rate":"0"}]}`, `{"lines":[{}]}`, `{"lines":[{"vat_rate":""}]}`, `{}`,
		`{"lines":[{"sku":"a"},{"sku":"b"}]}`, `{"lines":[{"sku":"b"},{"sku":"a"}]}`,
		`{"metadata":{"a":"b"}}`, `{"metadata":{"b":"a"}}`, `{"metadata":{"a":""}}`,
	} {
		form := canonical(t, mustDecode(t, body))
		if other, same := forms[form]; same {
			t.Errorf("%s and %s have one form %s", body, other, form)
		}
		forms[form] = body
	}
}

// drawRequest draws any decoded request, valid or not.
func drawRequest(t *rapid.T) *InvoiceRequest {
	text := rapid.SampledFrom([]string{"", "a", "é", "e\u0301", "SO-1", "00123", "123", "<&>\u2028", "\U0001F600"})
	number := rapid.Custom(func(t *rapid.T) *Decimal {
		if rapid.Bool().Draw(t, "absent") {
			return nil
		}
		d := parse(rapid.StringMatching(`-?(0|[1-9][0-9]{0,18})(\.[0-9]{1,8})?|x?`).Draw(t, "number"), plainDecimal)
		return &d
	})
	line := rapid.Custom(func(t *rapid.T) Line {
		return Line{
			SKU: text.Draw(t, "sku"), Description: text.Draw(t, "description"), Quantity: number.Draw(t, "quantity"),
			UnitPrice: number.Draw(t, "unit_price"), Discount: number.Draw(t, "discount"), VATRate: number.Draw(t, "vat_rate"),
			VATCategory: text.Draw(t, "vat_category"), ExemptionReason: text.Draw(t, "exemption_reason"),
		}
	})
	return &InvoiceRequest{
		Source: text.Draw(t, "source"), Order: text.Draw(t, "order"), Role: Role(text.Draw(t, "role")),
		Sequence: rapid.Ptr(rapid.Int64Range(1, 9), true).Draw(t, "sequence"), Currency: text.Draw(t, "currency"),
		IssueDate: text.Draw(t, "issue_date"), Customer: Customer{Name: text.Draw(t, "name")},
		Lines: rapid.SliceOfN(line, 0, 3).Draw(t, "lines"), OrderTotal: number.Draw(t, "order_total"),
		Note: text.Draw(t, "note"), Metadata: rapid.MapOfN(rapid.SampledFrom([]string{"a", "b"}), text, 0, 2).Draw(t, "metadata"),
	}
}

// The canonical form is itself a body that means the same request, so it can be frozen, stored and sent.
func TestCanonicalFormIsABodyOfTheSameRequest(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		form := canonical(t, drawRequest(t))
		if again := canonical(t, mustDecode(t, form)); again != form {
			t.Fatalf("canonical of\n%s\nis\n%s", form, again)
		}
	})
}

// However a request is written, its form is the same: as plain JSON, and as the document that it becomes.
func TestCanonicalFormSurvivesTheWire(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r := drawRequest(t)
		body, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(canonical(t, r), canonical(t, mustDecode(t, string(body)))); diff != "" {
			t.Fatalf("%s\n%s", body, diff)
		}
	})
}

// Two requests that differ in one member at most have one form exactly if that member means the same in both.
func TestCanonicalFormsAreEqualOnlyForEqualRequests(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a, other := drawRequest(t), drawRequest(t)
		b := *a
		member := rapid.IntRange(0, reflect.TypeFor[InvoiceRequest]().NumField()-1).Draw(t, "member")
		reflect.ValueOf(&b).Elem().Field(member).Set(reflect.ValueOf(other).Elem().Field(member))
		if len(a.Lines) > 0 && len(other.Lines) > 0 && rapid.Bool().Draw(t, "in a line") {
			b.Lines = append([]Line{}, a.Lines...)
			member := rapid.IntRange(0, reflect.TypeFor[Line]().NumField()-1).Draw(t, "member of the line")
			reflect.ValueOf(&b.Lines[0]).Elem().Field(member).Set(reflect.ValueOf(other.Lines[0]).Field(member))
		}
		if (canonical(t, a) == canonical(t, &b)) != (meaning(a) == meaning(&b)) {
			t.Fatalf("%s\n%s", meaning(a), meaning(&b))
		}
	})
}

// meaning writes a request's members in another way than Canonical does.
func meaning(r *InvoiceRequest) string {
	number := func(d *Decimal) string {
		switch {
		case d == nil:
			return "absent"
		case !d.Valid():
			return fmt.Sprintf("bad %q", d)
		}
		return d.Value().Rat().String()
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%q %q %q %d %q %q %q %s %q", nfc(r.Source), nfc(r.Order), nfc(string(r.Role)), r.EffectiveSequence(),
		nfc(r.Currency), nfc(r.IssueDate), nfc(r.Customer.Name), number(r.OrderTotal), nfc(r.Note))
	for _, l := range r.Lines {
		discount := number(l.Discount)
		if discount == "0/1" {
			discount = "absent"
		}
		fmt.Fprintf(&b, " [%q %q %s %s %s %s %q %q]", nfc(l.SKU), nfc(l.Description), number(l.Quantity), number(l.UnitPrice),
			discount, number(l.VATRate), nfc(l.VATCategory), nfc(l.ExemptionReason))
	}
	for _, name := range []string{"a", "b"} {
		if value, ok := r.Metadata[name]; ok {
			fmt.Fprintf(&b, " %s=%q", name, nfc(value))
		}
	}
	return b.String()
}
