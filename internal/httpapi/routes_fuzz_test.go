package httpapi_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/uuid"

	"invoicebridge/internal/audit"
	"invoicebridge/internal/auth"
	"invoicebridge/internal/auth/crmstore"
	"invoicebridge/internal/auth/erpstore"
	"invoicebridge/internal/crm"
	"invoicebridge/internal/httpapi"
	"invoicebridge/internal/invoice"
	"invoicebridge/internal/jobs"
	"invoicebridge/internal/testdb"
)

// served is a service that one caller, who may do everything, asks without a network between.
type served struct {
	http.Handler
	short, token string
	routes       []string // METHOD /path/:with/:parameters
}

const everything = "everything" // the value of the caller's session

// serveEverything serves both services on databases of their own.
func serveEverything(f *testing.F) []served {
	f.Helper()
	crmPool, erpPool := testdb.CRM(f), testdb.ERP(f)
	inserter, err := jobs.NewInserter(crmPool, nil)
	if err != nil {
		f.Fatal(err)
	}
	who := people{everything: {Tenant: "acme", Role: auth.RoleAdmin, Account: uuid.New(), Name: "ada", Service: true}}
	onCRM, onERP := crmstore.New(crmPool), erpstore.New(erpPool)
	invoices := invoice.NewService(erpPool, invoice.Options{Registrations: noQueue{}, Reconciliations: noQueue{}})
	crmSide, err := httpapi.NewCRM(httpapi.CRMDeps{
		Deps:   httpapi.Deps{Tokens: auth.NewVerifier(onCRM), Ready: crmPool.Ping, Pool: crmPool, Sessions: who, Audit: auth.NewAdmin(onCRM)},
		Orders: crm.NewService(crmPool, inserter, crm.Options{Actions: inserter}),
	})
	if err != nil {
		f.Fatal(err)
	}
	erp, err := httpapi.NewERP(httpapi.ERPDeps{
		Deps:     httpapi.Deps{Tokens: auth.NewVerifier(onERP), Ready: erpPool.Ping, Pool: erpPool, Sessions: who, Audit: auth.NewAdmin(onERP)},
		Invoices: invoices, Registrations: invoices, Desk: invoices, TokenDesk: auth.NewAdmin(onERP),
	})
	if err != nil {
		f.Fatal(err)
	}
	both := []served{{Handler: crmSide, short: "crm"}, {Handler: erp, short: "erp"}}
	for i, store := range []auth.AdminStore{onCRM, onERP} {
		admin, by := auth.NewAdmin(store), audit.By{Actor: "test"}
		if err := admin.CreateTenant(f.Context(), "acme", "Acme", by); err != nil {
			f.Fatal(err)
		}
		if _, both[i].token, err = admin.CreateToken(f.Context(), "acme", auth.RoleAdmin, "all", by); err != nil {
			f.Fatal(err)
		}
		list, err := os.ReadFile("testdata/routes-" + both[i].short + ".txt")
		if err != nil {
			f.Fatal(err)
		}
		for line := range strings.Lines(string(list)) {
			method, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
			if path, _, _ := strings.Cut(rest, " "); !strings.HasPrefix(path, httpapi.QueuePrefix) { // River UI is not ours
				both[i].routes = append(both[i].routes, method+" "+path)
			}
		}
	}
	return both
}

