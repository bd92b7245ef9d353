package httpapi

import (
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgxpool"

	"invoicebridge/internal/audit"
	"invoicebridge/internal/auth"
	"invoicebridge/internal/auth/crmstore"
	"invoicebridge/internal/auth/erpstore"
	"invoicebridge/internal/testdb"
)

// openToAnybody are the routes that need nobody to be known, on either service. Whoever adds one adds it here, too.
var openToAnybody = []string{
	"GET /", "GET /docs", "GET /docs/:file", "GET /healthz", "GET /login", "GET /login/oidc", "GET /login/oidc/callback",
	"GET /openapi.yaml", "GET /order.schema.json", "GET /problems", "GET /problems/:slug", "GET /readyz", "GET /static/:file", "POST /login", "POST /logout",
}

// credential is a way to ask, and what it may do: the letters of permission_test.go, of auth.Permissions in their order.
type credential struct {
	name           string
	bearer, cookie string
	holds          string
}

// walked is one service, with whoever might ask.
type walked struct {
	t           *testing.T
	server      *server
	credentials []credential
}

type accessStore interface {
	auth.Store
	auth.AdminStore
	auth.SessionStore
}

// walkBoth tries something with all credentials on both services. What is behind the gates is missing: who gets past one
// meets an internal error.
func walkBoth(t *testing.T, test func(w walked)) {
	erpPool, crmPool := testdb.ERP(t), testdb.CRM(t)
	onERP, onCRM := erpstore.New(erpPool), crmstore.New(crmPool)
	t.Run("erp", func(t *testing.T) {
		t.Parallel()
		handler, err := NewERP(ERPDeps{Deps: walkDeps(onERP)})
		if err != nil {
			t.Fatal(err)
		}
		test(walked{t, handler.(erp).server, credentials(t, onERP, erpPool, strangersSession(t, onCRM))})
	})
	t.Run("crm", func(t *testing.T) {
		t.Parallel()
		handler, err := NewCRM(CRMDeps{Deps: walkDeps(onCRM), Orders: noOrders{}})
		if err != nil {
			t.Fatal(err)
		}
		test(walked{t, handler.(crmSide).server, credentials(t, onCRM, crmPool, strangersSession(t, onERP))})
	})
}

// noOrders is there and does nothing: calling it panics.
type noOrders struct{ Orders }

func walkDeps(store accessStore) Deps {
	return Deps{Tokens: auth.NewVerifier(store), Sessions: auth.NewSessions(store, auth.NewHasher(), auth.SessionOptions{})}
}

var byTest = audit.By{Actor: "test"}

// strangersSession is the session of an admin with everything, on the other service.
func strangersSession(t *testing.T, store accessStore) string {
	t.Helper()
	if err := auth.NewAdmin(store).CreateTenant(t.Context(), "elsewhere", "Elsewhere", byTest); err != nil {
		t.Fatal(err)
	}
	return session(t, store, auth.Account{Tenant: "elsewhere", Name: "root", DisplayName: "root", Role: auth.RoleAdmin, Service: true})
}

func session(t *testing.T, store accessStore, a auth.Account) string {
	t.Helper()
	made, err := auth.NewAdmin(store).CreateAccount(t.Context(), a, byTest)
	if err != nil {
		t.Fatal(err)
	}
	s, err := walkDeps(store).Sessions.Begin(t.Context(), made, auth.Origin{})
	if err != nil {
		t.Fatal(err)
	}
	return s.Value
}

