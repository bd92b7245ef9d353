package processtest

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/jackc/pgx/v5"

	"invoicebridge/internal/testdb"
)

// operator presses what people press: as a program with a token, and on the pages, logged in.
type operator struct {
	w     *world
	base  string
	token string
	pages *http.Client // with a session; redirects are not followed
}

// newOperator makes an account and a token and logs in at a worker.
func (w *world) newOperator(base string) *operator {
	w.t.Helper()
	const password = "correct horse battery staple"
	file := filepath.Join(w.t.TempDir(), "password")
	if err := os.WriteFile(file, []byte(password), 0o600); err != nil {
		w.t.Fatal(err)
	}
	env := []string{"CRM_DATABASE_URL=" + w.crmDSN}
	command(w.t, "crm-worker", env, "account", "create", "--tenant", "acme", "--name", "ada", "--display-name", "Ada", "--role", "operator", "--password-file", file)
	jar, err := cookiejar.New(nil)
	if err != nil {
		w.t.Fatal(err)
	}
	o := &operator{w: w, base: base, token: command(w.t, "crm-worker", env, "token", "create", "--tenant", "acme", "--role", "admin", "--label", "operator")}
	o.pages = &http.Client{Timeout: patience, Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	if got := o.button("/login", url.Values{"name": {"ada"}, "password": {password}}); got.status != http.StatusSeeOther {
		w.t.Fatalf("the log-in is answered %d %v %s", got.status, got.err, got.body)
	}
	return o
}

// call is a POST to an endpoint below /admin/v1.
func (o *operator) call(path, body string) answer {
	return o.w.send(o.base, "/admin/v1/"+path, o.token, "", body)
}

// button is a form that is sent by a page.
func (o *operator) button(path string, form url.Values) answer {
	req, err := http.NewRequestWithContext(o.w.t.Context(), http.MethodPost, o.base+path, strings.NewReader(form.Encode()))
	if err != nil {
		return answer{err: err}
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	res, err := o.pages.Do(req)
	if err != nil {
		return answer{err: err}
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	return answer{status: res.StatusCode, header: res.Header, body: string(text), err: err}
}

// replay presses "replay" for an operation by endpoint and by button at once.
func (o *operator) replay(key string) (answers []answer) {
	answers = make([]answer, 2)
	var both sync.WaitGroup
	both.Go(func() { answers[0] = o.call("operations/"+key+"/replay", `{"reason":"by endpoint"}`) })
	both.Go(func() {
		answers[1] = o.button("/operations/"+key+"/replay", url.Values{"reason": {"by button"}})
	})
	both.Wait()
	return answers
}

// startReplays presses "replay many" for everything, twice at once. One press begins the run, the other is told of it.
func (o *operator) startReplays(expected int) (run string) {
	o.w.t.Helper()
	answers := make([]answer, 2)
	var both sync.WaitGroup
	for n := range answers {
		both.Go(func() {
			answers[n] = o.call("replays", fmt.Sprintf(`{"filter":{},"expected_count":%d,"reason":"in bulk"}`, expected))
		})
	}
	both.Wait()
	for _, got := range answers {
		switch {
		case got.status == http.StatusCreated && run == "":
			run = strings.TrimPrefix(got.header.Get("Location"), "/admin/v1/replays/")
		case got.status != http.StatusConflict || !strings.Contains(got.body, "replay is running already") && !strings.Contains(got.body, "replay was running at this very moment"):
			o.w.t.Errorf("a second start at the same time is answered %d %v %s", got.status, got.err, got.body)
		}
	}
	if run == "" {
		o.w.t.Fatalf("no replay has begun: %+v", answers)
	}
	return run
}

// wantTold holds the answers to a press to what people have to be told: that it is done, or why not. It gives how many were done.
func wantTold(t testing.TB, answers []answer) (done int) {
	t.Helper()
	for _, got := range answers {
		switch got.status {
		case http.StatusOK, http.StatusSeeOther:
			done++
		case http.StatusConflict:
			if !strings.Contains(got.body, "already queued") && !strings.Contains(got.body, "being worked on") && !strings.Contains(got.body, "succeeded and stays so") {
				t.Errorf("refused without a reason that helps: %s", got.body)
			}
			if strings.Contains(got.body, "23505") || strings.Contains(got.body, "SQLSTATE") {
				t.Errorf("the database is heard: %s", got.body)
			}
		default:
			t.Errorf("a press is answered %d %v %s", got.status, got.err, got.body)
		}
	}
	return done
}

// replayRun is what a run says of itself.
type replayRun struct {
	Total, Queued, Refused, Stopped, Waiting int
}

func (o *operator) run(id string) (run replayRun) {
	o.w.t.Helper()
	got := o.get("/admin/v1/replays/" + id)
	if got.err != nil || got.status != http.StatusOK {
		o.w.t.Fatalf("the replay is answered %d %v %s", got.status, got.err, got.body)
	}
	if err := json.Unmarshal([]byte(got.body), &run, json.MatchCaseInsensitiveNames(true)); err != nil {
		o.w.t.Fatal(err)
	}
	return run
}

// get asks as a program for what is below /admin/v1, and as a person for a page.
func (o *operator) get(path string) answer {
	req, err := http.NewRequestWithContext(o.w.t.Context(), http.MethodGet, o.base+path, http.NoBody)
	if err != nil {
		return answer{err: err}
	}
	client := o.pages
	if strings.HasPrefix(path, "/admin/") {
		client = o.w.httpClient
		req.Header.Set("Authorization", "Bearer "+o.token)
	}
	res, err := client.Do(req)
	if err != nil {
		return answer{err: err}
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	return answer{status: res.StatusCode, header: res.Header, body: string(text), err: err}
}

// holdOperation locks an operation as one does who is about to change it.
func (w *world) holdOperation(key string) (release func()) {
	w.t.Helper()
	tx, err := w.crm.Begin(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	var id string
	if err := tx.QueryRow(w.t.Context(), `SELECT id::text FROM operations WHERE key = $1 FOR NO KEY UPDATE`, key).Scan(&id); err != nil {
		w.t.Fatal(err)
	}
	return func() {
		if err := tx.Rollback(w.t.Context()); err != nil && !errors.Is(err, pgx.ErrTxClosed) {
			w.t.Fatal(err)
		}
	}
}

// awaitReplaysWaiting returns once so many hand an operation back at this moment, and wait for whoever holds it.
func (w *world) awaitReplaysWaiting(want int) {
	w.t.Helper()
	testdb.Await(w.t, fmt.Sprintf("%d replays of an operation meet", want), func() bool {
		return number(w.t, w.crm, `SELECT count(*) FROM pg_stat_activity
			WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%name: OperationReplay :one%'`) == want
	})
}
