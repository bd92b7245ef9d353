package httpapi_test

import (
	"context"
	"encoding/base64"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"invoicebridge/internal/audit"
	"invoicebridge/internal/auth"
	"invoicebridge/internal/auth/erpstore"
	"invoicebridge/internal/erpapi"
	"invoicebridge/internal/httpapi"
	"invoicebridge/internal/invoice"
	"invoicebridge/internal/problem"
)

func TestSameKeyAndContentIsAnsweredWithTheFirstAnswer(t *testing.T) {
	t.Parallel()
	e := startERP(t)
	first := e.post("k-1", base).wantFirst()
	inv := first.invoice()
	if inv.Gross != "23.80" || inv.OperationKey != "k-1" {
		t.Errorf("gross %s under key %s, want 23.80 under k-1", inv.Gross, inv.OperationKey)
	}
	if got, want := first.header.Get("Location"), "/v1/invoices/"+inv.ID; got != want {
		t.Errorf("Location is %q, want %q", got, want)
	}
	seen, expires := parseTime(t, first.header.Get("Idempotency-First-Seen")), parseTime(t, first.header.Get("Idempotency-Expires"))
	if got := expires.Sub(seen); got != 90*24*time.Hour {
		t.Errorf("the key is kept for %s, want 90 days", got)
	}

	e.post("k-1", base).wantSame(first)
	e.post(`"k-1"`, base).wantSame(first)

	reused := e.post("k-1", strings.Replace(base, "10.00", "11.00", 1))
	d := reused.wantProblem(422, problem.IdempotencyKeyReused)
	if diff := cmp.Diff([]string{"/lines/0/unit_price"}, d.Differences); diff != "" {
		t.Errorf("differences:\n%s", diff)
	}
	if reused.header.Get("Idempotency-First-Seen") != first.header.Get("Idempotency-First-Seen") {
		t.Errorf("a reused key was first seen at %q", reused.header.Get("Idempotency-First-Seen"))
	}

	claimed := e.post("k-2", base).wantProblem(409, problem.AlreadyInvoiced)
	if claimed.Invoice == nil || claimed.SameContent == nil {
		t.Fatalf("the document names no invoice: %+v", claimed)
	}
	want := problem.InvoiceRef{ID: inv.ID, Number: inv.Number, OperationKey: "k-1"}
	if diff := cmp.Diff(want, *claimed.Invoice); diff != "" || !*claimed.SameContent {
		t.Errorf("same content %t, invoice:\n%s", *claimed.SameContent, diff)
	}
	other := e.post("k-3", strings.Replace(base, "10.00", "11.00", 1)).wantProblem(409, problem.AlreadyInvoiced)
	if *other.SameContent {
		t.Error("other content is told to be the same")
	}

	e.wantStored(1)
	if got := e.get("reader", "/v1/invoices/"+inv.ID); got.status != 200 || string(got.body) != string(first.body) {
		t.Errorf("read back %d %s\nwant the bytes of the first answer", got.status, got.body)
	}
}

func parseTime(t testing.TB, text string) time.Time {
	t.Helper()
	at, err := time.Parse(http.TimeFormat, text)
	if err != nil {
		t.Fatalf("%q is no IMF-fixdate: %v", text, err)
	}
	return at
}

// decoded counts the requests that a body had to be decoded for.
type decoded struct {
	httpapi.Invoices
	requests atomic.Int64
}

func (d *decoded) Issue(ctx context.Context, cmds []invoice.Command) []invoice.Result {
	d.requests.Add(int64(len(cmds)))
	return d.Invoices.Issue(ctx, cmds)
}

