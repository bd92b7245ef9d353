package deploy

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"invoicebridge/internal/app"
	"invoicebridge/internal/audit"
	"invoicebridge/internal/auth"
	"invoicebridge/internal/auth/crmstore"
	"invoicebridge/internal/auth/erpstore"
	"invoicebridge/internal/testdb"
)

// service is one of the two, running as in production, with its tokens.
type service struct {
	name string
	url  string
	pool *pgxpool.Pool
	// tokens by role
	tokens map[auth.Role]string
}

// services starts both, with one tenant, for the time of the test.
func services(t *testing.T) (erp, crm service) {
	t.Helper()
	erp = service{name: "erp", pool: testdb.ERP(t)}
	erp.tokens = tokens(t, auth.NewAdmin(erpstore.New(erp.pool)))
	erp.url = run(t, func(ctx context.Context, ready func(string)) error {
		cfg := app.ERPConfig{Listen: "127.0.0.1:0", DatabaseURL: testdb.DSN(t, erp.pool)}
		return app.RunERP(ctx, cfg, slog.New(slog.DiscardHandler), ready)
	})
	crm = service{name: "crm", pool: testdb.CRM(t)}
	crm.tokens = tokens(t, auth.NewAdmin(crmstore.New(crm.pool)))
	crm.url = run(t, func(ctx context.Context, ready func(string)) error {
		cfg := app.CRMConfig{
			Listen: "127.0.0.1:0", DatabaseURL: testdb.DSN(t, crm.pool), ERPURL: erp.url, ERPTokens: []string{"acme=" + erp.tokens[auth.RoleWriter]},
			RequestTimeout: time.Second,
		}
		return app.RunCRM(ctx, cfg, slog.New(slog.DiscardHandler), ready)
	})
	return erp, crm
}

func run(t *testing.T, serve func(ctx context.Context, ready func(string)) error) (url string) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	address, ended := make(chan string, 1), make(chan error, 1)
	go func() { ended <- serve(ctx, func(addr string) { address <- addr }) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("the service did not start, or not stop gracefully: %v", err)
		}
	})
	select {
	case addr := <-address:
		return "http://" + addr
	case err := <-ended:
		ended <- err
		t.FailNow()
		return ""
	}
}

func tokens(t *testing.T, admin *auth.Admin) map[auth.Role]string {
	t.Helper()
	by := audit.By{Actor: "test"}
	if err := admin.CreateTenant(t.Context(), "acme", "Acme", by); err != nil {
		t.Fatal(err)
	}
	texts := map[auth.Role]string{}
	for _, role := range []auth.Role{auth.RoleWriter, auth.RoleMetrics} {
		_, text, err := admin.CreateToken(t.Context(), "acme", role, "test", by)
		if err != nil {
			t.Fatal(err)
		}
		texts[role] = text
	}
	return texts
}

// do sends a request, follows no redirect, and gives status and body.
func (s service) do(t *testing.T, method, path string, role auth.Role, body string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, s.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if role != "" {
		r.Header.Set("Authorization", "Bearer "+s.tokens[role])
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	response, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

// orderBody is an order, and as well a request for its invoice.
func orderBody(order, quantity string) string {
	return fmt.Sprintf(`{"source":"crm-1","order":%q,"role":"final","currency":"EUR","issue_date":"2026-03-02",`+
		`"customer":{"name":"Test Customer A","country":"DE","vat_id":"XX000000001"},`+
		`"lines":[{"sku":"P-1","quantity":%q,"unit_price":"10.00","vat_rate":"19","vat_category":"S"}]}`, order, quantity)
}

// await waits until a count is no longer 0.
func (s service) await(t *testing.T, what, query string) {
	t.Helper()
	testdb.Await(t, what, func() bool {
		var n int
		if err := s.pool.QueryRow(t.Context(), query).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n > 0
	})
}

// work lets happen what every installation has seen: an order on its whole way, a comparison of the books, and a request that
// found the database busy.
func work(t *testing.T, erp, crm service) {
	t.Helper()
	for _, s := range []service{erp, crm} {
		s.await(t, "the first reconciliation of "+s.name, "SELECT count(*) FROM reconciliation_runs WHERE finished_at IS NOT NULL")
	}
	submit := func(order string) (int, string) {
		return crm.do(t, http.MethodPost, "/v1/orders", auth.RoleWriter, orderBody(order, "2"))
	}
	if status, body := submit("SO-1"); status != http.StatusCreated {
		t.Fatalf("an order is answered %d %s", status, body)
	}
	crm.await(t, "the invoice", "SELECT count(*) FROM operations WHERE status = 'succeeded'")
	tx, err := crm.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }()
	if _, err := tx.Exec(t.Context(), "LOCK TABLE orders IN ACCESS EXCLUSIVE MODE"); err != nil {
		t.Fatal(err)
	}
	if status, body := submit("SO-2"); status != http.StatusServiceUnavailable {
		t.Fatalf("while nobody can write, an order is answered %d %s", status, body)
	}
}

// series are what a scrape of both services brings into Prometheus: by metric, each with its labels.
type series map[string][]map[string]string

// scrape reads /metrics as Prometheus does, with a token of role metrics, and adds what Prometheus adds: job and instance, and
// the series up.
func (all series) scrape(t *testing.T, s service) {
	t.Helper()
	status, text := s.do(t, http.MethodGet, "/metrics", auth.RoleMetrics, "")
	if status != http.StatusOK {
		t.Fatalf("/metrics of %s is answered %d %s", s.name, status, text)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(text))
	if err != nil {
		t.Fatalf("/metrics of %s: %v", s.name, err)
	}
	target := func() map[string]string { return map[string]string{"job": s.name, "instance": "host:1"} }
	all["up"] = append(all["up"], target())
	for name, family := range families {
		for _, m := range family.GetMetric() {
			labels := target()
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			if m.GetHistogram() == nil {
				all[name] = append(all[name], labels)
				continue
			}
			all[name+"_count"], all[name+"_sum"] = append(all[name+"_count"], labels), append(all[name+"_sum"], labels)
			for _, bucket := range m.GetHistogram().GetBucket() {
				labels := target()
				for _, l := range m.GetLabel() {
					labels[l.GetName()] = l.GetValue()
				}
				labels["le"] = fmt.Sprint(bucket.GetUpperBound())
				all[name+"_bucket"] = append(all[name+"_bucket"], labels)
			}
		}
	}
}
