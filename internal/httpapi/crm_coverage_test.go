package httpapi_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/pb33f/libopenapi"
	v3 "github.com/pb33f/libopenapi/datamodel/high/v3"

	"invoicebridge/api"
	"invoicebridge/internal/auth"
	"invoicebridge/internal/crm"
	"invoicebridge/internal/httpapi"
	"invoicebridge/internal/testdb"
)

// crmAnswers goes through the answers of the CRM side's contract.
func crmAnswers(t testing.TB, each func(route, status string, response *v3.Response)) {
	t.Helper()
	document, err := libopenapi.NewDocument(api.CRMOpenAPI())
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
				each(strings.ToUpper(method)+" "+path, status, response)
			}
		}
	}
}

// Every answer that the contract promises is provoked here, and call holds each against the contract.
func TestEveryDocumentedAnswerOfTheCRMSideIsGivenAndIsAsDocumented(t *testing.T) {
	s := setupCRM(t)
	p := &provoker{crmServer: s, given: map[string]bool{}, admins: s.token("acme", auth.RoleAdmin), metrics: s.token("acme", auth.RoleMetrics)}
	p.worksOfPeople()
	p.lists()
	p.badRequests()
	p.service()
	p.trouble()
	crmAnswers(t, func(route, status string, _ *v3.Response) {
		if want := route + " " + status; !p.given[want] {
			t.Errorf("documented, but not provoked: %s", want)
		} else {
			delete(p.given, want)
		}
	})
	for got := range p.given {
		t.Errorf("given, but not documented: %s", got)
	}
}

// provoker takes note of the answers.
type provoker struct {
	*crmServer
	given           map[string]bool
	admins, metrics string // tokens
}

// ask sends a request to a route of the contract, with its parameters in the order of the path.
func (p *provoker) ask(route, token, body string, with ...string) (status int) {
	p.t.Helper()
	method, path, _ := strings.Cut(route, " ")
	for _, value := range with {
		begin, end := strings.IndexByte(path, '{'), strings.IndexByte(path, '}')
		if begin < 0 {
			path += value // a query
			continue
		}
		path = path[:begin] + value + path[end+1:]
	}
	status = p.call(method, path, token, body, nil).StatusCode
	p.given[route+" "+strconv.Itoa(status)] = true
	return status
}

// wants asks and wants an answer.
func (p *provoker) wants(status int, route, token, body string, with ...string) {
	p.t.Helper()
	if got := p.ask(route, token, body, with...); got != status {
		p.t.Errorf("%s %v is answered %d, want %d", route, with, got, status)
	}
}

const (
	postOrders  = "POST /v1/orders"
	operationOf = "POST /admin/v1/operations/{key}/"
	resolutions = "POST /admin/v1/resolutions/{id}/"
)

// worksOfPeople has each action done, and refused because it was done.
func (p *provoker) worksOfPeople() {
	p.t.Helper()
	order := orderJSON("SO-1", `"2"`)
	p.wants(201, postOrders, p.writer, order)
	p.wants(200, postOrders, p.writer, order)
	p.wants(422, postOrders, p.writer, orderJSON("SO-2", `"x"`))
	p.wants(201, postOrders, p.writer, strings.Replace(orderJSON("SO-v", "1"), "{", `{"version":3,`, 1))
	p.wants(409, postOrders, p.writer, strings.Replace(orderJSON("SO-v", "2"), "{", `{"version":3,`, 1))
	const byHand = "POST /admin/v1/orders"
	p.wants(201, byHand, p.admins, `{"reason":"r","order":`+orderJSON("SO-h", "1")+`}`)
	p.wants(200, byHand, p.admins, `{"reason":"r","order":`+orderJSON("SO-h", "1")+`}`)
	p.wants(422, byHand, p.admins, `{"reason":"r","order":`+orderJSON("SO-h", `"x"`)+`}`)
	p.wants(409, byHand, p.admins, `{"reason":"r","order":`+strings.Replace(orderJSON("SO-v", "2"), "{", `{"version":3,`, 1)+`}`)

	unknown, rejected := p.submitted("SO-unknown"), p.submitted("SO-rejected")
	p.ended(unknown, flaggedUnknown)
	p.ended(rejected, rejectedNow)
	for _, status := range []int{200, 409} {
		p.wants(status, operationOf+"replay", p.admins, because, unknown)
		p.wants(status, operationOf+"cancel", p.admins, because, p.submittedOnce("SO-cancel"))
	}
	p.wants(422, operationOf+"revise", p.admins, revision("SO-rejected", `"x"`), rejected)
	p.wants(201, operationOf+"revise", p.admins, revision("SO-rejected", `"3"`), rejected)
	p.wants(409, operationOf+"revise", p.admins, revision("SO-rejected", `"3"`), rejected)

	ann, ben := p.personal("acme", "ann"), p.personal("acme", "ben")
	proposal := `{"verdict":"not_applied","evidence":"seen","reason":"r"}`
	for _, decision := range []string{"decline", "withdraw", "approve"} {
		p.wants(201, operationOf+"resolutions", ann, proposal, unknown)
		p.wants(409, operationOf+"resolutions", ann, proposal, unknown)
		id := p.text(`SELECT id::text FROM resolutions WHERE status = 'open'`)
		who := map[bool]string{true: ann, false: ben}[decision == "withdraw"]
		p.wants(200, resolutions+decision, who, because, id)
		p.wants(409, resolutions+decision, who, because, id)
		p.wants(200, "GET /admin/v1/resolutions/{id}", p.admins, "", id)
	}

	const replays = "POST /admin/v1/replays"
	p.ended(p.submitted("SO-many"), flaggedUnknown)
	p.wants(201, replays, p.admins, `{"filter":{},"expected_count":1,"reason":"r"}`)
	p.wants(409, replays, p.admins, `{"filter":{},"expected_count":1,"reason":"r"}`)
	run := p.text(`SELECT id::text FROM replay_runs`)
	p.wants(200, "GET /admin/v1/replays/{id}", p.admins, "", run)
	p.wants(400, "GET /admin/v1/replays/{id}", p.admins, "", run, "?limit=0")
	for _, status := range []int{200, 409} {
		p.wants(status, "POST /admin/v1/replays/{id}/stop", p.admins, because, run)
		p.wants(status, "POST /admin/v1/sources/{source}/pause", p.admins, because, "crm-1")
	}
	for _, status := range []int{200, 409} {
		p.wants(status, "POST /admin/v1/sources/{source}/resume", p.admins, because, "crm-1")
	}
	for _, status := range []int{202, 409} {
		p.wants(status, "POST /admin/v1/reconciliations", p.admins, because)
	}
	p.exec(`INSERT INTO divergences (tenant_id, kind, owner, subject) VALUES ('acme', 'missing_in_erp', 'erp', 'k')`)
	divergence := p.text(`SELECT id::text FROM divergences`)
	for _, decision := range []string{"accept", "close"} {
		for _, status := range []int{200, 409} {
			p.wants(status, "POST /admin/v1/divergences/{id}/"+decision, p.admins, because, divergence)
		}
	}
}

