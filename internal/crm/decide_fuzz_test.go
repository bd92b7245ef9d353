package crm_test

import (
	"net/http"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/go-json-experiment/json"

	"invoicebridge/internal/crm"
	"invoicebridge/internal/erpapi"
)

// Whatever an ERP answers to an attempt or a question: an operation succeeds only with an invoice of its own that the books can
// hold, it fails only if nothing of it may have arrived or the ERP itself says so, and what is kept of the answer is text.
func FuzzDecide(f *testing.F) {
	whole := `{"id":"018f0000-0000-7000-8000-000000000001","number":"INV-1","operation_key":"k-1","source":"crm-1","order":"SO-1001","role":"final","sequence":1}`
	for _, body := range []string{
		whole, strings.Replace(whole, "INV-1", `I\u0000`, 1), strings.Replace(whole, "INV-1", " ", 1), strings.Replace(whole, "k-1", "k-2", 1), strings.Replace(whole, "018f", "{018f", 1),
		strings.Replace(whole, "INV-1", strings.Repeat("9", 5000), 1), strings.Replace(whole, `"INV-1"`, "null", 1), `{"key":"k-1","status":"succeeded","invoice":{"id":"018f0000-0000-7000-8000-000000000001","number":"\u0000"}}`,
		`{"type":"/problems/already-invoiced","detail":"d","invoice":{"id":"018f0000-0000-7000-8000-000000000001","number":"\u0000"},"same_content":true}`,
		`{"type":"/problems/idempotency-key-reused","differences":["/a"]}`, `{"type":"x","detail":"hush-token","errors":[{"pointer":"/a","detail":"\u0000"}]}`, `<html>`, ``,
	} {
		for _, status := range []int{200, 201, 409, 422, 503} {
			f.Add(status, []byte(body), "text/html", true, true, false)
		}
	}
	f.Add(404, []byte("{}"), "", false, true, true)
	f.Add(0, []byte(nil), "", false, false, true)
	f.Fuzz(func(t *testing.T, status int, body []byte, contentType string, complete, began, mayHaveArrived bool) {
		x := erpapi.Exchange{SendingBegan: began, Status: status, Body: body, Complete: complete, Header: http.Header{"Content-Type": {contentType}}}
		var inv erpapi.Invoice
		var op erpapi.Operation
		if complete {
			if json.Unmarshal(body, &inv) == nil && (status == 200 || status == 201) {
				x.Invoice = &inv
			}
			if json.Unmarshal(body, &op) == nil && status == 200 {
				x.Operation = &op
			}
			if status >= 400 {
				x.Problem = erpapi.FromDocument(body)
			}
		}
		asked := askedBase()
		asked.MayHaveArrived = mayHaveArrived
		d := crm.Decide(asked, &x)
		checkIssued(t, body, d)
		if d.Status == crm.StatusFailed && (mayHaveArrived && x.Problem == nil || !began || status >= 500 || status == 0) {
			t.Fatalf("%d %q (an earlier attempt: %v) fails the operation: %+v", status, body, mayHaveArrived, d)
		}
		if d.Status == crm.StatusPending && mayHaveArrived {
			t.Fatalf("%d %q forgets an earlier attempt: %+v", status, body, d)
		}
		if d.Status == crm.StatusSucceeded && status < 400 && (inv.OperationKey != asked.Key || inv.Order != asked.Order || inv.Source != asked.Source || inv.Role != asked.Role || inv.Sequence != asked.Sequence) {
			t.Fatalf("%q is taken for the invoice of %+v", body, asked)
		}
		if settled, ok := crm.DecideSettled(asked, &x); ok {
			checkIssued(t, body, settled)
			if settled.Status != crm.StatusSucceeded || op.Key != asked.Key {
				t.Fatalf("%q settles %+v as %+v", body, asked, settled)
			}
		}
	})
}

func checkIssued(t *testing.T, body []byte, d crm.Decision) {
	t.Helper()
	if (d.Status == crm.StatusSucceeded) != (d.Invoice != nil) || d.Outcome == "" || d.Step == "" {
		t.Fatalf("%q is decided as %+v", body, d)
	}
	if n := d.Invoice; n != nil && (strings.TrimSpace(n.Number) == "" || !utf8.ValidString(n.Number) || strings.ContainsRune(n.Number, 0) || len(n.Number) > 255) {
		t.Fatalf("%q succeeds with the number %q", body, n.Number)
	}
	for _, token := range []string{"", "hush-token"} {
		if text := crm.Keepable(d.Detail, token); !utf8.ValidString(text) || strings.ContainsRune(text, 0) || len(text) > 1100 || token != "" && strings.Contains(text, token) {
			t.Fatalf("%q is kept as %q", body, text)
		}
	}
}
