package httpapi_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"invoicebridge/internal/auth"
	"invoicebridge/internal/auth/erpstore"
	"invoicebridge/internal/httpapi"
	"invoicebridge/internal/jobs"
	"invoicebridge/internal/problem"
)

// people are sessions by the value of their cookie.
type people map[string]auth.Identity

func (p people) LogIn(context.Context, string, string, auth.Origin) (auth.Session, error) {
	return auth.Session{}, problem.New(problem.Unauthenticated, "not here")
}

func (p people) Begin(context.Context, auth.Account, auth.Origin) (auth.Session, error) {
	return auth.Session{}, problem.New(problem.Unauthenticated, "not here")
}

func (p people) Identify(_ context.Context, value string, _ bool) (auth.Identity, error) {
	if who, known := p[value]; known {
		return who, nil
	}
	return auth.Identity{}, problem.New(problem.Unauthenticated, "Log in first.")
}

func (p people) End(context.Context, string) error { return nil }

// serveQueue serves an ERP with River UI to "plain", an admin of t1, and to "service", who has the service's queue, too.
func serveQueue(t *testing.T) erp {
	t.Helper()
	e := serveERP(t, func(d *httpapi.ERPDeps) {
		ui, err := jobs.NewUI(d.Pool, httpapi.QueuePrefix, nil)
		if err != nil {
			t.Fatal(err)
		}
		d.Queue, d.Audit = ui, auth.NewAdmin(erpstore.New(d.Pool))
		d.Sessions = people{
			"plain":   {Tenant: "t1", Role: auth.RoleAdmin, Account: uuid.New(), Name: "ada"},
			"service": {Tenant: "t1", Role: auth.RoleViewer, Account: uuid.New(), Name: "grace", Service: true},
		}
	})
	return e
}

// asks is a request as a browser makes it, of a page or, with accept other than that, of a script.
func (e erp) asks(session, method, path, accept, body string) answer {
	e.t.Helper()
	r := e.request(method, path, "", []byte(body))
	r.Header.Set("Accept", accept)
	if session != "" {
		r.AddCookie(&http.Cookie{Name: "ib_erp_session", Value: session})
	}
	return e.send(r)
}

// send is do for what no contract describes.
func (e erp) send(r *http.Request) answer {
	e.t.Helper()
	response, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		e.t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		e.t.Fatal(err)
	}
	return answer{e.t, response.StatusCode, response.Header, body}
}

func (e erp) enqueue(n int) (ids []int64) {
	e.t.Helper()
	inserter, err := jobs.NewInserter(nil, nil)
	if err != nil {
		e.t.Fatal(err)
	}
	operations := make([]uuid.UUID, n)
	for i := range operations {
		operations[i] = uuid.New()
	}
	err = pgx.BeginFunc(e.t.Context(), e.pool, func(tx pgx.Tx) error {
		return inserter.InsertDeliveries(e.t.Context(), tx, operations, time.Time{})
	})
	if err != nil {
		e.t.Fatal(err)
	}
	rows, _ := e.pool.Query(e.t.Context(), "SELECT id FROM river_job ORDER BY id")
	if ids, err = pgx.CollectRows(rows, pgx.RowTo[int64]); err != nil {
		e.t.Fatal(err)
	}
	return ids
}

const (
	asPage   = "text/html,application/xhtml+xml"
	asScript = "*/*"
)