func credentials(t *testing.T, store accessStore, pool *pgxpool.Pool, foreign string) []credential {
	t.Helper()
	admin := auth.NewAdmin(store)
	if err := admin.CreateTenant(t.Context(), "acme", "Acme", byTest); err != nil {
		t.Fatal(err)
	}
	all := []credential{
		{name: "nobody"}, {name: "cookie of the other service", cookie: foreign}, {name: "cookie made up", cookie: strings.Repeat("A", 43)},
		{name: "token made up", bearer: auth.Format(auth.Generate())},
	}
	for _, role := range []struct {
		role  auth.Role
		holds string
	}{{auth.RoleReader, "r-----"}, {auth.RoleWriter, "rw----"}, {auth.RoleAdmin, "rwoa--"}, {auth.RoleMetrics, "----s-"}} {
		id, text, err := admin.CreateToken(t.Context(), "acme", role.role, string(role.role), byTest)
		if err != nil {
			t.Fatal(err)
		}
		_, wrong := auth.Generate()
		all = append(all, credential{name: "token " + string(role.role), bearer: text, holds: role.holds},
			credential{name: "wrong secret of the token " + string(role.role), bearer: auth.Format(id, wrong)})
	}
	id, revoked, err := admin.CreateToken(t.Context(), "acme", auth.RoleAdmin, "revoked", byTest)
	if err != nil {
		t.Fatal(err)
	}
	if err := admin.RevokeToken(t.Context(), "acme", id, byTest); err != nil {
		t.Fatal(err)
	}
	ended := session(t, store, auth.Account{Tenant: "acme", Name: "gone", DisplayName: "gone", Role: auth.RoleAdmin, Service: true})
	if err := walkDeps(store).Sessions.End(t.Context(), ended); err != nil {
		t.Fatal(err)
	}
	all = append(all, credential{name: "token revoked", bearer: revoked}, credential{name: "session that has ended", cookie: ended})
	for _, person := range []struct {
		name, holds string
		role        auth.Role
		service     bool
	}{
		{"viewer", "r-----", auth.RoleViewer, false}, {"operator", "rwo---", auth.RoleOperator, false},
		{"admin", "rwoa--", auth.RoleAdmin, false}, {"service", "r---sq", auth.RoleViewer, true},
		{"all", "rwoasq", auth.RoleAdmin, true}, {"disabled", "", auth.RoleAdmin, true},
	} {
		value := session(t, store, auth.Account{Tenant: "acme", Name: person.name, DisplayName: person.name, Role: person.role, Service: person.service})
		all = append(all, credential{name: "person " + person.name, cookie: value, holds: person.holds})
	}
	_, personal, err := admin.CreatePersonalToken(t.Context(), "disabled", auth.RoleAdmin, "own", byTest)
	if err != nil {
		t.Fatal(err)
	}
	all = append(all, credential{name: "token of the disabled", bearer: personal})
	if _, err := pool.Exec(t.Context(), "UPDATE accounts SET disabled_at = now() WHERE name = 'disabled'"); err != nil {
		t.Fatal(err)
	}
	return all
}

// ask sends a request to a route, its parameters filled in with something.
func (w walked) ask(method, pattern, accept string, c credential) *http.Response {
	var path []string
	for part := range strings.SplitSeq(pattern, "/") {
		switch {
		case strings.HasPrefix(part, ":"):
			part = "0198d000-0000-7000-8000-000000000000"
		case part == "*":
			part = "x"
		}
		path = append(path, part)
	}
	r := httptest.NewRequest(method, strings.Join(path, "/"), strings.NewReader("{}"))
	r.Header.Set("Accept", accept)
	r.Header.Set("Content-Type", "application/json")
	if c.bearer != "" {
		r.Header.Set("Authorization", "Bearer "+c.bearer)
	}
	if c.cookie != "" {
		r.AddCookie(&http.Cookie{Name: w.server.sessionCookie(), Value: c.cookie})
	}
	answer := httptest.NewRecorder()
	w.server.ServeHTTP(answer, r)
	return answer.Result()
}

const aPage, anything = "text/html,application/xhtml+xml", "*/*"

// decision is what a gate did, as the answer tells.
func decision(r *http.Response) string {
	switch {
	case r.StatusCode == http.StatusUnauthorized:
		return "401"
	case r.StatusCode == http.StatusSeeOther && strings.HasPrefix(r.Header.Get("Location"), "/login?next="):
		return "log-in page"
	case r.StatusCode == http.StatusForbidden:
		return "403"
	}
	return "let through"
}

