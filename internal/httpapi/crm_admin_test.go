package httpapi_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/uuid"

	"invoicebridge/internal/auth"
	"invoicebridge/internal/crm"
)

// adminCall is a call whose request and answer are held against the contract.
func (s *crmServer) adminCall(method, path, token, body string, want int, v any) *http.Response {
	s.t.Helper()
	r, err := http.NewRequest(method, s.url+"/admin/v1/"+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+token)
	if ok, errs := crmContract(s.t).ValidateHttpRequestSync(r); !ok && want < 400 {
		for _, e := range errs {
			s.t.Errorf("%s %s: the request is not as in the contract: %s %s %v", method, path, e.Message, e.Reason, e.SchemaValidationErrors)
		}
	}
	answer := s.call(method, "/admin/v1/"+path, token, body, v)
	if answer.StatusCode != want {
		s.t.Errorf("%s %s answered %d, want %d: %+v", method, path, answer.StatusCode, want, v)
	}
	return answer
}

// refuses wants 409 wrong-state with a text.
func (s *crmServer) refusesAdmin(path, token, body, says string) {
	s.t.Helper()
	var p problemDocument
	s.adminCall(http.MethodPost, path, token, body, http.StatusConflict, &p)
	if p.Type != "/problems/wrong-state" || !strings.Contains(p.Detail, says) {
		s.t.Errorf("%s: %+v, want wrong-state that says %q", path, p, says)
	}
}

// personal is a token that is an operator's own.
func (s *crmServer) personal(tenant, name string) string {
	s.t.Helper()
	token := s.token(tenant, auth.RoleAdmin)
	account := uuid.New()
	s.exec("INSERT INTO accounts (id, tenant_id, name, display_name, role) VALUES ($1, $2, $3, $3, 'operator')", account, tenant, name)
	id := strings.Split(token, "_")[1]
	s.exec("UPDATE tokens SET account_id = $1 WHERE id = $2", account, id)
	return token
}

const because = `{"reason":"seen to it"}`

const flaggedUnknown = "status = 'unknown', reason = 'no_answer', flagged_at = now(), next_attempt_at = now() + interval '1 hour'"

type viewed struct {
	crm.Operation
	Actions  []crm.ActionState `json:"actions"`
	Proposal *crm.Resolution   `json:"proposal"`
	Pause    *crm.SourcePause  `json:"pause"`
}

func TestAnOperationsViewSaysWhatCanBeDoneAndWhyTheRestCant(t *testing.T) {
	s := setupCRM(t)
	admin := s.token("acme", auth.RoleAdmin)
	key := s.submitted("SO-1")
	var view viewed
	s.adminCall(http.MethodGet, "operations/"+key, admin, "", http.StatusOK, &view)
	if view.Key != key || len(view.Actions) != 4 {
		t.Fatalf("view is %+v", view)
	}
	for _, a := range view.Actions {
		if a.Available != (a.Name == crm.ActionCancel) || a.Available == (a.Why != "") {
			t.Errorf("action is %+v", a)
		}
	}
	s.adminCall(http.MethodGet, "operations/none", admin, "", http.StatusNotFound, nil)
	s.adminCall(http.MethodPost, "operations/"+key+"/cancel", admin, because, http.StatusOK, &view.Operation)
	if view.Status != crm.StatusCancelled {
		t.Errorf("operation is %+v", view.Operation)
	}
	s.refusesAdmin("operations/"+key+"/cancel", admin, because, "cancelled and stays so")
	s.adminCall(http.MethodPost, "operations/"+key+"/cancel", admin, `{"reason":" "}`, http.StatusBadRequest, nil)
	s.adminCall(http.MethodPost, "operations/"+key+"/cancel", admin, `{}`, http.StatusBadRequest, nil)
}

