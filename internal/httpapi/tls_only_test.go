package httpapi_test

import (
	"testing"

	"invoicebridge/internal/httpapi"
)

func TestBrowsersThatComeByTLSAreToldToStayWithIt(t *testing.T) {
	for name, c := range map[string]struct {
		secure bool
		header string
	}{"by TLS": {true, "max-age=31536000"}, "in the clear": {false, ""}} {
		t.Run(name, func(t *testing.T) {
			onBothSites(t, func(d *httpapi.Deps) { d.Secure = c.secure }, func(s site) {
				for _, path := range []string{"/", "/login", "/v1/operations", "/queue/", "/nowhere", "/readyz"} { // pages, a 401, a redirect, a 404
					if got := s.browser().get(path).header.Get("Strict-Transport-Security"); got != c.header {
						s.t.Errorf("%s: the header is %q, want %q", path, got, c.header)
					}
				}
			})
		})
	}
}
