package browsertest

import (
	"net/url"
	"strings"
	"testing"
)

func TestStrangerIsLedThroughTheLogInToWhereTheyWanted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, console := range []struct{ base, wanted string }{
		{w.erpURL, "/invoices?order=SO-1"}, {w.crmURL, "/operations?status=unknown"},
	} {
		b := w.tab(console.base, stranger)
		b.open(console.wanted)
		if want := "/login?next=" + url.QueryEscape(console.wanted); b.path() != want {
			t.Fatalf("a stranger is led to %s, want %s", b.path(), want)
		}
		b.fill("#login-name", operator)
		b.fill("#login-password", "wrong horse battery")
		if status := b.follow("#login button"); status != 401 {
			t.Errorf("a wrong password is answered %d", status)
		}
		b.wantText("main [role=alert]", "password")
		if got := b.value("#login-name"); got != operator {
			t.Errorf("the name has to be typed again: %q", got)
		}
		if got := b.value("#login-password"); got != "" {
			t.Errorf("the password stands in the page: %q", got)
		}
		b.fill("#login-password", password)
		if status := b.follow("#login button"); status != 200 || b.path() != console.wanted {
			t.Errorf("after the log-in: %d %s, want %s", status, b.path(), console.wanted)
		}
		b.wantText(".who", "Olga Operator", "operator", tenant)

		b.follow(".who button")
		if !strings.HasPrefix(b.path(), "/login") || b.count(".who button") != 0 {
			t.Errorf("after the log-out: %s", b.path())
		}
		b.open(console.wanted)
		if !strings.HasPrefix(b.path(), "/login?") {
			t.Errorf("the page is shown after the log-out: %s", b.path())
		}
	}
}

func TestLogInLeadsToNoOtherHost(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, next := range []string{"//evil.test", `/\evil.test`, "/%09/evil.test", "https:evil.test", "http://evil.test/", "javascript:alert(1)"} {
		b := w.tab(w.erpURL, stranger)
		b.open("/login?" + url.Values{"next": {next}}.Encode())
		b.fill("#login-name", viewer)
		b.fill("#login-password", password)
		b.follow("#login button")
		if got := eval[string](b, "location.origin"); got != w.erpURL {
			t.Errorf("%q leads to %s", next, got)
		}
		b.wantText(".who", "Vera Viewer")
	}
}