func TestTheSameBytesAreAnsweredWithoutBeingDecoded(t *testing.T) {
	t.Parallel()
	d := &decoded{}
	e := serveERP(t, func(deps *httpapi.ERPDeps) {
		d.Invoices = invoice.NewBatcher(invoice.NewService(deps.Pool, invoice.Options{Replays: invoice.NewReplays(1 << 20)}))
		deps.Invoices = d
	})
	step := func(what string, more int64, ask func()) {
		t.Helper()
		before := d.requests.Load()
		if ask(); d.requests.Load()-before != more {
			t.Errorf("%s: decoded %d times, want %d", what, d.requests.Load()-before, more)
		}
	}
	var first answer
	step("the first", 1, func() { first = e.post("k-1", base).wantFirst() })
	step("the same bytes", 0, func() { e.post("k-1", base).wantSame(first) })
	step("the same bytes, packed", 0, func() {
		r := e.postRequest("writer", "k-1", packed(t, strings.NewReader(base)))
		r.Header.Set("Content-Encoding", "gzip")
		e.do(r).wantSame(first)
	})
	step("other bytes of the same content", 1, func() { e.post("k-1", base+" ").wantSame(first) })
	step("those again", 0, func() { e.post("k-1", base+" ").wantSame(first) })
	other := strings.Replace(base, "10.00", "11.00", 1)
	step("other content, each time", 2, func() {
		e.post("k-1", other).wantProblem(422, problem.IdempotencyKeyReused)
		e.post("k-1", other).wantProblem(422, problem.IdempotencyKeyReused)
	})
	step("another key", 1, func() { e.post("k-2", base).wantProblem(409, problem.AlreadyInvoiced) })
	step("another tenant", 1, func() { e.postAs("t2", "k-1", base).wantFirst() })
	step("who may only read", 0, func() { e.postAs("reader", "k-1", base+" ").wantProblem(403, problem.Forbidden) })
	step("the same bytes of an invalid request", 2, func() {
		e.post("k-3", "{}").wantProblem(422, problem.InvalidInvoice)
		e.post("k-3", "{}").wantProblem(422, problem.InvalidInvoice)
	})
}

// Case C1.
func TestMemberOrderAndWhiteSpaceDoNotMatterButTheOrderOfLinesDoes(t *testing.T) {
	t.Parallel()
	e := startERP(t)
	first := e.post("k-1", base).wantFirst()
	reversed := `{"lines":[{"vat_category":"S","vat_rate":"19","unit_price":"10.00","quantity":"2","sku":"P-1"}],` +
		`"customer":{"vat_id":"XX000000001","country":"DE","name":"Test Customer A"},` +
		`"issue_date":"2026-03-02","currency":"EUR","role":"final","order":"SO-1001","source":"crm-1"}`
	e.post("k-1", reversed).wantSame(first)
	pretty := strings.NewReplacer(",", ",\r\n\t", "{", "{\r\n\t\t", ":", " : ", "}", "\r\n}").Replace(base)
	e.post("k-1", pretty+"\r\n").wantSame(first)

	withBOM := e.post("k-1", "\xEF\xBB\xBF"+base)
	withBOM.wantProblem(400, problem.MalformedRequest)

	line := func(sku string) string {
		return `{"sku":"` + sku + `","quantity":"1","unit_price":"5.00","vat_rate":"19","vat_category":"S"}`
	}
	lines := func(a, b string) string {
		head, _, _ := strings.Cut(forOrder("SO-1002"), `"lines"`)
		return head + `"lines":[` + line(a) + "," + line(b) + "]}"
	}
	e.post("k-2", lines("P-1", "P-2")).wantFirst()
	e.post("k-2", lines("P-2", "P-1")).wantProblem(422, problem.IdempotencyKeyReused)
	e.wantStored(2)
}

// Cases C3 and C5.
func TestAmbiguousBodyIsRefusedAndTheKeyStaysFree(t *testing.T) {
	t.Parallel()
	e := startERP(t)
	for name, body := range map[string]string{
		"member in another case":      strings.Replace(base, `"vat_rate"`, `"Unit_Price":"1.00","vat_rate"`, 1),
		"member twice":                strings.Replace(base, `"role":"final"`, `"role":"final","role":"credit_note"`, 1),
		"second object behind":        base + base,
		"letter behind":               base + "x",
		"Kelvin sign for k":           strings.Replace(base, `"sku"`, `"s\u212au"`, 1),
		"unknown member":              strings.Replace(base, `"role"`, `"debug":true,"role"`, 1),
		"NUL in a text":               strings.Replace(base, "Customer A", `Customer\u0000A`, 1),
		"invalid UTF-8":               strings.Replace(base, "Customer A", "Customer \xff", 1),
		"lone surrogate":              strings.Replace(base, "Customer A", `Customer \ud800`, 1),
		"array":                       "[" + base + "]",
		"order as a number":           strings.Replace(base, `"SO-1001"`, `9007199254741993`, 1),
		"order in scientific writing": strings.Replace(base, `"SO-1001"`, `1e3`, 1),
		"empty":                       "",
		"null":                        "null",
	} {
		if d := e.post("k-1", body).wantProblem(400, problem.MalformedRequest); d.Detail == "" {
			t.Errorf("%s: no detail", name)
		}
		e.wantStored(0)
	}
	e.post("k-1", base).wantFirst()
}

