package ledger_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"invoicebridge/internal/target"
	"invoicebridge/internal/target/ledger"
)

const patience = 20 * time.Second

var submission = target.Submission{
	Key: "K1", Reference: "op-1", Number: "INV-1", Document: []byte(`{"number":"INV-1","gross":"23.80"}`),
}

// book is a ledger whose answers are given: one for each kind of request. It notes the requests.
type book struct {
	create, post, find http.HandlerFunc

	mu   sync.Mutex
	seen []string
}

func (b *book) serve(t *testing.T) string {
	t.Helper()
	note := func(h *http.HandlerFunc) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			b.mu.Lock()
			b.seen = append(b.seen, strings.TrimSpace(r.Method+" "+r.URL.String()+" "+string(body)))
			b.mu.Unlock()
			if *h == nil {
				t.Errorf("unexpected: %s %s", r.Method, r.URL)
				return
			}
			(*h)(w, r)
		}
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /entries", note(&b.create))
	mux.HandleFunc("POST /entries/{id}/post", note(&b.post))
	mux.HandleFunc("GET /entries", note(&b.find))
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s.URL
}

func (b *book) requests() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.seen)
}

func newClient(t *testing.T, base string, timeout time.Duration) *ledger.Client {
	t.Helper()
	c, err := ledger.New(ledger.Config{BaseURL: base, Token: target.NewSecret("hush"), Timeout: timeout, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func asJSON(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

func asPage(status int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, "<h1>something in between</h1>")
	}
}

func broken(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

var (
	created = asJSON(201, `{"id":"e-1","external_reference":"op-1","number":"INV-1","status":"draft"}`)
	posted  = asJSON(200, `{"id":"e-1","external_reference":"op-1","number":"INV-1","status":"posted","reference":"V-1","warnings":["late"]}`)
)

func checkSent(t *testing.T, got, want target.Sent) {
	t.Helper()
	if got.Detail == "" {
		t.Error("nothing is said for people")
	}
	got.Detail, got.Answer, got.HTTPStatus = "", nil, 0
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestEveryAnswerToACreationHasItsOutcomeAndNothingIsPosted(t *testing.T) {
	t.Parallel()
	lost, misconfigured := target.Sent{Outcome: target.Lost}, target.Sent{Outcome: target.Misconfigured}
	foreign := target.Sent{Outcome: target.Foreign, ForeignInvoice: "INV-9"}
	for name, tc := range map[string]struct {
		create http.HandlerFunc
		want   target.Sent
	}{
		"connection broken":            {broken, lost},
		"201 without an id":            {asJSON(201, `{"status":"draft"}`), lost},
		"201 empty":                    {asJSON(201, ``), lost},
		"201 for another":              {asJSON(201, `{"id":"e-9","number":"INV-9","status":"draft"}`), foreign},
		"200 page":                     {asPage(200), misconfigured},
		"303":                          {asJSON(303, `{}`), misconfigured},
		"404 JSON":                     {asJSON(404, `{}`), target.Sent{Outcome: target.Misconfigured, NotApplied: true}},
		"404 page":                     {asPage(404), misconfigured},
		"409 that nobody knows":        {asJSON(409, `{"code":"busy"}`), lost},
		"409 with our posted entry":    {asJSON(409, `{"code":"already_entered","original":{"id":"e-1","number":"INV-1","reference":"V-1"}}`), target.Sent{Outcome: target.AlreadyRegistered, ID: "e-1", Reference: "V-1"}},
		"409 with our draft":           {asJSON(409, `{"code":"already_entered","original":{"id":"e-1","number":"INV-1"}}`), target.Sent{Outcome: target.AlreadyRegistered}},
		"409 without an original":      {asJSON(409, `{"code":"already_entered"}`), target.Sent{Outcome: target.AlreadyRegistered}},
		"409 with another's":           {asJSON(409, `{"code":"already_entered","original":{"id":"e-9","number":"INV-9","reference":"V-9"}}`), foreign},
		"422":                          {asJSON(422, `{"code":"closed","errors":["period"]}`), target.Sent{Outcome: target.Rejected, NotApplied: true, Reasons: []target.Reason{{Detail: "period"}}}},
		"401":                          {asJSON(401, `{}`), target.Sent{Outcome: target.NotAuthorised, NotApplied: true}},
		"429":                          {asJSON(429, `{}`), target.Sent{Outcome: target.Wait, NotApplied: true}},
		"503 proves nothing":           {asJSON(503, `{}`), target.Sent{Outcome: target.Wait}},
		"500":                          {asJSON(500, `{}`), lost},
		"502 of something in between":  {asPage(502), lost},
		"504 of something in between ": {asPage(504), lost},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := &book{create: tc.create}
			checkSent(t, newClient(t, b.serve(t), patience).Send(t.Context(), submission), tc.want)
		})
	}
	t.Run("no answer", func(t *testing.T) {
		t.Parallel()
		ctx, giveUp := context.WithCancel(t.Context())
		b := &book{create: func(_ http.ResponseWriter, r *http.Request) {
			giveUp()
			<-r.Context().Done()
		}}
		checkSent(t, newClient(t, b.serve(t), patience).Send(ctx, submission), lost)
	})
}

func TestAnEntryThatIsThereIsNeverSaidNotToHaveBeenApplied(t *testing.T) {
	t.Parallel()
	resume := func(o target.Outcome) target.Sent { return target.Sent{Outcome: o, ID: "e-1", Resume: true} }
	for name, tc := range map[string]struct {
		post http.HandlerFunc
		want target.Sent
	}{
		"posted":                    {posted, target.Sent{Outcome: target.Accepted, ID: "e-1", Reference: "V-1", Warnings: []string{"late"}}},
		"posted without a voucher":  {asJSON(200, `{"id":"e-1","status":"posted"}`), resume(target.Held)},
		"still a draft":             {asJSON(200, `{"id":"e-1","status":"draft"}`), resume(target.Held)},
		"another entry":             {asJSON(200, `{"id":"e-2","status":"posted","reference":"V-2"}`), resume(target.Held)},
		"an entry of another":       {asJSON(200, `{"id":"e-1","number":"INV-9","status":"posted","reference":"V-9"}`), target.Sent{Outcome: target.Foreign, ForeignInvoice: "INV-9"}},
		"connection broken":         {broken, resume(target.Held)},
		"502":                       {asPage(502), resume(target.Held)},
		"503":                       {asJSON(503, `{}`), resume(target.Wait)},
		"429":                       {asJSON(429, `{}`), resume(target.Wait)},
		"401":                       {asJSON(401, `{}`), resume(target.NotAuthorised)},
		"307":                       {asJSON(307, `{}`), resume(target.Misconfigured)},
		"409":                       {asJSON(409, `{}`), resume(target.Held)},
		"422 (period closed)":       {asJSON(422, `{"code":"closed","errors":["period"]}`), target.Sent{Outcome: target.Rejected, ID: "e-1", Resume: true, Reasons: []target.Reason{{Detail: "period"}}}},
		"404: the entry has gone":   {asJSON(404, `{}`), target.Sent{Outcome: target.Lost, ID: "e-1"}},
		"404 of something between":  {asPage(404), target.Sent{Outcome: target.Lost, ID: "e-1"}},
		"200 page":                  {asPage(200), resume(target.Misconfigured)},
		"200 that is not an object": {asJSON(200, `[]`), resume(target.Held)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := &book{create: created, post: tc.post}
			checkSent(t, newClient(t, b.serve(t), patience).Send(t.Context(), submission), tc.want)
			want := []string{
				`POST /entries {"external_reference":"op-1","number":"INV-1","document":{"number":"INV-1","gross":"23.80"}}`,
				`POST /entries/e-1/post {"external_reference":"op-1"}`,
			}
			if diff := cmp.Diff(want, b.requests()); diff != "" {
				t.Errorf("requests (-want +got)\n%s", diff)
			}

			// With what is known, posting alone is done again, and means the same.
			known := submission
			known.Known = "e-1"
			b = &book{post: tc.post}
			checkSent(t, newClient(t, b.serve(t), patience).Send(t.Context(), known), tc.want)
			if diff := cmp.Diff(want[1:], b.requests()); diff != "" {
				t.Errorf("requests with what is known (-want +got)\n%s", diff)
			}
		})
	}
	t.Run("nobody there to post it", func(t *testing.T) {
		t.Parallel()
		closed := httptest.NewServer(nil)
		closed.Close()
		known := submission
		known.Known = "e-1"
		checkSent(t, newClient(t, closed.URL, patience).Send(t.Context(), known), resume(target.Held))
	})
}

func TestEveryAnswerToALookUpHasItsState(t *testing.T) {
	t.Parallel()
	entry := func(id, status, voucher string) string {
		return `{"id":"` + id + `","external_reference":"op-1","number":"INV-1","status":"` + status + `","reference":"` + voucher + `"}`
	}
	items := func(list ...string) http.HandlerFunc {
		return asJSON(200, `{"items":[`+strings.Join(list, ",")+`]}`)
	}
	draft := target.Located{State: target.StateHeld, ID: "e-1", Resume: true}
	for name, tc := range map[string]struct {
		find http.HandlerFunc
		want target.Located
	}{
		"posted":                   {items(entry("e-1", "posted", "V-1")), target.Located{State: target.Landed, ID: "e-1", Reference: "V-1"}},
		"created and not posted":   {items(entry("e-1", "draft", "")), draft},
		"posted without a voucher": {items(entry("e-1", "posted", "")), target.Located{State: target.StateHeld, ID: "e-1"}},
		"voided by somebody":       {items(entry("e-1", "void", "V-1")), target.Located{State: target.Inconclusive, ID: "e-1"}},
		"two drafts":               {items(entry("e-1", "draft", ""), entry("e-2", "draft", "")), target.Located{State: target.StateHeld, ID: "e-1", Resume: true, Duplicates: []string{"e-2"}}},
		"a draft and a posted one": {items(entry("e-1", "draft", ""), entry("e-2", "posted", "V-2")), target.Located{State: target.Landed, ID: "e-2", Reference: "V-2", Duplicates: []string{"e-1"}}},
		"nothing":                  {items(), target.Located{State: target.Absent}},
		"page":                     {asPage(404), target.Located{State: target.Inconclusive}},
		"500":                      {asJSON(500, `{"items":[]}`), target.Located{State: target.Inconclusive}},
		"connection broken":        {broken, target.Located{State: target.Inconclusive}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := &book{find: tc.find}
			got := newClient(t, b.serve(t), patience).Locate(t.Context(), target.Query{Reference: "op-1", Number: "INV-1"})
			got.Detail, got.Answer, got.HTTPStatus = "", nil, 0
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestWhatCantBeACreationIsNotSent(t *testing.T) {
	t.Parallel()
	c := newClient(t, (&book{}).serve(t), patience)
	for _, spoil := range []func(*target.Submission){
		func(s *target.Submission) { s.Reference = "" },
		func(s *target.Submission) { s.Document = nil },
		func(s *target.Submission) { s.Document = []byte(`{"number":`) },
		func(s *target.Submission) { s.Reference = "\xff" },
	} {
		s := submission
		spoil(&s)
		checkSent(t, c.Send(t.Context(), s), target.Sent{Outcome: target.Misconfigured, NotApplied: true})
	}
}

func TestWrongSettingsAreRefusedWithASentence(t *testing.T) {
	t.Parallel()
	good := ledger.Config{BaseURL: "https://ledger.example", Token: target.NewSecret("hush"), Timeout: time.Second, Now: time.Now}
	for says, spoil := range map[string]func(*ledger.Config){
		"address":    func(c *ledger.Config) { c.BaseURL = "ledger.example" },
		"credential": func(c *ledger.Config) { c.Token = target.Secret{} },
		"time limit": func(c *ledger.Config) { c.Timeout = -1 },
	} {
		cfg := good
		spoil(&cfg)
		if _, err := ledger.New(cfg); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("got %v, want an error that says %q", err, says)
		}
	}
	keyed := target.Capabilities{Keyed: true, KeyWindow: time.Hour}
	if err := ledger.CheckCapabilities(keyed, time.Second); err == nil || !strings.Contains(err.Error(), "keyed") {
		t.Errorf("got %v, want a ledger with keys refused", err)
	}
	if err := ledger.CheckCapabilities(target.Capabilities{Locatable: true}, time.Second); err != nil {
		t.Error(err)
	}
}
