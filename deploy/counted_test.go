package deploy

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"invoicebridge/internal/auth"
	"invoicebridge/internal/testdb"
)

// invoice asks the ERP for an invoice.
func (s service) invoice(t *testing.T, key, order, quantity string) int {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+"/v1/invoices", strings.NewReader(orderBody(order, quantity)))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+s.tokens[auth.RoleWriter])
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Idempotency-Key", key)
	response, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	return response.StatusCode
}

// shows says whether a line is in the service's figures.
func (s service) shows(t *testing.T, line string) bool {
	t.Helper()
	_, text := s.do(t, http.MethodGet, "/metrics", auth.RoleMetrics, "")
	return strings.Contains("\n"+text, "\n"+line+"\n")
}

func (s service) wantShown(t *testing.T, lines ...string) {
	t.Helper()
	_, text := s.do(t, http.MethodGet, "/metrics", auth.RoleMetrics, "")
	for _, line := range lines {
		if !strings.Contains("\n"+text, "\n"+line+"\n") {
			name, _, _ := strings.Cut(line, "{")
			var is []string
			for other := range strings.SplitSeq(text, "\n") {
				if strings.HasPrefix(other, name) && !strings.HasSuffix(other, " 0") {
					is = append(is, other)
				}
			}
			t.Errorf("want %s; %s shows\n%s", line, s.name, strings.Join(is, "\n"))
		}
	}
}

func TestWhatHappensIsCountedAsWhatItIs(t *testing.T) {
	t.Parallel()
	erp, crm := services(t)
	for _, ask := range []struct {
		key, order, quantity string
		want                 int
	}{
		{"k1", "A", "1", http.StatusCreated}, {"k1", "A", "1", http.StatusCreated},
		{"k1", "A", "2", http.StatusUnprocessableEntity}, {"k2", "A", "1", http.StatusConflict}, {"k3", "A", "2", http.StatusConflict},
		{"k4", "B", "0", http.StatusUnprocessableEntity},
	} {
		if status := erp.invoice(t, ask.key, ask.order, ask.quantity); status != ask.want {
			t.Fatalf("%+v is answered %d", ask, status)
		}
	}
	erp.wantShown(t,
		`erp_issue_results_total{result="created"} 1`, `erp_issue_results_total{result="replayed"} 1`,
		`erp_issue_results_total{result="key_reused"} 1`, `erp_issue_results_total{result="already_invoiced_same_content"} 1`,
		`erp_issue_results_total{result="already_invoiced_other_content"} 1`, `erp_issue_results_total{result="invalid"} 1`,
		`erp_issue_results_total{result="in_progress"} 0`, `erp_group_commit_invoices_count 1`, `logins_total{result="refused"} 0`)

	for _, body := range []string{`{"source":`, orderBody("", "1"), orderBody("C", "1"), orderBody("C", "1")} {
		crm.do(t, http.MethodPost, "/v1/orders", auth.RoleWriter, body)
	}
	login, err := http.PostForm(crm.url+"/login", url.Values{"name": {"nobody"}, "password": {"guessed"}})
	if err != nil {
		t.Fatal(err)
	}
	login.Body.Close()
	crm.wantShown(t,
		`crm_intake_refusals_total{type="malformed-request"} 1`, `crm_intake_refusals_total{type="invalid-order"} 1`,
		`crm_submitted_orders_total{channel="api",outcome="refused"} 1`, `crm_submitted_orders_total{channel="api",outcome="created"} 1`,
		`crm_submitted_orders_total{channel="api",outcome="already_there"} 1`, `logins_total{result="refused"} 1`, `logins_total{result="ok"} 0`)

	delivered := `crm_delivery_attempts_total{outcome="delivered"} 1`
	testdb.Await(t, "the order's delivery is counted", func() bool { return crm.shows(t, delivered) })
	crm.wantShown(t,
		`crm_group_commit_operations_count{step="begin"} 1`, `crm_group_commit_operations_sum{step="begin"} 1`,
		`crm_group_commit_operations_bucket{step="end",le="1"} 1`, `crm_group_commit_operations_count{step="end"} 1`)
}