func TestKeysOfEveryLengthAreTakenWholeOrRefused(t *testing.T) {
	t.Parallel()
	e := startERP(t)
	random := make([]byte, 3000)
	source := rand.NewChaCha8([32]byte{1})
	_, _ = source.Read(random)
	for _, c := range []struct {
		key    string
		status int
	}{
		{"a", 201},
		{strings.Repeat("b", 255), 201},
		{strings.Repeat("c", 199) + "1", 201},
		{strings.Repeat("c", 199) + "2", 201},
		{strings.Repeat("d", 256), 400},
		{base64.StdEncoding.EncodeToString(random)[:3000], 400},
		{strings.Repeat("a", 9000), 400},
		{strings.Repeat("e", 100_000), 431},
	} {
		a := e.post(c.key, forOrder("SO-"+c.key[max(0, len(c.key)-8):]))
		if a.status != c.status {
			t.Errorf("a key of %d characters: %d %.300s\nwant %d", len(c.key), a.status, a.body, c.status)
		}
		if c.status == 400 && !strings.Contains(a.wantProblem(400, problem.IdempotencyKeyInvalid).Detail, "255") {
			t.Errorf("the limit is not named: %s", a.body)
		}
		if c.status == 201 {
			if got := e.get("reader", "/v1/operations/"+c.key); got.status != 200 {
				t.Errorf("operation of a key of %d characters: %d", len(c.key), got.status)
			}
		}
	}
	e.wantStored(4)
}

func TestKeyIsOneHeaderWithOneValue(t *testing.T) {
	t.Parallel()
	e := startERP(t)
	for name, c := range map[string]struct {
		values []string
		want   problem.Type
	}{
		"none":        {nil, problem.IdempotencyKeyMissing},
		"empty":       {[]string{""}, problem.IdempotencyKeyMissing},
		"two headers": {[]string{"k-1", "k-1"}, problem.IdempotencyKeyInvalid},
		"list":        {[]string{"k-1, k-2"}, problem.IdempotencyKeyInvalid},
		"not ASCII":   {[]string{"käse"}, problem.IdempotencyKeyInvalid},
		"half quoted": {[]string{`"k-1`}, problem.IdempotencyKeyInvalid},
	} {
		r := e.postRequest("writer", "", []byte(base))
		r.Header.Del("Idempotency-Key")
		for _, v := range c.values {
			r.Header.Add("Idempotency-Key", v)
		}
		t.Log(name)
		e.do(r).wantProblem(400, c.want)
	}
	e.wantStored(0)
}

func TestTenantsDoNotSeeEachOther(t *testing.T) {
	t.Parallel()
	e := startERP(t)
	key, body := "order-1001", strings.Replace(forOrder("1001"), "Test Customer A", "Secret of one", 1)
	mine := e.postAs("writer", key, body).wantFirst()
	e.get("t2", "/v1/operations/"+key).wantProblem(404, problem.NotFound)
	e.get("t2", mine.header.Get("Location")).wantProblem(404, problem.NotFound)

	theirs := e.postAs("t2", key, strings.Replace(body, "Secret of one", "Secret of two", 1)).wantFirst()
	if mine.invoice().Number != theirs.invoice().Number {
		t.Errorf("each tenant has its own series: %s and %s", mine.invoice().Number, theirs.invoice().Number)
	}
	for _, a := range []answer{
		e.get("t2", "/v1/invoices"), e.get("t2", "/v1/operations/"+key), e.get("t2", theirs.header.Get("Location")),
		e.get("t2", "/v1/invoices?number="+mine.invoice().Number),
	} {
		if strings.Contains(string(a.body), "Secret of one") || strings.Contains(string(a.body), mine.invoice().ID) {
			t.Errorf("an answer to t2 has what is t1's: %s", a.body)
		}
	}

	var group sync.WaitGroup
	for i := range 50 {
		for _, token := range []string{"writer", "t2"} {
			group.Go(func() {
				a := e.postAs(token, "parallel-"+strconv.Itoa(i), forOrder("P-"+strconv.Itoa(i)))
				if a.status != http.StatusCreated {
					t.Errorf("%s: %d %s", token, a.status, a.body)
				}
			})
		}
	}
	group.Wait()
	e.wantStored(102)
}

