package httpapi

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"invoicebridge/internal/auth"
	"invoicebridge/internal/auth/crmstore"
	"invoicebridge/internal/auth/erpstore"
	"invoicebridge/internal/crm"
	"invoicebridge/internal/erpapi"
	"invoicebridge/internal/idempotency"
	"invoicebridge/internal/invoice"
	"invoicebridge/internal/testdb"
)

// theirMark stands in everything of the other tenant that is text.
const theirMark = "of-the-other-tenant"

// neighbours are two tenants of one service: theirs has something in every table, ours asks with all that a tenant can have.
type neighbours struct {
	t      *testing.T
	pool   *pgxpool.Pool
	server *server
	bearer map[string]string // by tenant: an admin's token
	cookie map[string]string // by tenant: an admin's session
	things []string          // ids and names of what is theirs
}

func newNeighbours(t *testing.T, pool *pgxpool.Pool, store accessStore) neighbours {
	t.Helper()
	n := neighbours{t: t, pool: pool, bearer: map[string]string{}, cookie: map[string]string{}}
	admin := auth.NewAdmin(store)
	for _, tenant := range []string{"ours", "theirs"} {
		if err := admin.CreateTenant(t.Context(), tenant, tenant, byTest); err != nil {
			t.Fatal(err)
		}
		id, text, err := admin.CreateToken(t.Context(), tenant, auth.RoleAdmin, map[bool]string{true: theirMark, false: "ours"}[tenant == "theirs"], byTest)
		if err != nil {
			t.Fatal(err)
		}
		n.bearer[tenant] = text
		if tenant == "theirs" {
			n.things = append(n.things, id)
		}
		n.cookie[tenant] = session(t, store, auth.Account{Tenant: tenant, Name: tenant, DisplayName: tenant, Role: auth.RoleAdmin})
	}
	return n
}

// plant runs SQL that gives the id of what it made.
func (n *neighbours) plant(sql string, args ...any) (id string) {
	n.t.Helper()
	if err := n.pool.QueryRow(n.t.Context(), sql, args...).Scan(&id); err != nil {
		n.t.Fatalf("%s: %v", sql, err)
	}
	n.things = append(n.things, id)
	return id
}

// ask fills each parameter of a route with something, and gives status and body.
func (n *neighbours) ask(route *pathOf, tenant, thing string) (status int, body string) {
	var parts []string
	for part := range strings.SplitSeq(route.path, "/") {
		if strings.HasPrefix(part, ":") {
			part = thing
			if strings.HasPrefix(route.path, "/orders/") || strings.HasPrefix(route.path, "/v1/orders/") {
				if len(parts) == strings.Count("/v1/orders", "/")+1 || parts[len(parts)-1] == "orders" {
					part = theirMark // every order of theirs is of this source
				}
			}
		}
		parts = append(parts, part)
	}
	form := route.gate != gateToken
	content, kind := `{"reason":"because"}`, "application/json"
	if form {
		content, kind = url.Values{"reason": {"because"}, "evidence": {"seen"}, "status": {"succeeded"}, "reference": {"R"}, "verdict": {"not_invoiced"}}.Encode(), "application/x-www-form-urlencoded"
	}
	if strings.HasSuffix(route.path, "/resolve") && !form {
		content = `{"status":"succeeded","reference":"R","reason":"because","evidence":"seen"}`
	}
	r := httptest.NewRequest(route.method, strings.Join(parts, "/"), strings.NewReader(content))
	r.Header.Set("Content-Type", kind)
	r.Header.Set("Accept", "text/html,*/*")
	if route.gate == gateToken || route.gate == gateEither {
		r.Header.Set("Authorization", "Bearer "+n.bearer[tenant])
	} else {
		r.AddCookie(&http.Cookie{Name: n.server.sessionCookie(), Value: n.cookie[tenant]})
	}
	answer := httptest.NewRecorder()
	n.server.ServeHTTP(answer, r)
	return answer.Code, answer.Body.String()
}

type pathOf struct {
	method, path string
	access
}

// routes are those that take a tenant's own things, reading ones first, and those without a parameter apart.
func (n *neighbours) routes() (withThing, without []*pathOf) {
	for _, decided := range slices.Sorted(maps.Keys(n.server.decisions)) {
		method, path, _ := strings.Cut(decided, " ")
		route := &pathOf{method, path, n.server.decisions[decided]}
		switch {
		case route.gate == gateOpen, route.gate == gateMount, route.needs == auth.MayQueue, route.needs == auth.MayScrape, method == http.MethodHead:
		case strings.Contains(path, ":"):
			withThing = append(withThing, route)
		case method == http.MethodGet:
			without = append(without, route)
		}
	}
	return withThing, without
}

var ownOfAnAnswer = regexp.MustCompile(`urn:uuid:[0-9a-f-]{36}|[0-9a-f-]{36}`)

