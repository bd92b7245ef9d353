package httpapi_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"invoicebridge/internal/audit"
	"invoicebridge/internal/auth"
	"invoicebridge/internal/auth/crmstore"
	"invoicebridge/internal/auth/erpstore"
	"invoicebridge/internal/httpapi"
	"invoicebridge/internal/problem"
	"invoicebridge/internal/testdb"
)

const password = "correct horse battery"

// site is one service with the accounts ada (operator), sam (viewer with service access) and their passwords.
type site struct {
	t     *testing.T
	url   string
	short string
	pool  *pgxpool.Pool
	admin *auth.Admin
}

type siteStore interface {
	auth.Store
	auth.AdminStore
	auth.SessionStore
}

func onBothSites(t *testing.T, change func(*httpapi.Deps), test func(s site)) {
	t.Helper()
	t.Parallel()
	start := func(short string, pool *pgxpool.Pool, store siteStore, serve func(httpapi.Deps) (http.Handler, error)) {
		t.Run(short, func(t *testing.T) {
			t.Parallel()
			deps := httpapi.Deps{
				Tokens: auth.NewVerifier(store), Ready: pool.Ping, Pool: pool, Audit: auth.NewAdmin(store),
				Sessions: auth.NewSessions(store, auth.NewHasher(), auth.SessionOptions{}),
			}
			if change != nil {
				change(&deps)
			}
			handler, err := serve(deps)
			if err != nil {
				t.Fatal(err)
			}
			server := httptest.NewServer(handler)
			t.Cleanup(server.Close)
			s := site{t, server.URL, short, pool, auth.NewAdmin(store)}
			s.people()
			test(s)
		})
	}
	erpPool, crmPool := testdb.ERP(t), testdb.CRM(t)
	start("erp", erpPool, erpstore.New(erpPool), func(d httpapi.Deps) (http.Handler, error) { return httpapi.NewERP(httpapi.ERPDeps{Deps: d}) })
	start("crm", crmPool, crmstore.New(crmPool), func(d httpapi.Deps) (http.Handler, error) {
		return httpapi.NewCRM(httpapi.CRMDeps{Deps: d, Orders: noOrders{}})
	})
}

// noOrders is there and does nothing.
type noOrders struct{ httpapi.Orders }

func (s site) people() {
	s.t.Helper()
	by := audit.By{Actor: "test"}
	if err := s.admin.CreateTenant(s.t.Context(), "acme", "Acme", by); err != nil {
		s.t.Fatal(err)
	}
	for _, a := range []auth.Account{
		{Name: "ada", DisplayName: "Ada <L>", Role: auth.RoleOperator}, {Name: "sam", DisplayName: "Sam", Role: auth.RoleViewer, Service: true},
	} {
		hash, err := auth.NewHasher().Hash(s.t.Context(), a.Name, password)
		if err != nil {
			s.t.Fatal(err)
		}
		a.Tenant, a.PasswordHash = "acme", hash
		if _, err := s.admin.CreateAccount(s.t.Context(), a, by); err != nil {
			s.t.Fatal(err)
		}
	}
}

func (s site) count(from string) (n int) {
	s.t.Helper()
	if err := s.pool.QueryRow(context.Background(), "SELECT count(*) FROM "+from).Scan(&n); err != nil {
		s.t.Fatal(err)
	}
	return n
}

// browser keeps cookies and follows nothing.
type browser struct {
	site
	cookies map[string]*http.Cookie
}

func (s site) browser() *browser { return &browser{s, map[string]*http.Cookie{}} }

// do sends a request as a browser does; header has pairs of names and values.
func (b *browser) do(method, path string, form url.Values, header ...string) answer {
	b.t.Helper()
	r, err := http.NewRequestWithContext(b.t.Context(), method, b.url+path, strings.NewReader(form.Encode()))
	if err != nil {
		b.t.Fatal(err)
	}
	r.Header.Set("Accept", "text/html,application/xhtml+xml")
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	for _, c := range b.cookies {
		r.AddCookie(c)
	}
	response, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		b.t.Fatal(err)
	}
	defer response.Body.Close()
	for _, c := range response.Cookies() {
		if b.cookies[c.Name] = c; c.MaxAge < 0 {
			delete(b.cookies, c.Name)
		}
	}
	body, err := io.ReadAll(response.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	return answer{b.t, response.StatusCode, response.Header, body}
}

