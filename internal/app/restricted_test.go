package app_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"invoicebridge/internal/app"
	"invoicebridge/internal/audit"
	"invoicebridge/internal/auth"
	"invoicebridge/internal/auth/crmstore"
	"invoicebridge/internal/auth/erpstore"
	"invoicebridge/internal/tenantdb"
	"invoicebridge/internal/testdb"
)

// restricted makes a user as deploy/postgres has it and gives the same database's address for it. Who gave the address owns the tables.
func restricted(t *testing.T, owner string) (address string) {
	t.Helper()
	user := "service_" + strings.ToLower(rand.Text()[:10])
	pool := connect(t, owner)
	t.Cleanup(func() {
		for _, sql := range []string{"DROP OWNED BY " + user, "DROP ROLE " + user} {
			if _, err := pool.Exec(context.Background(), sql); err != nil {
				t.Errorf("%s: %v", sql, err)
			}
		}
	})
	for _, name := range []string{"create-service-user.sql", "grant-service-user.sql"} {
		runScript(t, pool, name, user)
	}
	runScript(t, pool, "grant-service-user.sql", user) // as after the next migration
	if _, err := pool.Exec(t.Context(), "ALTER ROLE "+user+" PASSWORD 'secret'"); err != nil {
		t.Fatal(err)
	}
	at, err := url.Parse(owner)
	if err != nil {
		t.Fatal(err)
	}
	at.User = url.UserPassword(user, "secret")
	return at.String()
}