// theyStayApart asks for everything that is theirs with all that we have: it is as if it were not there, to the byte, and nothing of it
// changes. That it is there is shown by asking as they themselves.
func (n *neighbours) theyStayApart() {
	n.t.Helper()
	before := n.theirRows()
	withThing, without := n.routes()
	if len(withThing) < 12 || len(without) < 8 {
		n.t.Fatalf("only %d and %d routes were found", len(withThing), len(without))
	}
	for _, route := range without { // first, for our own audit will have the names that we ask for
		if status, body := n.ask(route, "ours", ""); status >= 500 || strings.Contains(body, theirMark) {
			n.t.Errorf("%s %s: %d, shows what is theirs: %.300s", route.method, route.path, status, body)
		}
	}
	for _, route := range withThing {
		for _, thing := range n.things {
			nothing := nobodys(thing)
			status, body := n.ask(route, "ours", url.PathEscape(thing))
			if status == http.StatusForbidden || status < 300 && !isSourceSwitch(route) || status >= 500 {
				n.t.Errorf("%s %s with their %s: %d %.300s", route.method, route.path, thing, status, body)
			}
			wantStatus, want := n.ask(route, "ours", nothing)
			strip := func(text, name string) string {
				text = ownOfAnAnswer.ReplaceAllString(text, "X")
				if len(name) > 8 {
					text = strings.ReplaceAll(text, name, "X")
				}
				return text
			}
			if route.method == http.MethodGet && (status != wantStatus || !route.page && strip(body, thing) != strip(want, nothing)) {
				n.t.Errorf("%s %s with their %s: %d %.300s\nwith nobody's: %d %.300s", route.method, route.path, thing, status, body, wantStatus, want)
			}
			if strings.Contains(strings.ReplaceAll(body, thing, ""), theirMark) && !strings.Contains(route.path, ":source") {
				n.t.Errorf("%s %s with their %s tells what is theirs: %.300s", route.method, route.path, thing, body)
			}
		}
	}
	if after := n.theirRows(); after != before {
		n.t.Errorf("what is theirs has changed:\n%s\nwas\n%s", after, before)
	}
	// The test of the test: each reading route leads somewhere for those whose the things are.
	for _, route := range withThing {
		if route.method != http.MethodGet || strings.Contains(route.path, "static") {
			continue
		}
		if !slices.ContainsFunc(n.things, func(thing string) bool {
			status, _ := n.ask(route, "theirs", url.PathEscape(thing))
			return status == http.StatusOK
		}) {
			n.t.Errorf("%s leads nowhere for those whose the things are: nothing was tried", route.path)
		}
	}
}

// nobodys is something of the same form that is nobody's.
func nobodys(thing string) string {
	if _, err := uuid.Parse(thing); err == nil {
		return uuid.NewString()
	}
	if strings.Trim(thing, "0123456789") == "" {
		return "999999999"
	}
	return "of-nobody-at-all"
}

// isSourceSwitch: a source is a name that a tenant gives, so one that nobody has used can be paused, and another tenant's of the same
// name is another source.
func isSourceSwitch(route *pathOf) bool { return strings.Contains(route.path, "sources/:source") }

// theirRows is everything that the database has of the other tenant.
func (n *neighbours) theirRows() string {
	n.t.Helper()
	tables, err := n.pool.Query(n.t.Context(), `SELECT table_name FROM information_schema.columns
		WHERE table_schema = 'public' AND column_name = 'tenant_id' ORDER BY 1`)
	if err != nil {
		n.t.Fatal(err)
	}
	names, err := pgx.CollectRows(tables, pgx.RowTo[string])
	if err != nil {
		n.t.Fatal(err)
	}
	var all strings.Builder
	for _, name := range names {
		var rows string
		sql := fmt.Sprintf("SELECT coalesce(string_agg(t::text, E'\\n' ORDER BY t::text), '') FROM %s AS t WHERE tenant_id = 'theirs'", pgx.Identifier{name}.Sanitize())
		if err := n.pool.QueryRow(n.t.Context(), sql).Scan(&rows); err != nil {
			n.t.Fatal(err)
		}
		fmt.Fprintf(&all, "%s: %s\n", name, rows)
	}
	return all.String()
}

type noERPQueue struct{}

func (noERPQueue) InsertRegistrations(context.Context, pgx.Tx, []uuid.UUID, time.Time) error {
	return nil
}
func (noERPQueue) Wake() {}
func (noERPQueue) RegistrationIsQueued(context.Context, pgx.Tx, uuid.UUID) (bool, error) {
	return false, nil
}
func (noERPQueue) InsertReconciliation(context.Context, pgx.Tx, string) error { return nil }

