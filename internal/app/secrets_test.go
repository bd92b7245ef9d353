package app_test

import (
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"invoicebridge/internal/app"
	"invoicebridge/internal/audit"
	"invoicebridge/internal/auth"
	"invoicebridge/internal/auth/crmstore"
)

const (
	hushDatabase = "hush-database-password"
	hushOIDC     = "hush-oidc-client-secret"
	hushPassword = "hush-password-of-nobody"
	// hushMistyped is a password in the name's field. The page has it in that field again, for whoever typed it, and nobody else.
	hushMistyped = "hush-typed-as-a-name"
)

// Both services go through success and failure with secrets that are told from anything else. None of them stands in a log, an
// answer, a page, the figures, or a row of either database, in the clear or in hexadecimal.
func TestSecretsStandNowhere(t *testing.T) {
	issuer := httptest.NewServer(http.NotFoundHandler()) // a provider that fails
	t.Cleanup(issuer.Close)
	file := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(file, []byte(hushOIDC+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	w := tracing(t, func(_ *app.ERPConfig, crm *app.CRMConfig) {
		crm.Access.OIDC = app.OIDCConfig{Issuer: issuer.URL, ClientID: "bridge", ClientSecretFile: file}
		crm.Access.PublicURL = "http://localhost"
	})
	store := crmstore.New(w.crm)
	admin, by := auth.NewAdmin(store), audit.By{Actor: "test"}
	hash, err := auth.NewHasher().Hash(t.Context(), "ada", hushPassword)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := admin.CreateAccount(t.Context(), auth.Account{Name: "ada", DisplayName: "Ada", Tenant: "acme", Role: auth.RoleAdmin, Service: true, PasswordHash: hash}, by); err != nil {
		t.Fatal(err)
	}
	_, scraper, err := admin.CreateToken(t.Context(), "acme", auth.RoleMetrics, "scraper", by)
	if err != nil {
		t.Fatal(err)
	}
	wrongToken := auth.Format(auth.Generate())
	secrets := append([]string{hushDatabase, hushOIDC, hushPassword, scraper, wrongToken, "hush-wrong-password", "hush-code"}, w.secrets...)

	if password := w.erp.Config().ConnConfig.Password; password != "" { // the server's own, where it asks for one
		secrets = append(secrets, password)
	}

	var told strings.Builder
	ask := func(method, path, cookie, bearer, kind, body string) *http.Response {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, w.crmURL+path, strings.NewReader(body))
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
			r.AddCookie(&http.Cookie{Name: "ib_crm_session", Value: cookie})
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
	session := ""
	for _, cookie := range logIn(hushPassword).Cookies() {
		if cookie.Name == "ib_crm_session" && cookie.Value != "" {
			session = cookie.Value
		}
	}
	if session == "" {
		t.Fatalf("nobody is logged in: %s", told.String())
	}
	secrets = append(secrets, session)
	for _, path := range []string{
		"/dashboard", "/operations", "/audit", "/intake", "/imports", "/sources", "/queue/", "/queue/api/jobs?state=completed&limit=20", "/queue/api/queues",
		"/metrics", "/readyz", "/login/oidc?next=/dashboard", "/login/oidc/callback?code=hush-code&state=x", "/operations/none", "/intake/x",
	} {
		ask("GET", path, session, "", "", "")
	}
	ask("GET", "/metrics", "", scraper, "", "")
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
			for form, hidden := range map[string]string{"in the clear": secret, "in hexadecimal": hex.EncodeToString([]byte(secret)), "escaped": url.QueryEscape(secret)} {
				if at := strings.Index(text, hidden); at >= 0 {
					t.Errorf("%s has %.12s..., %s: ...%s", where, secret, form, text[max(0, at-120):at])
				}
			}
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
