package httpapi_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/html"

	"invoicebridge/internal/auth"
	"invoicebridge/internal/auth/crmstore"
	"invoicebridge/internal/crm"
	"invoicebridge/internal/erpapi"
	"invoicebridge/internal/httpapi"
	"invoicebridge/internal/jobs"
	"invoicebridge/internal/testdb"
)

// consoleCRM is the CRM side with its console, and an ERP of the test's own: ada operates, sam looks.
type consoleCRM struct {
	site
	api *crmServer
}

func startCRMConsole(t *testing.T, theERP http.HandlerFunc) consoleCRM {
	t.Helper()
	t.Parallel()
	remote := httptest.NewServer(theERP)
	t.Cleanup(remote.Close)
	client, err := erpapi.NewClient(erpapi.ClientConfig{BaseURL: remote.URL})
	if err != nil {
		t.Fatal(err)
	}
	return serveCRMConsole(t, client)
}

func serveCRMConsole(t *testing.T, client *erpapi.Client) consoleCRM {
	t.Helper()
	pool := testdb.CRM(t)
	store := crmstore.New(pool)
	inserter, err := jobs.NewInserter(pool, nil)
	if err != nil {
		t.Fatal(err)
	}
	token := func(string) string { return "token" }
	handler, err := httpapi.NewCRM(httpapi.CRMDeps{
		Deps: httpapi.Deps{
			Tokens: auth.NewVerifier(store), Ready: pool.Ping, Pool: pool,
			Sessions: auth.NewSessions(store, auth.NewHasher(), auth.SessionOptions{}), Audit: auth.NewAdmin(store),
		},
		Orders:  crm.NewService(pool, inserter, crm.Options{Actions: inserter}),
		Console: crm.NewConsole(pool, crm.ConsoleOptions{ERP: client, Token: token}),
	})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	s := site{t, server.URL, "crm", pool, auth.NewAdmin(store)}
	s.people()
	api := &crmServer{t: t, url: server.URL, pool: pool, admin: s.admin}
	api.writer = api.token("acme", auth.RoleWriter)
	return consoleCRM{s, api}
}

func (s consoleCRM) as(name string) *browser {
	s.t.Helper()
	b := s.browser()
	b.logIn(name, password, "/docs").wantRedirect("/docs")
	return b
}