func (b *browser) get(path string) answer { return b.do(http.MethodGet, path, nil) }

func (b *browser) logIn(name, password, next string) answer {
	b.t.Helper()
	return b.do(http.MethodPost, "/login", url.Values{"name": {name}, "password": {password}, "next": {next}})
}

func (b *browser) session() string {
	if c := b.cookies["ib_"+b.short+"_session"]; c != nil {
		return c.Value
	}
	return ""
}

func (a answer) wantRedirect(to string) {
	a.t.Helper()
	if got := a.header.Get("Location"); a.status != http.StatusSeeOther || got != to {
		a.t.Fatalf("got %d to %q, want 303 to %q: %.300s", a.status, got, to, a.body)
	}
}

func TestPeopleLogInWhereTheyWantedToGoAndOut(t *testing.T) {
	onBothSites(t, nil, func(s site) {
		b := s.browser()
		b.get("/queue/?state=running").wantRedirect("/login?next=%2Fqueue%2F%3Fstate%3Drunning")
		form := b.get("/login?next=%2Fqueue%2F%3Fstate%3Drunning").page()
		next := ""
		for _, input := range form.all("form input") {
			if attribute(input, "name") == "next" {
				next = attribute(input, "value")
			}
		}
		b.logIn("ada", password, next).wantRedirect("/queue/?state=running")
		if cookie := b.cookies["ib_"+s.short+"_session"]; cookie == nil || !cookie.HttpOnly || cookie.SameSite != http.SameSiteLaxMode ||
			cookie.Path != "/" || cookie.Domain != "" || cookie.Secure || cookie.MaxAge != 0 || !cookie.Expires.IsZero() {
			s.t.Errorf("the session's cookie is %+v", cookie)
		}
		if a := b.get("/"); !strings.Contains(string(a.body), "Ada &lt;L&gt;") {
			s.t.Errorf("the page does not say who is logged in:\n%s", a.body)
		}
		b.get("/login?next=/docs").wantRedirect("/docs") // once more is not asked for
		if a := b.get("/queue/"); a.status != http.StatusForbidden || !strings.HasPrefix(a.header.Get("Content-Type"), "text/html") {
			s.t.Errorf("an operator at the queue: %d %s, want the page of a 403", a.status, a.header.Get("Content-Type"))
		}

		value := b.session()
		b.do(http.MethodPost, "/logout", url.Values{}).wantRedirect("/login")
		if b.session() != "" || s.count("sessions") != 0 {
			s.t.Error("the log-out left the session or its cookie")
		}
		if a := b.get("/login"); !strings.Contains(string(a.body), "You are logged out.") {
			s.t.Error("the log-out is not told")
		}
		if a := b.get("/login"); strings.Contains(string(a.body), "You are logged out.") {
			s.t.Error("it is told twice")
		}
		b.cookies["x"] = &http.Cookie{Name: "ib_" + s.short + "_session", Value: value}
		b.get("/queue/").wantRedirect("/login?next=%2Fqueue%2F")
	})
}

func TestLogInBeginsANewSessionAndEndsTheBrowsersOldOne(t *testing.T) {
	onBothSites(t, nil, func(s site) {
		b, other := s.browser(), s.browser()
		b.cookies["planted"] = &http.Cookie{Name: "ib_" + s.short + "_session", Value: strings.Repeat("A", 43)}
		b.logIn("ada", password, "").wantRedirect("/")
		delete(b.cookies, "planted")
		first := b.session()
		other.logIn("ada", password, "").wantRedirect("/")
		b.logIn("sam", password, "").wantRedirect("/")
		if second := b.session(); first == strings.Repeat("A", 43) || second == first || second == "" {
			s.t.Errorf("the session was not renewed: %q, %q", first, second)
		}
		if n := s.count("sessions"); n != 2 {
			s.t.Errorf("%d sessions, want the new one and the other browser's", n)
		}
		if a := other.get("/"); !strings.Contains(string(a.body), "Ada") {
			s.t.Error("the other browser was logged out")
		}
	})
}