func TestAnotherTenantsThingsDoNotExistOnTheERP(t *testing.T) {
	t.Parallel()
	pool := testdb.ERP(t)
	store := erpstore.New(pool)
	n := newNeighbours(t, pool, store)
	service := invoice.NewService(pool, invoice.Options{Registrations: noERPQueue{}, Reconciliations: noERPQueue{}})
	deps := walkDeps(store)
	deps.Pool = pool
	handler, err := NewERP(ERPDeps{Deps: deps, Invoices: service, Registrations: service, Desk: service, TokenDesk: auth.NewAdmin(store)})
	if err != nil {
		t.Fatal(err)
	}
	n.server = handler.(erp).server

	target := n.plant(`INSERT INTO targets (tenant_id, id, kind, base_url, credential_ref, locatable)
		VALUES ('theirs', 'their-gateway', 'einvoice', 'http://127.0.0.1:1/` + theirMark + `', 'env:X', true) RETURNING id`)
	key := issueTheirs(t, service)
	id := n.plant("SELECT id::text FROM invoices")
	n.things = append(n.things, key)
	n.plant("SELECT number FROM invoices")
	n.plant("SELECT id::text FROM registrations")
	n.plant(`INSERT INTO divergences (tenant_id, kind, owner, subject, ours) VALUES ('theirs', 'held_too_long', 'erp', '` + id + `', '` + theirMark + `') RETURNING id::text`)
	n.plant(`INSERT INTO key_conflicts (tenant_id, operation, key, caller, differences) VALUES ('theirs', 'issue_invoice', '` + key + `', '` + theirMark + `', '{/note}') RETURNING id::text`)
	_ = target
	n.theyStayApart()
}

func issueTheirs(t *testing.T, service *invoice.Service) (key string) {
	t.Helper()
	key = theirMark + "-key"
	parsed, err := idempotency.ParseKey([]string{key})
	if err != nil {
		t.Fatal(err)
	}
	r, err := erpapi.DecodeInvoiceRequest([]byte(`{"source":"` + theirMark + `","order":"` + theirMark + `","role":"final","currency":"EUR","issue_date":"2026-03-02",` +
		`"customer":{"name":"` + theirMark + `","country":"DE","vat_id":"XX000000001"},"lines":[{"sku":"P-1","quantity":"2","unit_price":"10.00","vat_rate":"19","vat_category":"S"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	if got := service.Issue(t.Context(), []invoice.Command{{Tenant: "theirs", Caller: "test", Key: parsed, Request: r}})[0]; got.Err != nil {
		t.Fatal(got.Err)
	}
	return key
}

type noCRMQueue struct{}

func (noCRMQueue) InsertDeliveries(context.Context, pgx.Tx, []uuid.UUID, time.Time) error { return nil }
func (noCRMQueue) Wake()                                                                  {}

func TestAnotherTenantsThingsDoNotExistOnTheCRMSide(t *testing.T) {
	t.Parallel()
	pool := testdb.CRM(t)
	store := crmstore.New(pool)
	n := newNeighbours(t, pool, store)
	service := crm.NewService(pool, noCRMQueue{}, crm.Options{})
	deps := walkDeps(store)
	deps.Pool = pool
	handler, err := NewCRM(CRMDeps{Deps: deps, Orders: service})
	if err != nil {
		t.Fatal(err)
	}
	n.server = handler.(crmSide).server

	quantity, price, rate := erpapi.MustDecimal("2"), erpapi.MustDecimal("10.00"), erpapi.MustDecimal("19")
	_, err = service.Submit(t.Context(), "theirs", crm.ChannelAPI, []crm.Order{{
		Source: theirMark, Order: theirMark, Currency: "EUR", IssueDate: "2026-03-02", Customer: erpapi.Customer{Name: theirMark, Country: "DE", VATID: "XX000000001"},
		Lines: []erpapi.Line{{SKU: "P-1", Quantity: &quantity, UnitPrice: &price, VATRate: &rate, VATCategory: "S"}},
	}}, crm.SubmitOptions{})
	if err != nil {
		t.Fatal(err)
	}
	n.things = append(n.things, theirMark)
	operation := n.plant("SELECT key FROM operations")
	n.plant(`INSERT INTO divergences (tenant_id, kind, owner, subject, ours) VALUES ('theirs', 'missing_in_erp', 'erp', '` + operation + `', '` + theirMark + `') RETURNING id::text`)
	n.plant(`INSERT INTO intake_refusals (tenant_id, channel, problem, detail, source) VALUES ('theirs', 'api', 'invalid-order', '` + theirMark + `', '` + theirMark + `') RETURNING id::text`)
	n.plant(`INSERT INTO imports (id, tenant_id, file_name, format, keep_good, actor) VALUES (gen_random_uuid(), 'theirs', '` + theirMark + `', 'csv', false, 'x') RETURNING id::text`)
	n.plant(`INSERT INTO replay_runs (id, tenant_id, status, reason, source, min_age_seconds, matched, total, started_by, started_because, started_via, started_address, started_request)
		VALUES (gen_random_uuid(), 'theirs', 'failed', '', '` + theirMark + `', 0, 1, 1, '` + theirMark + `', 'x', 'api', '', '') RETURNING id::text`)
	n.plant(`INSERT INTO resolutions (id, tenant_id, operation_id, attempt, verdict, evidence, reason, proposed_by)
		SELECT gen_random_uuid(), 'theirs', id, 1, 'not_applied', '` + theirMark + `', 'x', '` + theirMark + `' FROM operations RETURNING id::text`)
	n.theyStayApart()
}
