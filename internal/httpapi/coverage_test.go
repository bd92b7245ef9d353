package httpapi_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/pb33f/libopenapi"

	"invoicebridge/api"
	"invoicebridge/internal/httpapi"
	"invoicebridge/internal/invoice"
)

// documented are the answers of the contract, as "GET /v1/invoices 200".
func documented(t testing.TB) (answers []string) {
	t.Helper()
	document, err := libopenapi.NewDocument(api.OpenAPI())
	if err != nil {
		t.Fatal(err)
	}
	model, err := document.BuildV3Model()
	if err != nil {
		t.Fatal(err)
	}
	for path, item := range model.Model.Paths.PathItems.FromOldest() {
		for method, operation := range item.GetOperations().FromOldest() {
			for status := range operation.Responses.Codes.FromOldest() {
				answers = append(answers, fmt.Sprintf("%s %s %s", strings.ToUpper(method), path, status))
			}
		}
	}
	return answers
}

// Every answer that the contract promises is provoked here, and do holds each against the contract.
func TestEveryDocumentedAnswerIsGivenAndIsAsDocumented(t *testing.T) {
	t.Parallel()
	e := startERP(t)
	first := e.post("k-1", base).wantFirst().invoice()
	given := map[string]bool{}
	note := func(path string, a answer) {
		given[path+" "+strconv.Itoa(a.status)] = true
	}
	valid := func(path string, r *http.Request) {
		t.Helper()
		if ok, errs := contract(t).ValidateHttpRequestSync(r); !ok {
			t.Errorf("%s: the request is not as in the contract: %v", path, errs)
		}
		note(path, e.do(r))
	}
	const post, list, one, operation = "POST /v1/invoices", "GET /v1/invoices", "GET /v1/invoices/{id}", "GET /v1/operations/{key}"

	full := `{"source":"crm-1","order":"SO-1020","role":"advance","sequence":2,"currency":"EUR","issue_date":"2026-03-02","due_date":"2026-03-16",` +
		`"customer":{"name":"B","country":"AT","vat_id":"ATU1","email":"b@example.org","address":"Road 1"},"order_total":1200,"expected_gross":"240.00",` +
		`"note":"n","metadata":{"project":"P-77"},"lines":[{"sku":"A","description":"d","quantity":1,"unit_price":250.5,"discount":"50.5","vat_rate":20,"vat_category":"S"},` +
		`{"description":"exempt","quantity":"0.5","unit_price":"0","vat_rate":"0","vat_category":"E","exemption_reason":"r"}]}`
	valid(post, e.postRequest("writer", "k-full", []byte(full)))
	notSubject := strings.NewReplacer(`"vat_rate":"19",`, "", `"S"`, `"O"`, `,"vat_id":"XX000000001"`, "").Replace(forOrder("SO-O"))
	valid(post, e.postRequest("writer", "k-O", []byte(notSubject)))
	valid(post, e.postRequest("writer", "k-1", []byte(base)))
	valid(list, e.request("GET", "/v1/invoices?source=crm-1&role=final&limit=1&created_from=2020-01-01T00:00:00Z", "reader", nil))
	valid(one, e.request("GET", "/v1/invoices/"+first.ID, "reader", nil))
	valid(operation, e.request("GET", "/v1/operations/k-1", "reader", nil))

	note(post, e.post("k-2", "{"))
	note(post, e.postAs("", "k-2", base))
	note(post, e.postAs("reader", "k-2", base))
	note(post, e.post("k-2", base))
	note(post, e.post("k-2", padded(mebibyte+1)))
	plain := e.postRequest("writer", "k-2", []byte(base))
	plain.Header.Set("Content-Type", "text/plain")
	note(post, e.do(plain))
	note(post, e.post("k-2", strings.Replace(forOrder("SO-2"), `"EUR"`, `"EURO"`, 1)))
	note(list, e.get("reader", "/v1/invoices?limit=0"))
	note(list, e.get("", "/v1/invoices"))
	note(one, e.get("", "/v1/invoices/"+first.ID))
	note(one, e.get("reader", "/v1/invoices/x"))
	note(operation, e.get("", "/v1/operations/k-1"))
	note(operation, e.get("reader", "/v1/operations/x"))
	provokeBatches(e, note, valid)
	provokeRegistrations(e, first.ID, note, valid)
	provokeAdministration(e, note, valid)

	for path, target := range map[string]string{
		"/": "/", "/healthz": "/healthz", "/readyz": "/readyz", "/openapi.yaml": "/openapi.yaml",
		"/docs": "/docs", "/docs/{file}": "/docs/swagger-ui.css", "/static/{file}": styleSheet(e),
		"/problems": "/problems", "/problems/{slug}": "/problems/internal",
	} {
		note("GET "+path, e.get("", target))
	}
	for _, token := range []string{"", "reader", "metrics"} {
		note("GET /metrics", e.get(token, "/metrics"))
	}
	for path, target := range map[string]string{
		"/docs/{file}": "/docs/index.html", "/static/{file}": "/static/x.css", "/problems/{slug}": "/problems/x",
	} {
		note("GET "+path, e.get("", target))
	}
	provokeTrouble(t, note)

	for _, want := range documented(t) {
		if !given[want] {
			t.Errorf("documented, but not provoked: %s", want)
		}
		delete(given, want)
	}
	for got := range given {
		t.Errorf("given, but not documented: %s", got)
	}
}

