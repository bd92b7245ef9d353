package httpapi_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"invoicebridge/internal/audit"
	"invoicebridge/internal/auth"
	"invoicebridge/internal/auth/crmstore"
	"invoicebridge/internal/auth/erpstore"
	"invoicebridge/internal/crm"
	"invoicebridge/internal/httpapi"
	"invoicebridge/internal/invoice"
	"invoicebridge/internal/jobs"
)

// Reading changes nothing (RFC 9110, 9.2.1): links are followed by prefetchers and crawlers, and by whoever gets one sent.
func TestReadingChangesNothing(t *testing.T) {
	t.Parallel()
	t.Run("erp", func(t *testing.T) {
		t.Parallel()
		var handler http.Handler
		e := serveERP(t, func(d *httpapi.ERPDeps) {
			store, invoices := erpstore.New(d.Pool), invoice.NewService(d.Pool, invoice.Options{})
			d.Sessions, d.Desk, d.TokenDesk = auth.NewSessions(store, auth.NewHasher(), auth.SessionOptions{}), invoices, auth.NewAdmin(store)
			handler, _ = httpapi.NewERP(*d)
		})
		first := e.post("k-1", base).wantFirst().invoice()
		e.post("k-1", strings.Replace(base, "10.00", "11.00", 1)).wantProblem(422, "idempotency-key-reused")
		readAll(t, handler, "ib_erp_session", e.pool, erpstore.New(e.pool), "t1", first.ID, "k-1")
	})
	t.Run("crm", func(t *testing.T) {
		s := setupCRM(t)
		inserter, err := jobs.NewInserter(s.pool, nil)
		if err != nil {
			t.Fatal(err)
		}
		store := crmstore.New(s.pool)
		handler, err := httpapi.NewCRM(httpapi.CRMDeps{
			Deps: httpapi.Deps{
				Tokens: auth.NewVerifier(store), Ready: s.pool.Ping, Pool: s.pool,
				Sessions: auth.NewSessions(store, auth.NewHasher(), auth.SessionOptions{}),
			},
			Orders: crm.NewService(s.pool, inserter, crm.Options{}),
		})
		if err != nil {
			t.Fatal(err)
		}
		var submitted crm.Submission
		s.submits("/v1/orders", orderJSON("SO-1", "2"), http.StatusCreated, &submitted)
		readAll(t, handler, "ib_crm_session", s.pool, store, "acme", submitted.Operations[0].Key, "crm-1", "SO-1")
	})
}

// readAll asks for everything that is served by GET, as somebody who may all, once with each of the values for the
// parameters, and holds the database to be what it was.
func readAll(t *testing.T, handler http.Handler, cookie string, pool *pgxpool.Pool, store siteStore, tenant string, values ...string) {
	t.Helper()
	admin, by := auth.NewAdmin(store), audit.By{Actor: "test"}
	account, err := admin.CreateAccount(t.Context(), auth.Account{Tenant: tenant, Name: "root", DisplayName: "Root", Role: auth.RoleAdmin, Service: true}, by)
	if err != nil {
		t.Fatal(err)
	}
	session, err := auth.NewSessions(store, auth.NewHasher(), auth.SessionOptions{}).Begin(t.Context(), account, auth.Origin{})
	if err != nil {
		t.Fatal(err)
	}
	_, token, err := admin.CreateToken(t.Context(), tenant, auth.RoleAdmin, "test", by)
	if err != nil {
		t.Fatal(err)
	}
	before, read := contents(t, pool), 0
	for _, pattern := range httpapi.GetRoutes(handler) {
		for first := range values {
			r := httptest.NewRequest(http.MethodGet, filled(pattern, values[first:]), nil)
			r.AddCookie(&http.Cookie{Name: cookie, Value: session.Value})
			if strings.Contains(pattern, "/v1/") {
				r.Header.Set("Authorization", "Bearer "+token)
			}
			answer := httptest.NewRecorder()
			handler.ServeHTTP(answer, r)
			switch {
			case answer.Code >= 500 || answer.Code == http.StatusUnauthorized || answer.Code == http.StatusForbidden:
				t.Errorf("GET %s: %d\n%.500s", r.URL, answer.Code, answer.Body)
			case answer.Code < 300:
				read++
			}
		}
	}
	if diff := cmp.Diff(before, contents(t, pool)); diff != "" {
		t.Errorf("reading has changed something:\n%s", diff)
	}
	if read < 20 {
		t.Errorf("only %d pages and lists were read", read)
	}
}

// filled puts values into a pattern's parameters, one after the other.
func filled(pattern string, values []string) string {
	parts := strings.Split(pattern, "/")
	for i, part := range parts {
		if strings.HasPrefix(part, ":") || part == "*" {
			parts[i] = values[0]
			if len(values) > 1 {
				values = values[1:]
			}
		}
	}
	return strings.Join(parts, "/")
}

// contents is a checksum of each table.
func contents(t *testing.T, pool *pgxpool.Pool) map[string]string {
	t.Helper()
	ctx := context.Background()
	rows, _ := pool.Query(ctx, "SELECT tablename::text FROM pg_tables WHERE schemaname = 'public'")
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	sums := map[string]string{}
	for _, table := range tables {
		name, sum := pgx.Identifier{table}.Sanitize(), ""
		if err := pool.QueryRow(ctx, "SELECT coalesce(md5(string_agg(t::text, chr(10) ORDER BY t::text)), '') FROM "+name+" t").Scan(&sum); err != nil {
			t.Fatal(err)
		}
		sums[table] = sum
	}
	return sums
}