// submittedOnce gives the key of an order's operation, whatever became of it.
func (p *provoker) submittedOnce(order string) string {
	p.call(http.MethodPost, "/v1/orders", p.writer, orderJSON(order, `"2"`), nil)
	return p.text(`SELECT key FROM operations WHERE order_id = '` + order + `'`)
}

func (p *provoker) text(sql string) (text string) {
	p.t.Helper()
	if err := p.pool.QueryRow(context.Background(), sql).Scan(&text); err != nil {
		p.t.Fatalf("%s: %v", sql, err)
	}
	return text
}

// lists reads all there is to read.
func (p *provoker) lists() {
	p.t.Helper()
	key := p.text(`SELECT key FROM operations LIMIT 1`)
	p.wants(200, "GET /v1/orders/{source}/{order}", p.reader, "", "crm-1", "SO-1")
	p.wants(404, "GET /v1/orders/{source}/{order}", p.reader, "", "crm-1", "SO-nowhere")
	p.wants(200, "GET /v1/operations/{key}", p.reader, "", key)
	p.wants(200, "GET /admin/v1/operations/{key}", p.admins, "", key)
	p.wants(200, "GET /admin/v1/intake/{id}", p.admins, "", p.text(`SELECT id::text FROM intake_refusals LIMIT 1`))
	p.wants(200, "GET /admin/v1/imports/{id}", p.admins, "", p.imported("orders.csv", crm.ImportRow{Line: 3, Order: "SO-2", Outcome: "refused", Reason: "r"}).String())
	crmAnswers(p.t, func(route, status string, _ *v3.Response) {
		method, path, _ := strings.Cut(route, " ")
		if method == http.MethodGet && !strings.Contains(path, "{") && strings.Contains(path, "/v1/") && status == "200" {
			p.wants(200, route, p.admins, "")
		}
	})
}

// badRequests asks every route as a stranger, without the permission, for what is not there, and in other forms than it takes.
func (p *provoker) badRequests() {
	p.t.Helper()
	crmAnswers(p.t, func(route, status string, _ *v3.Response) {
		method, path, _ := strings.Cut(route, " ")
		if !strings.Contains(path, "/v1/") {
			return
		}
		with := nowhere(path)
		switch status {
		case "401":
			p.wants(401, route, "", sampleOf(route), with...)
		case "403":
			p.wants(403, route, p.metrics, sampleOf(route), with...)
		case "404":
			p.wants(404, route, p.writersToken(route), sampleOf(route), with...)
		case "400":
			if method == http.MethodPost {
				p.wants(400, route, p.writersToken(route), "{", with...)
			} else if !strings.Contains(path, "{") {
				p.wants(400, route, p.admins, "", "?nonsense=1")
			}
		case "413":
			p.wants(413, route, p.writersToken(route), `"`+strings.Repeat("x", 10<<20+1)+`"`, with...)
		case "415":
			p.plainText(route, with)
		}
	})
}