func TestTwoPeoplesTokensResolveOverHTTP(t *testing.T) {
	s := setupCRM(t)
	machine, ann, ben := s.token("acme", auth.RoleAdmin), s.personal("acme", "ann"), s.personal("acme", "ben")
	key := s.submitted("SO-1")
	s.ended(key, flaggedUnknown)
	invoice := uuid.NewString()
	proposal := fmt.Sprintf(`{"verdict":"applied","invoice":{"id":%q,"number":"INV-1"},"evidence":"seen there","reason":"the answer was lost"}`, invoice)
	var r struct {
		crm.Resolution
		Actions []crm.ActionState `json:"actions"`
	}
	answer := s.adminCall(http.MethodPost, "operations/"+key+"/resolutions", ann, proposal, http.StatusCreated, &r)
	if answer.Header.Get("Location") != "/admin/v1/resolutions/"+r.ID.String() || r.ProposedBy != "ann" {
		t.Fatalf("%s, %+v", answer.Header.Get("Location"), r)
	}
	s.refusesAdmin("operations/"+key+"/resolutions", ben, proposal, "ann has proposed")
	path := "resolutions/" + r.ID.String()
	s.adminCall(http.MethodPost, path+"/approve", ann, because, http.StatusForbidden, nil)
	s.adminCall(http.MethodPost, path+"/approve", machine, because, http.StatusForbidden, nil)
	s.adminCall(http.MethodPost, path+"/decline", machine, because, http.StatusForbidden, nil)
	s.adminCall(http.MethodPost, path+"/withdraw", ben, because, http.StatusForbidden, nil)
	s.adminCall(http.MethodPost, path+"/approve", s.personal("other", "eve"), because, http.StatusNotFound, nil)
	s.adminCall(http.MethodGet, path, ben, "", http.StatusOK, &r)
	if !r.Actions[0].Available || r.Actions[2].Available {
		t.Errorf("ben may %+v", r.Actions)
	}
	s.adminCall(http.MethodPost, path+"/approve", ben, because, http.StatusOK, &r)
	if r.Status != crm.ResolutionApproved || r.DecidedBy != "ben" || r.OperationStatus != crm.StatusSucceeded {
		t.Errorf("resolution is %+v", r)
	}
	s.refusesAdmin(path+"/approve", ben, because, "approved already, by ben")
	s.refusesAdmin(path+"/decline", ben, because, "approved already, by ben")
	s.refusesAdmin(path+"/withdraw", ann, because, "approved already, by ben")
	var page struct {
		Items []crm.Resolution `json:"items"`
	}
	s.adminCall(http.MethodGet, "resolutions?status=approved&limit=5", ben, "", http.StatusOK, &page)
	if len(page.Items) != 1 {
		t.Errorf("page is %+v", page)
	}
	s.adminCall(http.MethodGet, "resolutions?status=x", ben, "", http.StatusBadRequest, nil)
	s.adminCall(http.MethodGet, "resolutions/x", ben, "", http.StatusNotFound, nil)
	s.adminCall(http.MethodPost, "operations/"+key+"/resolutions", ann, `{"verdict":"perhaps","evidence":"e","reason":"r"}`, http.StatusBadRequest, nil)
	if n := s.count("audit_entries WHERE via = 'api' AND actor IN ('ann', 'ben') AND account_id IS NOT NULL AND action LIKE 'resolution.%'"); n != 2 {
		t.Errorf("%d audit entries", n)
	}
}

type toldReplayItem struct {
	Key    string `json:"key"`
	Result string `json:"result"`
}

type toldReplay struct {
	ID         uuid.UUID        `json:"id"`
	Total      int              `json:"total"`
	Waiting    int              `json:"waiting"`
	Stopped    int              `json:"stopped"`
	Items      []toldReplayItem `json:"items"`
	NextCursor *string          `json:"next_cursor"`
}

