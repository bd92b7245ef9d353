package httpapi_test

import (
	"context"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/oauth2-proxy/mockoidc"

	"invoicebridge/internal/audit"
	"invoicebridge/internal/auth"
	"invoicebridge/internal/auth/oidclogin"
	"invoicebridge/internal/httpapi"
)

// provided is a service with an identity provider, and the accounts of site besides jo@acme.example, a viewer without a password.
type provided struct {
	site
	provider *mockoidc.MockOIDC
}

const jo = "jo@acme.example"

func onBothWithOIDC(t *testing.T, test func(p provided)) {
	t.Helper()
	var providers sync.Map // by the service's pool
	with := func(d *httpapi.Deps) {
		provider, err := mockoidc.Run()
		if err != nil {
			t.Error(err)
			return
		}
		t.Cleanup(func() { _ = provider.Shutdown() })
		providers.Store(d.Pool, provider)
		d.OIDC = &httpapi.OIDC{Name: "Acme ID", Accounts: d.Audit.(*auth.Admin), Provider: oidclogin.New(oidclogin.Config{
			Issuer: provider.Issuer(), ClientID: provider.ClientID, ClientSecret: provider.ClientSecret,
			Redirect: "https://public.test" + httpapi.OIDCCallback,
		})}
	}
	onBothSites(t, with, func(s site) {
		provider, _ := providers.Load(s.pool)
		p := provided{s, provider.(*mockoidc.MockOIDC)}
		p.account(jo)
		test(p)
	})
}

func (p provided) account(name string) {
	p.t.Helper()
	a := auth.Account{Tenant: "acme", Name: name, DisplayName: "Account of " + name, Role: auth.RoleViewer}
	if _, err := p.admin.CreateAccount(p.t.Context(), a, audit.By{Actor: "test"}); err != nil {
		p.t.Fatal(err)
	}
}

// begin goes to the provider and gives its address as the browser gets it.
func (p provided) begin(b *browser, next string) *url.URL {
	p.t.Helper()
	a := b.get("/login/oidc?" + url.Values{"next": {next}}.Encode())
	address, err := url.Parse(a.header.Get("Location"))
	if err != nil || a.status != http.StatusSeeOther || !strings.HasPrefix(address.String(), p.provider.AuthorizationEndpoint()+"?") {
		p.t.Fatalf("the log-in begins with %d to %q: %.300s", a.status, a.header.Get("Location"), a.body)
	}
	return address
}

// atProvider has the provider recognise somebody, and gives the path by which it sends the browser back.
func (p provided) atProvider(address *url.URL, who mockoidc.MockUser) string {
	p.t.Helper()
	p.provider.QueueUser(&who)
	r, err := http.NewRequestWithContext(p.t.Context(), http.MethodGet, address.String(), nil)
	if err != nil {
		p.t.Fatal(err)
	}
	answer, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		p.t.Fatal(err)
	}
	defer answer.Body.Close()
	back, found := strings.CutPrefix(answer.Header.Get("Location"), "https://public.test")
	if !found || !strings.HasPrefix(back, httpapi.OIDCCallback+"?") {
		p.t.Fatalf("the provider answers %d to %q", answer.StatusCode, answer.Header.Get("Location"))
	}
	return back
}

// logInAs goes all the way.
func (p provided) logInAs(b *browser, who mockoidc.MockUser, next string) answer {
	p.t.Helper()
	return b.get(p.atProvider(p.begin(b, next), who))
}

func verified(subject, email string) mockoidc.MockUser {
	return mockoidc.MockUser{Subject: subject, Email: email, EmailVerified: true}
}

func (p provided) tied() int {
	p.t.Helper()
	return p.count("audit_entries WHERE action = 'account.tie'")
}

