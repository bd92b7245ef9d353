package httpapi_test

import (
	"context"
	"encoding/csv"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"invoicebridge/internal/audit"
	"invoicebridge/internal/auth"
	"invoicebridge/internal/auth/erpstore"
	"invoicebridge/internal/crm"
	"invoicebridge/internal/erpapi"
	"invoicebridge/internal/httpapi"
	"invoicebridge/internal/idempotency"
	"invoicebridge/internal/invoice"
	"invoicebridge/internal/orderfile"
	"invoicebridge/internal/testdb"
)

// consoleERP is the ERP with its console: ada operates, sam looks, adm administers.
type consoleERP struct {
	site
	invoices *invoice.Service
}

// noQueue takes jobs and forgets them.
type noQueue struct{}

func (noQueue) InsertRegistrations(context.Context, pgx.Tx, []uuid.UUID, time.Time) error { return nil }

func (noQueue) Wake() {}

func (noQueue) RegistrationIsQueued(context.Context, pgx.Tx, uuid.UUID) (bool, error) {
	return false, nil
}

func (noQueue) InsertReconciliation(context.Context, pgx.Tx, string) error { return nil }

func startConsole(t *testing.T) consoleERP {
	t.Helper()
	t.Parallel()
	pool := testdb.ERP(t)
	store := erpstore.New(pool)
	e := consoleERP{invoices: invoice.NewService(pool, invoice.Options{Registrations: noQueue{}, Reconciliations: noQueue{}})}
	handler, err := httpapi.NewERP(httpapi.ERPDeps{
		Deps: httpapi.Deps{
			Tokens: auth.NewVerifier(store), Ready: pool.Ping, Pool: pool, Sessions: auth.NewSessions(store, auth.NewHasher(), auth.SessionOptions{}),
		},
		Invoices: e.invoices, Registrations: e.invoices, Desk: e.invoices, TokenDesk: auth.NewAdmin(store),
	})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	e.site = site{t, server.URL, "erp", pool, auth.NewAdmin(store)}
	e.people()
	hash, err := auth.NewHasher().Hash(t.Context(), "adm", password)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.admin.CreateAccount(t.Context(), auth.Account{Name: "adm", DisplayName: "Adm", Role: auth.RoleAdmin, Tenant: "acme", PasswordHash: hash}, audit.By{Actor: "test"}); err != nil {
		t.Fatal(err)
	}
	return e
}

func (e consoleERP) as(name string) *browser {
	e.t.Helper()
	b := e.browser()
	b.logIn(name, password, "/docs").wantRedirect("/docs")
	return b
}

func (e consoleERP) issue(key string, request []byte) erpapi.Invoice {
	e.t.Helper()
	parsed, err := idempotency.ParseKey([]string{key})
	if err != nil {
		e.t.Fatal(err)
	}
	r, err := erpapi.DecodeInvoiceRequest(request)
	if err != nil {
		e.t.Fatal(err)
	}
	result := e.invoices.Issue(e.t.Context(), []invoice.Command{{Tenant: "acme", Caller: "test", Key: parsed, Request: r}})[0]
	if result.Err != nil {
		e.t.Fatalf("%s: %v", request, result.Err)
	}
	return answer{t: e.t, body: result.Answer.Document}.invoice()
}

// O1.
func TestHostileTextsStayTextOnEveryPageOfTheERP(t *testing.T) {
	e := startConsole(t)
	b := e.as("adm")
	for i, name := range []string{
		`<img src=x onerror=alert(1)>`, `"><svg onload=alert(1)>`, `</script><script>1</script>`, `javascript:alert(1)`, `{{7*7}}`,
	} {
		inv := e.issue(fmt.Sprint("K", i), []byte(strings.NewReplacer("Test Customer A", strings.ReplaceAll(name, `"`, `\"`), "SO-1001", strings.ReplaceAll(name, `"`, `\"`)).Replace(base)))
		if got := b.get("/invoices/" + inv.ID).page().text("article .customer"); got != name {
			t.Errorf("the document names %q, want %q", got, name)
		}
		found := b.get("/invoices?q=" + url.QueryEscape(name)).page()
		if n := len(found.all("table.invoices tbody tr")); n != 1 {
			t.Errorf("%q finds %d invoices, want 1", name, n)
		}
	}
	for _, path := range []string{"/invoices", "/registrations", "/targets", "/divergences", "/conflicts", "/tokens", "/audit"} {
		a := b.get(path)
		p := a.page()
		if len(p.all("img")) != 0 || len(p.all("main script")) != 0 || strings.Contains(string(a.body), "49") && path == "/invoices" && strings.Contains(string(a.body), ">49<") {
			t.Errorf("%s has elements of a name", path)
		}
		if p.text("h1") == "" || p.text("title") == "" {
			t.Errorf("%s has no title", path)
		}
	}
}

