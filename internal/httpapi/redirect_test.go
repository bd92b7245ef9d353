package httpapi

import (
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
)

// outside lead to another host in some browser, or are no path at all (case O4).
var outside = []string{
	"", "//evil.test", "///evil.test", "////evil.test", `/\evil.test`, `\/evil.test`, `\\evil.test`, "/%09/evil.test", "/\t/evil.test", "\t//evil.test",
	"/\n/evil.test", "/%0a/evil.test", "/%0d%0a/evil.test", "https:evil.test", "https://evil.test", "https:/evil.test", "http:///evil.test",
	"javascript:alert(1)", "data:text/html,x", "evil.test", "evil.test/a", "?x=1", "#x", " /invoices", "/%2fevil.test", "/%5cevil.test", "/%2F%2Fevil.test",
	"/invoices//evil.test/..", "/invoices#//evil.test", "/%zz", "/a\x00b", "/a%00b", "/a\\b", "/..//evil.test", "/.//evil.test",
}

func TestOnlyLocalPathsAreFollowed(t *testing.T) {
	t.Parallel()
	for _, target := range outside {
		if got := localPath(target); got != startPage {
			t.Errorf("%q is followed to %q", target, got)
		}
	}
	for _, target := range []string{
		"/", "/invoices", "/invoices?number=A-1&from=2026-01-01", "/admin?x=//evil.test", "/admin?x=https://evil.test/", "/operations/a%20b",
		"/operations/01JX", "/orders/crm-1/SO%E2%82%AC1", "/a:b@c",
	} {
		if got := localPath(target); got != target {
			t.Errorf("%q is followed to %q", target, got)
		}
	}
}

func TestLogInLeadsBackToThePageOrToTheOneAFormStoodOn(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ method, target, referer, want string }{
		{"GET", "/invoices?x=1", "", "/invoices?x=1"}, {"HEAD", "/invoices", "", "/invoices"}, {"GET", "//evil.test", "", "/"},
		{"POST", "/invoices/1/replay", "http://example.com/invoices/1?y=2", "/invoices/1?y=2"}, {"POST", "/x", "", "/"},
		{"POST", "/x", "http://evil.test/invoices/1", "/"}, {"POST", "/x", "http://example.com//evil.test", "/"},
	} {
		r := httptest.NewRequest(c.method, "http://example.com/", nil)
		r.URL.Path, r.URL.RawQuery = splitTarget(c.target)
		if c.referer != "" {
			r.Header.Set("Referer", c.referer)
		}
		if got := backTo(r); got != c.want {
			t.Errorf("%s %s from %q leads back to %q, want %q", c.method, c.target, c.referer, got, c.want)
		}
	}
}

func splitTarget(target string) (path, query string) {
	for i, r := range target {
		if r == '?' {
			return target[:i], target[i+1:]
		}
	}
	return target, ""
}

func TestOnlyATrustedProxyIsBelievedWhereARequestComesFrom(t *testing.T) {
	t.Parallel()
	_, ours, _ := net.ParseCIDR("10.0.0.0/8")
	for name, c := range map[string]struct {
		trusted         []*net.IPNet
		from, forwarded string
		want            string
	}{
		"no proxy":                          {nil, "192.0.2.1:1", "", "192.0.2.1"},
		"no proxy, header made up":          {nil, "127.0.0.1:1", "203.0.113.9", "127.0.0.1"},
		"a proxy":                           {[]*net.IPNet{ours}, "10.1.1.1:1", "203.0.113.9", "203.0.113.9"},
		"a proxy, with a made-up element":   {[]*net.IPNet{ours}, "10.1.1.1:1", "198.51.100.1, 203.0.113.9", "203.0.113.9"},
		"two proxies":                       {[]*net.IPNet{ours}, "10.1.1.1:1", "203.0.113.9, 10.2.2.2", "203.0.113.9"},
		"another's proxy":                   {[]*net.IPNet{ours}, "192.0.2.1:1", "203.0.113.9", "192.0.2.1"},
		"loopback is not trusted by itself": {[]*net.IPNet{ours}, "127.0.0.1:1", "203.0.113.9", "127.0.0.1"},
	} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.RemoteAddr = c.from
		if c.forwarded != "" {
			r.Header.Set("X-Forwarded-For", c.forwarded)
		}
		if got := callersAddress(c.trusted)(r); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}
