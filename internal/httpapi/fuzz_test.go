package httpapi

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

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

// Headers, query and body of a call: whatever they hold, they are read whole, or refused with a status below 500. What is read is
// what was sent, packed or not, and never more than the limit.
func FuzzHeaders(f *testing.F) {
	f.Add("Bearer ibt_x_y", "application/json; charset=utf-8", "gzip", "limit=1&cursor=%zz", []byte("{}"), true)
	f.Add("basic eDp5", "application/json", "br", "source=a&source=b", []byte(`{"order":"1"}`), false)
	f.Add("bearer  x ", "text/json", "gzip, gzip", "order=%00", packed([]byte("{}")), false)
	f.Add("Bearer", "application/json", "X-GZIP ", "limit=", packed(bytes.Repeat([]byte(" "), 200)), false)
	f.Add("Bearer \tx", "application/json", "identity", "cursor=a;b", bytes.Repeat([]byte("x"), 65), true)
	f.Add("Bearer a b", "application/json", "gzip", "", packed([]byte("{}"))[:12], true)
	f.Fuzz(func(t *testing.T, authorization, contentType, encoding, rawQuery string, body []byte, chunked bool) {
		token, err := bearerToken([]string{authorization})
		if err != nil {
			refusedAsTheCallers(t, err)
		} else if again, err := bearerToken([]string{"Bearer " + token}); err != nil || again != token || strings.Trim(token, " ") != token {
			t.Fatalf("%q gives %q, which gives %q (%v)", authorization, token, again, err)
		}
		if _, err := bearerToken([]string{authorization, authorization}); err == nil {
			t.Fatalf("%q is taken twice", authorization)
		}
		asked := func(contentType, encoding string, body []byte) echo.Context {
			r := httptest.NewRequest(http.MethodPost, "/v1/orders", bytes.NewReader(body))
			r.URL.RawQuery = rawQuery
			r.Header = http.Header{"Content-Type": {contentType}, "Content-Encoding": {encoding}}
			if chunked {
				r.ContentLength = -1
			}
			return echo.New().NewContext(r, httptest.NewRecorder())
		}
		c := asked(contentType, encoding, body)
		known := []string{"limit", "cursor", "source"}
		values, err := query(c, known...)
		if err != nil {
			refusedAsTheCallers(t, err)
		}
		for name, given := range values {
			if !slices.Contains(known, name) || len(given) != 1 || strings.ContainsRune(given[0], 0) {
				t.Fatalf("%q gives %q", rawQuery, values)
			}
		}
		const limit = 64
		read, err := readJSONBody(c, limit)
		if err != nil {
			refusedAsTheCallers(t, err)
		} else if want, isPacked := unpackedByHand(encoding, body); len(read) > limit || !bytes.Equal(read, want) {
			t.Fatalf("%q (packed: %v) is read as %q", body, isPacked, read)
		}
		for encoding, sent := range map[string][]byte{"": body, "gzip": packed(body)} {
			read, err := readJSONBody(asked("application/json", encoding, sent), limit)
			switch fits := len(sent) <= limit && len(body) <= limit; {
			case fits && (err != nil || !bytes.Equal(read, body)):
				t.Fatalf("%q sent as %q is read as %q: %v", body, encoding, read, err)
			case !fits && !problem.Is(err, problem.ContentTooLarge):
				t.Fatalf("%d bytes, %d sent as %q: %v", len(body), len(sent), encoding, err)
			}
		}
	})
}

// packed is body in gzip.
func packed(body []byte) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write(body)
	_ = w.Close()
	return b.Bytes()
}

func unpackedByHand(encoding string, body []byte) (content []byte, isPacked bool) {
	if !strings.Contains(strings.ToLower(encoding), "gzip") {
		return body, false
	}
	r, err := gzip.NewReader(bytes.NewReader(body))
	if err != nil {
		return nil, true
	}
	content, _ = io.ReadAll(io.LimitReader(r, 1<<10))
	return content, true
}

// refusedAsTheCallers: an error that is told with a status from 400 to 499, in words that JSON can hold.
func refusedAsTheCallers(t *testing.T, err error) {
	t.Helper()
	p := problem.As(err)
	if p == nil {
		t.Fatalf("no problem: %v", err)
	}
	k, known := kindOf(p.Type)
	if !known || k.status < 400 || k.status > 499 {
		t.Fatalf("%s (%d): %v", p.Type, k.status, err)
	}
	for _, e := range append([]problem.FieldError{{Detail: p.Detail}}, p.Errors...) {
		if !utf8.ValidString(e.Pointer) || !utf8.ValidString(e.Detail) || e.Detail == "" {
			t.Fatalf("%s is told with %q", p.Type, e)
		}
	}
}
