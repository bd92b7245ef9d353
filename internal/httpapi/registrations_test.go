package httpapi_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"invoicebridge/internal/audit"
	"invoicebridge/internal/auth"
	"invoicebridge/internal/auth/erpstore"
	"invoicebridge/internal/erpapi"
	"invoicebridge/internal/problem"
)

const (
	replayBody  = `{"reason":"the gateway answers again"}`
	resolveBody = `{"status":"succeeded","reference":"REG-7","reason":"it can't be asked","evidence":"ticket 42"}`
	// acknowledgeBody is what is told of what has come to its end.
	acknowledgeBody = `{"reason":"cancelled there, ticket 43"}`
)

// plant puts a registration of an invoice into the database, at a target of its own, with one lost attempt. Nobody works
// on it for as long as the sweep leaves it.
func (e erp) plant(invoice, target, status string) (id string) {
	e.t.Helper()
	err := e.pool.QueryRow(context.Background(), `
WITH t AS (
    INSERT INTO targets (tenant_id, id, kind, base_url, credential_ref, locatable)
    VALUES ('t1', $2, 'einvoice', 'http://127.0.0.1:1', 'env:NOT_SET', true) RETURNING tenant_id, id
), r AS (
    INSERT INTO registrations (id, tenant_id, invoice_id, target_id, key, status, attempt, next_attempt_at, finished_at, flagged_at, reference, detail)
    SELECT gen_random_uuid(), t.tenant_id, i.id, t.id, i.operation_key, $3, 1, CASE WHEN $3 = 'unknown' THEN now() + interval '1 hour' END,
           CASE WHEN $3 IN ('succeeded', 'failed') THEN now() END, CASE WHEN $3 = 'unknown' THEN now() END, CASE WHEN $3 = 'succeeded' THEN 'REG-1' ELSE '' END, 'no answer'
    FROM t, invoices AS i WHERE i.id = $1::uuid
    RETURNING id
), a AS (
    INSERT INTO registration_attempts (registration_id, number, action, worker, outcome, finished_at)
    SELECT id, 1, 'send', 'test', 'lost', now() FROM r
)
SELECT id FROM r`, invoice, target, status).Scan(&id)
	if err != nil {
		e.t.Fatal(err)
	}
	e.exec("UPDATE targets SET disabled_at = now() WHERE id = '" + target + "'") // later invoices are none of its business
	return id
}

// flag has a person told of a registration.
func (e erp) flag(id string) {
	e.t.Helper()
	e.exec("UPDATE registrations SET flagged_at = now(), reason = 'registered_twice' WHERE id = '" + id + "'")
}

// adminOf makes one more tenant's administrator a token, and gives it.
func (e erp) adminOf(tenant string) string {
	e.t.Helper()
	_, text, err := auth.NewAdmin(erpstore.New(e.pool)).CreateToken(e.t.Context(), tenant, auth.RoleAdmin, "admin", audit.By{Actor: "test"})
	if err != nil {
		e.t.Fatal(err)
	}
	return text
}

// admin sends a request of administration.
func (e erp) admin(token, path, body string) answer {
	e.t.Helper()
	return e.do(e.adminRequest(token, path, body))
}

func (e erp) adminRequest(token, path, body string) *http.Request {
	e.t.Helper()
	r := e.request(http.MethodPost, path, token, []byte(body))
	r.Header.Set("Content-Type", "application/json")
	return r
}

// provokeRegistrations provokes every answer about registrations but for trouble.
func provokeRegistrations(e erp, invoice string, note func(string, answer), valid func(string, *http.Request)) {
	e.t.Helper()
	open, done := e.plant(invoice, "gateway", "unknown"), e.plant(invoice, "books", "succeeded")
	const list, base = "GET /admin/v1/registrations", "/admin/v1/registrations"
	valid(list, e.request("GET", base+"?status=unknown&target=gateway&flagged=true&limit=1", "admin", nil))
	note(list, e.get("admin", base+"?flagged=perhaps"))
	note(list, e.get("", base))
	note(list, e.get("writer", base))
	one := "GET /admin/v1/registrations/{id}"
	valid(one, e.request("GET", base+"/"+open, "admin", nil))
	note(one, e.get("", base+"/"+open))
	note(one, e.get("writer", base+"/"+open))
	note(one, e.get("admin", base+"/x"))
	for action, body := range map[string]string{"replay": replayBody, "resolve": resolveBody, "acknowledge": acknowledgeBody} {
		path := "POST /admin/v1/registrations/{id}/" + action
		note(path, e.admin("admin", base+"/"+open+"/"+action, "{}"))
		note(path, e.admin("", base+"/"+open+"/"+action, body))
		note(path, e.admin("writer", base+"/"+open+"/"+action, body))
		note(path, e.admin("admin", base+"/x/"+action, body))
		note(path, e.admin("admin", base+"/"+done+"/"+action, body))
		note(path, e.admin("admin", base+"/"+open+"/"+action, padded(mebibyte+1)))
		plain := e.adminRequest("admin", base+"/"+open+"/"+action, body)
		plain.Header.Set("Content-Type", "text/plain")
		note(path, e.do(plain))
	}
	valid("POST /admin/v1/registrations/{id}/resolve", e.adminRequest("admin", base+"/"+open+"/resolve", resolveBody))
	e.flag(done)
	valid("POST /admin/v1/registrations/{id}/acknowledge", e.adminRequest("admin", base+"/"+done+"/acknowledge", acknowledgeBody))
	again := e.plant(invoice, "other", "unknown")
	valid("POST /admin/v1/registrations/{id}/replay", e.adminRequest("admin", base+"/"+again+"/replay", replayBody))
}