// runScript does what psql -v service=USER -f FILE does.
func runScript(t *testing.T, pool *pgxpool.Pool, name, user string) {
	t.Helper()
	text, err := os.ReadFile("../../deploy/postgres/" + name)
	if err != nil {
		t.Fatal(err)
	}
	sql := strings.NewReplacer(`:"service"`, `"`+user+`"`, `:'service'`, `'`+user+`'`).Replace(string(text))
	if _, err := pool.Exec(t.Context(), sql); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

func connect(t *testing.T, address string) *pgxpool.Pool {
	t.Helper()
	config, err := pgxpool.ParseConfig(address)
	if err != nil {
		t.Fatal(err)
	}
	config.MaxConns = 2
	pool, err := pgxpool.NewWithConfig(context.Background(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

// walker calls one service as one program, or as one person.
type walker struct {
	t             *testing.T
	base          string
	token, cookie string
}

// answered is what came of a call.
type answered struct {
	status int
	header http.Header
	body   string
}

// call wants one of these statuses.
func (w walker) call(method, path, body string, header http.Header, want ...int) answered {
	w.t.Helper()
	r, err := http.NewRequestWithContext(w.t.Context(), method, w.base+path, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for name, values := range header {
		r.Header[name] = values
	}
	if w.token != "" {
		r.Header.Set("Authorization", "Bearer "+w.token)
	}
	if w.cookie != "" {
		r.Header.Set("Cookie", w.cookie)
		r.Header.Set("Accept", "text/html")
	}
	response, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		w.t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, status := range want {
		if response.StatusCode == status {
			return answered{status, response.Header, string(text)}
		}
	}
	w.t.Fatalf("%s %s: %d instead of %v: %.500s", method, path, response.StatusCode, want, text)
	return answered{}
}

func key(k string) http.Header { return http.Header{"Idempotency-Key": {`"` + k + `"`}} }

// logIn gives the cookie of a session.
func (w walker) logIn(name, password string) walker {
	w.t.Helper()
	form := url.Values{"name": {name}, "password": {password}, "next": {"/audit"}}.Encode()
	answer := walker{t: w.t, base: w.base}.call("POST", "/login", form, http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}, http.StatusSeeOther)
	for _, cookie := range (&http.Response{Header: answer.header}).Cookies() {
		if strings.HasSuffix(cookie.Name, "_session") && cookie.Value != "" {
			w.token, w.cookie = "", cookie.Name+"="+cookie.Value
			return w
		}
	}
	w.t.Fatal("nobody is logged in")
	return w
}

// settle makes a token and an account of the role admin.
func settle(t *testing.T, store auth.AdminStore) (token string) {
	t.Helper()
	admin, by := auth.NewAdmin(store), audit.By{Actor: "test"}
	_ = admin.CreateTenant(t.Context(), "acme", "Acme", by) // may be there
	hash, err := auth.NewHasher().Hash(t.Context(), "ada", hushPassword)
	if err != nil {
		t.Fatal(err)
	}
	account := auth.Account{Name: "ada", DisplayName: "Ada", Tenant: "acme", Role: auth.RoleAdmin, Service: true, PasswordHash: hash}
	if _, err := admin.CreateAccount(t.Context(), account, by); err != nil {
		t.Fatal(err)
	}
	if _, token, err = admin.CreateToken(t.Context(), "acme", auth.RoleAdmin, "test", by); err != nil {
		t.Fatal(err)
	}
	return token
}

// Each service does its whole work as a user that owns nothing and has just the rights that deploy/postgres gives.
func TestServicesWorkAsUsersThatDoNotOwnTheirTables(t *testing.T) {
	var users struct{ erp, crm string }
	w := tracing(t, func(erp *app.ERPConfig, side *app.CRMConfig) {
		expire(t, erp.DatabaseURL, side.DatabaseURL)
		users.erp, users.crm = restricted(t, erp.DatabaseURL), restricted(t, side.DatabaseURL)
		erp.DatabaseURL, side.DatabaseURL = users.erp, users.crm
	})
	erp := walker{t: t, base: w.erpURL, token: settle(t, erpstore.New(connect(t, users.erp)))}
	side := walker{t: t, base: w.crmURL, token: settle(t, crmstore.New(connect(t, users.crm)))}

	// From the order to the registered invoice, on both sides; then by hand.
	w.submit(orderJSON("SO-1"))
	w.awaitRegistered(1)
	w.way.Store(wayShut)
	w.submit(orderJSON("SO-2"))
	w.submit(orderJSON("SO-3"))
	side.call("POST", "/v1/orders", `{"source":"crm-1","order":"SO-2","status":"cancelled"}`, nil, 200, 201)
	operation := regexp.MustCompile(`"key":"([^"]+)"`).FindStringSubmatch(side.call("GET", "/v1/orders/crm-1/SO-3", "", nil, 200).body)
	if operation == nil {
		t.Fatal("the order has no operation")
	}
	side.call("POST", "/admin/v1/sources/crm-1/pause", `{"reason":"test"}`, nil, 200)
	side.call("POST", "/admin/v1/sources/crm-1/resume", `{"reason":"test"}`, nil, 200)
	side.call("POST", "/admin/v1/operations/"+operation[1]+"/cancel", `{"reason":"test"}`, nil, 200, 202, 409) // an attempt may be at work
	w.way.Store(wayOpen)
	side.call("POST", "/v1/orders", `{"source":`, nil, 400) // is kept among the refused
	side.call("GET", "/v1/operations", "", nil, 200)
	side.call("POST", "/admin/v1/reconciliations", `{"reason":"test"}`, nil, 200, 201, 202)

	// A program issues invoices at the ERP itself.
	body := `{"source":"shop","order":"A-1","role":"final","currency":"EUR","issue_date":"2026-03-02","customer":{"name":"A","country":"DE"},` +
		`"lines":[{"sku":"P","quantity":"1","unit_price":"1.00","vat_rate":"19","vat_category":"S"}]}`
	first := erp.call("POST", "/v1/invoices", body, key("k-1"), 201)
	again := erp.call("POST", "/v1/invoices", body, key("k-1"), 201)
	if again.header.Get("Idempotent-Replayed") != "true" || again.body != first.body {
		t.Errorf("the second answer is %v %s", again.header, again.body)
	}
	erp.call("POST", "/v1/invoices", strings.Replace(body, "1.00", "2.00", 1), key("k-1"), 422)
	erp.call("POST", "/v1/invoices", body, key("k-2"), 409)
	erp.call("POST", "/v1/invoices/batch", `{"invoices":[{"idempotency_key":"k-3","invoice":`+strings.Replace(body, "A-1", "A-3", 1)+`}]}`, nil, 200)
	erp.call("GET", first.header.Get("Location"), "", nil, 200)
	erp.call("GET", "/v1/invoices?source=shop&order=A-1", "", nil, 200)
	erp.call("GET", "/v1/operations/k-1", "", nil, 200)
	erp.call("POST", "/admin/v1/targets/gw/pause", `{"reason":"test"}`, nil, 200)
	erp.call("POST", "/admin/v1/targets/gw/resume", `{"reason":"test"}`, nil, 200)
	erp.call("POST", "/admin/v1/reconciliations", `{"reason":"test"}`, nil, 200, 201, 202)
	for _, path := range []string{"registrations", "divergences", "reconciliations", "conflicts", "audit", "tokens"} {
		erp.call("GET", "/admin/v1/"+path, "", nil, 200)
	}

	// People look at pages.
	for path, person := range map[string]walker{
		"/invoices /invoices?q=A-1 /invoices/export.csv /registrations /targets /divergences /conflicts /tokens /audit /queue/ /queue/api/queues /metrics /readyz": erp.logIn("ada", hushPassword),
		"/dashboard /operations /orders/crm-1/SO-1 /intake /imports /sources /divergences /reconciliations /resolutions /replays /audit /queue/ /queue/api/queues /metrics /readyz": side.logIn("ada",
			hushPassword),
	} {
		for path := range strings.FieldsSeq(path) {
			person.call("GET", path, "", nil, 200)
		}
	}

	testdb.Await(t, "the purges and the reconciliations are over", func() bool {
		var left, open int
		w.scan(w.erp, &left, "SELECT (SELECT count(*) FROM key_conflicts WHERE key = 'old') + (SELECT count(*) FROM idempotency_records WHERE key = 'old')")
		w.scan(w.crm, &open, "SELECT (SELECT count(*) FROM reconciliation_runs WHERE finished_at IS NULL) + (SELECT count(*) FROM inbox_messages WHERE order_id = 'old')")
		w.scan(w.erp, &left, fmt.Sprintf("SELECT %d + (SELECT count(*) FROM reconciliation_runs WHERE finished_at IS NULL)", left))
		return left+open == 0
	})
	for line := range strings.Lines(w.log.String()) {
		if strings.Contains(line, "42501") || strings.Contains(line, "permission denied") || strings.Contains(line, "must be owner") {
			t.Error(line)
		}
	}
}

// expire puts old things into both databases, which the first purge removes.
func expire(t *testing.T, erp, crm string) {
	t.Helper()
	for address, statements := range map[string][]string{
		erp: {
			`INSERT INTO key_conflicts (tenant_id, operation, key, occurred_at, caller, differences) VALUES ('acme', 'o', 'old', now() - interval '900 days', 'c', '{}')`,
			`INSERT INTO idempotency_records (tenant_id, operation, key, fingerprint_version, fingerprint, status, answer_status, resource_id, first_seen_at, completed_at, expires_at)
			 VALUES ('acme', 'issue_invoice', 'old', 1, decode(repeat('00', 32), 'hex'), 'succeeded', 201, gen_random_uuid(), now() - interval '90 days', now(), now() - interval '1 day')`,
		},
		crm: {
			`INSERT INTO tenants (id, name) VALUES ('acme', 'Acme')`,
			`INSERT INTO inbox_messages (tenant_id, source, channel, order_id, version, content_hash, outcome, received_at)
			 VALUES ('acme', 's', 'api', 'old', 1, decode(repeat('00', 32), 'hex'), 'created', now() - interval '900 days')`,
		},
	} {
		pool := connect(t, address)
		for _, sql := range statements {
			if _, err := pool.Exec(t.Context(), sql); err != nil {
				t.Fatalf("%s: %v", sql, err)
			}
		}
	}
}

// What is written once, the schema and what guards both are out of reach of such a user, whatever it sends.
func TestARestrictedUserCanNotChangeWhatIsWrittenOnceNorWhatGuardsIt(t *testing.T) {
	t.Parallel()
	erp, crm := testdb.ERP(t), testdb.CRM(t)
	for _, pool := range []*pgxpool.Pool{erp, crm} {
		if _, err := pool.Exec(t.Context(), "INSERT INTO tenants (id, name) VALUES ('acme', 'Acme'), ('other', 'Other')"); err != nil {
			t.Fatal(err)
		}
	}
	for side, owner := range map[string]*pgxpool.Pool{"erp": erp, "crm": crm} {
		pool := connect(t, restricted(t, testdb.DSN(t, owner)))
		if err := tenantdb.New(pool).Check(t.Context()); err != nil {
			t.Errorf("%s: %v", side, err)
		}
		var all, own int
		if err := tenantdb.New(pool).Unscoped().QueryRow(t.Context(), "SELECT count(*) FROM tenants").Scan(&all); err != nil || all != 2 {
			t.Errorf("%s: the service's own work sees %d tenants, %v", side, all, err)
		}
		if err := tenantdb.New(pool).Of("acme").QueryRow(t.Context(), "SELECT count(*) FROM tenants").Scan(&own); err != nil || own != 1 {
			t.Errorf("%s: work for a tenant sees %d tenants, %v", side, own, err)
		}
		forbidden := []string{
			"UPDATE audit_entries SET actor = 'x'", "DELETE FROM audit_entries", "TRUNCATE audit_entries", "DROP TABLE audit_entries",
			"ALTER TABLE audit_entries DISABLE TRIGGER ALL", "DROP TRIGGER audit_entries_kept ON audit_entries", "DROP POLICY of_the_tenants ON tenants",
			"ALTER TABLE tenants DISABLE ROW LEVEL SECURITY", "CREATE TABLE mine (id int)", "INSERT INTO schema_version (version_id, is_applied) VALUES (99999, true)",
			"DELETE FROM river_migration", "SET session_replication_role = replica", "CREATE ROLE mine", "SELECT pg_read_file('PG_VERSION')",
		}
		if side == "erp" {
			forbidden = append(forbidden, "UPDATE invoices SET gross = 1", "DELETE FROM invoices", "DELETE FROM invoice_lines", "TRUNCATE invoices CASCADE",
				"ALTER TABLE invoices DISABLE TRIGGER USER")
		}
		for _, sql := range forbidden {
			_, err := pool.Exec(t.Context(), sql)
			var told *pgconn.PgError
			if !errors.As(err, &told) || told.Code != "42501" { // insufficient_privilege
				t.Errorf("%s: %s: %v", side, sql, err)
			}
		}
	}
	// Without the attribute the policies would hide every row from the service: it says so instead of starting.
	address := restricted(t, testdb.DSN(t, erp))
	config, err := pgx.ParseConfig(address)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := erp.Exec(t.Context(), "ALTER ROLE "+config.User+" NOBYPASSRLS"); err != nil {
		t.Fatal(err)
	}
	err = app.RunERP(t.Context(), app.ERPConfig{Listen: "127.0.0.1:0", DatabaseURL: address}, (&traced{log: new(syncLog)}).logger(), func(string) { t.Error("it serves") })
	if err == nil || !strings.Contains(err.Error(), config.User) || !strings.Contains(err.Error(), "deploy/postgres") {
		t.Errorf("a user that is held by the policies: %v", err)
	}
}
