package outbound_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"invoicebridge/internal/outbound"
)

func TestRetryAfterInAllItsForms(t *testing.T) {
	t.Parallel()
	sent := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	in2Minutes := sent.Add(2 * time.Minute)
	for name, tc := range map[string]struct {
		values []string
		want   time.Duration
	}{
		"seconds":           {[]string{"120"}, 2 * time.Minute},
		"IMF-fixdate":       {[]string{in2Minutes.Format(http.TimeFormat)}, 2 * time.Minute},
		"RFC 850":           {[]string{in2Minutes.Format("Monday, 02-Jan-06 15:04:05 GMT")}, 2 * time.Minute},
		"asctime":           {[]string{in2Minutes.Format(time.ANSIC)}, 2 * time.Minute},
		"past":              {[]string{sent.Add(-time.Hour).Format(http.TimeFormat)}, outbound.MinRetryAfter},
		"zero":              {[]string{"0"}, outbound.MinRetryAfter},
		"negative":          {[]string{"-3"}, 0},
		"fraction":          {[]string{"1.5"}, 0},
		"with something on": {[]string{"120junk"}, 0},
		"huge":              {[]string{"99999999999999999999"}, outbound.MaxRetryAfter},
		"blanks around":     {[]string{" 120 "}, 2 * time.Minute},
		"the cap itself":    {[]string{"3600"}, outbound.MaxRetryAfter},
		"a date far away":   {[]string{sent.Add(100 * 365 * 24 * time.Hour).Format(http.TimeFormat)}, outbound.MaxRetryAfter},
		"64 bits of ns":     {[]string{"9223372036"}, outbound.MaxRetryAfter},
		"plus sign":         {[]string{"+3"}, 0},
		"hexadecimal":       {[]string{"0x10"}, 0},
		"a word":            {[]string{"soon"}, 0},
		"only a blank":      {[]string{" "}, 0},
		"empty":             {[]string{""}, 0},
		"twice":             {[]string{"120", "120"}, 0},
		"none":              {nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := http.Header{"Retry-After": tc.values, "Date": {sent.Format(http.TimeFormat)}}
			// The client's clock is off by three hours; the answer's own date is what counts.
			if got := outbound.RetryAfter(h, sent.Add(3*time.Hour)); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
			h.Del("Date")
			if got := outbound.RetryAfter(h, sent); got != tc.want {
				t.Errorf("without a date in the answer: got %v, want %v", got, tc.want)
			}
		})
	}
}

func TestABaseAddressThatWouldLoseOrShowSomethingIsRefused(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{
		"", "gateway.example", "ftp://gateway.example", "http://", "https://user:pa55word@gateway.example",
		"https://gateway.example/?a=pa55word", "https://gateway.example/#pa55word", "https://gateway.example:pa55word/",
	} {
		if _, err := outbound.ParseBase(raw); err == nil || strings.Contains(err.Error(), "pa55word") {
			t.Errorf("%q: got error %v, want one that does not repeat the address", raw, err)
		}
	}
}

func TestAddressKeepsEachElementInItsPlace(t *testing.T) {
	t.Parallel()
	base, err := outbound.ParseBase("https://gateway.example/api%2Fv1/")
	if err != nil {
		t.Fatal(err)
	}
	for element, want := range map[string]string{
		"e-1":   "https://gateway.example/api%2Fv1/entries/e-1?a=b+c",
		"a/b?c": "https://gateway.example/api%2Fv1/entries/a%2Fb%3Fc?a=b+c",
		"..":    "https://gateway.example/api%2Fv1/entries/%2E%2E?a=b+c",
	} {
		if got := outbound.Address(base, url.Values{"a": {"b c"}}, "entries", element); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