// newERPKnowsNothing is an ERP that was never asked for anything.
func newERPKnowsNothing(w http.ResponseWriter, r *http.Request) {
	if strings.HasSuffix(r.URL.Path, "/v1/invoices") {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"items":[],"next_cursor":null}`)
		return
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(http.StatusNotFound)
	fmt.Fprint(w, `{"type":"/problems/not-found","title":"Not found","status":404,"detail":"There is no operation with this key."}`)
}

// filledCRM is where the pages are after something of everything has happened.
type filledCRM struct {
	order, unknown, rejected, refusal, imported, replay string
}

func (f filledCRM) paths() []string {
	return []string{
		"/dashboard", "/operations", "/operations?attention=yes", f.unknown, f.rejected, "/replays", f.replay, "/resolutions",
		"/divergences", "/reconciliations", "/sources", "/intake", f.refusal, "/imports", f.imported, "/audit", f.order,
	}
}

// fill lets something of everything happen, with one text wherever somebody can write one.
func (s consoleCRM) fill(text string) (f filledCRM) {
	s.t.Helper()
	ada, api := s.as("ada"), s.api
	order := func(number, quantity string) string {
		raw, err := json.Marshal(map[string]any{
			"source": text, "order": number, "currency": "EUR", "issue_date": "2026-03-02", "note": text, "metadata": map[string]string{text: text},
			"customer": map[string]string{"name": text, "country": "DE"},
			"lines": []map[string]string{{
				"sku": "P-1", "description": text, "quantity": quantity, "unit_price": "10.00", "vat_rate": "19", "vat_category": "S",
			}},
		})
		if err != nil {
			s.t.Fatal(err)
		}
		return string(raw)
	}
	submitted := func(number string) string {
		var sub crm.Submission
		api.submits("/v1/orders", order(number, "2"), http.StatusCreated, &sub)
		return sub.Operations[0].Key
	}
	unknown, rejected := submitted(text), submitted(text+" 2")
	for _, key := range []string{unknown, rejected} {
		api.exec(`INSERT INTO attempts (operation_id, number, finished_at, outcome, detail, worker) SELECT id, 1, now(), 'lost', $2, $2 FROM operations WHERE key = $1`, key, text)
		api.exec("UPDATE operations SET detail = $2 WHERE key = $1", key, text)
	}
	api.ended(unknown, flaggedUnknown)
	api.ended(rejected, rejectedNow)
	api.exec(`INSERT INTO divergences (tenant_id, kind, owner, subject, source, order_id, key, ours, theirs, action)
		VALUES ('acme', 'customer_differs', 'crm', $1, $2, $2, $1, $2, $2, $2)`, unknown, text)
	api.submits("/v1/orders", order(text, "many"), http.StatusUnprocessableEntity, nil)
	imported := api.imported(text, crm.ImportRow{Line: 2, Order: text, Outcome: "refused", Reason: text})

	press := func(path string, form url.Values) string {
		if there := form["reason"]; len(there) > 0 {
			there[len(there)-1] = text // the field that is typed in comes last
		} else {
			form.Set("reason", text)
		}
		a := ada.do(http.MethodPost, path, form)
		if a.status != http.StatusSeeOther {
			s.t.Fatalf("POST %s: %d %s", path, a.status, a.body)
		}
		return a.header.Get("Location")
	}
	f = filledCRM{
		order: "/orders/" + url.PathEscape(text) + "/" + url.PathEscape(text), unknown: "/operations/" + unknown,
		rejected: "/operations/" + rejected, imported: "/imports/" + imported.String(),
	}
	f.replay = press("/replays/new", ada.get("/replays/new?status=unknown&reason=no_answer").page().form("start"))
	press(f.unknown+"/resolve", url.Values{"verdict": {"not_applied"}, "evidence": {text}})
	press("/sources/"+url.PathEscape(text)+"/pause", url.Values{})
	press("/reconciliations", url.Values{})
	f.refusal = attribute(ada.get("/intake").page().all("table.refusals tbody a")[0], "href")
	return f
}

// pressable are the forms and buttons of a page that are neither the log-out nor a list's filter, nor lead to such.
func (p page) pressable() (found []string) {
	for n := range p.root.Descendants() {
		if n.Type != html.ElementNode {
			continue
		}
		switch n.Data {
		case "form":
			if attribute(n, "action") != "/logout" && (attribute(n, "role") != "search" || attribute(n, "method") != "get") {
				found = append(found, "form to "+attribute(n, "action"))
			}
		case "button", "input", "select", "textarea":
			if !slices.ContainsFunc(ancestors(n), func(at *html.Node) bool {
				return at.Data == "form" && (attribute(at, "action") == "/logout" || attribute(at, "role") == "search")
			}) {
				found = append(found, n.Data+" "+attribute(n, "name")+text(n))
			}
		case "a":
			if href := attribute(n, "href"); strings.HasPrefix(href, "/replays/new") || strings.HasPrefix(href, "/orders/new") {
				found = append(found, "link to "+href)
			}
		}
	}
	return found
}

func ancestors(n *html.Node) (found []*html.Node) {
	for at := range n.Ancestors() {
		found = append(found, at)
	}
	return found
}

func TestWhoOnlyLooksAtTheCRMSideHasNothingToPress(t *testing.T) {
	s := startCRMConsole(t, newERPKnowsNothing)
	sam := s.as("sam")
	for _, path := range []string{"/dashboard", "/operations", "/replays", "/resolutions", "/divergences", "/reconciliations", "/sources", "/intake", "/imports", "/audit"} {
		if found := sam.get(path).page().pressable(); len(found) != 0 {
			t.Errorf("%s of a new tenant has for who only looks: %q", path, found)
		}
	}
	f := s.fill("shop")
	for _, path := range f.paths() {
		p := sam.get(path).page()
		if found := p.pressable(); len(found) != 0 {
			t.Errorf("%s has for who only looks: %q", path, found)
		}
		if len(p.all("h1")) != 1 || p.text("title") == "" || len(p.all("form.who button")) != 1 {
			t.Errorf("%s lacks its heading, its title or the log-out", path)
		}
	}
	for _, path := range []string{"/replays/new", "/orders/new"} {
		if a := sam.get(path); a.status != http.StatusForbidden {
			t.Errorf("%s answers %d to who only looks", path, a.status)
		}
	}
	before := s.count("audit_entries")
	for _, path := range []string{f.unknown + "/replay", f.rejected + "/revise", f.unknown + "/resolve", f.replay + "/stop", "/sources/shop/resume", "/reconciliations", "/orders/new"} {
		if a := sam.do(http.MethodPost, path, url.Values{"reason": {"r"}}); a.status != http.StatusForbidden {
			t.Errorf("POST %s answers %d to who only looks", path, a.status)
		}
	}
	if n := s.count("audit_entries"); n != before {
		t.Errorf("%d audit entries more", n-before)
	}
}

func TestWhoOperatesTheCRMSideHasTheButtons(t *testing.T) {
	s := startCRMConsole(t, newERPKnowsNothing)
	f := s.fill("shop")
	ada := s.as("ada")
	for path, want := range map[string]string{
		f.unknown: "form to " + f.unknown + "/replay", f.rejected: "form to " + f.rejected + "/revise", f.replay: "form to " + f.replay + "/stop",
		"/operations?status=unknown": "link to /replays/new?status=unknown", "/sources": "form to /sources/shop/resume",
		"/replays/new?status=unknown": "form to /replays/new", "/orders/new": "form to /orders/new", f.order: "link to /orders/new",
	} {
		found := ada.get(path).page().pressable()
		if !slices.ContainsFunc(found, func(is string) bool { return strings.HasPrefix(is, want) }) {
			t.Errorf("%s has no %s: %q", path, want, found)
		}
	}
	for path, want := range map[string][2]string{
		"/divergences": {"form to /divergences/", "/accept"}, "/resolutions": {"form to /resolutions/", "/withdraw"},
	} {
		found := ada.get(path).page().pressable()
		if !slices.ContainsFunc(found, func(is string) bool { return strings.HasPrefix(is, want[0]) && strings.HasSuffix(is, want[1]) }) {
			t.Errorf("%s has no %s: %q", path, want, found)
		}
	}
	runs := ada.get("/reconciliations").page()
	if disabled := runs.all("main .action button"); len(disabled) != 1 || !slices.ContainsFunc(disabled[0].Attr, func(a html.Attribute) bool { return a.Key == "disabled" }) {
		t.Error("a second reconciliation can be asked for while one runs, or the button is gone")
	}
	for _, path := range f.paths() {
		if p := ada.get(path).page(); len(p.all("form.who button")) != 1 {
			t.Errorf("%s lacks the log-out", path)
		}
	}
}

// strange are the elements and attributes of a page that are not of our making.
func (p page) strange() (found []string) {
	for n := range p.root.Descendants() {
		if n.Type != html.ElementNode {
			continue
		}
		inside := func(element, class string) bool {
			return slices.ContainsFunc(ancestors(n), func(at *html.Node) bool {
				return at.Data == element && slices.Contains(strings.Fields(attribute(at, "class")), class)
			})
		}
		switch n.Data {
		case "img", "iframe", "object", "embed", "style", "base":
			found = append(found, n.Data)
		case "script":
			if n.FirstChild != nil || !strings.HasPrefix(attribute(n, "src"), "/static/console.") {
				found = append(found, "script "+text(n))
			}
		case "svg":
			if !inside("figure", "plot") {
				found = append(found, "svg")
			}
		}
		for _, a := range n.Attr {
			address := a.Key == "href" || a.Key == "src" || a.Key == "action"
			if strings.HasPrefix(a.Key, "on") || a.Key == "style" || address && !strings.HasPrefix(a.Val, "/") && !strings.HasPrefix(a.Val, "#") {
				found = append(found, fmt.Sprintf("%s %s=%q", n.Data, a.Key, a.Val))
			}
		}
	}
	return found
}

// O1. The source, the order's number, the customer's name, every reason and what the ERP says are such a text.
func TestHostileTextsStayTextOnEveryPageOfTheCRMSide(t *testing.T) {
	for name, hostile := range map[string]string{
		"image": `<img src=x onerror=alert(1)>`, "svg": `"><svg onload=alert(1)>`, "script": `</script><script>1</script>`,
		"address": `javascript:alert(1)`, "template": `{{7*7}}`,
	} {
		t.Run(name, func(t *testing.T) {
			s := startCRMConsole(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/problem+json")
				w.WriteHeader(http.StatusForbidden)
				_ = json.MarshalWrite(w, map[string]any{"type": "/problems/forbidden", "title": hostile, "status": 403, "detail": hostile})
			})
			f := s.fill(hostile)
			for _, who := range []string{"ada", "sam"} {
				b := s.as(who)
				paths := f.paths()
				if who == "ada" {
					paths = append(paths, "/replays/new?source="+url.QueryEscape(hostile), "/orders/new?source="+url.QueryEscape(hostile))
				}
				paths = append(paths, "/operations?q="+url.QueryEscape(hostile), "/operations?source="+url.QueryEscape(hostile), "/intake?order="+url.QueryEscape(hostile), "/audit?subject="+url.QueryEscape(hostile))
				for _, path := range paths {
					p := b.get(path).page()
					if found := p.strange(); len(found) != 0 {
						t.Errorf("%s for %s has %q", path, who, found)
					}
					if path != "/dashboard" && path != "/reconciliations" && !strings.Contains(text(p.all("main")[0]), hostile) && !p.holds(hostile) {
						t.Errorf("%s for %s does not show the text", path, who)
					}
				}
				if got := b.get(f.order).page().text("main h1"); !strings.HasPrefix(got, hostile) {
					t.Errorf("the order is called %q", got)
				}
				var request struct {
					Customer struct {
						Name string `json:"name"`
					} `json:"customer"`
				}
				operation := b.get(f.unknown).page()
				if err := json.Unmarshal([]byte(operation.text("pre.request")), &request); err != nil || request.Customer.Name != hostile {
					t.Errorf("the request names %q: %v", request.Customer.Name, err)
				}
				if said := operation.text("p.silent"); !strings.Contains(said, hostile) {
					t.Errorf("what the ERP said is %q", said)
				}
			}
		})
	}
}

