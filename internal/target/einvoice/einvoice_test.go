package einvoice_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"invoicebridge/internal/target"
	"invoicebridge/internal/target/einvoice"
)

const patience = 20 * time.Second

var submission = target.Submission{
	Key: "K1", Reference: "op-1", Number: "INV-1", Document: []byte(`{"number":"INV-1","gross":"23.80"}`),
}

func newClient(t *testing.T, base string, timeout time.Duration) *einvoice.Client {
	t.Helper()
	c, err := einvoice.New(einvoice.Config{
		BaseURL: base, Token: target.NewSecret("hush"), Timeout: timeout, Now: time.Now,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func serve(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

// answerWith answers every request alike.
func answerWith(status int, contentType, body string, header ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header()["Content-Type"] = []string{contentType}
		for i := 0; i < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

func asJSON(status int, body string, header ...string) http.HandlerFunc {
	return answerWith(status, "application/json", body, header...)
}

func asPage(status int) http.HandlerFunc {
	return answerWith(status, "text/html", "<h1>something in between</h1>")
}

func broken(_ http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	panic(http.ErrAbortHandler)
}

// silent takes the request, makes the client give up, and never answers.
func silent(giveUp func()) http.HandlerFunc {
	return func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		giveUp()
		<-r.Context().Done()
	}
}

func cutOff(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", "500")
	_, _ = io.WriteString(w, `{"id":"d-1","status":"accepted","reference":"R-1"}`)
}

func tooLong(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	w.Header().Set("Content-Type", "application/json")
	chunk := []byte(strings.Repeat(" ", 64<<10))
	for r.Context().Err() == nil { // endless: only a client that stops reading ends it
		if _, err := w.Write(chunk); err != nil {
			return
		}
	}
}

func TestEveryAnswerToASubmissionHasItsOutcome(t *testing.T) {
	t.Parallel()
	accepted := target.Sent{Outcome: target.Accepted, ID: "d-1", Reference: "R-1"}
	lost := target.Sent{Outcome: target.Lost}
	misconfigured := target.Sent{Outcome: target.Misconfigured}
	foreign := target.Sent{Outcome: target.Foreign, ForeignInvoice: "INV-9"}
	duplicate := func(original string) http.HandlerFunc {
		return asJSON(409, `{"code":"already_submitted","detail":"previously submitted"`+original+`}`)
	}
	for name, tc := range map[string]struct {
		server http.HandlerFunc
		want   target.Sent
	}{
		"201 accepted": {asJSON(201, `{"id":"d-1","status":"accepted","reference":"R-1","external_reference":"op-1","number":"INV-1"}`), accepted},
		"200 replay":   {asJSON(200, `{"id":"d-1","status":"accepted","reference":"R-1","new_member":1}`), accepted},
		"202 accepted": {asJSON(202, `{"id":"d-1","status":"accepted","reference":"R-1"}`), accepted},
		"200 accepted with warnings (Q2)": {
			asJSON(200, `{"id":"d-1","status":"accepted","reference":"R-1","warnings":["late",{"code":"W1"}]}`),
			target.Sent{Outcome: target.Accepted, ID: "d-1", Reference: "R-1", Warnings: []string{"late", `{"code":"W1"}`}},
		},
		"202 held (Q1)":                {asJSON(202, `{"id":"d-1","status":"held"}`), target.Sent{Outcome: target.Held, ID: "d-1"}},
		"202 processing (Q1)":          {asJSON(202, `{"id":"d-1","status":"processing"}`), target.Sent{Outcome: target.Held, ID: "d-1"}},
		"202 error is no end (Q1)":     {asJSON(202, `{"id":"d-1","status":"error"}`), target.Sent{Outcome: target.Held, ID: "d-1"}},
		"accepted without a reference": {asJSON(201, `{"id":"d-1","status":"accepted"}`), target.Sent{Outcome: target.Held, ID: "d-1"}},
		"200 rejected": {
			asJSON(200, `{"id":"d-1","status":"rejected","errors":[{"pointer":"/lines/0","code":"R1","detail":"no"}]}`),
			target.Sent{Outcome: target.Rejected, NotApplied: true, ID: "d-1", Reasons: []target.Reason{{Pointer: "/lines/0", Code: "R1", Detail: "no"}}},
		},
		"201 for another number (K3 d)":    {asJSON(201, `{"id":"d-1","status":"accepted","reference":"R-1","number":"INV-9"}`), foreign},
		"201 for another reference (K3 d)": {asJSON(201, `{"id":"d-1","status":"accepted","reference":"R-1","external_reference":"op-9","number":"INV-9"}`), foreign},
		"201 with an unknown status":       {asJSON(201, `{"id":"d-1","status":"ACCEPTED","reference":"R-1"}`), target.Sent{Outcome: target.Lost, ID: "d-1"}},
		"201 without an id":                {asJSON(201, `{"status":"accepted","reference":"R-1"}`), lost},
		"201 cut (K3 a, e)":                {cutOff, lost},
		"201 empty (K3 b)":                 {asJSON(201, ""), lost},
		"200 page (K3 c)":                  {asPage(200), misconfigured},
		"204 (K3 f)":                       {asJSON(204, ""), lost},
		"endless answer (K3 g)":            {tooLong, lost},
		"200 JSON list":                    {asJSON(200, `[{"id":"d-1","status":"accepted","reference":"R-1"}]`), lost},
		"200 null":                         {asJSON(200, `null`), lost},
		"200 with a member twice":          {asJSON(200, `{"id":"d-1","status":"accepted","status":"rejected","reference":"R-1"}`), lost},
		"206":                              {asJSON(206, `{"id":"d-1","status":"accepted","reference":"R-1"}`), lost},

		"301 (K2)": {asJSON(301, `{}`, "Location", "/x"), misconfigured},
		"302 (K2)": {asJSON(302, `{}`, "Location", "/x"), misconfigured},
		"303 (K2)": {asJSON(303, `{}`, "Location", "/x"), misconfigured},
		"307 (K2)": {asJSON(307, `{}`, "Location", "/x"), misconfigured},
		"308 (K2)": {asJSON(308, `{}`, "Location", "/x"), misconfigured},

		"409 with our original (Q2)": {
			duplicate(`,"original":{"id":"d-1","reference":"R-1","external_reference":"op-1","number":"INV-1"}`),
			target.Sent{Outcome: target.AlreadyRegistered, ID: "d-1", Reference: "R-1"},
		},
		"409 with our number alone":          {duplicate(`,"original":{"reference":"R-1","number":"INV-1"}`), target.Sent{Outcome: target.AlreadyRegistered, Reference: "R-1"}},
		"409 without an original (Q2)":       {duplicate(``), target.Sent{Outcome: target.AlreadyRegistered}},
		"409 with a bare reference":          {duplicate(`,"original":{"reference":"R-1"}`), target.Sent{Outcome: target.AlreadyRegistered}},
		"409 with another's original (Q2)":   {duplicate(`,"original":{"reference":"R-9","external_reference":"op-9","number":"INV-9"}`), foreign},
		"409 with our reference on another":  {duplicate(`,"original":{"reference":"R-9","external_reference":"op-1","number":"INV-9"}`), foreign},
		"409 in progress":                    {asJSON(409, `{"code":"in_progress"}`, "Retry-After", "120"), target.Sent{Outcome: target.Wait, RetryAfter: 2 * time.Minute}},
		"409 that nobody knows":              {asJSON(409, `{"code":"locked"}`), lost},
		"409 page":                           {asPage(409), misconfigured},
		"422 key reused":                     {asJSON(422, `{"code":"key_reused"}`), target.Sent{Outcome: target.Foreign}},
		"409 key reused":                     {asJSON(409, `{"code":"key_reused"}`), target.Sent{Outcome: target.Foreign}},
		"422 with details in full (Q2)":      {asJSON(422, `{"code":"invalid","errors":[{"pointer":"/a","code":"A","detail":"a"},{"pointer":"/b","detail":"b"},"c"]}`), target.Sent{Outcome: target.Rejected, NotApplied: true, Reasons: []target.Reason{{Pointer: "/a", Code: "A", Detail: "a"}, {Pointer: "/b", Detail: "b"}, {Detail: "c"}}}},
		"422 in a form that nobody knows":    {asJSON(422, `{"errors":{"a":"b"}}`), target.Sent{Outcome: target.Rejected, NotApplied: true, Reasons: []target.Reason{{Detail: `{"a":"b"}`}}}},
		"422 that is a page":                 {asPage(422), misconfigured},
		"400":                                {asJSON(400, `{}`), target.Sent{Outcome: target.Rejected, NotApplied: true}},
		"413":                                {asJSON(413, `{}`), target.Sent{Outcome: target.Rejected, NotApplied: true}},
		"413 page":                           {asPage(413), misconfigured},
		"401":                                {asPage(401), target.Sent{Outcome: target.NotAuthorised, NotApplied: true}},
		"403":                                {asJSON(403, `{}`), target.Sent{Outcome: target.NotAuthorised, NotApplied: true}},
		"403 of a filter in between":         {asPage(403), misconfigured},
		"404":                                {asJSON(404, `{}`), target.Sent{Outcome: target.Misconfigured, NotApplied: true}},
		"404 of a load balancer":             {asPage(404), misconfigured},
		"408":                                {asPage(408), lost},
		"429 (K4)":                           {asPage(429), target.Sent{Outcome: target.Wait, NotApplied: true}},
		"503 (K4) proves nothing":            {asJSON(503, `{}`, "Retry-After", "99999999999999999999"), target.Sent{Outcome: target.Wait, RetryAfter: time.Hour}},
		"503 with a pause in the past (K4)":  {asJSON(503, `{}`, "Retry-After", "Mon, 02 Mar 2020 12:00:00 GMT"), target.Sent{Outcome: target.Wait, RetryAfter: time.Second}},
		"503 with a nonsensical pause (K4)":  {asJSON(503, `{}`, "Retry-After", "-3"), target.Sent{Outcome: target.Wait}},
		"500":                                {asJSON(500, `{}`), lost},
		"502 page (Q1)":                      {asPage(502), lost},
		"504 page (Q1)":                      {asPage(504), lost},
		"connection broken before an answer": {broken, lost},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := newClient(t, serve(t, tc.server), patience).Send(t.Context(), submission)
			if got.Detail == "" {
				t.Error("nothing is said for people")
			}
			checkSent(t, got, tc.want)
		})
	}
}

// checkSent compares what decides; the answer as it came and the words for people are left out.
func checkSent(t *testing.T, got, want target.Sent) {
	t.Helper()
	got.Detail, got.Answer, got.HTTPStatus = "", nil, 0
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestNoAnswerIsLostAndNoConnectionIsNotSent(t *testing.T) {
	t.Parallel()
	// Q1: accepts and never answers.
	ctx, giveUp := context.WithCancel(t.Context())
	checkSent(t, newClient(t, serve(t, silent(giveUp)), patience).Send(ctx, submission), target.Sent{Outcome: target.Lost})
	closed := httptest.NewServer(nil)
	closed.Close()
	checkSent(t, newClient(t, closed.URL, patience).Send(t.Context(), submission),
		target.Sent{Outcome: target.NotSent, NotApplied: true})
}

func TestARejectionIsKeptAsItCame(t *testing.T) {
	t.Parallel()
	const body = `{"code":"invalid","detail":"2 errors","errors":["a","b"],"trace":"t-1"}`
	got := newClient(t, serve(t, asJSON(422, body)), patience).Send(t.Context(), submission)
	if string(got.Answer) != body || got.HTTPStatus != 422 || got.Detail != "invalid: 2 errors" {
		t.Errorf("got %d %q %q", got.HTTPStatus, got.Answer, got.Detail)
	}
}

func TestASubmissionIsTheDocumentUnderTheKey(t *testing.T) {
	t.Parallel()
	type seen struct{ Path, Key, Token, Body, Type string }
	var mu sync.Mutex
	var got []seen
	base := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		got = append(got, seen{r.URL.String(), r.Header.Get("Idempotency-Key"), r.Header.Get("Authorization"), string(body), r.Header.Get("Content-Type")})
		asJSON(201, `{"id":"d-1","status":"held"}`)(w, r)
	})
	c := newClient(t, base+"/api/", patience)
	var want []seen
	for key, header := range map[string]string{
		"0192f1de-0000-7000-8000-000000000001": "0192f1de-0000-7000-8000-000000000001",
		"SO 1/final":                           `"SO 1/final"`,
		` a"b\`:                                `" a\"b\\"`,
		strings.Repeat("k", 255):               strings.Repeat("k", 255), // E3
	} {
		s := submission
		s.Key, s.Reference = key, key
		for range 2 { // the same each time
			c.Send(t.Context(), s)
			path := strings.NewReplacer("SO 1/final", "SO+1%2Ffinal", ` a"b\`, "+a%22b%5C").Replace(key)
			want = append(want, seen{"/api/documents?external_reference=" + path, header, "Bearer hush", string(s.Document), "application/json"})
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestWhatCantBeASubmissionIsNotSent(t *testing.T) {
	t.Parallel()
	c := newClient(t, serve(t, func(http.ResponseWriter, *http.Request) { t.Error("a request arrived") }), patience)
	for _, strip := range []func(*target.Submission){
		func(s *target.Submission) { s.Key = "" },
		func(s *target.Submission) { s.Reference = "" },
		func(s *target.Submission) { s.Document = nil },
	} {
		s := submission
		strip(&s)
		checkSent(t, c.Send(t.Context(), s), target.Sent{Outcome: target.Misconfigured, NotApplied: true})
	}
}

func TestARedirectTakesNoKeyAndNoSecretToAnotherHost(t *testing.T) {
	t.Parallel()
	var reached atomic.Bool
	other := serve(t, func(http.ResponseWriter, *http.Request) { reached.Store(true) })
	c := newClient(t, serve(t, asJSON(308, `{}`, "Location", other+"/documents")), patience)
	got := c.Send(t.Context(), submission)
	if l := c.Locate(t.Context(), target.Query{Reference: "op-1"}); l.State != target.Inconclusive {
		t.Errorf("locate: got %s", l.State)
	}
	if reached.Load() {
		t.Error("a request reached the other host")
	}
	if got.Outcome != target.Misconfigured || !strings.Contains(got.Detail, other) {
		t.Errorf("got %s %q, want the address that was not followed", got.Outcome, got.Detail)
	}
}

func TestWrongSettingsAreRefusedWithASentence(t *testing.T) {
	t.Parallel()
	good := einvoice.Config{BaseURL: "https://gateway.example", Token: target.NewSecret("hush"), Timeout: time.Second, Now: time.Now}
	for says, spoil := range map[string]func(*einvoice.Config){
		"address":    func(c *einvoice.Config) { c.BaseURL = "gateway.example" },
		"credential": func(c *einvoice.Config) { c.Token = target.Secret{} },
		"time limit": func(c *einvoice.Config) { c.Timeout = 0 },
	} {
		cfg := good
		spoil(&cfg)
		if _, err := einvoice.New(cfg); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("got %v, want an error that says %q", err, says)
		}
	}
	if err := einvoice.CheckCapabilities(target.Capabilities{Keyed: true}, time.Second); err == nil {
		t.Error("keys without a window were accepted")
	}
}