func TestWrongLogInIsToldOnThePageAndTooManyHaveToWait(t *testing.T) {
	onBothSites(t, nil, func(s site) {
		b := s.browser()
		told := map[string]bool{}
		for _, name := range []string{"ada", "nobody"} {
			a := b.logIn(name, "wrong horse battery", "/docs")
			if a.status != http.StatusUnauthorized || b.session() != "" || strings.Contains(string(a.body), "wrong horse") {
				s.t.Errorf("%s: %d\n%s", name, a.status, a.body)
			}
			told[strings.ReplaceAll(string(a.body), name, "NAME")] = true
		}
		if len(told) != 1 {
			s.t.Error("the page for a name that is not there differs from that for one that is")
		}
		for range 4 {
			b.logIn("ada", "wrong horse battery", "")
		}
		a := b.logIn("ada", password, "")
		if wait := a.header.Get("Retry-After"); a.status != http.StatusTooManyRequests || wait != "1" && wait != "2" || b.session() != "" {
			s.t.Errorf("after five failures: %d, Retry-After %q, want to wait a second", a.status, wait)
		}
		if !strings.Contains(string(a.body), "failed too often") || !strings.Contains(string(a.body), "second") {
			s.t.Errorf("that one has to wait is not said:\n%s", a.body)
		}
		if s.count("sessions") != 0 {
			s.t.Error("a session was begun")
		}
	})
}

// Case O4.
func TestAfterLogInOnlyLocalPathsAreFollowed(t *testing.T) {
	onBothSites(t, nil, func(s site) {
		for _, c := range []struct{ next, want string }{
			{"//evil.test", "/"}, {`/\evil.test`, "/"}, {"/%09/evil.test", "/"}, {"/\t/evil.test", "/"}, {"https:evil.test", "/"}, {"https://evil.test", "/"},
			{"/admin?x=//evil.test", "/admin?x=//evil.test"}, {"", "/"}, {"/docs", "/docs"},
		} {
			b := s.browser()
			b.logIn("ada", password, c.next).wantRedirect(c.want)
			b.get("/login?" + url.Values{"next": {c.next}}.Encode()).wantRedirect(c.want)
		}
	})
}

func TestDisabledAccountIsOutWithTheNextRequest(t *testing.T) {
	onBothSites(t, nil, func(s site) {
		b := s.browser()
		b.logIn("sam", password, "").wantRedirect("/")
		if a := b.get("/metrics"); a.status != http.StatusOK {
			s.t.Fatalf("a person with service access at the figures: %d", a.status)
		}
		if err := s.admin.DisableAccount(s.t.Context(), "sam", audit.By{Actor: "test"}); err != nil {
			s.t.Fatal(err)
		}
		b.get("/metrics").wantProblem(http.StatusUnauthorized, problem.Unauthenticated)
		b.get("/queue/").wantRedirect("/login?next=%2Fqueue%2F")
	})
}