func TestManyAreReplayedOverHTTPAfterAPreview(t *testing.T) {
	s := setupCRM(t)
	admin := s.token("acme", auth.RoleAdmin)
	for i := range 3 {
		s.ended(s.submitted(fmt.Sprintf("SO-%d", i)), flaggedUnknown)
	}
	var preview struct {
		Count  int             `json:"count"`
		Limit  int             `json:"limit"`
		Sample []crm.Operation `json:"sample"`
	}
	s.adminCall(http.MethodGet, "replays/preview?status=unknown&reason=no_answer&source=crm-1&min_age_seconds=0", admin, "", http.StatusOK, &preview)
	if preview.Count != 3 || preview.Limit != crm.MaxReplays || len(preview.Sample) != 3 {
		t.Fatalf("preview is %+v", preview)
	}
	for _, bad := range []string{"status=failed", "min_age_seconds=-1", "min_age_seconds=x", "age=1"} {
		s.adminCall(http.MethodGet, "replays/preview?"+bad, admin, "", http.StatusBadRequest, nil)
	}
	start := `{"filter":{"status":"unknown"},"expected_count":%d,"reason":"the ERP is back"}`
	s.refusesAdmin("replays", admin, fmt.Sprintf(start, 2), "3 operations match")
	s.adminCall(http.MethodPost, "replays", admin, `{"filter":{},"reason":"r"}`, http.StatusBadRequest, nil)
	var run toldReplay
	answer := s.adminCall(http.MethodPost, "replays", admin, fmt.Sprintf(start, 3), http.StatusCreated, &run)
	if answer.Header.Get("Location") != "/admin/v1/replays/"+run.ID.String() || run.Total != 3 || run.Waiting != 3 {
		t.Errorf("run is %+v", run)
	}
	s.refusesAdmin("replays", admin, fmt.Sprintf(start, 3), "running already")
	path := "replays/" + run.ID.String()
	s.adminCall(http.MethodGet, path+"?limit=2&result=waiting", admin, "", http.StatusOK, &run)
	if len(run.Items) != 2 || run.NextCursor == nil || run.Items[0].Result != "waiting" {
		t.Errorf("run is %+v", run)
	}
	s.adminCall(http.MethodGet, path+"?limit=2&cursor="+*run.NextCursor, admin, "", http.StatusOK, &run)
	if len(run.Items) != 1 {
		t.Errorf("run is %+v", run)
	}
	for _, bad := range []string{"?result=x", "?cursor=x", "?limit=0"} {
		s.adminCall(http.MethodGet, path+bad, admin, "", http.StatusBadRequest, nil)
	}
	s.adminCall(http.MethodGet, path, s.token("other", auth.RoleAdmin), "", http.StatusNotFound, nil)
	s.adminCall(http.MethodPost, path+"/stop", admin, because, http.StatusOK, &run)
	if run.Stopped != 3 {
		t.Errorf("run is %+v", run)
	}
	s.refusesAdmin(path+"/stop", admin, because, "come to its end")
	s.adminCall(http.MethodPost, "replays/"+uuid.NewString()+"/stop", admin, because, http.StatusNotFound, nil)
	var page struct {
		Items []toldReplay `json:"items"`
	}
	s.adminCall(http.MethodGet, "replays", admin, "", http.StatusOK, &page)
	if len(page.Items) != 1 {
		t.Errorf("page is %+v", page)
	}
	s.adminCall(http.MethodGet, "replays?cursor=x", admin, "", http.StatusBadRequest, nil)
}

func TestASourceIsPausedAndResumedOverHTTP(t *testing.T) {
	s := setupCRM(t)
	admin := s.token("acme", auth.RoleAdmin)
	s.submitted("SO-1")
	var pause crm.SourcePause
	s.adminCall(http.MethodPost, "sources/crm-1/pause", admin, because, http.StatusOK, &pause)
	if pause.Reason != "seen to it" || pause.PausedBy == "" {
		t.Errorf("pause is %+v", pause)
	}
	s.refusesAdmin("sources/crm-1/pause", admin, because, "paused already")
	odd := url.PathEscape("a/b c")
	s.adminCall(http.MethodPost, "sources/"+odd+"/pause", admin, because, http.StatusOK, nil)
	var page struct {
		Items []struct {
			Source  string            `json:"source"`
			Pending int               `json:"pending"`
			Pause   *crm.SourcePause  `json:"pause"`
			Actions []crm.ActionState `json:"actions"`
		} `json:"items"`
	}
	s.adminCall(http.MethodGet, "sources", admin, "", http.StatusOK, &page)
	if len(page.Items) != 2 || page.Items[0].Source != "a/b c" || page.Items[1].Pause == nil || page.Items[1].Pending != 1 || page.Items[1].Actions[0].Available {
		t.Errorf("page is %+v", page)
	}
	var resumed struct {
		Queued int `json:"queued"`
	}
	s.adminCall(http.MethodPost, "sources/crm-1/resume", admin, because, http.StatusOK, &resumed)
	if resumed.Queued != 1 {
		t.Errorf("%d queued", resumed.Queued)
	}
	s.refusesAdmin("sources/crm-1/resume", admin, because, "not paused")
	s.adminCall(http.MethodGet, "sources?x=1", admin, "", http.StatusBadRequest, nil)
	s.adminCall(http.MethodPost, "sources/crm-1/pause", admin, `{"reason":""}`, http.StatusBadRequest, nil)
}