// wanted is what a gate should do, by the decision that the route declares.
func wanted(a access, c credential, accept string) string {
	byToken, byCookie := a.gate == gateToken || a.gate == gateEither, a.gate != gateToken
	known := c.holds != "" && (c.bearer != "" && byToken || c.cookie != "" && byCookie)
	switch {
	case !known && a.gate == gatePage, !known && a.gate == gateMount && accept == aPage:
		return "log-in page"
	case !known:
		return "401"
	}
	for i, p := range auth.Permissions() {
		if p == a.needs && c.holds[i] != '-' {
			return "let through"
		}
	}
	return "403"
}

func TestEveryRouteHasADecisionAndKeepsToItForEverybody(t *testing.T) {
	t.Parallel()
	walkBoth(t, func(w walked) {
		tried := 0
		for _, route := range w.server.echo.Routes() {
			a, decided := w.server.decisions[route.Method+" "+route.Path]
			if !decided {
				w.t.Errorf("%s %s was registered without saying who may use it", route.Method, route.Path)
				continue
			}
			if a.gate == gateOpen {
				continue
			}
			for _, c := range w.credentials {
				for _, accept := range []string{aPage, anything} {
					want, got := wanted(a, c, accept), w.ask(route.Method, route.Path, accept, c)
					if decision(got) != want {
						w.t.Errorf("%s %s by %s (Accept: %s): %s (%d), want %s", route.Method, route.Path, c.name, accept, decision(got), got.StatusCode, want)
					}
					tried++
				}
			}
		}
		if tried < 200 {
			w.t.Errorf("only %d tries were made", tried)
		}
	})
}

// What a decision may be, whatever the one says who wrote the route.
func TestDecisionsAreWithinTheRules(t *testing.T) {
	t.Parallel()
	walkBoth(t, func(w walked) {
		var open []string
		for route, a := range w.server.decisions {
			method, path, _ := strings.Cut(route, " ")
			if method == http.MethodHead {
				if get := w.server.decisions["GET "+path]; get != a {
					w.t.Errorf("%s has another decision than GET", route)
				}
				continue
			}
			if a.gate == gateOpen {
				open = append(open, route)
				continue
			}
			if !slices.Contains(auth.Permissions(), a.needs) {
				w.t.Errorf("%s asks for %q, which is no permission", route, a.needs)
			}
			unsafe := method != http.MethodGet
			if unsafe && a.needs == auth.MayRead {
				w.t.Errorf("%s changes something for whoever may read", route)
			}
			if _, headed := w.server.decisions["HEAD "+path]; !unsafe && !headed {
				w.t.Errorf("%s has no HEAD beside it", route)
			}
			switch {
			case strings.HasPrefix(path, "/admin/v1/"):
				if a.gate != gateToken || a.needs == auth.MayRead { // a plain user's
					w.t.Errorf("%s: %s, %s", route, a.gate, a.needs)
				}
			case strings.HasPrefix(path, "/v1/"):
				if a.gate != gateToken {
					w.t.Errorf("%s takes more than bearer tokens", route)
				}
			case path == "/queue" || strings.HasPrefix(path, "/queue/"):
				if a.needs != auth.MayQueue {
					w.t.Errorf("%s asks for %s", route, a.needs)
				}
			case path == "/metrics":
				if a.needs != auth.MayScrape {
					w.t.Errorf("%s asks for %s", route, a.needs)
				}
			case a.gate != gatePage && a.gate != gateOpen:
				w.t.Errorf("%s is a page by another gate than a session: %s", route, a.gate)
			}
		}
		expected := slices.Clone(openToAnybody)
		if w.server.look.short == "erp" { // the schema of orders is the CRM side's
			expected = slices.DeleteFunc(expected, func(r string) bool { return r == "GET /order.schema.json" })
		}
		slices.Sort(open)
		if diff := cmp.Diff(expected, open); diff != "" {
			w.t.Errorf("open to anybody:\n%s", diff)
		}
	})
}

