package processtest

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"

	"invoicebridge/internal/fleet"
	"invoicebridge/internal/target/targetsim"
	"invoicebridge/internal/testdb"
)

const targetToken = "hush"

// targetProgram is cmd/targetsim, running.
type targetProgram struct {
	t   testing.TB
	url string
}

func (w *world) serveTargets() *targetProgram {
	w.t.Helper()
	return &targetProgram{w.t, serve(w.t, fleet.TargetSim, "TARGETSIM_TOKEN="+targetToken).URL()}
}

// target tells the ERP of the ledger, which knows no keys and can be asked; its absence is believed after an hour.
func (w *world) target(p *targetProgram, env ...string) {
	w.t.Helper()
	command(w.t, "erp-api", append([]string{"ERP_DATABASE_URL=" + w.erpDSN}, env...), "target", "set", "--tenant", "acme",
		"--kind", "ledger", "--url", p.url+"/ledger", "--credential", "env:TARGET_TOKEN", "--locatable", "--absent-after", "1h")
}

func (p *targetProgram) script(faults ...targetsim.Fault) {
	p.t.Helper()
	body, err := json.Marshal(map[string]any{"external_reference": targetsim.AnyReference, "faults": faults})
	if err != nil {
		p.t.Fatal(err)
	}
	p.do(http.MethodPost, "/sim/script", string(body), nil)
}

func (p *targetProgram) effects() (sum targetsim.Summary) {
	p.t.Helper()
	p.do(http.MethodGet, "/sim/effects", "", &sum)
	return sum
}

func (p *targetProgram) requests() []targetsim.Request {
	p.t.Helper()
	var list struct {
		Items []targetsim.Request `json:"items"`
	}
	p.do(http.MethodGet, "/sim/requests", "", &list)
	return list.Items
}

func (p *targetProgram) do(method, path, body string, to any) {
	p.t.Helper()
	req, err := http.NewRequestWithContext(p.t.Context(), method, p.url+path, strings.NewReader(body))
	if err != nil {
		p.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+targetToken)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		p.t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode/100 != 2 {
		p.t.Fatalf("%s %s: %d %s, %v", method, path, res.StatusCode, text, err)
	}
	if to == nil {
		return
	}
	if err := json.Unmarshal(text, to); err != nil {
		p.t.Fatalf("%s: %v in %s", path, err, text)
	}
}

// wantRegisteredOnce holds target and books to one registration, and to these requests in this order; questions may be
// asked more than once.
func (w *world) wantRegisteredOnce(p *targetProgram, operations ...string) {
	w.t.Helper()
	sum := p.effects()
	if sum.Effects != 1 || sum.Duplicates != 0 || sum.Items[0].Posted != 1 {
		w.t.Errorf("the ledger has %+v, want one entry, posted", sum)
	}
	var got []string
	for _, r := range p.requests() {
		got = append(got, r.Operation)
	}
	if diff := cmp.Diff(operations, slices.Compact(got)); diff != "" {
		w.t.Errorf("requests to the target (-want +got)\n%s", diff)
	}
	if n := number(w.t, w.erp, `SELECT count(*) FROM registrations WHERE status = 'succeeded' AND reference <> '' AND flagged_at IS NULL`); n != 1 {
		w.t.Errorf("%d registrations have succeeded, want 1", n)
	}
}

func (w *world) registered() bool {
	return number(w.t, w.erp, `SELECT count(*) FROM registrations WHERE status = 'succeeded'`) == 1
}

func TestAfterATimeOutTheTargetIsAskedAndNothingIsSentAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ledger := w.serveTargets()
	w.target(ledger)
	ledger.script(targetsim.AcceptSilent, targetsim.LookupError)
	erp := w.serveERP("TARGET_TOKEN="+targetToken, "ERP_TARGET_TIMEOUT=500ms")
	worker := w.serveCRM(erp.URL())
	w.submit(worker.URL(), "SO-1001")
	testdb.Await(t, "the invoice is registered", w.registered)
	w.wantInvoices(1)
	w.wantRegisteredOnce(ledger, "create", "lookup", "post")
	if n := number(t, w.erp, `SELECT count(*) FROM registration_attempts WHERE (number, action, outcome) IN
		((1, 'send', 'lost'), (2, 'locate', 'inconclusive'))`); n != 2 {
		t.Error("the first two attempts are not a lost sending and a question that was not answered")
	}
}

func TestRegisterWorkerKilledBeforeTheAnswerLeavesAQuestionAndNoSecondEntry(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ledger := w.serveTargets()
	w.target(ledger)
	ledger.script(targetsim.AcceptSilent)
	first := w.serveERP("TARGET_TOKEN="+targetToken, "ERP_TARGET_TIMEOUT=60s")
	if got := w.invoice(first.URL(), "K1", "SO-1001"); got.status != http.StatusCreated {
		t.Fatalf("the ERP answers %d %s", got.status, got.body)
	}
	testdb.Await(t, "the ledger has taken the entry", func() bool { return ledger.effects().Effects == 1 })
	first.Kill()
	if n := number(t, w.erp, `SELECT count(*) FROM registrations WHERE status = 'processing' AND attempt = 1`); n != 1 {
		t.Fatal("the books do not say that attempt 1 was being sent")
	}

	sqlExec(t, w.erp, `UPDATE registrations SET lease_until = lease_until - interval '1 hour' WHERE status = 'processing'`)
	w.serveERP("TARGET_TOKEN="+targetToken, "ERP_TARGET_TIMEOUT=60s", "ERP_REGISTER_SWEEP_INTERVAL=1s")
	testdb.Await(t, "another worker has settled the registration", w.registered)
	w.wantRegisteredOnce(ledger, "create", "lookup", "post")
	if n := number(t, w.erp, `SELECT count(*) FROM registration_attempts WHERE (number, outcome) IN ((1, 'overtaken'), (2, 'held'), (3, 'accepted'))`); n != 3 {
		t.Error("the attempts are not told as overtaken, held and accepted")
	}
}
