package erpapi

import (
	"bytes"
	"encoding/hex"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/shopspring/decimal"

	"invoicebridge/internal/outbound"
	"invoicebridge/internal/problem"
)

var requestSeeds = []string{
	`{}`, `null`, ``, ` {`, `{"order":"1"}x`, "\xef\xbb\xbf{}", `{"role":"final","role":"final"}`, `{"Role":"final"}`, `{"s\u212au":1}`,
	`{"order":9007199254741993}`, `{"order":"\u0000"}`, `{"order":"\ud800"}`, `{"note":"e\u0301"}`, `{"sequence":1e0}`, `{"sequence":9223372036854775808}`,
	`{"lines":[{"quantity":1e2,"unit_price":"10.00","discount":"0.0","vat_rate":null}],"metadata":{"b":"","a":"e\u0301","á":""}}`,
	`{"order_total":-0.00,"expected_gross":"-0.00"}`, `{"lines":[{"quantity":"1e5"},{}],"customer":null}`, `{"metadata":{"á":"1","a\u0301":"2"}}`,
}

// What a request says is in its canonical form and nowhere else: the form is itself a request, of the same form and so of the
// same fingerprint, however often it goes round; and white space changes nothing.
func FuzzDecodeInvoiceRequest(f *testing.F) {
	for _, seed := range requestSeeds {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		r, err := DecodeInvoiceRequest(body)
		if err != nil {
			if p := problem.As(err); p == nil || p.Type != problem.MalformedRequest || p.Detail == "" {
				t.Fatalf("%q: %v", body, err)
			}
			return
		}
		form := canonical(t, r)
		again := mustDecode(t, form)
		if second := canonical(t, again); second != form {
			t.Fatalf("%q\nhas the form %s\nwhich has the form %s", body, form, second)
		}
		indented := jsontext.Value(bytes.Clone(body))
		if indented.Indent(jsontext.WithIndent("\t")) == nil && canonical(t, mustDecode(t, string(indented))) != form {
			t.Fatalf("%q means something else with other white space", body)
		}
	})
}

// A decimal is a decimal or is not, and is never another number than its text says.
func FuzzDecimal(f *testing.F) {
	for _, seed := range []string{
		"0", "-0.00", "20.10", "0.1e1", "1e99", "1E-99", "1e100", "00", "+1", ".5", "5.", " 1", "1 ", "1_0", "0x1", "NaN", "-", "１", "9007199254741993", "1,5",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		bare, err := ParseDecimal(text)
		if err == nil {
			checkDecimal(t, text, bare)
			if strings.ContainsAny(text, "eE+ ") {
				t.Fatalf("%q is taken as a plain decimal", text)
			}
		} else if bare.Valid() {
			t.Fatalf("%q is refused and valid", text)
		}
		// As a JSON number, where it is one.
		if v := jsontext.Value(text); !v.IsValid() || v.Kind() != '0' {
			return
		}
		r, err := DecodeInvoiceRequest([]byte(`{"order_total":` + text + `}`))
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		if r.OrderTotal.Valid() {
			checkDecimal(t, strings.TrimSpace(text), *r.OrderTotal)
		}
	})
}

func checkDecimal(t *testing.T, text string, d Decimal) {
	t.Helper()
	want, err := decimal.NewFromString(text)
	if err != nil || !d.Value().Equal(want) {
		t.Fatalf("%q is read as %s, is %s (%v)", text, d.Value(), want, err)
	}
	for _, told := range []string{d.String(), d.Canonical()} {
		again, err := ParseDecimal(told)
		if err != nil || !again.Value().Equal(want) || again.Canonical() != d.Canonical() || len(told) > 300 {
			t.Fatalf("%q is told as %q: %v", text, told, err)
		}
	}
	if d.Value().IsZero() && strings.HasPrefix(d.String(), "-") {
		t.Fatalf("%q is told as %q", text, d)
	}
}

// FuzzAnswer: whatever an ERP answers, nothing is read into it that is not complete and of the form; and a problem that is
// told again is the same.
func FuzzAnswer(f *testing.F) {
	for _, seed := range []string{
		``, `{`, `null`, `[]`, `<html>`, `{"id":"1","number":"INV-1"}`, `{"key":"K1","status":"succeeded","invoice":{"id":"1","number":"2"}}`, `{"items":[],"next_cursor":null}`,
		`{"items":[null,{},{"id":1}],"next_cursor":"x"}`, `{"items":[{"net":],"next_cursor":"x"}`, `{"items":[],"next_cursor":"x"}],"next_cursor":`,
		`{"type":"/problems/already-invoiced","detail":"d","invoice":{"id":"1","number":"2"},"same_content":true}`, `{"type":"about:blank"}`,
		`{"type":"x/","errors":[{"pointer":"/a"}],"differences":["/b"]}`,
	} {
		f.Add(201, []byte(seed), "120", "Mon, 02 Mar 2026 09:00:00 GMT", true)
	}
	f.Add(503, []byte(`{"type":"/problems/shutting-down"}`), "Mon, 02-Mar-26 09:02:00 GMT", "Mon Mar  2 09:00:00 2026", false)
	f.Fuzz(func(t *testing.T, status int, body []byte, retryAfter, date string, complete bool) {
		h := http.Header{"Retry-After": {retryAfter}, "Date": {date}, "Content-Type": {"application/json"}}
		x := Exchange{
			SendingBegan: true, Status: status, Body: body, Header: h, Complete: complete,
			RetryAfter: outbound.RetryAfter(h, time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)),
		}
		for _, method := range []string{http.MethodPost, http.MethodGet} {
			y := x
			y.decode(method)
			read := y.Invoice != nil || y.Operation != nil || y.Problem != nil
			if read && (!complete || !jsontext.Value(body).IsValid()) {
				t.Fatalf("%q (complete: %v) was read", body, complete)
			}
			if (y.Invoice != nil || y.Operation != nil) && status != 200 && status != 201 || y.Problem != nil && status < 400 {
				t.Fatalf("%d %q was read", status, body)
			}
			if y.Problem != nil && y.Problem.Type == "" {
				t.Fatalf("%q is a problem without a type", body)
			}
		}
		if x.RetryAfter != 0 && (x.RetryAfter < RetryAfterFloor || x.RetryAfter > RetryAfterCap) {
			t.Fatalf("%q asks for a pause of %s", retryAfter, x.RetryAfter)
		}
		for _, single := range []bool{false, true} {
			var l InvoiceListing
			l.read(body, single)
			if !l.Read && (len(l.Items) > 0 || l.Next != "") {
				t.Fatalf("%q is not read and told", body)
			}
			for _, item := range l.Items {
				if (item.Invoice == nil) == (item.Err == nil) {
					t.Fatalf("%s: item %q: %v", hex.EncodeToString(body), item.Document, item.Err)
				}
			}
		}
	})
}
