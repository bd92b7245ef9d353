package httpapi

import (
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/labstack/echo/v4"

	"invoicebridge/internal/auth/oidclogin"
	"invoicebridge/web"
)

// A cookie that anybody wrote: the flow of a log-in and the message of a redirect are taken in the one text that was given out, or
// not at all. Where the flow leads is on this service, and what is told is short, and text.
func FuzzCookies(f *testing.F) {
	f.Add("state", "nonce", "verifier", "/orders/a/b?x=1", formatFlow(oidclogin.Flow{State: "s", Nonce: "n", Verifier: "v"}, "/operations"))
	f.Add("a.b", "", "\x00", "//evil.test", "s.n.v.L2V2aWw.x")
	for _, value := range []string{"", "...", "....", "s.n.v.", "s.n.v.L2E=", "s.n.v.L2F", "s.n.v.L2\nE", "ZG9uZQ", "ZG9uZR", "ZG9u\rZQ", "/w", "AA", "ZG9uZQ==", "ZG9uZQ.", ".n.v.L2E"} {
		f.Add("s", "n", "v", "/", value)
	}
	f.Fuzz(func(t *testing.T, state, nonce, verifier, next, value string) {
		// What was given out comes back.
		for _, part := range []*string{&state, &nonce, &verifier} {
			*part = base64.RawURLEncoding.EncodeToString([]byte(*part)) // they are letters and digits
		}
		begun := oidclogin.Flow{State: state, Nonce: nonce, Verifier: verifier}
		if flow, led := parseFlow(formatFlow(begun, localPath(next))); state != "" && nonce != "" && verifier != "" {
			if flow != begun || len(next) <= maxOIDCNext && len(localPath(next)) <= maxOIDCNext && led != localPath(next) || led != localPath(led) {
				t.Fatalf("%+v to %q came back as %+v to %q", begun, next, flow, led)
			}
		}
		// What somebody wrote.
		flow, led := parseFlow(value)
		if led != localPath(led) {
			t.Fatalf("%q leads to %q", value, led)
		}
		if flow != (oidclogin.Flow{}) {
			path, err := base64.RawURLEncoding.Strict().DecodeString(value[strings.LastIndexByte(value, '.')+1:])
			if err != nil || formatFlow(flow, string(path)) != value && len(path) <= maxOIDCNext {
				t.Fatalf("%q is taken for the flow %+v to %q, which is written %q", value, flow, path, formatFlow(flow, string(path)))
			}
		} else if led != startPage {
			t.Fatalf("%q is no flow, and leads to %q", value, led)
		}
		told, value := flashOf(value)
		if told == nil {
			return
		}
		if told.Kind != web.FlashDone || told.Text == "" || len(told.Text) > maxFlash || !utf8.ValidString(told.Text) {
			t.Fatalf("%q tells %+v", value, told)
		}
		if own := base64.RawURLEncoding.EncodeToString([]byte(told.Text)); own != value {
			t.Fatalf("%q and %q both tell %q", value, own, told.Text)
		}
	})
}

// flashOf is what a page tells with that value of the cookie, and the value as net/http reads it, without blanks and quotes.
func flashOf(value string) (told *web.Flash, read string) {
	s := &server{look: look{short: "erp"}}
	r := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
	r.Header["Cookie"] = []string{s.cookieName("flash") + "=" + value}
	c := echo.New().NewContext(r, httptest.NewRecorder())
	return s.flash(c), s.cookieValue(c, s.cookieName("flash"))
}
