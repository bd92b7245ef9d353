package crm

import (
	"bytes"
	"testing"

	"invoicebridge/internal/erpapi"
)

// Whatever order comes in, it is refused with a reason, or its requests are frozen in the one form that the ERP reads back to
// the same, and the order's own content brings the same requests again: that is what tells a copy from a change.
func FuzzIncoming(f *testing.F) {
	for _, seed := range []string{
		`{}`, `{"source":"s","order":"1","status":"cancelled"}`,
		`{"source":"crm-1","order":"SO-1","currency":"EUR","issue_date":"2026-03-02","customer":{"name":"n\u0301","country":"DE","vat_id":"DE1"},"lines":[{"sku":"P","quantity":"2","unit_price":"10.00","vat_rate":"19","vat_category":"S"}]}`,
		`{"source":"c","order":" 1\u00a0","currency":"EUR","customer":{"name":"n","country":"DE"},"invoices":[{"role":"advance","issue_date":"2026-03-02","lines":[{"sku":"P","quantity":1,"unit_price":1e1,"vat_rate":0,"vat_category":"Z"}]},{"role":"partial","sequence":2,"issue_date":"2026-03-02","lines":[{"sku":"P","quantity":"1","unit_price":"-0.0","vat_rate":"7","vat_category":"S"}]}],"metadata":{"k":"v"}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		var o Order
		if erpapi.DecodeStrict(body, &o) != nil {
			return
		}
		in := newIncoming(o)
		if len(in.errors) > 0 {
			for _, e := range in.errors {
				if e.Detail == "" {
					t.Fatalf("%q is refused without a reason", body)
				}
			}
			return
		}
		for _, w := range in.wants {
			r, err := erpapi.DecodeInvoiceRequest(w.request)
			if err != nil {
				t.Fatalf("%q is frozen as %s: %v", body, w.request, err)
			}
			again, err := r.Canonical()
			if err != nil || !bytes.Equal(again, w.request) {
				t.Fatalf("%q is frozen as %s, read back as %s (%v)", body, w.request, again, err)
			}
		}
		var content Order
		if err := erpapi.DecodeStrict(in.content, &content); err != nil {
			t.Fatalf("%q has the content %s: %v", body, in.content, err)
		}
		second := newIncoming(content)
		if len(second.errors) > 0 || second.contentHash != in.contentHash || len(second.wants) != len(in.wants) {
			t.Fatalf("%q has the content %s, that again %s (%v)", body, in.content, second.content, second.errors)
		}
	})
}