// Whatever stands in an address, in its query, in a form or in a body of JSON: no route of either service fails by it. It answers, or
// refuses, with text; an API with a problem; and it leads nowhere but to itself.
func FuzzRoutes(f *testing.F) {
	both := serveEverything(f)
	for which, s := range both {
		for i, route := range s.routes {
			query, form := "", "reason=r&verdict=applied&evidence=e&number=N&id=x&expected=1&filter_older_than=-5m&name=%C3%A9&role=reader"
			switch {
			case strings.HasPrefix(route, "GET "):
				query, form = "limit=1&cursor=x", ""
			case strings.Contains(route, "/v1/"):
				form = `{"reason":"r","verdict":"applied","evidence":"e","invoice":{"id":"x","number":"\u0000"},"filter":{"min_age_seconds":-1},"expected_count":1,"request":{},"order":{}}`
			}
			parameters := []string{"x"}
			if strings.Contains(route, ":") {
				parameters = []string{"018f0000-0000-7000-8000-000000000001", "\x00", "\xff"}
			}
			for _, parameter := range parameters {
				f.Add(which == 1, uint8(i), parameter, query, form)
			}
		}
	}
	for _, asked := range [][]string{ // a route with queries
		{"GET /orders/new", "source=%ff"}, {"GET /operations", "q=%ff", "older_than=-1h", "older_than=2562047h", "status=%00"}, {"GET /audit", "actor=%ff", "subject=%00"},
		{"GET /v1/operations", "source=%ff"}, {"GET /dashboard", "x=%zz"}, {"GET /intake", "from=9999-12-31&to=9999-12-31", "from=0000-01-01", "source=%C0"}, {"GET /invoices", "q=%ff", "from=9999-12-31&to=9999-12-31"},
		{"GET /v1/invoices", "created_from=9999-12-31T23:59:59-23:59", "number=%ff", "limit=1&cursor=AQAAAAAAAAAA"}, {"GET /divergences", "kind=%ff", "after=x&before=y"}, {"GET /registrations", "target=%ff", "status=%00"},
	} {
		for which, s := range both {
			for i, own := range s.routes {
				for _, query := range asked[1:] {
					if own == asked[0] {
						f.Add(which == 1, uint8(i), "", query, "")
					}
				}
			}
		}
	}
	f.Add(false, uint8(0), "x", "", orderJSON("SO-1", `"2"`))
	f.Fuzz(func(t *testing.T, erp bool, which uint8, parameter, rawQuery, body string) {
		s := both[0]
		if erp {
			s = both[1]
		}
		method, path, _ := strings.Cut(s.routes[int(which)%len(s.routes)], " ")
		parts := strings.Split(path, "/")
		for i, part := range parts {
			if strings.HasPrefix(part, ":") {
				parts[i] = url.PathEscape(parameter)
			}
		}
		path = strings.Join(parts, "/")
		r, err := http.NewRequestWithContext(t.Context(), method, "http://public.test"+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.URL.RawQuery, r.RequestURI, r.RemoteAddr = rawQuery, path+"?"+rawQuery, "192.0.2.1:4711"
		isAPI := strings.HasPrefix(path, "/v1/") || strings.HasPrefix(path, "/admin/v1/")
		if isAPI {
			r.Header.Set("Authorization", "Bearer "+s.token)
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("Idempotency-Key", "k-1")
		} else {
			r.AddCookie(&http.Cookie{Name: "ib_" + s.short + "_session", Value: everything})
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			r.Header.Set("Accept", "text/html")
		}
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		asked := fmt.Sprintf("%s %s %s?%q %q", s.short, method, path, rawQuery, body)
		if w.Code >= 500 && w.Code != http.StatusServiceUnavailable {
			t.Fatalf("%s: %d %.300s", asked, w.Code, w.Body)
		}
		kind := w.Header().Get("Content-Type")
		if (strings.HasPrefix(kind, "text/") || strings.Contains(kind, "json")) && !utf8.Valid(w.Body.Bytes()) {
			t.Fatalf("%s: the answer is no text: %.300q", asked, w.Body)
		}
		if isAPI && w.Code >= 400 && kind != "application/problem+json" {
			t.Fatalf("%s: %d as %q: %.300s", asked, w.Code, kind, w.Body)
		}
		if to := w.Header().Get("Location"); to != "" {
			led, err := url.Parse(to)
			if err != nil || led.Host != "" || led.Scheme != "" || !strings.HasPrefix(to, "/") || strings.HasPrefix(to, "//") {
				t.Fatalf("%s leads to %q", asked, to)
			}
		}
	})
}