// Case E2.
func TestOneKeyNeverMakesTwoInvoicesWhateverThePath(t *testing.T) {
	t.Parallel()
	e := startERP(t)
	first := e.post("k-1", base).wantFirst()
	credit := strings.Replace(base, `"role":"final"`, `"role":"credit_note","corrects":"`+first.invoice().Number+`"`, 1)
	e.post("k-1", credit).wantProblem(422, problem.IdempotencyKeyReused)

	withPath := func(method, path string) answer {
		r := e.postRequest("writer", "k-1", []byte(base))
		r.Method, r.URL.Path = method, path
		r.URL.Path, r.URL.RawQuery, _ = strings.Cut(path, "?")
		return e.do(r)
	}
	withPath("POST", "/v1/invoices?debug=1").wantSame(first)
	withPath("POST", "/v1/invoices/").wantProblem(404, problem.NotFound)
	withPath("GET", "/v1/invoices/").wantProblem(404, problem.NotFound)
	put := withPath("PUT", "/v1/invoices")
	put.wantProblem(405, problem.MethodNotAllowed)
	if allow := put.header.Get("Allow"); !strings.Contains(allow, "POST") || !strings.Contains(allow, "GET") {
		t.Errorf("Allow is %q", allow)
	}
	withPath("POST", first.header.Get("Location")).wantProblem(405, problem.MethodNotAllowed)
	withPath("POST", "/V1/invoices").wantProblem(404, problem.NotFound)
	withPath("POST", "//v1/invoices").wantProblem(404, problem.NotFound)
	e.wantStored(1)
}

func TestKeyInThePathMayBePercentEncoded(t *testing.T) {
	t.Parallel()
	e := startERP(t)
	for key, path := range map[string]string{
		"plain-1": "plain-1", "a/b": "a%2Fb", "50% off?": "50%25%20off%3F", "a+b": "a+b", `back\slash`: "back%5Cslash",
	} {
		e.post(key, forOrder("SO-"+path)).wantFirst()
		var operation erpapi.Operation
		a := e.get("reader", "/v1/operations/"+path)
		a.decode(&operation)
		if a.status != 200 || operation.Key != key || operation.Status != "succeeded" {
			t.Errorf("operation of %q: %d %s", key, a.status, a.body)
		}
	}
	e.get("reader", "/v1/operations/unknown").wantProblem(404, problem.NotFound)
}

func TestHeadIsGetWithoutABody(t *testing.T) {
	t.Parallel()
	e := startERP(t)
	first := e.post("k-1", base).wantFirst()
	for _, path := range []string{first.header.Get("Location"), "/v1/invoices", "/v1/operations/k-1", "/", "/healthz", "/readyz", "/problems"} {
		get, head := e.get("reader", path), e.do(e.request(http.MethodHead, path, "reader", nil))
		if head.status != get.status || len(head.body) != 0 || head.header.Get("Content-Type") != get.header.Get("Content-Type") {
			t.Errorf("HEAD %s: %d %s, GET: %d %s", path, head.status, head.header.Get("Content-Type"), get.status, get.header.Get("Content-Type"))
		}
	}
}

func TestTextIsStoredAsGivenAndServedAsJSONOnly(t *testing.T) {
	t.Parallel()
	e := startERP(t)
	for i, name := range []string{`<img src=x onerror=alert(1)>`, `"><svg onload=alert(1)>`, `</script><script>1</script>`, `{{7*7}}`} {
		order := string(rune('A' + i))
		body := strings.Replace(forOrder(order), "Test Customer A", strings.ReplaceAll(name, `"`, `\"`), 1)
		a := e.post("k-"+order, body).wantFirst()
		if got := a.invoice().Customer.Name; got != name {
			t.Errorf("name is %q, want %q", got, name)
		}
		if got := a.header.Get("Content-Type"); got != "application/json" {
			t.Errorf("served as %q", got)
		}
		if got := a.header.Get("Content-Security-Policy"); !strings.Contains(got, "default-src 'none'") {
			t.Errorf("policy is %q", got)
		}
	}
}

// E3: nothing is cut where tenant, key, source and order are as long as they may be.
func TestLongestTenantKeyAndOrderWorkTogether(t *testing.T) {
	t.Parallel()
	e := startERP(t)
	admin, by := auth.NewAdmin(erpstore.New(e.pool)), audit.By{Actor: "test"}
	tenant := strings.Repeat("t", 63)
	if err := admin.CreateTenant(t.Context(), tenant, "Longest", by); err != nil {
		t.Fatal(err)
	}
	_, text, err := admin.CreateToken(t.Context(), tenant, auth.RoleWriter, "longest", by)
	if err != nil {
		t.Fatal(err)
	}
	e.tokens["longest"] = text
	key, order, source := strings.Repeat("k", 255), strings.Repeat("ö", 128), strings.Repeat("s", 64)
	body := strings.NewReplacer("SO-1001", order, "crm-1", source).Replace(base)
	first := e.postAs("longest", key, body).wantFirst()
	if inv := first.invoice(); inv.OperationKey != key || inv.Order != order || inv.Source != source {
		t.Errorf("something was cut: %s", first.body)
	}
	e.postAs("longest", key, body).wantSame(first)
}
