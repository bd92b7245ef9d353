package httpapi_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgxpool"

	"invoicebridge/internal/audit"
	"invoicebridge/internal/auth"
	"invoicebridge/internal/auth/crmstore"
	"invoicebridge/internal/crm"
	"invoicebridge/internal/httpapi"
	"invoicebridge/internal/jobs"
	"invoicebridge/internal/problem"
	"invoicebridge/internal/testdb"
)

// crmServer is the CRM side's HTTP side on a database of its own.
type crmServer struct {
	t              *testing.T
	url            string
	pool           *pgxpool.Pool
	admin          *auth.Admin
	writer, reader string
}

func setupCRM(t *testing.T) *crmServer {
	t.Helper()
	t.Parallel()
	pool := testdb.CRM(t)
	store := crmstore.New(pool)
	handler, err := httpapi.NewCRM(crmDeps(t, pool))
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	s := &crmServer{t: t, url: server.URL, pool: pool, admin: auth.NewAdmin(store)}
	s.writer, s.reader = s.token("acme", auth.RoleWriter), s.token("acme", auth.RoleReader)
	return s
}

// crmDeps are what the CRM side's HTTP side works with.
func crmDeps(t *testing.T, pool *pgxpool.Pool) httpapi.CRMDeps {
	t.Helper()
	inserter, err := jobs.NewInserter(pool, nil)
	if err != nil {
		t.Fatal(err)
	}
	return httpapi.CRMDeps{
		Deps: httpapi.Deps{
			Tokens: auth.NewVerifier(crmstore.New(pool)), Ready: func(ctx context.Context) error { return pool.Ping(ctx) }, Pool: pool,
		},
		Orders: crm.NewService(pool, inserter, crm.Options{Actions: inserter}),
	}
}

// token makes the tenant, if need be, and a token.
func (s *crmServer) token(tenant string, role auth.Role) string {
	s.t.Helper()
	by := audit.By{Actor: "test"}
	_ = s.admin.CreateTenant(context.Background(), tenant, tenant, by) // it may be there
	_, text, err := s.admin.CreateToken(context.Background(), tenant, role, "test", by)
	if err != nil {
		s.t.Fatal(err)
	}
	return text
}