func TestOIDCLogsInWhereOneWantedToGoAndTiesTheAccountOnce(t *testing.T) {
	onBothWithOIDC(t, func(p provided) {
		b := p.browser()
		before := contents(p.t, p.pool)
		var button string
		for _, link := range b.get("/login?next=/docs").page().all("a.button") {
			if text(link) == "Log in with Acme ID" {
				button = attribute(link, "href")
			}
		}
		if button != "/login/oidc?next=%2Fdocs" {
			p.t.Fatalf("the button leads to %q", button)
		}
		address := p.begin(b, "/docs")
		query := address.Query()
		if query.Get("code_challenge_method") != "S256" || query.Get("code_challenge") == "" || query.Get("state") == "" || query.Get("nonce") == "" ||
			query.Get("redirect_uri") != "https://public.test/login/oidc/callback" || query.Get("scope") != "openid email" {
			p.t.Errorf("the provider is asked %s", address)
		}
		cookie := b.cookies["ib_"+p.short+"_oidc"]
		if cookie == nil || !cookie.HttpOnly || cookie.SameSite != http.SameSiteLaxMode || cookie.MaxAge != 600 || cookie.Path != "/" {
			p.t.Errorf("the flow's cookie is %+v", cookie)
		}
		if diff := cmp.Diff(before, contents(p.t, p.pool)); diff != "" {
			p.t.Errorf("beginning has changed something:\n%s", diff)
		}
		// The provider writes the address as it likes; its groups are nothing here.
		who := verified("s-1", "Jo@Acme.Example")
		who.Groups = []string{"admin"}
		b.get(p.atProvider(address, who)).wantRedirect("/docs")
		if b.session() == "" || b.cookies["ib_"+p.short+"_oidc"] != nil {
			p.t.Errorf("after the log-in the cookies are %v", b.cookies)
		}
		if a := b.get("/"); !strings.Contains(string(a.body), "Account of jo@acme.example") {
			p.t.Error("the page does not say who is logged in")
		}
		if n := p.count("sessions JOIN accounts ON accounts.id = account_id WHERE name = '" + jo + "' AND role = 'viewer' AND tenant_id = 'acme'"); n != 1 {
			p.t.Errorf("%d sessions of a viewer, want 1", n)
		}

		// Another browser, and another address at the provider: it is the same person.
		p.logInAs(p.browser(), verified("s-1", "jo.new@acme.example"), "/").wantRedirect("/")
		if n := p.tied(); n != 1 {
			p.t.Errorf("the account was tied %d times, want once", n)
		}
		if n := p.count("audit_entries JOIN accounts ON accounts.id = account_id WHERE action = 'account.tie' AND actor = '" + jo + "' AND via = 'console' AND reason LIKE '% s-1 of http%' AND request_id <> ''"); n != 1 {
			p.t.Error("the audit does not say who was tied to what")
		}
	})
}