// form is what a browser sends of a form, as long as nothing is typed.
func (p page) form(id string) url.Values {
	p.t.Helper()
	values := url.Values{}
	for _, form := range p.all("form") {
		if attribute(form, "id") != id {
			continue
		}
		for _, n := range (page{p.t, form}).all("input") {
			values.Add(attribute(n, "name"), attribute(n, "value"))
		}
	}
	if len(values) == 0 {
		p.t.Fatalf("the page has no form %q", id)
	}
	return values
}

// holds says whether a field of the page holds a text.
func (p page) holds(text string) bool {
	for _, n := range p.all("input") {
		if attribute(n, "value") == text {
			return true
		}
	}
	return false
}

func TestAnOperationsPageWorksWhileTheERPIsSilentAndSaysSo(t *testing.T) {
	t.Parallel()
	gone := httptest.NewServer(http.NotFoundHandler())
	client, err := erpapi.NewClient(erpapi.ClientConfig{BaseURL: gone.URL})
	if err != nil {
		t.Fatal(err)
	}
	gone.Close()
	s := serveCRMConsole(t, client)
	f := s.fill("shop")
	for _, who := range []string{"ada", "sam"} {
		p := s.as(who).get(f.unknown).page()
		if said := p.text("p.silent"); !strings.HasPrefix(said, "The ERP does not answer: ") {
			t.Errorf("the page says %q", said)
		}
		if len(p.all("table.compare")) != 0 || len(p.all("p.verdict")) != 0 {
			t.Error("the page compares with what nobody said")
		}
		if p.text("code.op-key") == "" || p.text("pre.request") == "" || len(p.all("table.attempts tbody tr")) != 1 {
			t.Error("the page lacks what is known here")
		}
	}
	s.as("ada").do(http.MethodPost, f.rejected+"/revise", url.Values{"reason": {"r"}, "request": {revisedRequest}}).wantSeeOther("/operations/")
}