func TestAnOperationTellsOfItsRegistrations(t *testing.T) {
	t.Parallel()
	e := startERP(t)
	inv := e.post("k-1", base).wantFirst().invoice()
	e.plant(inv.ID, "gateway", "unknown")
	e.plant(inv.ID, "books", "succeeded")
	var op erpapi.Operation
	e.get("reader", "/v1/operations/k-1").decode(&op)
	want := []erpapi.Registration{
		{Target: "books", Status: "succeeded", Reference: "REG-1", Warnings: []string{}, Attempts: 1},
		{Target: "gateway", Status: "unknown", Warnings: []string{}, Attempts: 1, Flagged: true},
	}
	if diff := cmp.Diff(want, op.Registrations); diff != "" || op.Status != "succeeded" {
		t.Errorf("operation %s, registrations (-want +got)\n%s", op.Status, diff)
	}
}

func TestWalkingTheListMeetsEachRegistrationOnceAndNoOtherTenantsOwn(t *testing.T) {
	t.Parallel()
	e := startERP(t)
	inv := e.post("k-1", base).wantFirst().invoice()
	want := map[string]bool{}
	for _, target := range []string{"a", "b", "c", "d", "e"} {
		want[e.plant(inv.ID, target, "unknown")] = true
	}
	e.exec("UPDATE registrations SET created_at = now()") // all at one time
	e.tokens["t2-admin"] = e.adminOf("t2")
	got := map[string]bool{}
	for cursor := ""; ; {
		var page erpapi.RegistrationPage
		e.get("admin", "/admin/v1/registrations?limit=2"+cursor).decode(&page)
		for _, item := range page.Items {
			if got[item.ID] {
				t.Errorf("%s comes twice", item.ID)
			}
			got[item.ID] = true
		}
		if page.NextCursor == nil {
			break
		}
		cursor = "&cursor=" + *page.NextCursor
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the list (-want +got)\n%s", diff)
	}
	var page erpapi.RegistrationPage
	e.get("t2-admin", "/admin/v1/registrations").decode(&page)
	if len(page.Items) != 0 {
		t.Errorf("another tenant sees %v", page.Items)
	}
	for id := range want {
		e.get("t2-admin", "/admin/v1/registrations/"+id).wantProblem(http.StatusNotFound, problem.NotFound)
		e.admin("t2-admin", "/admin/v1/registrations/"+id+"/replay", replayBody).wantProblem(http.StatusNotFound, problem.NotFound)
		e.admin("t2-admin", "/admin/v1/registrations/"+id+"/resolve", resolveBody).wantProblem(http.StatusNotFound, problem.NotFound)
		e.admin("t2-admin", "/admin/v1/registrations/"+id+"/acknowledge", acknowledgeBody).wantProblem(http.StatusNotFound, problem.NotFound)
		break
	}
}

// J3 of the collected faults: a second press is told so.
func TestTheSecondPressOfReplayIsToldThatItIsQueued(t *testing.T) {
	t.Parallel()
	e := startERPWithoutWorker(t)
	inv := e.post("k-1", base).wantFirst().invoice()
	path := "/admin/v1/registrations/" + e.plant(inv.ID, "gateway", "unknown")
	var detail erpapi.RegistrationDetail
	a := e.admin("admin", path+"/replay", replayBody)
	a.decode(&detail)
	if a.status != http.StatusOK || detail.Flagged || detail.NextAttemptAt == nil {
		t.Fatalf("got %d %s", a.status, a.body)
	}
	p := e.admin("admin", path+"/replay", replayBody).wantProblem(http.StatusConflict, problem.WrongState)
	if !strings.Contains(p.Detail, "already queued") {
		t.Errorf("the second press is told %q", p.Detail)
	}
	if n := e.count("SELECT count(*) FROM river_job WHERE kind = 'register_invoice'"); n != 1 {
		t.Errorf("%d jobs, want 1", n)
	}
	if n := e.count("SELECT count(*) FROM audit_entries WHERE action = 'registration.replay' AND reason = 'the gateway answers again'"); n != 1 {
		t.Errorf("%d audit entries, want 1", n)
	}
}