func TestOIDCRefusesWhomItCanNotBeSureOf(t *testing.T) {
	onBothWithOIDC(t, func(p provided) {
		p.account("gone@acme.example")
		if err := p.admin.DisableAccount(p.t.Context(), "gone@acme.example", audit.By{Actor: "test"}); err != nil {
			p.t.Fatal(err)
		}
		p.account("kim@acme.example")
		p.logInAs(p.browser(), verified("s-kim", "kim@acme.example"), "/").wantRedirect("/")
		sessions, ties := p.count("sessions"), p.tied()

		replaced := func(address, name, value string) string {
			path, query, _ := strings.Cut(address, "?")
			values, err := url.ParseQuery(query)
			if err != nil {
				p.t.Fatal(err)
			}
			values.Set(name, value)
			return path + "?" + values.Encode()
		}
		sent := func(b *browser, name, value string, who mockoidc.MockUser) string { // with another question to the provider
			address, err := url.Parse(replaced(p.begin(b, "/").String(), name, value))
			if err != nil {
				p.t.Fatal(err)
			}
			return p.atProvider(address, who)
		}
		good := verified("s-jo", jo)
		for name, c := range map[string]struct {
			status int
			says   string
			back   func(b *browser) string
		}{
			"no flow at all":     {400, "not begun in this browser", func(*browser) string { return httpapi.OIDCCallback }},
			"another browser's":  {400, "not begun in this browser", func(*browser) string { return p.atProvider(p.begin(p.browser(), "/"), good) }},
			"another state":      {400, "not begun in this browser", func(b *browser) string { return replaced(p.atProvider(p.begin(b, "/"), good), "state", "x") }},
			"no state":           {400, "not begun in this browser", func(b *browser) string { return replaced(p.atProvider(p.begin(b, "/"), good), "state", "") }},
			"a flow begun later": {400, "not begun in this browser", func(b *browser) string { back := p.atProvider(p.begin(b, "/"), good); p.begin(b, "/"); return back }},
			"another provider": {400, "another identity provider", func(b *browser) string {
				return replaced(p.atProvider(p.begin(b, "/"), good), "iss", "https://evil.test")
			}},
			"another nonce":    {401, "could not be confirmed", func(b *browser) string { return sent(b, "nonce", "x", good) }},
			"another verifier": {401, "does not take its own answer", func(b *browser) string { return sent(b, "code_challenge", "x", good) }},
			"a code made up":   {401, "does not take its own answer", func(b *browser) string { return replaced(p.atProvider(p.begin(b, "/"), good), "code", "x") }},
			"refused there": {401, "did not log you in", func(b *browser) string {
				return replaced(replaced(p.atProvider(p.begin(b, "/"), good), "error", "access_denied"), "error_description", "evil words")
			}},
			"fault there": {503, "just now", func(b *browser) string { return replaced(p.atProvider(p.begin(b, "/"), good), "error", "server_error") }},
			"mail not verified": {401, "e-mail address is verified", func(b *browser) string {
				return p.atProvider(p.begin(b, "/"), mockoidc.MockUser{Subject: "s-jo", Email: jo})
			}},
			"no mail":                {401, "e-mail address", func(b *browser) string { return p.atProvider(p.begin(b, "/"), verified("s-jo", "")) }},
			"a name that is no mail": {401, "e-mail address", func(b *browser) string { return p.atProvider(p.begin(b, "/"), verified("s-ada", "ada")) }},
			"mail that folds": {401, "e-mail address", func(b *browser) string {
				return p.atProvider(p.begin(b, "/"), verified("s-x", "\u212aim@acme.example"))
			}},
			"nobody's account": {401, "no account who@acme.example", func(b *browser) string { return p.atProvider(p.begin(b, "/"), verified("s-who", "who@acme.example")) }},
			"account tied":     {401, "tied to somebody else", func(b *browser) string { return p.atProvider(p.begin(b, "/"), verified("s-2", "kim@acme.example")) }},
			"disabled":         {401, "disabled", func(b *browser) string { return p.atProvider(p.begin(b, "/"), verified("s-gone", "gone@acme.example")) }},
			"strange subject":  {401, "names you in a way", func(b *browser) string { return p.atProvider(p.begin(b, "/"), verified("s\x00", jo)) }},
		} {
			b := p.browser()
			a := b.get(c.back(b))
			if a.status != c.status || !strings.Contains(string(a.body), c.says) || strings.Contains(string(a.body), "evil words") {
				p.t.Errorf("%s: %d, want %d and %q on the page:\n%s", name, a.status, c.status, c.says, a.body)
			}
			if !strings.Contains(string(a.body), `id="login"`) || b.session() != "" || b.cookies["ib_"+p.short+"_oidc"] != nil {
				p.t.Errorf("%s: not the log-in page, or something is left in the browser: %v", name, b.cookies)
			}
		}
		if p.count("sessions") != sessions || p.tied() != ties {
			p.t.Error("a refused log-in began a session or tied an account")
		}
		p.logInAs(p.browser(), good, "/").wantRedirect("/") // the same person, rightly
	})
}

func TestOIDCAnswerCountsOnce(t *testing.T) {
	onBothWithOIDC(t, func(p provided) {
		b := p.browser()
		back := p.atProvider(p.begin(b, "/"), verified("s-1", jo))
		cookie := b.cookies["ib_"+p.short+"_oidc"]
		if a := b.do(http.MethodHead, back, nil); a.status != http.StatusMethodNotAllowed || b.session() != "" {
			p.t.Errorf("HEAD: %d, want 405 and nothing used up", a.status)
		}
		b.get(back).wantRedirect("/")
		if a := b.get(back); a.status != http.StatusBadRequest {
			p.t.Errorf("the same address again: %d, want 400", a.status)
		}
		thief := p.browser()
		thief.cookies[cookie.Name] = cookie
		if a := thief.get(back); a.status != http.StatusUnauthorized || thief.session() != "" {
			p.t.Errorf("the same code again, with the flow's cookie: %d, want 401", a.status)
		}
		if n := p.count("sessions"); n != 1 {
			p.t.Errorf("%d sessions, want 1", n)
		}
	})
}