func TestReconciliationAndItsDivergencesAreSeenToOverHTTP(t *testing.T) {
	s := setupCRM(t)
	admin := s.token("acme", auth.RoleAdmin)
	var run crm.ReconciliationRun
	s.adminCall(http.MethodPost, "reconciliations", admin, because, http.StatusAccepted, &run)
	s.refusesAdmin("reconciliations", admin, because, "running already")
	var runs struct {
		Items []crm.ReconciliationRun `json:"items"`
	}
	s.adminCall(http.MethodGet, "reconciliations?limit=1", admin, "", http.StatusOK, &runs)
	if len(runs.Items) != 1 || runs.Items[0].ID != run.ID || runs.Items[0].RequestedBy == "" {
		t.Errorf("runs are %+v", runs)
	}
	s.exec(`INSERT INTO divergences (tenant_id, kind, owner, subject) VALUES ('acme', 'missing_in_erp', 'erp', 'k')`)
	var id int64
	if err := s.pool.QueryRow(context.Background(), "SELECT id FROM divergences").Scan(&id); err != nil {
		t.Fatal(err)
	}
	var d crm.Divergence
	s.adminCall(http.MethodPost, fmt.Sprintf("divergences/%d/accept", id), admin, because, http.StatusOK, &d)
	if d.AcceptedAt == nil || d.DecisionReason != "seen to it" {
		t.Errorf("divergence is %+v", d)
	}
	s.refusesAdmin(fmt.Sprintf("divergences/%d/accept", id), admin, because, "accepted already")
	for status, want := range map[string]int{"open": 0, "accepted": 1, "resolved": 0, "all": 1} {
		var page struct {
			Items []crm.Divergence `json:"items"`
		}
		s.call(http.MethodGet, "/v1/divergences?status="+status, admin, "", &page)
		if len(page.Items) != want {
			t.Errorf("%s: %+v", status, page)
		}
	}
	s.adminCall(http.MethodPost, fmt.Sprintf("divergences/%d/close", id), admin, because, http.StatusOK, &d)
	s.refusesAdmin(fmt.Sprintf("divergences/%d/close", id), admin, because, "resolved")
	s.adminCall(http.MethodPost, "divergences/x/close", admin, because, http.StatusNotFound, nil)
	s.adminCall(http.MethodPost, fmt.Sprintf("divergences/%d/close", id), s.token("other", auth.RoleAdmin), because, http.StatusNotFound, nil)
}

func TestAnOrderIsWrittenByHandOverHTTP(t *testing.T) {
	s := setupCRM(t)
	admin := s.token("acme", auth.RoleAdmin)
	byHand := func(order string) string { return `{"reason":"the shop is down","order":` + order + `}` }
	var sub crm.Submission
	answer := s.adminCall(http.MethodPost, "orders", admin, byHand(orderJSON("SO-1", `"2"`)), http.StatusCreated, &sub)
	if answer.Header.Get("Location") != "/v1/orders/crm-1/SO-1" || sub.Outcome != crm.OutcomeCreated {
		t.Errorf("submission is %+v", sub)
	}
	s.adminCall(http.MethodPost, "orders", admin, byHand(orderJSON("SO-1", `"2"`)), http.StatusOK, &sub)
	s.submits("/v1/orders", orderJSON("SO-1", `"2"`), http.StatusOK, &sub) // the shop is back
	var p problemDocument
	s.adminCall(http.MethodPost, "orders", admin, byHand(orderJSON("SO-2", `"x"`)), http.StatusUnprocessableEntity, &p)
	if len(p.Errors) != 1 || p.Errors[0].Pointer != "/order/lines/0/quantity" {
		t.Errorf("problem is %+v", p)
	}
	for _, bad := range []string{`{"reason":"r"}`, `{"reason":"r","order":[]}`, byHand(`{"Source":"x"}`), `{"reason":"","order":` + orderJSON("SO-2", `"2"`) + `}`} {
		s.adminCall(http.MethodPost, "orders", admin, bad, http.StatusBadRequest, nil)
	}
	s.adminCall(http.MethodPost, "orders", s.reader, byHand(orderJSON("SO-3", `"2"`)), http.StatusForbidden, nil)
	s.holds(1, 1, 1)
}