const revisedRequest = `{"currency":"EUR","issue_date":"2026-03-02","customer":{"name":"A","country":"DE"},` +
	`"lines":[{"sku":"P-1","quantity":"3","unit_price":"10.00","vat_rate":"19","vat_category":"S"}]}`

func (a answer) wantSeeOther(prefix string) {
	a.t.Helper()
	if got := a.header.Get("Location"); a.status != http.StatusSeeOther || !strings.HasPrefix(got, prefix) {
		a.t.Fatalf("got %d to %q, want 303 to %s…: %.300s", a.status, got, prefix, a.body)
	}
}

func TestWhatTheERPKnowsStandsBesideWhatIsKnownHere(t *testing.T) {
	s := startCRMConsole(t, newERPKnowsNothing)
	f := s.fill("shop")
	p := s.as("sam").get(f.unknown).page()
	if len(p.all("p.silent")) != 0 || !strings.HasPrefix(p.text("p.verdict"), "The ERP does not know the key so far.") {
		t.Error("the ERP's answer is not told")
	}
	if len(p.all("table.compare tbody tr")) < 3 {
		t.Error("the views are not side by side")
	}
}

// What is refused is told its caller just as without a console, also when it can't be written down.
func TestARefusedOrderIsOnThePageWithItsReasonAndItsCallersAnswerIsUnchanged(t *testing.T) {
	s := startCRMConsole(t, newERPKnowsNothing)
	bad := orderJSON("SO-1", `"x"`)
	for _, c := range []struct {
		name, body, kind string
		status           int
		pointer          string
	}{
		{"not valid", bad, "invalid-order", http.StatusUnprocessableEntity, "/lines/0/quantity"},
		{"not JSON", `{"order":`, "malformed-request", http.StatusBadRequest, ""},
		{"unknown member", strings.Replace(orderJSON("SO-2", `"2"`), `"currency"`, `"Currency"`, 1), "malformed-request", http.StatusBadRequest, "/Currency"},
	} {
		var told problemDocument
		answer := s.api.submits("/v1/orders", c.body, c.status, &told)
		if told.Type != "/problems/"+c.kind || answer.Header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("%s: the caller is told %+v", c.name, told)
		}
		b := s.as("sam")
		rows := b.get("/intake").page().all("table.refusals tbody tr")
		if len(rows) == 0 {
			t.Fatalf("%s: nothing is on the page", c.name)
		}
		one := b.get(attribute(page{t, rows[0]}.all("a")[0], "href")).page()
		for _, e := range told.Errors {
			found := false
			for _, place := range one.all("dl.wrong-places div") {
				found = found || strings.Contains(text(place), e.Pointer) && strings.Contains(text(place), e.Detail)
			}
			if !found {
				t.Errorf("%s: the page does not tell %+v", c.name, e)
			}
		}
		if c.pointer != "" && (len(told.Errors) != 1 || told.Errors[0].Pointer != c.pointer) {
			t.Errorf("%s: the caller is told %+v", c.name, told.Errors)
		}
		if told.Detail != "" && !strings.Contains(text(one.all("main")[0]), told.Detail) {
			t.Errorf("%s: the page does not tell %q", c.name, told.Detail)
		}
		if got := one.text("pre.body"); got != c.body {
			t.Errorf("%s: what came is shown as %q", c.name, got)
		}
	}
	s.api.holds(0, 0, 0)

	var before, after problemDocument
	s.api.submits("/v1/orders", bad, http.StatusUnprocessableEntity, &before)
	s.api.exec("ALTER TABLE intake_refusals RENAME TO elsewhere")
	s.api.submits("/v1/orders", bad, http.StatusUnprocessableEntity, &after)
	if before.Detail != after.Detail || !slices.Equal(before.Errors, after.Errors) {
		t.Errorf("told is %+v, want %+v", after, before)
	}
}