func TestOIDCEndsTheBrowsersOldSessionAndADisabledPersonsNew(t *testing.T) {
	onBothWithOIDC(t, func(p provided) {
		b := p.browser()
		b.logIn("ada", password, "").wantRedirect("/")
		p.logInAs(b, verified("s-1", jo), "//evil.test").wantRedirect("/")
		if n := p.count("sessions"); n != 1 {
			p.t.Errorf("%d sessions, want the new one only", n)
		}
		if err := p.admin.DisableAccount(p.t.Context(), jo, audit.By{Actor: "test"}); err != nil {
			p.t.Fatal(err)
		}
		b.get("/queue/").wantRedirect("/login?next=%2Fqueue%2F")
		if a := p.logInAs(p.browser(), verified("s-1", jo), "/"); a.status != http.StatusUnauthorized {
			p.t.Errorf("a tied person whose account is disabled: %d", a.status)
		}
	})
}

// A provider that is away keeps nobody out who has a password, and is found when it is back.
func TestOIDCProviderMayBeAwayAtTheStart(t *testing.T) {
	type place struct {
		provider *mockoidc.MockOIDC
		address  string
	}
	var places sync.Map
	var later atomic.Int64 // what the clock is ahead
	away := func(d *httpapi.Deps) {
		listener, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
		if err != nil {
			t.Error(err)
			return
		}
		provider, err := mockoidc.NewServer(nil)
		if err != nil {
			t.Error(err)
			return
		}
		at := place{provider, listener.Addr().String()}
		_ = listener.Close()
		places.Store(d.Pool, at)
		d.OIDC = &httpapi.OIDC{Name: "Acme ID", Accounts: d.Audit.(*auth.Admin), Provider: oidclogin.New(oidclogin.Config{
			Issuer: "http://" + at.address + mockoidc.IssuerBase, ClientID: provider.ClientID, ClientSecret: provider.ClientSecret,
			Redirect: "https://public.test" + httpapi.OIDCCallback,
			Now:      func() time.Time { return time.Now().Add(time.Duration(later.Load())) },
		})}
	}
	onBothSites(t, away, func(s site) {
		loaded, _ := places.Load(s.pool)
		at := loaded.(place)
		p := provided{s, at.provider}
		p.account(jo)
		b := s.browser()
		if a := b.get("/login"); a.status != http.StatusOK || strings.Contains(string(a.body), "could not be reached") {
			s.t.Errorf("the log-in page before anybody has tried: %d\n%s", a.status, a.body)
		}
		a := b.get("/login/oidc?next=/docs")
		if a.status != http.StatusServiceUnavailable || a.header.Get("Retry-After") == "" || !strings.Contains(string(a.body), "can&#39;t be reached just now") {
			s.t.Fatalf("with the provider away: %d\n%s", a.status, a.body)
		}
		if a := b.get("/login"); !strings.Contains(string(a.body), "Acme ID could not be reached") {
			s.t.Errorf("the log-in page does not say it:\n%s", a.body)
		}
		b.logIn("ada", password, "/docs").wantRedirect("/docs")

		listener, err := new(net.ListenConfig).Listen(s.t.Context(), "tcp", at.address)
		if err != nil {
			s.t.Skipf("the port was given to somebody else meanwhile: %v", err)
		}
		if err := at.provider.Start(listener, nil); err != nil {
			s.t.Fatal(err)
		}
		s.t.Cleanup(func() { _ = at.provider.Shutdown() })
		later.Add(int64(time.Minute))
		p.logInAs(s.browser(), verified("s-1", jo), "/docs").wantRedirect("/docs")
		if a := s.browser().get("/login"); strings.Contains(string(a.body), "could not be reached") {
			s.t.Error("the log-in page still says that the provider is away")
		}
	})
}

func TestOIDCLeadsNowhereWithoutAProvider(t *testing.T) {
	onBothSites(t, nil, func(s site) {
		for _, path := range []string{"/login/oidc", httpapi.OIDCCallback + "?code=x&state=y"} {
			if a := s.browser().get(path); a.status != http.StatusNotFound {
				s.t.Errorf("%s: %d, want 404", path, a.status)
			}
		}
		if a := s.browser().get("/login"); strings.Contains(string(a.body), "/login/oidc") {
			s.t.Error("there is a button all the same")
		}
	})
}