func TestRiverUIIsForThoseWithTheQueueOfTheService(t *testing.T) {
	t.Parallel()
	e := serveQueue(t)
	job := e.enqueue(1)[0]
	ids := fmt.Sprintf(`{"ids":["%d"]}`, job)
	for _, c := range []struct {
		method, path, accept, body string
		stranger, plain, service   int
	}{
		{"GET", "/queue", asPage, "", 303, 403, 303},
		{"GET", "/queue/", asPage, "", 303, 403, 200},
		{"GET", "/queue/jobs?state=available", asPage, "", 303, 403, 200},
		{"GET", "/queue/api/jobs?state=available", asScript, "", 401, 403, 200},
		{"GET", "/queue/api/jobs?state=available", asPage, "", 401, 403, 200}, // whatever is asked for there is no page
		{"GET", "/queue/api/states", asScript, "", 401, 403, 200},
		{"GET", "/queue/icon.svg", asScript, "", 401, 403, 200},
		{"POST", "/queue/api/jobs/cancel", asScript, ids, 401, 403, 200},
		{"POST", "/queue/api/jobs/retry", asScript, ids, 401, 403, 200},
		{"POST", "/queue/api/jobs/delete", asScript, ids, 401, 403, 200},
		{"POST", "/queue/api/jobs/delete", asScript, ids, 401, 403, 404}, // it is gone
	} {
		for session, want := range map[string]int{"": c.stranger, "forged": c.stranger, "plain": c.plain} {
			if a := e.asks(session, c.method, c.path, c.accept, c.body); a.status != want {
				t.Errorf("%s %s as %q: %d, want %d", c.method, c.path, session, a.status, want)
			}
		}
		if n := e.count("SELECT count(*) FROM audit_entries WHERE actor IN ('ada', '')"); n != 0 {
			t.Errorf("%d audit entries for what was refused", n)
		}
		if a := e.asks("service", c.method, c.path, c.accept, c.body); a.status != c.service {
			t.Errorf("%s %s: %d %s, want %d", c.method, c.path, a.status, a.body, c.service)
		}
	}
	if a := e.asks("", "GET", "/queue/jobs?state=available", asPage, ""); a.header.Get("Location") != "/login?next=%2Fqueue%2Fjobs%3Fstate%3Davailable" {
		t.Errorf("a stranger is led to %s", a.header.Get("Location"))
	}
	if a := e.send(e.request("GET", "/queue/api/jobs", "admin", nil)); a.status != 401 { // a token is no log-in
		t.Errorf("with a token: %d", a.status)
	}
}