// Each list of the console has a way back from its second page, which leads to the first one again.
func TestEveryListOfTheCRMSideLeadsBack(t *testing.T) {
	s := startCRMConsole(t, newERPKnowsNothing)
	f := s.fill("shop")
	s.api.submits("/v1/orders", `{"source": "shop", "order": "SO-2"}`, http.StatusUnprocessableEntity, nil)
	s.api.imported("shop", crm.ImportRow{Line: 2, Order: "SO-2", Outcome: "refused", Reason: "r"})
	s.api.exec(`INSERT INTO divergences (tenant_id, kind, owner, subject, ours, theirs, action) VALUES ('acme', 'customer_differs', 'crm', 'k', '', '', '')`)
	s.api.exec(`INSERT INTO reconciliation_runs (id, tenant_id, scope, window_from, window_to, phase, finished_at, requested_by)
		SELECT gen_random_uuid(), tenant_id, scope, window_from, window_to, phase, now(), requested_by FROM reconciliation_runs`)
	s.api.exec(`INSERT INTO resolutions (id, tenant_id, operation_id, attempt, verdict, evidence, reason, status, proposed_by, decided_at, decided_by, decision_reason)
		SELECT gen_random_uuid(), tenant_id, operation_id, attempt, verdict, evidence, reason, 'withdrawn', proposed_by, now(), proposed_by, 'r' FROM resolutions`)
	s.api.exec(`INSERT INTO replay_items (run_id, position, operation_id)
		SELECT i.run_id, 2, o.id FROM replay_items AS i, operations AS o WHERE o.id <> i.operation_id LIMIT 1`)
	s.api.exec(`INSERT INTO replay_runs (id, tenant_id, status, reason, source, min_age_seconds, matched, total, started_because, started_via,
		started_address, started_request, started_by, finished_at)
		SELECT gen_random_uuid(), tenant_id, status, reason, source, min_age_seconds, matched, total, started_because, started_via,
		started_address, started_request, started_by, now() FROM replay_runs`)
	ada := s.as("ada")
	link := func(p page, rel string) string {
		for _, a := range p.all("nav.pager a") {
			if attribute(a, "rel") == rel {
				return attribute(a, "href")
			}
		}
		return ""
	}
	said := func(p page) []string { return strings.Fields(strings.Replace(p.text("main"), "First page", "", 1)) }
	for _, path := range []string{"/operations", "/replays", f.replay, "/resolutions", "/divergences", "/reconciliations", "/intake", "/imports", "/audit"} {
		first := ada.get(path + "?limit=1").page()
		next := link(first, "next")
		if next == "" {
			t.Errorf("%s has no second page", path)
			continue
		}
		second := ada.get(next).page()
		back := link(second, "prev")
		if back == "" {
			t.Errorf("the second page of %s has no way back", path)
			continue
		}
		if cmp.Equal(said(first), said(second)) {
			t.Errorf("%s: both pages say the same: the case is about two", path)
		}
		again := ada.get(back).page()
		if diff := cmp.Diff(said(first), said(again)); diff != "" || link(again, "prev") != "" {
			t.Errorf("%s: back from the second page:\n%s", path, diff)
		}
	}
}
