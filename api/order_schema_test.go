package api_test

import (
	"bytes"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/bojanz/currency"
	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"
	"github.com/pb33f/jsonschema/v6"

	"invoicebridge/examples"
	"invoicebridge/internal/crm"
	"invoicebridge/internal/erpapi"
	"invoicebridge/internal/orderfile"
)

const orderSchemaFile = "order.schema.json"

func orderSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	s, err := c.Compile(orderSchemaFile)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func violation(t *testing.T, s *jsonschema.Schema, text string) error {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return s.Validate(v)
}

// schemaText is what of the schema the test reads by itself.
type schemaText struct {
	Ref        string                `json:"$ref"`
	Properties map[string]schemaText `json:"properties"`
	Defs       map[string]schemaText `json:"$defs"`
	Items      *schemaText           `json:"items"`
	Required   []string              `json:"required"`
	Examples   []any                 `json:"examples"`
	Enum       []string              `json:"enum"`
}

func schemaOf(t *testing.T) schemaText {
	t.Helper()
	b, err := os.ReadFile(orderSchemaFile)
	if err != nil {
		t.Fatal(err)
	}
	var s schemaText
	if err := json.Unmarshal(b, &s); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestTheOrderSchemaHasJustTheMembersOfTheOrder(t *testing.T) {
	t.Parallel()
	s := schemaOf(t)
	for name, c := range map[string]struct {
		schema schemaText
		form   reflect.Type
	}{
		"order": {s, reflect.TypeFor[crm.Order]()}, "invoice": {s.Defs["invoice"], reflect.TypeFor[crm.OrderInvoice]()},
		"customer": {s.Defs["customer"], reflect.TypeFor[erpapi.Customer]()}, "line": {s.Defs["line"], reflect.TypeFor[erpapi.Line]()},
	} {
		var members []string
		for i := range c.form.NumField() {
			member, _, _ := strings.Cut(c.form.Field(i).Tag.Get("json"), ",")
			members = append(members, member)
		}
		slices.Sort(members)
		if diff := cmp.Diff(members, slices.Sorted(maps.Keys(c.schema.Properties))); diff != "" {
			t.Errorf("%s (-Go +schema):\n%s", name, diff)
		}
	}
}

func TestExampleOrdersFollowTheSchema(t *testing.T) {
	t.Parallel()
	s := orderSchema(t)
	files, err := examples.Files()
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for _, file := range files {
		f, err := orderfile.Read(bytes.NewReader(file.Data), file.Options)
		if err != nil {
			t.Fatal(err)
		}
		for i := range f.Entries {
			b, err := json.Marshal(&f.Entries[i].Order)
			if err != nil {
				t.Fatal(err)
			}
			if err := violation(t, s, string(b)); err != nil {
				t.Errorf("%s, order %s: %v", file.Name, f.Entries[i].Order.Order, err)
			}
			checked++
		}
	}
	if checked < 400 {
		t.Errorf("only %d orders were checked", checked)
	}
}

func TestTheSchemasOwnExamplesAreOrders(t *testing.T) {
	t.Parallel()
	s, own := orderSchema(t), schemaOf(t).Examples
	if len(own) < 3 {
		t.Fatalf("%d examples", len(own))
	}
	for _, example := range own {
		b, err := json.Marshal(example)
		if err != nil {
			t.Fatal(err)
		}
		if err := violation(t, s, string(b)); err != nil {
			t.Errorf("%s: %v", b, err)
		}
		var o crm.Order
		if err := erpapi.DecodeStrict(b, &o); err != nil {
			t.Errorf("%s: %v", b, err)
		}
		if faults := crm.Check(o); len(faults) > 0 {
			t.Errorf("%s: %v", b, faults)
		}
	}
}

// One more in the library, or one less, is to be told to those who read the schema.
func TestTheSchemasCurrenciesAreThoseOfTheProgram(t *testing.T) {
	t.Parallel()
	want := slices.Sorted(slices.Values(currency.GetCurrencyCodes()))
	if diff := cmp.Diff(want, schemaOf(t).Defs["currency"].Enum); diff != "" {
		t.Errorf("currencies (-program +schema):\n%s", diff)
	}
}

func TestACancelledOrderMayHaveAnyCurrency(t *testing.T) {
	t.Parallel()
	const text = `{"source":"s","order":"A-1","status":"cancelled","currency":"euros"}`
	if err := violation(t, orderSchema(t), text); err != nil {
		t.Error(err)
	}
	var o crm.Order
	if err := erpapi.DecodeStrict([]byte(text), &o); err != nil || len(crm.Check(o)) != 0 {
		t.Errorf("%v, %v", err, crm.Check(o))
	}
}

// What the CRM side refuses, the schema refuses, too.
func TestTheSchemaAndTheProgramRefuseTheSame(t *testing.T) {
	t.Parallel()
	const line = `{"sku":"P-1","quantity":"1","unit_price":"1.00","vat_rate":"19","vat_category":"S"}`
	const good = `{"source":"s","order":"A-1","currency":"EUR","issue_date":"2026-03-02","customer":{"name":"T","country":"DE"},"lines":[` + line + `]}`
	s := orderSchema(t)
	if err := violation(t, s, good); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string][2]string{
		"no source":                  {`"source":"s",`, ``},
		"empty order":                {`"A-1"`, `""`},
		"order as a number":          {`"A-1"`, `17`},
		"unknown member":             {`"source":"s"`, `"source":"s","Source":"s"`},
		"no currency":                {`"currency":"EUR",`, ``},
		"currency that is none":      {`"EUR"`, `"euros"`},
		"currency in small letters":  {`"EUR"`, `"eur"`},
		"currency of nobody":         {`"EUR"`, `"XYZ"`},
		"currency for tests":         {`"EUR"`, `"XXX"`},
		"no issue date":              {`"issue_date":"2026-03-02",`, ``},
		"day that does not exist":    {`2026-03-02`, `2026-02-30`},
		"no customer name":           {`"name":"T",`, ``},
		"no lines":                   {`[` + line + `]`, `[]`},
		"no quantity":                {`"quantity":"1",`, ``},
		"quantity with exponent":     {`"quantity":"1"`, `"quantity":"1e2"`},
		"price with thousands":       {`"1.00"`, `"1,000.00"`},
		"no category":                {`,"vat_category":"S"`, ``},
		"unknown role":               {`"source":"s"`, `"source":"s","role":"finale"`},
		"credit note of nothing":     {`"source":"s"`, `"source":"s","role":"credit_note"`},
		"version 0":                  {`"source":"s"`, `"source":"s","version":0`},
		"sequence 0":                 {`"source":"s"`, `"source":"s","role":"partial","sequence":0`},
		"unknown status":             {`"source":"s"`, `"source":"s","status":"lost"`},
		"lines and invoices":         {`"source":"s"`, `"source":"s","invoices":[{"lines":[` + line + `]}]`},
		"empty invoices":             {`"lines":[` + line + `]`, `"invoices":[]`},
		"sequence beside invoices":   {`"lines":[` + line + `]`, `"sequence":1,"invoices":[{"lines":[` + line + `]}]`},
		"expectation beside several": {`"lines":[` + line + `]`, `"expected_gross":"1","invoices":[{"lines":[` + line + `]}]`},
		"metadata that is no text":   {`"source":"s"`, `"source":"s","metadata":{"k":1}`},
	} {
		text := strings.Replace(good, change[0], change[1], 1)
		if text == good {
			t.Errorf("%s: nothing was changed", name)
		}
		if violation(t, s, text) == nil {
			t.Errorf("%s: the schema takes %s", name, text)
		}
		var o crm.Order
		if erpapi.DecodeStrict([]byte(text), &o) == nil && len(crm.Check(o)) == 0 {
			t.Errorf("%s: the program takes %s", name, text)
		}
	}
}
