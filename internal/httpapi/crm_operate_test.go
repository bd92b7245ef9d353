package httpapi_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"invoicebridge/internal/auth"
	"invoicebridge/internal/crm"
)

// submitted posts an order and gives the key of its operation.
func (s *crmServer) submitted(order string) string {
	s.t.Helper()
	var sub crm.Submission
	s.submits("/v1/orders", orderJSON(order, `"2"`), http.StatusCreated, &sub)
	return sub.Operations[0].Key
}

func (s *crmServer) exec(sql string, args ...any) {
	s.t.Helper()
	if _, err := s.pool.Exec(context.Background(), sql, args...); err != nil {
		s.t.Fatal(err)
	}
}

// ended lets an operation have been sent and stand in a state.
func (s *crmServer) ended(key, assignments string) {
	s.t.Helper()
	s.exec("UPDATE operations SET attempt = 1, first_sent_at = now(), "+assignments+" WHERE key = $1", key)
}

const rejectedNow = "status = 'failed', reason = 'rejected', finished_at = now(), next_attempt_at = NULL"

func revision(order, quantity string) string {
	return fmt.Sprintf(`{"reason":"a typing error","request":%s}`, orderJSON(order, quantity))
}

func TestARejectedOperationIsRevisedOverHTTP(t *testing.T) {
	s := setupCRM(t)
	admin := s.token("acme", auth.RoleAdmin)
	key := s.submitted("SO-1")
	path := "/admin/v1/operations/" + key + "/revise"
	var refused problemDocument
	if answer := s.call(http.MethodPost, path, admin, revision("SO-1", `"3"`), &refused); answer.StatusCode != http.StatusConflict || refused.Type != "/problems/wrong-state" {
		t.Errorf("while pending: %d %+v", answer.StatusCode, refused)
	}
	s.ended(key, rejectedNow)
	var op crm.Operation
	answer := s.call(http.MethodPost, path, admin, revision("SO-1", `"3"`), &op)
	if answer.StatusCode != http.StatusCreated || op.Key == key || answer.Header.Get("Location") != "/v1/operations/"+op.Key {
		t.Fatalf("answer is %d, %+v", answer.StatusCode, op)
	}
	if n := s.count("audit_entries WHERE actor <> '' AND action = 'operation.revise' AND reason LIKE 'a typing error%'"); n != 1 {
		t.Errorf("%d audit entries", n)
	}
	if answer := s.call(http.MethodPost, path, admin, revision("SO-1", `"3"`), &refused); answer.StatusCode != http.StatusConflict {
		t.Errorf("again: %d %+v", answer.StatusCode, refused)
	}
}

func TestWhatIsWrongWithARevisionIsToldAtItsPlace(t *testing.T) {
	s := setupCRM(t)
	admin := s.token("acme", auth.RoleAdmin)
	key := s.submitted("SO-1")
	s.ended(key, rejectedNow)
	for _, c := range []struct {
		body    string
		status  int
		pointer string
	}{
		{revision("SO-1", `"x"`), http.StatusUnprocessableEntity, "/request/lines/0/quantity"},
		{revision("SO-2", `"2"`), http.StatusUnprocessableEntity, "/request/order"},
		{revision("SO-1", `true`), http.StatusBadRequest, "/request/lines/0/quantity"},
		{strings.Replace(revision("SO-1", `"2"`), `"currency"`, `"Currency"`, 1), http.StatusBadRequest, "/request/Currency"},
		{`{"reason":"r","request":{},"force":true}`, http.StatusBadRequest, "/force"},
		{`{"reason":"r"}`, http.StatusBadRequest, ""},
		{`{"reason":"r","request":null}`, http.StatusBadRequest, ""},
		{strings.Replace(revision("SO-1", `"2"`), "a typing error", " ", 1), http.StatusBadRequest, ""},
		{`[]`, http.StatusBadRequest, ""},
	} {
		var p problemDocument
		answer := s.call(http.MethodPost, "/admin/v1/operations/"+key+"/revise", admin, c.body, &p)
		var pointers []string
		for _, e := range p.Errors {
			pointers = append(pointers, e.Pointer)
		}
		if answer.StatusCode != c.status || c.pointer != "" && !slices.Contains(pointers, c.pointer) {
			t.Errorf("%s: %d %+v, want %d at %q", c.body, answer.StatusCode, p, c.status, c.pointer)
		}
	}
	s.holds(1, 1, 1)
}