// Who may use each route, written down a second time, as METHOD path gate permission: the tests above believe what a route says
// of itself, so that one that asks for too little passes them. Whoever adds or changes one changes testdata, too, by hand.
func TestEveryDecisionIsTheOneWrittenDown(t *testing.T) {
	t.Parallel()
	walkBoth(t, func(w walked) {
		var all []string
		for route, a := range w.server.decisions {
			if !strings.HasPrefix(route, http.MethodHead+" ") { // as GET, by the test above
				all = append(all, strings.TrimSpace(route+" "+string(a.gate)+" "+a.needs.String()))
			}
		}
		slices.Sort(all)
		written, err := os.ReadFile("testdata/routes-" + w.server.look.short + ".txt")
		if err != nil {
			w.t.Fatal(err)
		}
		if diff := cmp.Diff(strings.Split(strings.TrimSpace(string(written)), "\n"), all); diff != "" {
			w.t.Errorf("(-written down, +declared):\n%s", diff)
		}
	})
}

// The plain words of it, without the table: a plain user gets 403, a stranger 401 or the log-in page.
func TestAdminQueueAndMetricsAreClosedToPlainUsersAndStrangers(t *testing.T) {
	t.Parallel()
	walkBoth(t, func(w walked) {
		by := map[string]credential{}
		for _, c := range w.credentials {
			by[c.name] = c
		}
		for _, c := range []struct{ method, path, who, want string }{
			{"GET", "/metrics", "nobody", "401"}, {"HEAD", "/metrics", "nobody", "401"}, {"GET", "/metrics", "token reader", "403"},
			{"GET", "/metrics", "token admin", "403"}, {"GET", "/metrics", "person viewer", "403"}, {"GET", "/metrics", "person admin", "403"},
			{"GET", "/metrics", "token metrics", "let through"}, {"GET", "/metrics", "person service", "let through"},
			{"GET", "/queue/", "nobody", "log-in page"}, {"GET", "/queue/", "person viewer", "403"}, {"GET", "/queue/", "person admin", "403"},
			{"GET", "/queue/", "token admin", "log-in page"}, {"GET", "/queue/", "person service", "let through"},
			{"POST", "/queue/api/jobs/cancel", "person admin", "403"}, {"GET", "/queue/", "cookie of the other service", "log-in page"},
			{"GET", "/queue/", "person disabled", "log-in page"},
		} {
			if got := decision(w.ask(c.method, c.path, aPage, by[c.who])); got != c.want {
				w.t.Errorf("%s %s by %s: %s, want %s", c.method, c.path, c.who, got, c.want)
			}
		}
		if got := decision(w.ask("GET", "/queue/api/jobs", anything, by["nobody"])); got != "401" {
			w.t.Errorf("the queue's API by nobody: %s, want 401", got)
		}
		if got := w.ask("GET", "/metrics", anything, by["token metrics"]); got.StatusCode != http.StatusOK {
			w.t.Errorf("a scrape is answered %d", got.StatusCode)
		}
	})
}

// The test of the test: a route that says nothing is found.
func TestRouteThatBypassesTheHelpersIsFound(t *testing.T) {
	t.Parallel()
	s, err := newServer(Deps{}, look{short: "erp"})
	if err != nil {
		t.Fatal(err)
	}
	s.echo.GET("/forgotten", nil)
	for _, route := range s.echo.Routes() {
		if _, decided := s.decisions[route.Method+" "+route.Path]; decided {
			t.Errorf("%s has a decision that nobody made", route.Path)
		}
	}
	if a := (access{}); a.gate == gateOpen || auth.RoleAdmin.May(a.needs) {
		t.Error("a decision that was not made lets somebody through")
	}
}
