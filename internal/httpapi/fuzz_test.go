package httpapi

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/labstack/echo/v4"

	"invoicebridge/internal/crm"
	"invoicebridge/internal/erpapi"
	"invoicebridge/internal/problem"
)

// Wherever log-in leads to is on this service for a browser, too: what it makes of the target is worked out here by its own rules
// (WHATWG URL Standard, 4.4: control characters at the ends and all tabs and line ends go, a backslash is a slash).
func FuzzLocalPath(f *testing.F) {
	for _, seed := range outside {
		f.Add(seed)
	}
	for _, seed := range []string{"/", "/invoices?number=A-1", "/orders/crm-1/SO%E2%82%AC1", "/a?x=//evil.test", "/%2e%2e//evil.test", "/a;b", "/?\t/evil.test"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, target string) {
		got := localPath(target)
		if !strings.HasPrefix(got, "/") {
			t.Fatalf("%q leads to %q", target, got)
		}
		browser := strings.Trim(got, "\x00\x01\x02\x03\x04\x05\x06\x07\x08\t\n\v\f\r\x0e\x0f \x1b\x1f")
		browser = strings.NewReplacer("\t", "", "\n", "", "\r", "", `\`, "/").Replace(browser)
		if strings.HasPrefix(browser, "//") {
			t.Fatalf("%q leads to %q, in a browser to %q", target, got, browser)
		}
		base := &url.URL{Scheme: "https", Host: "erp.example", Path: "/login"}
		led, err := base.Parse(got)
		if err != nil || led.Host != base.Host || led.Scheme != base.Scheme || led.User != nil {
			t.Fatalf("%q leads to %q: %v, %v", target, got, led, err)
		}
		if again := localPath(got); again != got {
			t.Fatalf("%q leads to %q, which leads to %q", target, got, again)
		}
	})
}

// Whatever stands in a body of orders, each order of an array is read or refused with a reason, none is lost and none
// changes its place; and what is read is an order that can be written and read again.
func FuzzOrders(f *testing.F) {
	for _, seed := range []string{
		`[]`, `[{}]`, `[{"source":"s","order":"1"},null,1,{"order":2},{"order":"1","order":"2"}]`, `[[{}]]`, `[{"invoices":[{"role":"final","lines":[{"quantity":1e1}]}]}]`, `[{"version":1e3}]`, `[{}`, `[{}]x`,
		`[{"status":"cancelled","message_id":"\ud83d\ude00"}]`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		items, err := splitOrders(body)
		if err != nil {
			if problem.As(err) == nil {
				t.Fatalf("%q: %v", body, err)
			}
			return
		}
		batch := decodeOrders(items)
		if len(batch.orders)+len(batch.refused) != len(items) || (batch.malformed() == nil) != (len(batch.refused) == 0) {
			t.Fatalf("%q: %d orders, %d read, %d refused", body, len(items), len(batch.orders), len(batch.refused))
		}
		submissions := make([]crm.Submission, len(batch.orders))
		for i, o := range batch.orders {
			submissions[i] = crm.Submission{Source: o.Source, Order: o.Order, Outcome: crm.OutcomeCreated}
			text, err := erpapi.CanonicalJSON(&o)
			if err != nil {
				t.Fatalf("%q: %v", body, err)
			}
			var again crm.Order
			if err := erpapi.DecodeStrict(text, &again); err != nil {
				t.Fatalf("%s can't be read again: %v", text, err)
			}
		}
		for i, s := range batch.merge(submissions) {
			_, refused := batch.refused[i]
			if refused != (s.Outcome == crm.OutcomeRefused) || refused && len(s.Errors) == 0 {
				t.Fatalf("%q: order %d is told as %+v", body, i, s)
			}
		}
	})
}

// Headers and query of a call: whatever they hold, they are read or refused as a problem.
func FuzzHeaders(f *testing.F) {
	f.Add("Bearer ibt_x_y", "application/json; charset=utf-8", "gzip", "limit=1&cursor=%zz", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
	f.Add("basic eDp5", "application/json", "br", "source=a&source=b", "")
	f.Add("bearer  x ", "text/json", "gzip, gzip", "order=%00", "\x00")
	f.Fuzz(func(t *testing.T, authorization, contentType, encoding, rawQuery, id string) {
		if token, err := bearerToken([]string{authorization}); err == nil && strings.HasPrefix(token, " ") {
			t.Fatalf("%q gives %q", authorization, token)
		} else if err != nil && problem.As(err) == nil {
			t.Fatal(err)
		}
		r := httptest.NewRequest(http.MethodPost, "/v1/orders", strings.NewReader("{}"))
		r.URL.RawQuery = rawQuery
		r.Header = http.Header{"Content-Type": {contentType}, "Content-Encoding": {encoding}, "X-Request-Id": {id}}
		c := echo.New().NewContext(r, httptest.NewRecorder())
		if _, err := query(c, "limit", "cursor", "source"); err != nil && problem.As(err) == nil {
			t.Fatalf("%q: %v", rawQuery, err)
		}
		if _, err := readJSONBody(c, 16); err != nil && problem.As(err) == nil {
			t.Fatalf("%q, %q: %v", contentType, encoding, err)
		}
	})
}
