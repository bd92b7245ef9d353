package app_test

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"invoicebridge/internal/app"
	"invoicebridge/internal/audit"
	"invoicebridge/internal/auth"
	"invoicebridge/internal/auth/crmstore"
	"invoicebridge/internal/auth/erpstore"
	"invoicebridge/internal/testdb"
)

const (
	hushDatabase = "hush-database-password"
	hushOIDC     = "hush-oidc-client-secret"
	hushPassword = "hush-password-of-nobody"
	// hushMistyped is a password in the name's field. The page has it in that field again, for whoever typed it, and nobody else.
	hushMistyped = "hush-typed-as-a-name"
)

// Both services go through success and failure with secrets that are told from anything else. None of them stands in a log, an
// answer, a page, the figures, or a row of either database, in any of the forms of formsOf.
func TestSecretsStandNowhere(t *testing.T) {
	issuer := &repeatingIssuer{t: t}
	provider := httptest.NewServer(issuer)
	t.Cleanup(provider.Close)
	file := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(file, []byte(hushOIDC+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	w := tracing(t, func(_ *app.ERPConfig, crm *app.CRMConfig) {
		crm.Access.OIDC = app.OIDCConfig{Issuer: provider.URL, ClientID: "bridge", ClientSecretFile: file}
		crm.Access.PublicURL = "http://localhost"
	})
	hash, err := auth.NewHasher().Hash(t.Context(), "ada", hushPassword)
	if err != nil {
		t.Fatal(err)
	}
	scrapers := map[string]string{}
	for name, store := range map[string]auth.AdminStore{"crm": crmstore.New(w.crm), "erp": erpstore.New(w.erp)} {
		admin, by := auth.NewAdmin(store), audit.By{Actor: "test"}
		account := auth.Account{Name: "ada", DisplayName: "Ada", Tenant: "acme", Role: auth.RoleAdmin, Service: true, PasswordHash: hash}
		if _, err := admin.CreateAccount(t.Context(), account, by); err != nil {
			t.Fatal(err)
		}
		if _, scrapers[name], err = admin.CreateToken(t.Context(), "acme", auth.RoleMetrics, "scraper", by); err != nil {
			t.Fatal(err)
		}
	}
	wrongToken := auth.Format(auth.Generate())
	secrets := append([]string{hushDatabase, hushOIDC, hushPassword, scrapers["crm"], scrapers["erp"], wrongToken, "hush-wrong-password", "hush-code"}, w.secrets...)

	if password := w.erp.Config().ConnConfig.Password; password != "" { // the server's own, where it asks for one
		secrets = append(secrets, password)
	}

	var told strings.Builder
	base, cookieName := w.crmURL, "ib_crm_session"
	ask := func(method, path, cookie, bearer, kind, body string) *http.Response {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, base+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Accept", "text/html,*/*")
		if kind != "" {
			r.Header.Set("Content-Type", kind)
		}
		if bearer != "" {
			r.Header.Set("Authorization", "Bearer "+bearer)
		}
		if cookie != "" {
			r.AddCookie(&http.Cookie{Name: cookieName, Value: cookie})
		}
		answer, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		content, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		bare, _, _ := strings.Cut(path, "?")
		fmt.Fprintf(&told, "%s %s: %d %s\n%v\n", method, bare, answer.StatusCode, content, answer.Header["Location"])
		return answer
	}

	// Through success and failure.
	w.way.Store(wayLoseAnswer)
	w.submit(orderJSON("SO-1"))
	w.awaitRegistered(1)
	const form, js = "application/x-www-form-urlencoded", "application/json"
	logIn := func(password string) *http.Response {
		return ask("POST", "/login", "", "", form, url.Values{"name": {"ada"}, "password": {password}, "next": {"/dashboard"}}.Encode())
	}
	logIn("hush-wrong-password")
	ask("POST", "/login", "", "", form, url.Values{"name": {hushMistyped}, "password": {"x"}}.Encode())
	begin := func() (session string) {
		for _, cookie := range logIn(hushPassword).Cookies() {
			if cookie.Name == cookieName && cookie.Value != "" {
				session = cookie.Value
			}
		}
		if session == "" {
			t.Fatalf("nobody is logged in: %s", told.String())
		}
		secrets = append(secrets, session)
		return session
	}
	session := begin()
	for _, path := range []string{
		"/dashboard", "/operations", "/audit", "/intake", "/imports", "/sources", "/queue/", "/queue/api/jobs?state=completed&limit=20", "/queue/api/queues",
		"/metrics", "/readyz", "/login/oidc?next=/dashboard", "/login/oidc/callback?code=hush-code&state=x", "/operations/none", "/intake/x",
	} {
		ask("GET", path, session, "", "", "")
	}
	for _, status := range []int32{http.StatusBadRequest, http.StatusInternalServerError} {
		issuer.status.Store(status)
		begun := ask("GET", "/login/oidc?next=/dashboard", "", "", "", "")
		address, err := begun.Location()
		if err != nil || len(begun.Cookies()) != 1 {
			t.Fatalf("the log-in by the provider does not begin: %d, %v, %v", begun.StatusCode, err, begun.Cookies())
		}
		flow := begun.Cookies()[0]
		secrets = append(secrets, strings.Split(flow.Value, ".")[2]) // the verifier, which goes to the provider alone
		cookieName = flow.Name
		ask("GET", "/login/oidc/callback?"+url.Values{"code": {"hush-code"}, "state": {address.Query().Get("state")}}.Encode(), flow.Value, "", "", "")
		cookieName = "ib_crm_session"
		if log := w.log.String(); !strings.Contains(log, fmt.Sprint(status)) {
			t.Errorf("the log does not tell that the provider answered %d", status)
		}
	}
	if n := issuer.repeated.Load(); n < 2 { // oauth2 tries a second form of the secret
		t.Fatalf("the provider has repeated code and client secret %d times, want it for each log-in", n)
	}
	ask("GET", "/metrics", "", scrapers["crm"], "", "")
	ask("POST", "/v1/orders", "", wrongToken, js, orderJSON("SO-2"))
	ask("POST", "/v1/orders", "", w.crmToken, js, `{"source":`)
	ask("POST", "/v1/orders", "", w.crmToken, "text/plain", orderJSON("SO-2"))
	ask("GET", "/v1/operations?cursor=x", "", w.crmToken, "", "")
	ask("POST", "/queue/api/jobs/cancel", session, "", js, `{"ids":"x"}`)
	ask("GET", "/v1/none/"+url.PathEscape("x y"), "", w.crmToken, "", "")
	w.way.Store(wayShut)
	w.submit(orderJSON("SO-3"))
	w.way.Store(wayOpen)
	w.awaitRegistered(2)
	// A start that fails tells the address without its password.
	gone := app.ERPConfig{Listen: "127.0.0.1:0", DatabaseURL: "postgres://somebody:" + hushDatabase + "@127.0.0.1:1/none?connect_timeout=2"}
	if err := app.RunERP(t.Context(), gone, w.logger(), nil); err == nil {
		t.Error("it starts without a database")
	} else {
		fmt.Fprintln(&told, err)
		w.logger().Error("start", slog.Any("error", err))
	}
	ask("POST", "/logout", session, "", form, "")

	base, cookieName = w.erpURL, "ib_erp_session"
	logIn("hush-wrong-password")
	session = begin()
	for _, path := range []string{
		"/invoices", "/invoices/export.csv", "/registrations", "/targets", "/tokens", "/conflicts", "/divergences", "/audit", "/queue/",
		"/queue/api/jobs?state=completed&limit=20", "/metrics", "/readyz", "/registrations/x",
	} {
		ask("GET", path, session, "", "", "")
	}
	ask("GET", "/metrics", "", scrapers["erp"], "", "")
	ask("POST", "/v1/invoices", "", wrongToken, js, orderJSON("SO-4"))
	ask("POST", "/v1/invoices", "", w.erpToken, js, `{"source":`)
	ask("GET", "/v1/invoices?cursor=x", "", w.erpToken, "", "")

	everywhere := map[string]string{
		"an answer": told.String(), "the log": w.log.String(), "the ERP's database": everyRow(t, w.erp), "the CRM side's database": everyRow(t, w.crm),
	}
	for _, span := range w.spans.GetSpans() {
		everywhere["a span"] += fmt.Sprintf("%s %s %v %v\n", span.Name, span.Status.Description, span.Attributes, span.Events)
	}
	for where, text := range everywhere {
		if len(text) < 500 {
			t.Errorf("%s is nearly empty: nothing was tried", where)
		}
		for _, secret := range append(secrets, hushMistyped) {
			if secret == hushMistyped && where == "an answer" {
				continue
			}
			if form, before := found(text, secret); form != "" {
				t.Errorf("%s has %.12s..., %s: ...%s", where, secret, form, before)
			}
		}
	}
}

// repeatingIssuer is a provider that answers each exchange of a code with an error that shows the whole request, as some gateways do.
type repeatingIssuer struct {
	t        *testing.T
	status   atomic.Int32
	repeated atomic.Int64 // answers with the code and the client's secret in them
}

func (i *repeatingIssuer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/.well-known/openid-configuration" {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"issuer":"http://%[1]s","authorization_endpoint":"http://%[1]s/authorize","token_endpoint":"http://%[1]s/token","jwks_uri":"http://%[1]s/keys"}`, r.Host)
		return
	}
	asked, err := httputil.DumpRequest(r, true)
	if err != nil {
		i.t.Error(err)
	}
	form, _ := found(string(asked), hushOIDC)
	if form != "" && strings.Contains(string(asked), "hush-code") {
		i.repeated.Add(1)
	}
	w.WriteHeader(int(i.status.Load()))
	_, _ = w.Write(asked)
}

// formsOf are the texts that show somebody who looks for it that a secret is there.
func formsOf(secret string) map[string]string {
	forms := map[string]string{
		"in the clear": secret, "in hexadecimal": hex.EncodeToString([]byte(secret)), "in capital hexadecimal": strings.ToUpper(hex.EncodeToString([]byte(secret))),
		"escaped": url.QueryEscape(secret), "escaped as in a path": url.PathEscape(secret),
	}
	for name, encoding := range map[string]*base64.Encoding{"base64": base64.RawStdEncoding, "base64 for addresses": base64.RawURLEncoding} {
		for offset := range 3 { // what stands before it decides in which of three ways it is written
			text := encoding.EncodeToString([]byte("\x00\x00"[:offset] + secret))
			first, last := (offset*8+5)/6, (offset+len(secret))*8/6 // whole characters of it alone
			forms[fmt.Sprintf("in %s, %d behind", name, offset)] = text[first:last]
		}
	}
	if random, err := base64.RawURLEncoding.DecodeString(secret); err == nil && len(random) == 32 { // a session's: its bytes in a bytea
		forms["as bytes"], forms["as bytes in base64"] = hex.EncodeToString(random), base64.RawStdEncoding.EncodeToString(random)
	}
	return forms
}

// found says in which form a text has a secret, and what stands before it; "" if it has not.
func found(text, secret string) (form, before string) {
	for form, hidden := range formsOf(secret) {
		if at := strings.Index(text, hidden); at >= 0 {
			return form, text[max(0, at-120):at]
		}
	}
	return "", ""
}

// The search above would see a secret, whatever column it is put into and however.
func TestASecretInAColumnIsFound(t *testing.T) {
	t.Parallel()
	pool := testdb.ERP(t)
	if _, err := pool.Exec(t.Context(), "CREATE TABLE kept (a text, b bytea, c jsonb, d text[])"); err != nil {
		t.Fatal(err)
	}
	const secret = "hush+session/value=of?some&length"
	random := []byte("0123456789abcdefghijklmnopqrs\xff\xfe\xfd")
	session := base64.RawURLEncoding.EncodeToString(random)
	if form, _ := found(everyRow(t, pool), secret); form != "" {
		t.Fatalf("found %s where it is not", form)
	}
	for name, plant := range map[string]struct {
		secret, sql string
		arg         any
	}{
		"text":             {secret, "INSERT INTO kept (a) VALUES ($1)", "is " + secret},
		"bytes":            {secret, "INSERT INTO kept (b) VALUES ($1)", []byte("is " + secret)},
		"json":             {secret, "INSERT INTO kept (c) VALUES (jsonb_build_object('password', $1::text))", secret},
		"array":            {secret, "INSERT INTO kept (d) VALUES (ARRAY[$1::text, 'x'])", secret},
		"base64":           {secret, "INSERT INTO kept (a) VALUES (encode($1, 'base64'))", []byte(secret)},
		"base64, 1 behind": {secret, "INSERT INTO kept (a) VALUES ($1)", base64.StdEncoding.EncodeToString([]byte("a" + secret + "bc"))},
		"base64, 2 behind": {secret, "INSERT INTO kept (a) VALUES ($1)", base64.URLEncoding.EncodeToString([]byte("ab" + secret + "c"))},
		"hexadecimal":      {secret, "INSERT INTO kept (a) VALUES ($1)", strings.ToUpper(hex.EncodeToString([]byte(secret)))},
		"an address":       {secret, "INSERT INTO kept (a) VALUES ($1)", "postgres://u:" + url.QueryEscape(secret) + "@host"},
		"a session":        {session, "INSERT INTO kept (a) VALUES ($1)", session},
		"a session, raw":   {session, "INSERT INTO kept (b) VALUES ($1)", random},
		"a session's json": {session, "INSERT INTO kept (c) VALUES (jsonb_build_object('s', $1::text))", base64.StdEncoding.EncodeToString(random)},
	} {
		if _, err := pool.Exec(t.Context(), plant.sql, plant.arg); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if form, _ := found(everyRow(t, pool), plant.secret); form == "" {
			t.Errorf("%s: not found", name)
		}
		if _, err := pool.Exec(t.Context(), "DELETE FROM kept"); err != nil {
			t.Fatal(err)
		}
	}
}

// everyRow is everything that a database holds, River's tables among it.
func everyRow(t *testing.T, pool *pgxpool.Pool) string {
	t.Helper()
	rows, err := pool.Query(t.Context(), "SELECT quote_ident(schemaname) || '.' || quote_ident(tablename) FROM pg_tables WHERE schemaname NOT IN ('pg_catalog', 'information_schema')")
	if err != nil {
		t.Fatal(err)
	}
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, table := range tables {
		var text string
		if err := pool.QueryRow(t.Context(), "SELECT coalesce(string_agg(t::text, E'\\n'), '') FROM "+table+" AS t").Scan(&text); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&all, "%s\n%s\n", table, text)
	}
	return all.String()
}