func TestReplayOverHTTPIsQueuedOnce(t *testing.T) {
	s := setupCRM(t)
	admin := s.token("acme", auth.RoleAdmin)
	key := s.submitted("SO-1")
	s.ended(key, "status = 'unknown', flagged_at = now(), next_attempt_at = now() + interval '1 hour'")
	s.exec("DELETE FROM river_job")
	var op crm.Operation
	if answer := s.call(http.MethodPost, "/admin/v1/operations/"+key+"/replay", admin, `{"reason":"the ERP is back"}`, &op); answer.StatusCode != http.StatusOK || op.FlaggedAt != nil {
		t.Fatalf("answer is %d, %+v", answer.StatusCode, op)
	}
	var p problemDocument
	if answer := s.call(http.MethodPost, "/admin/v1/operations/"+key+"/replay", admin, `{"reason":"again"}`, &p); answer.StatusCode != http.StatusConflict || p.Type != "/problems/wrong-state" {
		t.Errorf("second press: %d %+v", answer.StatusCode, p)
	}
	s.holds(1, 1, 1)
}

func TestOperatingNeedsAnAdminOfTheTenant(t *testing.T) {
	s := setupCRM(t)
	key := s.submitted("SO-1")
	s.ended(key, rejectedNow)
	other := s.token("other", auth.RoleAdmin)
	for path, body := range map[string]string{"/replay": `{"reason":"r"}`, "/revise": revision("SO-1", `"2"`)} {
		for token, want := range map[string]int{"": 401, s.reader: 403, s.writer: 403, other: 404} {
			if answer := s.call(http.MethodPost, "/admin/v1/operations/"+key+path, token, body, nil); answer.StatusCode != want {
				t.Errorf("%s: %d, want %d", path, answer.StatusCode, want)
			}
		}
	}
	s.holds(1, 1, 1)
}

func TestDivergencesAreListedByPages(t *testing.T) {
	s := setupCRM(t)
	s.token("other", auth.RoleReader)
	s.exec(`INSERT INTO divergences (tenant_id, kind, owner, subject, key, ours, theirs, action)
	        SELECT 'acme', 'missing_in_erp', 'erp', 'key-' || n, 'key-' || n, 'a', 'b', 'c' FROM generate_series(1, 5) AS n`)
	s.exec("INSERT INTO divergences (tenant_id, kind, owner, subject) VALUES ('other', 'missing_in_erp', 'erp', 'foreign')")
	s.exec("UPDATE divergences SET resolved_at = now() WHERE subject = 'key-5'")
	for path, want := range map[string]int{"": 5, "&status=all": 5, "&status=open": 4, "&status=resolved": 1, "&kind=missing_in_crm": 0, "&kind=missing_in_erp": 5} {
		seen := map[string]bool{}
		cursor := ""
		for {
			var page struct {
				Items      []crm.Divergence `json:"items"`
				NextCursor *string          `json:"next_cursor"`
			}
			if answer := s.call(http.MethodGet, "/v1/divergences?limit=2"+path+cursor, s.reader, "", &page); answer.StatusCode != http.StatusOK {
				t.Fatalf("%s: %d", path, answer.StatusCode)
			}
			for _, d := range page.Items {
				if seen[d.Subject] || d.Subject == "foreign" {
					t.Errorf("%s: %s is listed twice, or is another tenant's", path, d.Subject)
				}
				seen[d.Subject] = true
			}
			if page.NextCursor == nil {
				break
			}
			cursor = "&cursor=" + *page.NextCursor
		}
		if len(seen) != want {
			t.Errorf("%s: %d divergences, want %d", path, len(seen), want)
		}
	}
	for _, path := range []string{"?status=x", "?kind=x", "?limit=0", "?cursor=x", "?sort=x"} {
		if answer := s.call(http.MethodGet, "/v1/divergences"+path, s.reader, "", nil); answer.StatusCode != http.StatusBadRequest {
			t.Errorf("%s: %d", path, answer.StatusCode)
		}
	}
}