// nowhere are parameters of a path that name nothing.
func nowhere(path string) (with []string) {
	id := "nowhere"
	switch {
	case strings.Contains(path, "divergences/{id}"), strings.Contains(path, "intake/{id}"):
		id = "999999"
	case strings.Contains(path, "{id}"):
		id = uuid.Nil.String()
	}
	for range strings.Count(path, "{") {
		with = append(with, id)
	}
	return with
}

// sampleOf is a body that a route takes.
func sampleOf(route string) string {
	switch {
	case strings.HasPrefix(route, "GET"):
		return ""
	case route == postOrders:
		return orderJSON("SO-sample", "1")
	case strings.HasSuffix(route, "/orders"):
		return `{"reason":"r","order":` + orderJSON("SO-sample", "1") + `}`
	case strings.HasSuffix(route, "/revise"):
		return revision("SO-sample", `"3"`)
	case strings.HasSuffix(route, "/resolutions"):
		return `{"verdict":"not_applied","evidence":"seen","reason":"r"}`
	case strings.HasSuffix(route, "/replays"):
		return `{"filter":{},"expected_count":1,"reason":"r"}`
	}
	return because
}

func (p *provoker) writersToken(route string) string {
	if strings.Contains(route, "/admin/") {
		return p.admins
	}
	return p.writer
}

func (p *provoker) plainText(route string, with []string) {
	p.t.Helper()
	path := strings.TrimPrefix(route, "POST ")
	for _, value := range with {
		path = path[:strings.IndexByte(path, '{')] + value + path[strings.IndexByte(path, '}')+1:]
	}
	r, err := http.NewRequestWithContext(p.t.Context(), http.MethodPost, p.url+path, strings.NewReader(sampleOf(route)))
	if err != nil {
		p.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "text/plain")
	r.Header.Set("Authorization", "Bearer "+p.writersToken(route))
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		p.t.Fatal(err)
	}
	defer answer.Body.Close()
	p.given[route+" "+strconv.Itoa(answer.StatusCode)] = true
}

// service asks what is there for programs and people that look after the service.
func (p *provoker) service() {
	p.t.Helper()
	for _, path := range []string{"/healthz", "/readyz", "/order.schema.json"} {
		p.wants(200, "GET "+path, "", "")
	}
	for token, status := range map[string]int{"": 401, p.reader: 403, p.metrics: 200} {
		p.wants(status, "GET /metrics", token, "")
	}
	p.wants(200, "GET /problems/{slug}", "", "", "internal")
	p.wants(404, "GET /problems/{slug}", "", "", "nothing")
}

// trouble has every route answer that too much is asked of it, that it is broken, and that its database is away.
func (p *provoker) trouble() {
	p.t.Helper()
	all := func(s *crmServer, status string) {
		at := &provoker{crmServer: s, given: p.given, admins: p.admins, metrics: p.metrics}
		crmAnswers(p.t, func(route, documented string, _ *v3.Response) {
			if documented == status && strings.Contains(route, "/v1/") {
				_, path, _ := strings.Cut(route, " ")
				at.ask(route, p.writersToken(route), sampleOf(route), nowhere(path)...)
			}
		})
	}
	broken := p.beside(func(d *httpapi.CRMDeps) { d.Orders, d.Console = struct{ httpapi.Orders }{}, new(crm.Console) }) // a panic in every route
	all(broken, "500")

	busy := p.beside(func(d *httpapi.CRMDeps) { d.MaxPerTenant = 1 })
	release := p.holdTable("operations")
	held := make(chan int, 1)
	go func() { held <- busy.call(http.MethodGet, "/v1/operations", p.reader, "", nil).StatusCode }()
	testdb.Await(p.t, "a request is at work", func() bool {
		return p.count("pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'") == 1
	})
	all(busy, "429")
	release()
	if status := <-held; status != http.StatusOK {
		p.t.Errorf("the request that was at work is answered %d", status)
	}

	end := erp{t: p.t, pool: p.pool}.outage()
	defer end()
	all(p.crmServer, "503")
	p.wants(503, "GET /readyz", "", "")
}

// beside is another server on the same database.
func (p *provoker) beside(change func(*httpapi.CRMDeps)) *crmServer {
	p.t.Helper()
	deps := crmDeps(p.t, p.pool)
	change(&deps)
	handler, err := httpapi.NewCRM(deps)
	if err != nil {
		p.t.Fatal(err)
	}
	server := httptest.NewServer(handler)
	p.t.Cleanup(server.Close)
	s := *p.crmServer
	s.url = server.URL
	return &s
}

func (p *provoker) holdTable(name string) (release func()) {
	p.t.Helper()
	tx, err := p.pool.Begin(context.Background())
	if err != nil {
		p.t.Fatal(err)
	}
	if _, err := tx.Exec(context.Background(), "LOCK TABLE "+name+" IN ACCESS EXCLUSIVE MODE"); err != nil {
		p.t.Fatal(err)
	}
	return func() {
		if err := tx.Rollback(context.Background()); err != nil {
			p.t.Fatal(err)
		}
	}
}