// provokeTrouble has every API route answer that too much is asked of it, that it is broken, and that its database
// is away.
func provokeTrouble(t *testing.T, note func(path string, a answer)) {
	t.Helper()
	all := func(e erp) {
		note("POST /v1/invoices", e.post("k-1", base))
		note("POST /v1/invoices/batch", e.postBatch(batchOf(batchItem("k-1", base))))
		note("GET /v1/invoices", e.get("reader", "/v1/invoices"))
		note("GET /v1/invoices/{id}", e.get("reader", "/v1/invoices/00000000-0000-0000-0000-000000000000"))
		note("GET /v1/operations/{key}", e.get("reader", "/v1/operations/k-1"))
		id := "/admin/v1/registrations/00000000-0000-0000-0000-000000000000"
		note("GET /admin/v1/registrations", e.get("admin", "/admin/v1/registrations"))
		note("GET /admin/v1/registrations/{id}", e.get("admin", id))
		note("POST /admin/v1/registrations/{id}/replay", e.admin("admin", id+"/replay", replayBody))
		note("POST /admin/v1/registrations/{id}/resolve", e.admin("admin", id+"/resolve", resolveBody))
		note("POST /admin/v1/registrations/{id}/acknowledge", e.admin("admin", id+"/acknowledge", acknowledgeBody))
		troubleOfAdministration(e, note)
	}
	entered, release := make(chan struct{}), make(chan struct{})
	busy := serveERP(t, func(d *httpapi.ERPDeps) {
		d.MaxPerTenant = 1
		d.Invoices = standIn{d.Invoices, func(_ context.Context, cmds []invoice.Command) []invoice.Result {
			close(entered)
			<-release
			return []invoice.Result{{Err: context.Canceled}}
		}}
	})
	done := make(chan struct{})
	go func() {
		defer close(done)
		busy.post("k-0", base)
	}()
	<-entered
	all(busy)
	close(release)
	<-done

	all(serveERP(t, func(d *httpapi.ERPDeps) { d.Invoices, d.Registrations = nil, nil })) // a panic in every route

	away := startERP(t)
	end := away.outage()
	all(away)
	note("GET /readyz", away.get("", "/readyz"))
	end()
}

func TestContractShowsAnExampleOfEveryAnswerWithABody(t *testing.T) {
	t.Parallel()
	document, err := libopenapi.NewDocument(api.OpenAPI())
	if err != nil {
		t.Fatal(err)
	}
	model, err := document.BuildV3Model()
	if err != nil {
		t.Fatal(err)
	}
	for path, item := range model.Model.Paths.PathItems.FromOldest() {
		for method, operation := range item.GetOperations().FromOldest() {
			for status, response := range operation.Responses.Codes.FromOldest() {
				for mediaType, content := range response.Content.FromOldest() {
					if strings.Contains(mediaType, "json") && content.Examples.Len() == 0 {
						t.Errorf("%s %s %s: no example", method, path, status)
					}
				}
			}
		}
	}
}

func TestProblemTypesOfTheContractAreThoseOfTheTable(t *testing.T) {
	t.Parallel()
	document, err := libopenapi.NewDocument(api.OpenAPI())
	if err != nil {
		t.Fatal(err)
	}
	model, err := document.BuildV3Model()
	if err != nil {
		t.Fatal(err)
	}
	proxy, ok := model.Model.Components.Schemas.Get("ProblemType")
	if !ok {
		t.Fatal("the contract has no schema ProblemType")
	}
	var inContract, inVocabulary []string
	for _, node := range proxy.Schema().Enum {
		inContract = append(inContract, node.Value)
	}
	for _, problemType := range vocabulary(t) {
		inVocabulary = append(inVocabulary, httpapi.ProblemPath(problemType))
	}
	slices.Sort(inContract)
	slices.Sort(inVocabulary)
	if !slices.Equal(inContract, inVocabulary) {
		t.Errorf("the contract has\n%v\nthe vocabulary\n%v", inContract, inVocabulary)
	}
}

// styleSheet is the address of the pages' style sheet, which changes with its content.
func styleSheet(e erp) string {
	e.t.Helper()
	for _, link := range e.get("", "/").page().all("head link") {
		if attribute(link, "rel") == "stylesheet" {
			return attribute(link, "href")
		}
	}
	e.t.Fatal("the start page has no style sheet")
	return ""
}