// call sends a request and reads the answer into v, unless that is nil.
func (s *crmServer) call(method, path, token, body string, v any) *http.Response {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.url+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer answer.Body.Close()
	content, err := io.ReadAll(answer.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	checkCRMAnswer(s.t, r, answer, content)
	if v != nil {
		if err := json.Unmarshal(content, v); err != nil {
			s.t.Fatalf("answer %d %s: %v", answer.StatusCode, content, err)
		}
	}
	return answer
}

// submits posts orders and wants the status.
func (s *crmServer) submits(path, body string, status int, v any) *http.Response {
	s.t.Helper()
	answer := s.call(http.MethodPost, path, s.writer, body, v)
	if answer.StatusCode != status {
		s.t.Fatalf("status is %d, want %d: %+v", answer.StatusCode, status, v)
	}
	return answer
}

func (s *crmServer) count(from string) (n int) {
	s.t.Helper()
	if err := s.pool.QueryRow(context.Background(), "SELECT count(*) FROM "+from).Scan(&n); err != nil {
		s.t.Fatal(err)
	}
	return n
}

func (s *crmServer) holds(orders, operations, jobs int) {
	s.t.Helper()
	got := [3]int{s.count("orders"), s.count("operations"), s.count("river_job")}
	if want := [3]int{orders, operations, jobs}; got != want {
		s.t.Errorf("orders, operations, jobs are %v, want %v", got, want)
	}
}

type problemDocument struct {
	Type   string               `json:"type"`
	Title  string               `json:"title"`
	Status int                  `json:"status"`
	Detail string               `json:"detail"`
	Errors []problem.FieldError `json:"errors"`
}

type report struct {
	Submissions []crm.Submission    `json:"submissions"`
	Counts      map[crm.Outcome]int `json:"counts"`
}

func orderJSON(id, quantity string) string {
	return fmt.Sprintf(`{"source":"crm-1","order":%q,"currency":"EUR","issue_date":"2026-03-02","customer":{"name":"A","country":"DE"},
		"lines":[{"sku":"P-1","quantity":%s,"unit_price":"10.00","vat_rate":19,"vat_category":"S"}]}`, id, quantity)
}

func arrayOf(orders ...string) string { return "[" + strings.Join(orders, ",") + "]" }

func TestOneOrderIsAnsweredWithItsSubmission(t *testing.T) {
	s := setupCRM(t)
	var first, again crm.Submission
	answer := s.submits("/v1/orders", orderJSON("SO-1", `"2"`), http.StatusCreated, &first)
	if got := answer.Header.Get("Location"); got != "/v1/orders/crm-1/SO-1" {
		t.Errorf("Location is %q", got)
	}
	s.submits("/v1/orders", orderJSON("SO-1", `2.0`), http.StatusOK, &again)
	if first.Outcome != crm.OutcomeCreated || again.Outcome != crm.OutcomeAlreadyThere {
		t.Errorf("outcomes are %s and %s", first.Outcome, again.Outcome)
	}
	if diff := cmp.Diff(first.Operations, again.Operations); diff != "" {
		t.Error(diff)
	}
	s.holds(1, 1, 1)
}

func TestArrayIsAnsweredPerItem(t *testing.T) {
	s := setupCRM(t)
	var r report
	s.submits("/v1/orders", arrayOf(orderJSON("SO-1", "1"), orderJSON("SO-2", "1"), orderJSON("SO-1", "1")), http.StatusCreated, &r)
	want := map[crm.Outcome]int{crm.OutcomeCreated: 2, crm.OutcomeAlreadyThere: 1}
	if diff := cmp.Diff(want, r.Counts); diff != "" || r.Submissions[2].Outcome != crm.OutcomeAlreadyThere {
		t.Errorf("%s\n%+v", diff, r.Submissions)
	}
	s.submits("/v1/orders", arrayOf(orderJSON("SO-1", "1")), http.StatusOK, &r)
	s.holds(2, 2, 2)
}

func TestBadMemberOfAnArrayIsToldWithItsPointerAndNothingIsStored(t *testing.T) {
	s := setupCRM(t)
	good := orderJSON("SO-1", "1")
	for _, c := range []struct {
		name, bad string
		status    int
		kind      string
		pointer   string
	}{
		{"no decimal", orderJSON("SO-2", `"1,5"`), 422, "invalid-order", "/3/lines/0/quantity"},
		{"wrong JSON type", orderJSON("SO-2", `true`), 400, "malformed-request", "/3/lines/0/quantity"},
		{"unknown member", strings.Replace(good, `"sku"`, `"Sku"`, 1), 400, "malformed-request", "/3/lines/0/Sku"},
		{"not an object", `null`, 400, "malformed-request", "/3"},
	} {
		var p problemDocument
		s.submits("/v1/orders", arrayOf(good, good, good, c.bad), c.status, &p)
		if p.Type != "/problems/"+c.kind || len(p.Errors) != 1 || p.Errors[0].Pointer != c.pointer {
			t.Errorf("%s: problem is %+v", c.name, p)
		}
	}
	s.holds(0, 0, 0)
}

func TestKeepGoodStoresTheGoodAndReportsTheRest(t *testing.T) {
	s := setupCRM(t)
	var r report
	s.submits("/v1/orders?keep_good=true", arrayOf(`7`, orderJSON("SO-1", "1"), orderJSON("SO-2", `"x"`), orderJSON("SO-3", "1")), http.StatusCreated, &r)
	var outcomes []crm.Outcome
	for _, sub := range r.Submissions {
		outcomes = append(outcomes, sub.Outcome)
	}
	want := []crm.Outcome{crm.OutcomeRefused, crm.OutcomeCreated, crm.OutcomeRefused, crm.OutcomeCreated}
	if diff := cmp.Diff(want, outcomes); diff != "" {
		t.Error(diff)
	}
	s.holds(2, 2, 2)
}

func TestOneRefusedOrderIsToldWithoutAnIndex(t *testing.T) {
	s := setupCRM(t)
	var p problemDocument
	s.submits("/v1/orders", orderJSON("SO-1", "null"), 422, &p)
	if p.Type != "/problems/invalid-order" || len(p.Errors) != 1 || p.Errors[0].Pointer != "/lines/0/quantity" {
		t.Errorf("problem is %+v", p)
	}
	versioned := func(quantity string) string {
		return strings.Replace(orderJSON("SO-1", quantity), "{", `{"version":3,`, 1)
	}
	s.submits("/v1/orders", versioned("1"), http.StatusCreated, nil)
	s.submits("/v1/orders", versioned("2"), http.StatusConflict, &p)
	if p.Type != "/problems/version-conflict" || p.Detail != "Version 3 is known with other content." {
		t.Errorf("problem is %+v", p)
	}
}

func TestOnlyWritersSubmitAndEverybodyNeedsAToken(t *testing.T) {
	s := setupCRM(t)
	body := orderJSON("SO-1", "1")
	for _, c := range []struct {
		method, path, token string
		status              int
	}{
		{http.MethodPost, "/v1/orders", "", 401},
		{http.MethodPost, "/v1/orders", "ibt_aaaaaaaaaaaaaaaa_" + strings.Repeat("0", 64), 401},
		{http.MethodPost, "/v1/orders", s.reader, 403},
		{http.MethodGet, "/v1/operations", "", 401},
		{http.MethodGet, "/v1/operations", s.reader, 200},
		{http.MethodGet, "/v1/orders/crm-1/SO-1", "", 401},
		{http.MethodGet, "/v1/operations/k", "", 401},
	} {
		if got := s.call(c.method, c.path, c.token, body, nil).StatusCode; got != c.status {
			t.Errorf("%s %s with %.8q: %d, want %d", c.method, c.path, c.token, got, c.status)
		}
	}
	s.holds(0, 0, 0)
}

func TestOrdersAndOperationsAreReadByTheirTenantOnly(t *testing.T) {
	s := setupCRM(t)
	const id = "SO/1 ä"
	var sub crm.Submission
	location := s.submits("/v1/orders", orderJSON(id, "1"), http.StatusCreated, &sub).Header.Get("Location")
	var order crm.OrderDetail
	if got := s.call(http.MethodGet, location, s.reader, "", &order).StatusCode; got != 200 || order.Order != id || len(order.Operations) != 1 {
		t.Errorf("%d, %+v", got, order)
	}
	var op crm.Operation
	operation := "/v1/operations/" + sub.Operations[0].Key
	if got := s.call(http.MethodGet, operation, s.reader, "", &op).StatusCode; got != 200 || op.Status != crm.StatusPending {
		t.Errorf("%d, %+v", got, op)
	}
	var page struct {
		Items      []crm.Operation `json:"items"`
		NextCursor *string         `json:"next_cursor"`
	}
	s.call(http.MethodGet, "/v1/operations?status=pending&limit=1", s.reader, "", &page)
	if len(page.Items) != 1 || page.NextCursor != nil {
		t.Errorf("page is %+v", page)
	}
	stranger := s.token("other", auth.RoleAdmin)
	for _, path := range []string{location, operation} {
		if got := s.call(http.MethodGet, path, stranger, "", nil).StatusCode; got != 404 {
			t.Errorf("%s is shown to another tenant: %d", path, got)
		}
	}
	if got := s.call(http.MethodGet, "/v1/operations?status=done", s.reader, "", nil).StatusCode; got != 400 {
		t.Errorf("unknown status: %d", got)
	}
}

func TestBodiesThatAreNoOrdersAreRefused(t *testing.T) {
	s := setupCRM(t)
	for _, c := range []struct {
		name, body string
		status     int
	}{
		{"empty", "", 400},
		{"null", "null", 400},
		{"text", `"x"`, 400},
		{"cut", orderJSON("SO-1", "1")[:40], 400},
		{"two orders", orderJSON("SO-1", "1") + orderJSON("SO-2", "1"), 400},
		{"cut array", "[" + orderJSON("SO-1", "1"), 400},
		{"too many", "[" + strings.Repeat("{},", 10_000) + "{}]", 413},
		{"too long", "[" + strings.Repeat(" ", 10<<20) + "]", 413},
	} {
		if got := s.call(http.MethodPost, "/v1/orders", s.writer, c.body, nil).StatusCode; got != c.status {
			t.Errorf("%s: %d, want %d", c.name, got, c.status)
		}
	}
	if got := s.call(http.MethodPost, "/v1/orders?keep_good=yes", s.writer, "[]", nil).StatusCode; got != 400 {
		t.Errorf("keep_good=yes: %d", got)
	}
	s.holds(0, 0, 0)
}

func TestManyOrdersInOneRequest(t *testing.T) {
	s := setupCRM(t)
	var body bytes.Buffer
	for i := range 5000 {
		body.WriteString(orderJSON(fmt.Sprintf("SO-%d", i), "1") + ",")
	}
	var r report
	s.submits("/v1/orders", "["+strings.TrimSuffix(body.String(), ",")+"]", http.StatusCreated, &r)
	if r.Counts[crm.OutcomeCreated] != 5000 {
		t.Errorf("counts are %v", r.Counts)
	}
	s.holds(5000, 5000, 5000)
}

func TestCRMProbesAndPagesNeedNoToken(t *testing.T) {
	s := setupCRM(t)
	for _, path := range []string{"/healthz", "/readyz", "/", "/login", "/docs", "/openapi.yaml", "/order.schema.json", "/problems/invalid-order", "/problems/version-conflict"} {
		if got := s.call(http.MethodGet, path, "", "", nil).StatusCode; got != 200 {
			t.Errorf("%s: %d", path, got)
		}
	}
}
