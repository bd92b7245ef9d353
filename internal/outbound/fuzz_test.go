package outbound_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"invoicebridge/internal/outbound"
)

// Whatever a server writes there, a pause is none or within the bounds; a whole number of seconds is that number; and
// nothing that begins with a sign, or has anything but digits and is no date, counts.
func FuzzRetryAfter(f *testing.F) {
	for _, seed := range []string{
		"120", "0", "-3", "1.5", "120junk", "99999999999999999999", "", " 7 ", "\t7", "٣", "+5", "1e3",
		"Mon, 02 Mar 2026 09:02:00 GMT", "Monday, 02-Mar-26 09:02:00 GMT", "Mon Mar  2 09:02:00 2026", "Mon, 02 Mar 0000 09:02:00 GMT",
	} {
		f.Add(seed, "Mon, 02 Mar 2026 09:00:00 GMT", int64(1772442000))
	}
	f.Fuzz(func(t *testing.T, value, date string, now int64) {
		got := outbound.RetryAfter(http.Header{"Retry-After": {value}, "Date": {date}}, time.Unix(now, 0))
		if got != 0 && (got < outbound.MinRetryAfter || got > outbound.MaxRetryAfter) {
			t.Fatalf("%q gives %s", value, got)
		}
		text := strings.Trim(value, " \t")
		digits := text != "" && strings.Trim(text, "0123456789") == ""
		if _, err := http.ParseTime(text); !digits && err != nil && got != 0 {
			t.Fatalf("%q is neither seconds nor a date and gives %s", value, got)
		}
		if digits && got == 0 {
			t.Fatalf("%q is a number of seconds and gives no pause", value)
		}
		if again := outbound.RetryAfter(http.Header{"Retry-After": {value, value}}, time.Unix(now, 0)); again != 0 {
			t.Fatalf("%q given twice gives %s", value, again)
		}
	})
}

// An address that was taken is http or https, names a host, holds no password, and what is appended stays one path segment.
func FuzzAddress(f *testing.F) {
	for _, seed := range []string{"https://erp.example/api", "http://u:p@h", "//h", "http://h?x", "http://h#x", "http://[::1]:1/", "https:erp", "http://h/%2e%2e/"} {
		f.Add(seed, "K/1?#%")
	}
	f.Fuzz(func(t *testing.T, raw, segment string) {
		base, err := outbound.ParseBase(raw)
		if err != nil {
			if len(raw) > 12 && strings.Contains(err.Error(), raw) {
				t.Fatalf("the error repeats the address: %v", err)
			}
			return
		}
		if base.Scheme != "http" && base.Scheme != "https" || base.Host == "" || base.User != nil || base.RawQuery != "" || base.Fragment != "" {
			t.Fatalf("%q is taken as %+v", raw, base)
		}
		address := outbound.Address(base, nil, "v1", segment)
		request, err := http.NewRequest(http.MethodGet, address, nil)
		if err != nil {
			t.Fatalf("%q and %q give %q: %v", raw, segment, address, err)
		}
		if request.URL.Hostname() != base.Hostname() || request.URL.Port() != base.Port() || request.URL.RawQuery != "" || request.URL.Fragment != "" {
			t.Fatalf("%q and %q lead to %q", raw, segment, address)
		}
	})
}