func TestWhoOnlyLooksHasNoButtonsAndWhoOperatesHas(t *testing.T) {
	e := startConsole(t)
	inv := e.issue("K-1", []byte(base))
	plant := erp{t: t, pool: e.pool}
	plant.exec("INSERT INTO tenants (id, name) VALUES ('t1', 'T') ON CONFLICT DO NOTHING")
	plant.exec("INSERT INTO targets (tenant_id, id, kind, base_url, credential_ref, locatable) VALUES ('acme', 'gateway', 'einvoice', 'http://127.0.0.1:1', 'env:X', true)")
	plant.exec(`INSERT INTO registrations (id, tenant_id, invoice_id, target_id, key, status, attempt, next_attempt_at)
		VALUES ('6f1f1f0e-8f3c-4f5e-9b0a-2d5b7c9e1a34', 'acme', '` + inv.ID + `', 'gateway', 'K-1', 'unknown', 0, now())`)
	viewer, operator := e.as("sam"), e.as("ada")
	one := "/registrations/6f1f1f0e-8f3c-4f5e-9b0a-2d5b7c9e1a34"
	for _, path := range []string{"/targets", one, "/divergences"} {
		if n := len(viewer.get(path).page().all("main .action")); n != 0 {
			t.Errorf("%s has %d buttons for who only looks", path, n)
		}
		if n := len(operator.get(path).page().all("main .action")); n == 0 {
			t.Errorf("%s has no button for who operates", path)
		}
	}
	reason := url.Values{"reason": {"maintenance"}}
	if a := viewer.do(http.MethodPost, "/targets/gateway/pause", reason); a.status != http.StatusForbidden {
		t.Errorf("who only looks pauses: %d", a.status)
	}
	operator.do(http.MethodPost, "/targets/gateway/pause", reason).wantRedirect("/targets")
	if a := operator.do(http.MethodPost, "/targets/gateway/pause", reason); a.status != http.StatusConflict || !strings.Contains(string(a.body), "paused already") {
		t.Errorf("a second pause: %d %.500s", a.status, a.body)
	}
	if a := operator.do(http.MethodPost, one+"/replay", reason); a.status != http.StatusConflict || !strings.Contains(string(a.body), "resume the target first") {
		t.Errorf("a replay at a paused target: %d", a.status)
	}
	operator.do(http.MethodPost, "/targets/gateway/resume", reason).wantRedirect("/targets")
	operator.do(http.MethodPost, "/divergences/reconcile", reason).wantRedirect("/divergences#comparisons")
	if n := e.count("audit_entries WHERE actor = 'ada' AND via = 'console' AND reason = 'maintenance'"); n != 3 {
		t.Errorf("%d audit entries, want 3", n)
	}
}

func TestATokenMadeOnThePageIsShownOnceAndCanBeRevoked(t *testing.T) {
	e := startConsole(t)
	b := e.as("adm")
	if a := e.as("ada").get("/tokens"); a.status != http.StatusForbidden {
		t.Errorf("an operator sees the tokens: %d", a.status)
	}
	made := b.do(http.MethodPost, "/tokens", url.Values{"label": {"the CRM"}, "role": {"writer"}, "reason": {"new"}})
	text := made.page().text(".new-token .secret")
	id := strings.Split(text, "_")[1]
	if strings.Contains(string(b.get("/tokens").body), text) {
		t.Error("the secret is shown again")
	}
	b.do(http.MethodPost, "/tokens/"+id+"/revoke", url.Values{"reason": {"over"}}).wantRedirect("/tokens")
	if a := b.do(http.MethodPost, "/tokens/"+id+"/revoke", url.Values{"reason": {"over"}}); a.status != http.StatusConflict {
		t.Errorf("revoked twice: %d", a.status)
	}
	if a := b.do(http.MethodPost, "/tokens", url.Values{"label": {"x"}, "role": {"metrics"}, "reason": {"new"}}); a.status != http.StatusBadRequest {
		t.Errorf("a tenant's administrator makes a token for all tenants' figures: %d", a.status)
	}
}