func TestWhatRiverUIChangesIsInTheAuditFirst(t *testing.T) {
	t.Parallel()
	e := serveQueue(t)
	jobIDs := e.enqueue(2)
	e.exec("INSERT INTO river_queue (name, created_at, updated_at) VALUES ('default', now(), now())")
	for _, press := range []struct{ method, path, body string }{
		{"POST", "jobs/cancel", fmt.Sprintf(`{"ids":["%d","%d"]}`, jobIDs[0], jobIDs[1])},
		{"POST", "jobs/retry", fmt.Sprintf(`{"ids":["%d"]}`, jobIDs[0])},
		{"POST", "jobs/delete", `{"ids":["9000"]}`}, // there is none: it was tried
		{"PUT", "queues/default/pause", ""},
		{"PUT", "queues/default/resume", ""},
	} {
		if a := e.asks("service", press.method, "/queue/api/"+press.path, asScript, press.body); a.status >= 500 {
			t.Errorf("%s: %d %s", press.path, a.status, a.body)
		}
	}
	rows, _ := e.pool.Query(t.Context(), `SELECT tenant_id || ' ' || actor || ' ' || via || ' ' || action || ' ' || subject || ' ' || reason
		FROM audit_entries WHERE action LIKE 'queue.%' AND account_id IS NOT NULL AND address <> '' AND request_id <> '' ORDER BY id`)
	got, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	operation := regexp.MustCompile(`"operation_id": "[0-9a-f-]{36}"`)
	for i := range got {
		got[i] = operation.ReplaceAllString(got[i], "ITS OPERATION")
	}
	want := []string{
		fmt.Sprintf("t1 grace console queue.job.cancel job %d deliver_operation {ITS OPERATION} POST /queue/api/jobs/cancel", jobIDs[0]),
		fmt.Sprintf("t1 grace console queue.job.cancel job %d deliver_operation {ITS OPERATION} POST /queue/api/jobs/cancel", jobIDs[1]),
		fmt.Sprintf("t1 grace console queue.job.retry job %d deliver_operation {ITS OPERATION} POST /queue/api/jobs/retry", jobIDs[0]),
		"t1 grace console queue.job.delete job 9000 POST /queue/api/jobs/delete",
		"t1 grace console queue.pause queue default PUT /queue/api/queues/default/pause",
		"t1 grace console queue.resume queue default PUT /queue/api/queues/default/resume",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestWhatCanNotBeWrittenDownIsNotDoneToTheQueue(t *testing.T) {
	t.Parallel()
	e := serveQueue(t)
	job := e.enqueue(1)[0]
	for _, c := range []struct {
		method, path, body string
		want               int
	}{
		{"POST", "jobs/cancel", "", 400},
		{"POST", "jobs/cancel", "{}", 400},
		{"POST", "jobs/cancel", `{"ids":[]}`, 400},
		{"POST", "jobs/cancel", fmt.Sprintf(`{"ids":["%d"],"ids":["1"]}`, job), 400},
		{"POST", "jobs/cancel", fmt.Sprintf(`{"ids":["9000"],"IDS":["%d"]}`, job), 404}, // the second is not looked at
		{"POST", "jobs/cancel", `{"ids":["1; DROP TABLE river_job"]}`, 400},
		{"POST", "jobs/cancel", `{"ids":["` + strings.Repeat("1", 70_000) + `"]}`, 413},
		{"POST", "jobs/explode", fmt.Sprintf(`{"ids":["%d"]}`, job), 404},
		{"PATCH", "queues/default", `{"concurrency":null}`, 404},
		{"PUT", "queues/a%00b/pause", "", 404},
		{"DELETE", "jobs/1", "", 404},
	} {
		if a := e.asks("service", c.method, "/queue/api/"+c.path, asScript, c.body); a.status != c.want {
			t.Errorf("%s %s %.60s: %d %s, want %d", c.method, c.path, c.body, a.status, a.body, c.want)
		}
	}
	if n := e.count("SELECT count(*) FROM river_job WHERE state = 'available'"); n != 1 {
		t.Error("the job was changed")
	}
	e.exec("ALTER TABLE audit_entries ADD CONSTRAINT is_full CHECK (actor <> 'grace') NOT VALID")
	if a := e.asks("service", "POST", "/queue/api/jobs/cancel", asScript, fmt.Sprintf(`{"ids":["%d"]}`, job)); a.status != 500 {
		t.Errorf("without an audit: %d", a.status)
	}
	if n := e.count("SELECT count(*) FROM river_job WHERE state = 'available'"); n != 1 {
		t.Error("the job was changed without an audit entry")
	}
	r := e.request("POST", "/queue/api/jobs/cancel", "", fmt.Appendf(nil, `{"ids":["%d"]}`, job))
	r.AddCookie(&http.Cookie{Name: "ib_erp_session", Value: "service"})
	r.Header.Set("Sec-Fetch-Site", "cross-site")
	e.send(r).wantProblem(403, problem.Forbidden)
}

// A browser under this policy shows all of River UI: tried in one. What it relies on is held here: that the page has no
// script or style of its own in it, and names no other host.
func TestRiverUIsPageHasNothingInlineAndAsksNoOtherHost(t *testing.T) {
	t.Parallel()
	e := serveQueue(t)
	a := e.asks("service", "GET", "/queue/", asPage, "")
	policy := a.header.Get("Content-Security-Policy")
	for _, directive := range strings.Split(policy, "; ") {
		name, sources, _ := strings.Cut(directive, " ")
		if strings.Contains(sources, "unsafe") || strings.Contains(sources, ":") && directive != "img-src 'self' data:" {
			t.Errorf("%s allows %s", name, sources)
		}
	}
	if !strings.Contains(policy, "default-src 'none'") || !strings.Contains(policy, "frame-ancestors 'none'") || a.header.Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("the page's headers are %v", a.header)
	}
	scripts := regexp.MustCompile(`(?s)<script([^>]*)>(.*?)</script>`).FindAllStringSubmatch(string(a.body), -1)
	if len(scripts) != 2 {
		t.Fatalf("the page has %d scripts: %s", len(scripts), a.body)
	}
	for _, script := range scripts {
		if strings.TrimSpace(script[2]) != "" && !strings.Contains(script[1], `type="application/json"`) {
			t.Errorf("script inline: %s", script[0])
		}
	}
	if found := regexp.MustCompile(`(?i)<style|\son[a-z]+=|\sstyle=|https?:|(src|href)="//`).FindString(string(a.body)); found != "" {
		t.Errorf("the page has %q", found)
	}
	for _, link := range regexp.MustCompile(`(?:src|href)="([^"]*)"`).FindAllStringSubmatch(string(a.body), -1) {
		if got := e.asks("service", "GET", link[1], asScript, ""); got.status != 200 {
			t.Errorf("%s: %d", link[1], got.status)
		}
	}
}
