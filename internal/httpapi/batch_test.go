package httpapi_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"invoicebridge/internal/erpapi"
	"invoicebridge/internal/httpapi"
	"invoicebridge/internal/invoice"
	"invoicebridge/internal/problem"
)

// batchItem is an item as it stands in a batch, of a key and an invoice that may be any text.
func batchItem(key, invoice string) string {
	quoted, _ := jsontext.AppendQuote(nil, key)
	return `{"idempotency_key":` + string(quoted) + `,"invoice":` + invoice + `}`
}

func batchOf(items ...string) string { return `{"invoices":[` + strings.Join(items, ",\n") + `]}` }

func (e erp) batchRequest(token, body string) *http.Request {
	e.t.Helper()
	r := e.request(http.MethodPost, "/v1/invoices/batch", token, []byte(body))
	r.Header.Set("Content-Type", "application/json")
	return r
}

// postBatch sends a batch as t1's writer.
func (e erp) postBatch(body string) answer {
	e.t.Helper()
	return e.do(e.batchRequest("writer", body))
}

// batchResult is one result as a caller reads it.
type batchResult struct {
	Key        *string        `json:"idempotency_key"`
	Status     int            `json:"status"`
	Replayed   bool           `json:"replayed"`
	FirstSeen  *time.Time     `json:"first_seen"`
	ExpiresAt  *time.Time     `json:"expires_at"`
	RetryAfter *int           `json:"retry_after"`
	Invoice    jsontext.Value `json:"invoice"`
	Problem    *document      `json:"problem"`
}

func (a answer) results(want int) (results []batchResult) {
	a.t.Helper()
	if a.status != http.StatusOK {
		a.t.Fatalf("got %d %.500s\nwant results", a.status, a.body)
	}
	var all struct {
		Results []batchResult `json:"results"`
	}
	a.decode(&all)
	if len(all.Results) != want {
		a.t.Fatalf("%d items have %d results", want, len(all.Results))
	}
	return all.Results
}

// asSingle is a single request's answer in the form of a result.
func (a answer) asSingle(key *string) batchResult {
	a.t.Helper()
	r := batchResult{Key: key, Status: a.status, Replayed: a.header.Get("Idempotent-Replayed") == "true"}
	for name, at := range map[string]**time.Time{"Idempotency-First-Seen": &r.FirstSeen, "Idempotency-Expires": &r.ExpiresAt} {
		if text := a.header.Get(name); text != "" {
			t := parseTime(a.t, text)
			*at = &t
		}
	}
	if a.status == http.StatusCreated {
		r.Invoice = a.body
		return r
	}
	r.Problem = &document{}
	a.decode(r.Problem)
	return r
}

