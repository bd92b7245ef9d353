package invoice

import (
	"bytes"
	"flag"
	"os"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"invoicebridge/internal/erpapi"
)

var update = flag.Bool("update", false, "write the golden files anew")

func identificationForTest() identification {
	return identification{
		id:     uuid.MustParse("0198c0de-0000-7000-8000-000000000001"),
		number: "INV-2026-000001", key: "K1", createdAt: time.Date(2026, 3, 2, 9, 0, 0, 123456000, time.UTC),
	}
}

const rich = `{"source":"shopify-eu","order":"SO-1","role":"partial","sequence":2,"currency":"EUR","issue_date":"2026-03-02",
"due_date":"2026-04-01","customer":{"name":"Müller & Söhne <GmbH>","country":"DE","vat_id":"DE123456789",
"email":"a@example.test","address":"Street 1\nTown"},"lines":[
{"sku":"P-1","description":"Screws","quantity":"2.00","unit_price":10,"discount":"1.50","vat_rate":"19","vat_category":"S"},
{"sku":"P-2","quantity":1,"unit_price":"20.10","vat_rate":19.00,"vat_category":"S"},
{"sku":"P-3","quantity":"0.5","unit_price":"3","vat_rate":"0","vat_category":"AE"},
{"sku":"P-4","quantity":1e1,"unit_price":"0.051426","vat_rate":"0","vat_category":"E","exemption_reason":"Insurance"},
{"sku":"P-5","quantity":"1","unit_price":"-0.01","vat_rate":"0","vat_category":"E","exemption_reason":"Medical"}],
"order_total":"100","expected_gross":"47.93","note":"n","metadata":{"b":"2","a":"1"}}`

func TestDocumentIsWhatWasAgreed(t *testing.T) {
	t.Parallel()
	document, err := mustDraft(t, decode(t, rich)).document(identificationForTest())
	if err != nil {
		t.Fatal(err)
	}
	got := jsontext.Value(document)
	if err := got.Indent(); err != nil {
		t.Fatal(err)
	}
	const golden = "testdata/invoice.golden.json"
	if *update {
		if err := os.WriteFile(golden, append(got, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)+"\n"); diff != "" {
		t.Error(diff)
	}
}

// Conflicts are explained, and replays answered after the reservation is gone, from the document alone. And no request
// makes validation or money panic.
func FuzzDocumentHoldsTheRequest(f *testing.F) {
	for _, seed := range []string{
		base, rich, `{}`, `{"lines":[{}]}`,
		`{"source":"c","order":"1","role":"credit_note","corrects":"INV-1","currency":"JPY","issue_date":"2026-03-02",
		"customer":{"name":"n","country":"JP"},"lines":[{"description":"d","quantity":1,"unit_price":1,"vat_category":"O"}]}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		r, err := erpapi.DecodeInvoiceRequest(body)
		if err != nil {
			return
		}
		d, p := validate(r)
		if p != nil {
			if len(p.Errors) == 0 {
				t.Fatalf("refused without a reason: %s", body)
			}
			return
		}
		document, err := d.document(identificationForTest())
		if err != nil {
			t.Fatal(err)
		}
		inv, err := readDocument(document)
		if err != nil {
			t.Fatal(err)
		}
		want, err := r.Canonical()
		if err != nil {
			t.Fatal(err)
		}
		got, err := inv.Request().Canonical()
		if err != nil || !bytes.Equal(got, want) {
			t.Fatalf("%v\n%s\n%s", err, want, got)
		}
	})
}

func TestMissingReasonsAreTheTextsOfTheNorm(t *testing.T) {
	t.Parallel()
	for category, want := range map[string]string{
		"AE": "Reverse charge", "K": "Intra-community supply", "G": "Export outside the EU", "O": "Not subject to VAT", "Z": "",
	} {
		r := request(t, `"19"`, `"0"`, `"S"`, `"`+category+`"`)
		if category == "O" {
			r.Customer.VATID = ""
		}
		d := mustDraft(t, r)
		group := d.breakdown(&d.groups[0])
		if group.ExemptionReason != want || (group.Rate == nil) != (category == "O") {
			t.Errorf("%s: %+v", category, group)
		}
	}
}