func TestAPersonSettlesOnlyWhatIsUnknownAndWithEvidence(t *testing.T) {
	t.Parallel()
	e := startERPWithoutWorker(t)
	inv := e.post("k-1", base).wantFirst().invoice()
	path := "/admin/v1/registrations/" + e.plant(inv.ID, "gateway", "unknown")
	for _, bad := range []string{
		`{"status":"succeeded","reason":"r","evidence":"e"}`, `{"status":"failed","reference":"x","reason":"r","evidence":"e"}`,
		`{"status":"pending","reason":"r","evidence":"e"}`, `{"status":"failed","reason":" ","evidence":"e"}`, `{"status":"failed","reason":"r"}`,
	} {
		e.admin("admin", path+"/resolve", bad).wantProblem(http.StatusBadRequest, problem.MalformedRequest)
	}
	var detail erpapi.RegistrationDetail
	e.admin("admin", path+"/resolve", resolveBody).decode(&detail)
	if detail.Status != "succeeded" || detail.Reference != "REG-7" || detail.Flagged || !strings.Contains(detail.Detail, "ticket 42") {
		t.Errorf("got %+v", detail)
	}
	if n := e.count("SELECT count(*) FROM audit_entries WHERE action = 'registration.resolve' AND reason LIKE '%REG-7%ticket 42%'"); n != 1 {
		t.Errorf("%d audit entries, want 1", n)
	}
	e.admin("admin", path+"/resolve", `{"status":"failed","reason":"r","evidence":"e"}`).wantProblem(http.StatusConflict, problem.WrongState)
	e.admin("admin", path+"/replay", replayBody).wantProblem(http.StatusConflict, problem.WrongState)
}

// What is final is refused by replay and resolve: without this its flag would stay for ever, and keep its reservation.
func TestAPersonTakesTheFlagOffWhatHasEndedAndChangesNothingElse(t *testing.T) {
	t.Parallel()
	e := startERPWithoutWorker(t)
	inv := e.post("k-1", base).wantFirst().invoice()
	id := e.plant(inv.ID, "books", "succeeded")
	e.flag(id)
	path := "/admin/v1/registrations/" + id
	var before, after erpapi.RegistrationDetail
	e.get("admin", path).decode(&before)
	e.admin("admin", path+"/acknowledge", `{"reason":" "}`).wantProblem(http.StatusBadRequest, problem.MalformedRequest)
	e.admin("writer", path+"/acknowledge", acknowledgeBody).wantProblem(http.StatusForbidden, problem.Forbidden)
	e.admin("admin", path+"/acknowledge", acknowledgeBody).decode(&after)
	before.Flagged, before.FlaggedAt = false, nil
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("more than the flag has changed (-want +got)\n%s", diff)
	}
	var flagged erpapi.RegistrationPage
	if e.get("admin", "/admin/v1/registrations?flagged=true").decode(&flagged); len(flagged.Items) != 0 {
		t.Errorf("still among those that a person has to look at: %+v", flagged.Items)
	}
	e.admin("admin", path+"/acknowledge", acknowledgeBody).wantProblem(http.StatusConflict, problem.WrongState)
	if n := e.count("SELECT count(*) FROM audit_entries WHERE action = 'registration.acknowledge' AND subject = '" + id +
		"' AND actor <> '' AND reason = 'cancelled there, ticket 43'"); n != 1 {
		t.Errorf("%d audit entries, want 1", n)
	}
}

func TestWhatIsStillOpenKeepsItsFlagUntilItIsReplayedOrSettled(t *testing.T) {
	t.Parallel()
	e := startERPWithoutWorker(t)
	inv := e.post("k-1", base).wantFirst().invoice()
	path := "/admin/v1/registrations/" + e.plant(inv.ID, "gateway", "unknown")
	e.admin("admin", path+"/acknowledge", acknowledgeBody).wantProblem(http.StatusConflict, problem.WrongState)
	var detail erpapi.RegistrationDetail
	if e.get("admin", path).decode(&detail); !detail.Flagged || detail.Status != "unknown" {
		t.Errorf("got %+v", detail)
	}
	if n := e.count("SELECT count(*) FROM audit_entries WHERE action = 'registration.acknowledge'"); n != 0 {
		t.Errorf("%d audit entries of what was refused", n)
	}
}

// A rejection has no flag; that the invoice was registered by hand is put on record all the same.
func TestWhatWasDoneByHandAboutARejectionIsPutOnRecord(t *testing.T) {
	t.Parallel()
	e := startERPWithoutWorker(t)
	inv := e.post("k-1", base).wantFirst().invoice()
	path := "/admin/v1/registrations/" + e.plant(inv.ID, "gateway", "failed")
	var detail erpapi.RegistrationDetail
	if e.admin("admin", path+"/acknowledge", acknowledgeBody).decode(&detail); detail.Status != "failed" {
		t.Errorf("got %+v", detail)
	}
	if n := e.count("SELECT count(*) FROM audit_entries WHERE action = 'registration.acknowledge'"); n != 1 {
		t.Errorf("%d audit entries, want 1", n)
	}
}