func TestOtherSitesCanNotMakeABrowserSendAnything(t *testing.T) {
	public := func(d *httpapi.Deps) { d.PublicURL = "https://public.test" }
	onBothSites(t, public, func(s site) {
		host := strings.TrimPrefix(s.url, "http://")
		_, token, err := s.admin.CreateToken(s.t.Context(), "acme", auth.RoleReader, "test", audit.By{Actor: "test"})
		if err != nil {
			s.t.Fatal(err)
		}
		for name, c := range map[string]struct {
			header  []string
			refused bool
		}{
			"no browser":                {nil, false},
			"own page":                  {[]string{"Sec-Fetch-Site", "same-origin", "Origin", "http://" + host}, false},
			"typed":                     {[]string{"Sec-Fetch-Site", "none"}, false},
			"own page, older browser":   {[]string{"Origin", "http://" + host}, false},
			"public address":            {[]string{"Sec-Fetch-Site", "cross-site", "Origin", "https://public.test"}, false},
			"other site":                {[]string{"Sec-Fetch-Site", "cross-site", "Origin", "https://evil.test"}, true},
			"other port of the host":    {[]string{"Sec-Fetch-Site", "same-site", "Origin", "http://127.0.0.1:1"}, true},
			"other site, older browser": {[]string{"Origin", "https://evil.test"}, true},
			"other port, older browser": {[]string{"Origin", "http://127.0.0.1:1"}, true},
			"sandboxed":                 {[]string{"Origin", "null"}, true},
		} {
			for path, otherwise := range map[string]int{"/login": http.StatusSeeOther, "/logout": http.StatusSeeOther, "/v1/orders": 403, "/v1/invoices": 403} {
				if path == "/v1/orders" && s.short == "erp" || path == "/v1/invoices" && s.short == "crm" {
					continue // the other service's
				}
				b := s.browser()
				header := append([]string{"Authorization", "Bearer " + token}, c.header...)
				a := b.do(http.MethodPost, path, url.Values{"name": {"ada"}, "password": {password}}, header...)
				refused := a.status == http.StatusForbidden && strings.Contains(string(a.body), "another site")
				if refused != c.refused || !refused && a.status != otherwise {
					s.t.Errorf("%s to %s: %d, want it refused: %t", name, path, a.status, c.refused)
				}
				if refused && b.session() != "" {
					s.t.Errorf("%s to %s: logged in all the same", name, path)
				}
			}
			if a := s.browser().do(http.MethodGet, "/login", nil, c.header...); a.status != http.StatusOK {
				s.t.Errorf("%s reads: %d", name, a.status)
			}
		}
	})
}

func TestCookiesAreForTLSOnlyWhereBrowsersUseIt(t *testing.T) {
	onBothSites(t, func(d *httpapi.Deps) { d.Secure = true }, func(s site) {
		b := s.browser()
		b.logIn("ada", password, "").wantRedirect("/")
		b.do(http.MethodPost, "/logout", url.Values{}).wantRedirect("/login")
		b.logIn("ada", password, "").wantRedirect("/")
		for _, what := range []string{"session", "flash"} {
			c := b.cookies["__Host-ib_"+s.short+"_"+what]
			if c == nil || !c.Secure || !c.HttpOnly || c.Path != "/" || c.Domain != "" {
				s.t.Errorf("the cookie %s is %+v", what, c)
			}
		}
		if b.session() != "" {
			s.t.Error("there is a cookie without the prefix")
		}
	})
}

func TestPagesAllowNothingButWhatIsOurs(t *testing.T) {
	onBothSites(t, nil, func(s site) {
		b := s.browser()
		const policy = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; " +
			"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
		for path, status := range map[string]int{"/": 200, "/login": 200, "/problems": 200, "/nowhere": 404} {
			a := b.get(path)
			for name, want := range map[string]string{
				"Content-Security-Policy": policy, "X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY",
				"Cache-Control": "no-store", "Referrer-Policy": "same-origin",
			} {
				if got := a.header.Get(name); got != want || a.status != status {
					s.t.Errorf("%s: %d, %s is %q, want %q", path, a.status, name, got, want)
				}
			}
		}
		for _, method := range []string{http.MethodGet, http.MethodHead} { // reading logs nobody out
			if a := b.do(method, "/logout", nil); a.status != http.StatusMethodNotAllowed {
				s.t.Errorf("%s /logout: %d, want 405", method, a.status)
			}
		}
	})
}

func TestFormsThatAreNoTextAreMalformed(t *testing.T) {
	onBothSites(t, nil, func(s site) {
		for _, name := range []string{"a\x00", "\xff"} {
			if a := s.browser().logIn(name, password, ""); a.status != http.StatusBadRequest {
				s.t.Errorf("%q: %d, want 400", name, a.status)
			}
		}
		if a := s.browser().logIn("ada", strings.Repeat("x", 100_000), ""); a.status != http.StatusRequestEntityTooLarge {
			s.t.Errorf("a form of 100 kB: %d, want 413", a.status)
		}
	})
}