type noJobs struct{}

func (noJobs) InsertDeliveries(context.Context, pgx.Tx, []uuid.UUID, time.Time) error { return nil }
func (noJobs) Wake()                                                                  {}

// N6, M1.
func TestTheExportIsSafeAgainstFormulasAndReadsAsTheOrdersBehindIt(t *testing.T) {
	e := startConsole(t)
	pool := testdb.CRM(t)
	if _, err := pool.Exec(t.Context(), "INSERT INTO tenants (id, name) VALUES ('acme', 'Acme')"); err != nil {
		t.Fatal(err)
	}
	side := crm.NewService(pool, noJobs{}, crm.Options{})
	names := []string{"=1+1", "+49 30 1", "-2+3", "@x", `Miller, "M"; x`, "'=x"}
	var orders []crm.Order
	for i, name := range names {
		price := []string{"-5.00", "-0.01", "10000000000.00", "0.051426", "20.10", "1000000"}[i]
		quantity, p, zero := erpapi.MustDecimal("1"), erpapi.MustDecimal(price), erpapi.MustDecimal("0")
		orders = append(orders, crm.Order{
			Source: "shop", Order: []string{"=A", "1E+05", "-3", "SO-4", "00123", "@6"}[i], Currency: "EUR", IssueDate: "2026-03-02",
			Customer: erpapi.Customer{Name: name, Country: "DE", Address: "\t=1\rand\nmore"}, Metadata: map[string]string{"a,b": "=2", "empty": ""},
			Lines: []erpapi.Line{{Description: "=cmd", Quantity: &quantity, UnitPrice: &p, VATRate: &zero, VATCategory: "Z"}},
		})
	}
	if _, err := side.Submit(t.Context(), "acme", crm.ChannelAPI, orders, crm.SubmitOptions{}); err != nil {
		t.Fatal(err)
	}
	rows, err := pool.Query(t.Context(), "SELECT key, request FROM operations")
	if err != nil {
		t.Fatal(err)
	}
	type sent struct {
		Key     string
		Request []byte
	}
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[sent])
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range all {
		e.issue(s.Key, s.Request)
	}
	a := e.as("sam").get("/invoices/export.csv")
	if a.status != 200 || !strings.HasPrefix(a.header.Get("Content-Type"), "text/csv") {
		t.Fatalf("got %d %s", a.status, a.header.Get("Content-Type"))
	}
	table, err := csv.NewReader(strings.NewReader(string(a.body))).ReadAll()
	if err != nil || len(table) != 1+len(names) {
		t.Fatalf("%d rows, %v", len(table), err)
	}
	numeric := []string{"order_total", "sequence", "expected_gross", "line", "quantity", "unit_price", "discount", "vat_rate", "invoice.line_net", "invoice.net", "invoice.vat", "invoice.gross", "invoice.payable"}
	var grosses []string
	for _, row := range table[1:] {
		for i, cell := range row {
			if cell != "" && strings.ContainsRune("=+-@\t\r", rune(cell[0])) && !slices.Contains(numeric, table[0][i]) {
				t.Errorf("%s is %q, which a spreadsheet would run", table[0][i], cell)
			}
		}
		grosses = append(grosses, row[slices.Index(table[0], "invoice.gross")])
	}
	for _, want := range []string{"-5.00", "-0.01", "10000000000.00", "20.10", "1000000.00"} {
		if !slices.Contains(grosses, want) {
			t.Errorf("gross %s is not in the file: %v", want, grosses)
		}
	}
	before := e.count("invoices")
	report, err := orderfile.Import(t.Context(), side, strings.NewReader(string(a.body)), orderfile.ImportOptions{
		Options: orderfile.Options{Format: orderfile.CSV}, Name: "invoices.csv", Tenant: "acme",
	})
	if err != nil || report.Refusal != "" || report.Counts[orderfile.AlreadyThere] != len(names) {
		t.Errorf("importing it again: %v, %+v", err, report)
	}
	var operations int
	if err := pool.QueryRow(t.Context(), "SELECT count(*) FROM operations").Scan(&operations); err != nil || operations != len(names) || e.count("invoices") != before {
		t.Errorf("%d operations, %d invoices: %v", operations, e.count("invoices"), err)
	}
}