// comparable leaves out what differs between any two invoices and requests: ids and times, the key where the texts differ.
func (r batchResult) comparable(t *testing.T) string {
	t.Helper()
	if r.FirstSeen != nil {
		if kept := r.ExpiresAt.Sub(*r.FirstSeen); kept != 90*24*time.Hour {
			t.Errorf("the key is kept for %s", kept)
		}
		r.FirstSeen, r.ExpiresAt = &time.Time{}, &time.Time{}
	}
	if r.Invoice != nil {
		var inv erpapi.Invoice
		if err := json.Unmarshal(r.Invoice, &inv); err != nil {
			t.Fatal(err)
		}
		inv.ID, inv.CreatedAt = "", time.Time{}
		r.Invoice, _ = json.Marshal(inv, json.Deterministic(true))
	}
	if r.Problem != nil {
		r.Problem.Instance = ""
		if r.Problem.Invoice != nil {
			r.Problem.Invoice.ID = ""
		}
	}
	text, err := json.Marshal(r, json.Deterministic(true), jsontext.WithIndent(" "))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Two tenants do the same, one in a batch, the other by a request for each item.
func TestEachItemOfABatchGetsTheResultOfASingleRequest(t *testing.T) {
	t.Parallel()
	e := startERP(t)
	for _, token := range []string{"writer", "t2"} {
		e.postAs(token, "k-done", base).wantFirst()
		e.postAs(token, "k-part", strings.Replace(forOrder("SO-part"), `"role":"final"`, `"role":"partial","order_total":"30.00"`, 1)).wantFirst()
	}
	cases := []struct {
		name, key, invoice string
		status             int
		problem            problem.Type
	}{
		{"good", "k-1", forOrder("SO-1"), 201, ""},
		{"written in another way", "k-2", " \n" + strings.Replace(forOrder("SO-2"), `"2"`, `2.00`, 1) + "\t", 201, ""},
		{"member twice", "k-3", strings.Replace(forOrder("SO-3"), `"role"`, `"role":"final","role"`, 1), 400, problem.MalformedRequest},
		{"unknown member", "k-4", strings.Replace(forOrder("SO-4"), `"sku"`, `"Unit_Price":"1","sku"`, 1), 400, problem.MalformedRequest},
		{"invalid UTF-8", "k-5", strings.Replace(forOrder("SO-5"), "Customer A", "Customer \xff", 1), 400, problem.MalformedRequest},
		{"lone surrogate", "k-6", strings.Replace(forOrder("SO-6"), "Customer A", `Customer \ud800`, 1), 400, problem.MalformedRequest},
		{"NUL", "k-7", strings.Replace(forOrder("SO-7"), "Customer A", `Customer \u0000`, 1), 400, problem.MalformedRequest},
		{"wrong JSON type", "k-8", strings.Replace(base, `"SO-1001"`, `1001`, 1), 400, problem.MalformedRequest},
		{"sequence beyond doubles", "k-9", strings.Replace(base, `"role"`, `"sequence":9007199254740993,"role"`, 1), 400, problem.MalformedRequest},
		{"array", "k-10", "[" + base + "]", 400, problem.MalformedRequest},
		{"null", "k-11", "null", 400, problem.MalformedRequest},
		{"no key", "", forOrder("SO-12"), 400, problem.IdempotencyKeyMissing},
		{"long key", strings.Repeat("k", 256), forOrder("SO-13"), 400, problem.IdempotencyKeyInvalid},
		{"invalid currency", "k-14", strings.Replace(forOrder("SO-14"), `"EUR"`, `"EURO"`, 1), 422, problem.InvalidInvoice},
		{"many mistakes", "k-15", `{"lines":[{},{"quantity":"x"}]}`, 422, problem.InvalidInvoice},
		{"corrects nothing", "k-16", strings.Replace(forOrder("SO-16"), `"final"`, `"credit_note","corrects":"INV-2026-999999"`, 1), 422, problem.InvalidInvoice},
		{"over the order's total", "k-17", strings.Replace(forOrder("SO-part"), `"role":"final"`, `"role":"partial","sequence":2,"order_total":"30.00"`, 1), 422, problem.InvalidInvoice},
		{"replay", "k-done", base, 201, ""},
		{"replay written in another way", "k-done", strings.Replace(base, `"2"`, `2.00`, 1), 201, ""},
		{"key of another request", "k-done", strings.Replace(base, "10.00", "11.00", 1), 422, problem.IdempotencyKeyReused},
		{"already invoiced", "k-18", base, 409, problem.AlreadyInvoiced},
		{"already invoiced with other content", "k-19", strings.Replace(base, "10.00", "11.00", 1), 409, problem.AlreadyInvoiced},
		{"too large", "k-20", strings.Replace(forOrder("SO-20"), "Customer A", strings.Repeat("A", mebibyte), 1), 413, problem.ContentTooLarge},
		{"good, last", "k-21", forOrder("SO-21"), 201, ""},
	}
	items := make([]string, len(cases))
	for i, c := range cases {
		items[i] = batchItem(c.key, c.invoice)
	}
	results := e.postBatch(batchOf(items...)).results(len(cases))
	for i, c := range cases {
		got := results[i]
		switch {
		case got.Key == nil || *got.Key != c.key:
			t.Errorf("%s: result %d is told under another key than %.20s", c.name, i, c.key)
			continue
		case got.Status != c.status, (got.Problem == nil) != (c.problem == ""), got.Problem != nil && got.Problem.Type != "/problems/"+string(c.problem):
			t.Errorf("%s: got %d %+v, want %d %s", c.name, got.Status, got.Problem, c.status, c.problem)
			continue
		}
		r := e.postRequest("t2", c.key, []byte(c.invoice))
		if c.key == "" {
			r.Header.Del("Idempotency-Key")
		}
		single := e.do(r).asSingle(got.Key)
		if c.problem == problem.IdempotencyKeyMissing { // there it is the header, here the member that is missing
			got.Problem.Detail, single.Problem.Detail = "", ""
		}
		if diff := cmp.Diff(single.comparable(t), got.comparable(t)); diff != "" {
			t.Errorf("%s: a single request got - and the item +\n%s", c.name, diff)
		}
	}
	for _, token := range []string{"writer", "t2"} { // nothing else was stored, and no number was taken
		var page erpapi.InvoicePage
		e.get(token, "/v1/invoices").decode(&page)
		var numbers []string
		for _, inv := range page.Items {
			numbers = append(numbers, inv.Number)
		}
		slices.Sort(numbers)
		if want := []string{"INV-2026-000001", "INV-2026-000002", "INV-2026-000003", "INV-2026-000004", "INV-2026-000005"}; !slices.Equal(numbers, want) {
			t.Errorf("%s has %v", token, numbers)
		}
	}
}

func TestABatchSentAgainIsAnsweredWithTheStoredBytesAndSoAreSingleRequests(t *testing.T) {
	t.Parallel()
	e := startERP(t)
	body := batchOf(batchItem("k-1", forOrder("SO-1")), batchItem("k-2", "{}"), batchItem(`k,"3"\`, forOrder("SO-3")))
	first := e.postBatch(body).results(3)
	again := e.postBatch(body).results(3)
	for i, status := range []int{201, 422, 201} {
		if first[i].Status != status || first[i].Replayed || again[i].Status != status || again[i].Replayed != (status == 201) {
			t.Errorf("item %d: %d, replayed %t, then %d, replayed %t", i, first[i].Status, first[i].Replayed, again[i].Status, again[i].Replayed)
		}
		if !bytes.Equal(first[i].Invoice, again[i].Invoice) || cmp.Diff(first[i].FirstSeen, again[i].FirstSeen) != "" || cmp.Diff(first[i].ExpiresAt, again[i].ExpiresAt) != "" {
			t.Errorf("item %d is answered\n%+v\nthen\n%+v", i, first[i], again[i])
		}
	}
	// The same keys in the header are the same keys.
	for i, key := range map[int]string{0: "k-1", 2: `"k,\"3\"\\"`} {
		a := e.post(key, forOrder(fmt.Sprint("SO-", i+1)))
		if a.header.Get("Idempotent-Replayed") != "true" || !bytes.Equal(a.body, first[i].Invoice) {
			t.Errorf("item %d as a single request: %d %s\nwant the replay of\n%s", i, a.status, a.body, first[i].Invoice)
		}
		if stored := e.get("reader", a.header.Get("Location")); !bytes.Equal(stored.body, first[i].Invoice) {
			t.Errorf("item %d is stored as\n%s\nand was told as\n%s", i, stored.body, first[i].Invoice)
		}
	}
	e.wantStored(2)
}

// countedInvoices counts what is to be issued.
type countedInvoices struct {
	httpapi.Invoices
	issued atomic.Int64
}

func (c *countedInvoices) Issue(ctx context.Context, cmds []invoice.Command) []invoice.Result {
	c.issued.Add(int64(len(cmds)))
	return c.Invoices.Issue(ctx, cmds)
}

// What came in a batch, and comes in one or by itself again, is known by its bytes.
func TestAnItemThatComesAgainByteForByteIsAnsweredFromMemory(t *testing.T) {
	t.Parallel()
	var counted *countedInvoices
	e := serveERP(t, func(d *httpapi.ERPDeps) {
		counted = &countedInvoices{Invoices: invoice.NewService(d.Pool, invoice.Options{Replays: invoice.NewReplays(1 << 20)})}
		d.Invoices = counted
	})
	wantIssued := func(what string, want int64) {
		t.Helper()
		if got := counted.issued.Swap(0); got != want {
			t.Errorf("%s: %d requests were decoded and asked for, want %d", what, got, want)
		}
	}
	body := batchOf(batchItem("k-1", forOrder("SO-1")), batchItem("k-2", forOrder("SO-2")), batchItem("k-3", "{}"))
	first := e.postBatch(body).results(3)
	wantIssued("the first time", 3)
	again := e.postBatch(body).results(3)
	wantIssued("again", 1) // the one that was refused
	for i := range 2 {
		if !again[i].Replayed || !bytes.Equal(first[i].Invoice, again[i].Invoice) {
			t.Errorf("item %d is answered\n%+v\nthen\n%+v", i, first[i], again[i])
		}
	}
	if a := e.post("k-1", forOrder("SO-1")); a.header.Get("Idempotent-Replayed") != "true" || !bytes.Equal(a.body, first[0].Invoice) {
		t.Errorf("by itself: %d %s", a.status, a.body)
	}
	wantIssued("by itself", 0)
	e.post("k-4", forOrder("SO-4")).wantFirst()
	wantIssued("a single request", 1)
	other := strings.Replace(forOrder("SO-2"), "10.00", "11.00", 1)
	mixed := e.postBatch(batchOf(batchItem("k-4", " "+forOrder("SO-4")+"\n"), batchItem("k-2", other), batchItem("k-5", forOrder("SO-2")))).results(3)
	wantIssued("a single request in a batch, and other bytes", 2)
	if mixed[0].Status != 201 || !mixed[0].Replayed || mixed[1].Status != 422 || mixed[2].Status != 409 {
		t.Errorf("got %d, %d and %d, want 201, 422 and 409", mixed[0].Status, mixed[1].Status, mixed[2].Status)
	}
	e.wantStored(3)
}

// Inside one batch it is as between two requests at once: the constraints decide.
func TestOneKeyOrOneClaimTwiceInABatchMakesOneInvoice(t *testing.T) {
	t.Parallel()
	e := startERP(t)
	other := strings.Replace(forOrder("SO-1"), "10.00", "11.00", 1)
	results := e.postBatch(batchOf(
		batchItem("k-1", forOrder("SO-1")), batchItem("k-1", forOrder("SO-1")), batchItem("k-1", other),
		batchItem("k-2", forOrder("SO-1")), batchItem("k-3", other),
		batchItem("k-4", forOrder("SO-4")), batchItem("k-4", forOrder("SO-5")),
	)).results(7)
	var got []string
	for _, r := range results {
		text := fmt.Sprint(r.Status)
		if r.Problem != nil {
			text += " " + strings.TrimPrefix(r.Problem.Type, "/problems/")
		}
		if r.Replayed {
			text += " replayed"
		}
		if r.Problem != nil && r.Problem.SameContent != nil {
			text += fmt.Sprint(" same content ", *r.Problem.SameContent)
		}
		got = append(got, text)
	}
	want := []string{
		"201", "201 replayed", "422 idempotency-key-reused", "409 already-invoiced same content true",
		"409 already-invoiced same content false", "201", "422 idempotency-key-reused",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if !bytes.Equal(results[0].Invoice, results[1].Invoice) {
		t.Errorf("the replay is\n%s\nof\n%s", results[1].Invoice, results[0].Invoice)
	}
	e.wantStored(2)
}

func TestABatchAsLongAsMayBeIsIssuedInFewTransactionsAndWithoutHolesInItsNumbers(t *testing.T) {
	t.Parallel()
	e := startERPWithoutWorker(t)
	items := make([]string, 1000)
	for i := range items {
		items[i] = batchItem(fmt.Sprint("k-", i), forOrder(fmt.Sprint("SO-", i)))
	}
	e.postBatch(batchOf(append(items, batchItem("k-1000", forOrder("SO-1000")))...)).wantProblem(413, problem.ContentTooLarge)
	e.wantStored(0)
	for i, r := range e.postBatch(batchOf(items...)).results(1000) {
		if want := fmt.Sprint("k-", i); *r.Key != want || r.Status != 201 || !bytes.Contains(r.Invoice, []byte(`"operation_key":"`+want+`"`)) {
			t.Fatalf("result %d is %d of %s: %s", i, r.Status, *r.Key, r.Invoice)
		}
	}
	e.wantStored(1000)
	if highest := e.count("SELECT max(series_number) FROM invoices"); highest != 1000 {
		t.Errorf("the highest of 1,000 numbers is %d", highest)
	}
	if transactions := e.count("SELECT count(DISTINCT xmin::text) FROM invoices"); transactions > 100 {
		t.Errorf("it took %d transactions", transactions)
	}
}

func TestABatchThatIsNoneIsRefusedAsAWhole(t *testing.T) {
	t.Parallel()
	e := startERP(t)
	good := batchItem("k-1", base)
	for name, c := range map[string]struct {
		body   string
		status int
		want   problem.Type
	}{
		"no items":        {`{"invoices":[]}`, 400, problem.MalformedRequest},
		"no member":       {`{}`, 400, problem.MalformedRequest},
		"null":            {`{"invoices":null}`, 400, problem.MalformedRequest},
		"an array":        {"[" + good + "]", 400, problem.MalformedRequest},
		"empty":           {"", 400, problem.MalformedRequest},
		"unknown member":  {`{"invoices":[` + good + `],"atomic":true}`, 400, problem.MalformedRequest},
		"items twice":     {`{"invoices":[` + good + `],"invoices":[` + good + `]}`, 400, problem.MalformedRequest},
		"another case":    {`{"Invoices":[` + good + `]}`, 400, problem.MalformedRequest},
		"cut":             {strings.TrimSuffix(batchOf(good), "}"), 400, problem.MalformedRequest},
		"cut in an item":  {batchOf(good)[:60], 400, problem.MalformedRequest},
		"something after": {batchOf(good) + "{}", 400, problem.MalformedRequest},
		"no JSON inside":  {batchOf(good, `{"invoice":x}`), 400, problem.MalformedRequest},
		"too large":       {batchOf(good) + strings.Repeat(" ", 10*mebibyte), 413, problem.ContentTooLarge},
	} {
		if d := e.postBatch(c.body).wantProblem(c.status, c.want); d.Detail == "" {
			t.Errorf("%s: no detail", name)
		}
	}
	r := e.batchRequest("writer", batchOf(good))
	r.Header.Set("Idempotency-Key", "k-1")
	if d := e.do(r).wantProblem(400, problem.IdempotencyKeyInvalid); !strings.Contains(d.Detail, "each of its items has one") {
		t.Errorf("the detail does not help: %s", d.Detail)
	}
	e.wantStored(0)
	if r := e.postBatch(batchOf(good)).results(1)[0]; r.Status != 201 || r.Replayed { // each key stayed free
		t.Errorf("then it is answered %+v", r)
	}
}

func TestAnItemThatIsNoneIsItsOwnProblemAlone(t *testing.T) {
	t.Parallel()
	e := startERP(t)
	items := []string{
		`null`, `1`, `[]`, `"k"`, `{}`, `{"idempotency_key":null,"invoice":{}}`, `{"idempotency_key":1,"invoice":{}}`, `{"idempotency_key":"k"}`,
		`{"idempotency_key":"k","invoice":{},"Invoice":{}}`, `{"idempotency_key":"k","idempotency_key":"k","invoice":{}}`,
		`{"idempotency_key":"k","invoice":` + base + `,"invoice":` + base + `}`, `{"idempotency_key":"k\ud800","invoice":{}}`,
		`{"idempotency_key":"schlüssel","invoice":{}}`, `{"idempotency_key":"a\u0000b","invoice":{}}`,
	}
	keyProblems := map[int]problem.Type{
		4: problem.IdempotencyKeyMissing, 5: problem.IdempotencyKeyMissing, 12: problem.IdempotencyKeyInvalid, 13: problem.IdempotencyKeyInvalid,
	}
	results := e.postBatch(batchOf(append(items, batchItem("k", base))...)).results(len(items) + 1)
	for i, r := range results[:len(items)] {
		want := problem.MalformedRequest
		if t, is := keyProblems[i]; is {
			want = t
		}
		if r.Status != 400 || r.Problem == nil || r.Problem.Status != 400 || r.Problem.Type != "/problems/"+string(want) || r.Problem.Detail == "" {
			t.Errorf("%s: got %d %+v, want %s", items[i], r.Status, r.Problem, want)
		}
	}
	if last := results[len(items)]; last.Status != 201 || last.Replayed {
		t.Errorf("the good one is answered %+v", last)
	}
	e.wantStored(1)
}

func TestItemsOfABatchAreCountedAsSingleRequestsAre(t *testing.T) {
	t.Parallel()
	e := startERP(t)
	e.postBatch(batchOf(
		batchItem("k-1", forOrder("SO-1")), batchItem("k-2", forOrder("SO-2")), batchItem("k-1", forOrder("SO-1")), batchItem("k-1", forOrder("SO-3")),
		batchItem("k-3", forOrder("SO-1")), batchItem("k-4", "{}"), batchItem("k-5", "[]"),
	)).results(7)
	metrics := string(e.get("metrics", "/metrics").body)
	for _, want := range []string{
		`erp_issue_results_total{result="created"} 2`, `erp_issue_results_total{result="replayed"} 1`, `erp_issue_results_total{result="key_reused"} 1`,
		`erp_issue_results_total{result="already_invoiced_same_content"} 1`, `erp_issue_results_total{result="invalid"} 1`,
		`erp_issue_results_total{result="refused"} 0`, `http_problems_total{type="malformed-request"} 1`, `http_problems_total{type="invalid-invoice"} 1`,
		`http_requests_total{method="POST",route="/v1/invoices/batch",status="200"} 1`,
	} {
		if !strings.Contains(metrics, want+"\n") {
			t.Errorf("the metrics do not have %s", want)
		}
	}
}

func TestWhatIsWorthSendingAgainSaysSoForEachItem(t *testing.T) {
	t.Parallel()
	e := serveERP(t, func(d *httpapi.ERPDeps) {
		d.Invoices = standIn{d.Invoices, func(_ context.Context, cmds []invoice.Command) []invoice.Result {
			results := make([]invoice.Result, len(cmds))
			for i := range cmds {
				results[i].Err = &problem.Problem{Type: problem.OperationInProgress, RetryAfter: 1500 * time.Millisecond}
			}
			results[1].Err = context.DeadlineExceeded
			results[2].Err = fmt.Errorf("secret of the database")
			return results
		}}
	})
	a := e.postBatch(batchOf(batchItem("k-1", base), batchItem("k-2", base), batchItem("k-3", base)))
	results := a.results(3)
	if r := results[0]; r.Status != 409 || r.RetryAfter == nil || *r.RetryAfter != 2 {
		t.Errorf("what is in progress is told as %+v", r)
	}
	if r := results[1]; r.Status != 503 || r.RetryAfter == nil || r.Problem.Type != "/problems/unavailable" {
		t.Errorf("what was not finished in time is told as %+v", r)
	}
	if r := results[2]; r.Status != 500 || r.RetryAfter != nil || bytes.Contains(a.body, []byte("secret")) {
		t.Errorf("what failed is told as %+v", r)
	}
}

func TestTooManyBatchesAtOnceAreTurnedAway(t *testing.T) {
	t.Parallel()
	entered, release := make(chan struct{}), make(chan struct{})
	e := serveERP(t, func(d *httpapi.ERPDeps) {
		service := d.Invoices
		d.Invoices = standIn{service, func(ctx context.Context, cmds []invoice.Command) []invoice.Result {
			if cmds[0].Key.String() != "k-single" {
				entered <- struct{}{}
				<-release
			}
			return service.Issue(ctx, cmds)
		}}
	})
	answers := make(chan answer)
	for i := range 4 {
		go func() {
			answers <- e.postBatch(batchOf(batchItem(fmt.Sprint("k-", i), forOrder(fmt.Sprint("SO-", i)))))
		}()
	}
	for range 4 {
		<-entered
	}
	fifth := batchOf(batchItem("k-5", forOrder("SO-5")))
	a := e.postBatch(fifth)
	a.wantProblem(503, problem.Overloaded)
	a.wantRetryAfter()
	e.post("k-single", forOrder("SO-single")).wantFirst()
	close(release)
	for range 4 {
		if r := (<-answers).results(1)[0]; r.Status != 201 {
			t.Errorf("one of those before is answered %+v", r)
		}
	}
	go func() { <-entered }()
	if r := e.postBatch(fifth).results(1)[0]; r.Status != 201 || r.Replayed {
		t.Errorf("afterwards it is answered %+v", r)
	}
}

// The path of the batch is that of an invoice with an id that no invoice has.
func TestThePathOfBatchesIsStillOneOfNoInvoice(t *testing.T) {
	t.Parallel()
	e := startERP(t)
	e.get("reader", "/v1/invoices/batch").wantProblem(404, problem.NotFound)
}

// provokeBatches has every answer that the contract promises to a batch, save those of trouble.
func provokeBatches(e erp, note func(string, answer), valid func(string, *http.Request)) {
	e.t.Helper()
	const path = "POST /v1/invoices/batch"
	one := batchOf(batchItem("k-batch", forOrder("SO-batch")))
	valid(path, e.batchRequest("writer", one))
	note(path, e.postBatch(batchOf(batchItem("k-batch", forOrder("SO-batch")), batchItem("k-b2", forOrder("SO-batch")), "1", batchItem("k-b3", "{}"))))
	note(path, e.postBatch("{}"))
	note(path, e.do(e.batchRequest("", one)))
	note(path, e.do(e.batchRequest("reader", one)))
	note(path, e.postBatch(one+strings.Repeat(" ", 10*mebibyte)))
	plain := e.batchRequest("writer", one)
	plain.Header.Set("Content-Type", "text/plain")
	note(path, e.do(plain))
}
