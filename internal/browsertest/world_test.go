package browsertest

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/jackc/pgx/v5/pgxpool"

	"invoicebridge/internal/app"
	"invoicebridge/internal/audit"
	"invoicebridge/internal/auth"
	"invoicebridge/internal/auth/crmstore"
	"invoicebridge/internal/auth/erpstore"
	"invoicebridge/internal/backoff"
	"invoicebridge/internal/crm"
	"invoicebridge/internal/invoice"
	"invoicebridge/internal/problem"
	"invoicebridge/internal/target"
	"invoicebridge/internal/target/einvoice"
	"invoicebridge/internal/target/ledger"
	"invoicebridge/internal/target/targetsim"
	"invoicebridge/internal/testdb"
)

// The people of the tests, the same on both services.
const (
	viewer   = "vera"
	operator = "olga"
	second   = "otto" // another operator
	admin    = "anna"
	actor    = "arno" // another admin, who has done what there is to see
	service  = "sina" // a viewer who has the queue and the figures
	stranger = ""

	password = "correct horse battery"
	tenant   = "acme"
)

// Settings like those of the demo: nobody waits here for what a night is for.
const (
	attemptTimeout = 2 * time.Second
	targetTimeout  = 500 * time.Millisecond
	targetSettle   = time.Second
	sweepInterval  = time.Second
)

// world is both services with their databases, targets, and a network between them that can lose answers.
type world struct {
	t        *testing.T
	erp, crm *pgxpool.Pool
	erpURL   string
	crmURL   string
	erpToken string
	crmToken string
	// actorTokens are one admin's own, approverToken is the other one's, on the CRM side.
	actorTokens   struct{ erp, crm string }
	approverToken string
	wire          *wire
	targets       *targetsim.Sim
	http          *http.Client
}

// wire is the network between the CRM side and the ERP.
type wire struct {
	proxy   http.Handler
	mode    atomic.Int32
	refusal atomic.Pointer[string] // what is said with answersRefuse
}

// What becomes of the ERP's answers. Requests always arrive.
const (
	answersArrive   = iota
	answersAreLost  // all of them: the connection ends without a byte
	answersAreAlien // something between the two answers requests for invoices, which leaves them to an operator at once
	answersRefuse   // requests for invoices are refused, and do not arrive
)

func (w *wire) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	mode := w.mode.Load()
	if mode == answersArrive || mode != answersAreLost && r.Method != http.MethodPost {
		w.proxy.ServeHTTP(rw, r)
		return
	}
	if mode == answersRefuse {
		w.refuse(rw)
		return
	}
	w.proxy.ServeHTTP(httptest.NewRecorder(), r)
	if mode == answersAreLost {
		panic(http.ErrAbortHandler)
	}
	http.Error(rw, "a gateway's page", http.StatusConflict)
}

// refuse answers as an ERP does that finds the order wrong, in its own words.
func (w *wire) refuse(rw http.ResponseWriter) {
	p := problem.New(problem.InvalidInvoice, "%s", *w.refusal.Load())
	p.Errors = []problem.FieldError{{Pointer: "/customer/name", Detail: *w.refusal.Load()}}
	body, err := json.Marshal(map[string]any{
		"type": "/problems/" + string(p.Type), "title": "Invalid invoice", "status": http.StatusUnprocessableEntity, "detail": p.Detail, "errors": p.Errors,
	})
	if err != nil {
		panic(err)
	}
	rw.Header().Set("Content-Type", "application/problem+json")
	rw.WriteHeader(http.StatusUnprocessableEntity)
	_, _ = rw.Write(body)
}

// newWorld starts everything as cmd/bridge does, with one company and its people.
func newWorld(t *testing.T) *world {
	t.Helper()
	browser(t) // or there is nothing to start the rest for
	w := &world{t: t, erp: testdb.ERP(t), crm: testdb.CRM(t), http: &http.Client{Timeout: 30 * time.Second}}
	w.makePeople()
	w.startTargets()
	log := w.log()
	w.erpURL = w.start("ERP", func(ctx context.Context, ready func(string)) error {
		return app.RunERP(ctx, app.ERPConfig{
			Listen: "127.0.0.1:0", DatabaseURL: testdb.DSN(t, w.erp), ShutdownTimeout: 5 * time.Second,
			Registering: app.RegisterConfig{
				TargetTimeout: targetTimeout, SweepInterval: sweepInterval,
				BackOff: backoff.BackOff{Base: 100 * time.Millisecond, Cap: 300 * time.Millisecond, Slow: 5 * time.Second},
			},
		}, log, ready)
	})
	w.startWire()
	server := httptest.NewServer(w.wire)
	t.Cleanup(server.Close)
	w.crmURL = w.start("CRM side", func(ctx context.Context, ready func(string)) error {
		return app.RunCRM(ctx, app.CRMConfig{
			Listen: "127.0.0.1:0", DatabaseURL: testdb.DSN(t, w.crm), ERPURL: server.URL, ERPTokens: []string{tenant + "=" + w.erpToken},
			AttemptTimeout: attemptTimeout, SweepInterval: sweepInterval, ShutdownTimeout: 5 * time.Second,
			BackOff: crm.BackOff{Base: 100 * time.Millisecond, Cap: 500 * time.Millisecond, Slow: 30 * time.Second},
		}, log, ready)
	})
	return w
}

// log is silent, unless somebody looks for what is wrong.
func (w *world) log() *slog.Logger {
	if !testing.Verbose() || os.Getenv("BROWSER_LOG") == "" {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(slog.NewTextHandler(w.t.Output(), nil))
}

// start runs a service until the test ends, and gives its address.
func (w *world) start(name string, serve func(ctx context.Context, ready func(addr string)) error) string {
	w.t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	ready, ended := make(chan string, 1), make(chan error, 1)
	go func() { ended <- serve(ctx, func(addr string) { ready <- addr }) }()
	select {
	case addr := <-ready:
		w.t.Cleanup(func() {
			stop()
			if err := <-ended; err != nil {
				w.t.Errorf("%s: %v", name, err)
			}
		})
		return "http://" + addr
	case err := <-ended:
		stop()
		w.t.Fatalf("%s does not start: %v", name, err)
	}
	return ""
}

func (w *world) startWire() {
	w.t.Helper()
	upstream, err := url.Parse(w.erpURL)
	if err != nil {
		w.t.Fatal(err)
	}
	w.wire = &wire{proxy: httputil.NewSingleHostReverseProxy(upstream)}
}

// passwordHash is one for all: a hash costs what it is meant to cost.
var passwordHash = sync.OnceValues(func() (string, error) {
	return auth.NewHasher().Hash(context.Background(), "nobody", password)
})

type store interface {
	auth.Store
	auth.AdminStore
}

func (w *world) makePeople() {
	w.t.Helper()
	hash, err := passwordHash()
	if err != nil {
		w.t.Fatal(err)
	}
	for side, s := range map[string]store{"erp": erpstore.New(w.erp), "crm": crmstore.New(w.crm)} {
		by, a := audit.By{Actor: "browsertest", Reason: "test"}, auth.NewAdmin(s)
		if err := a.CreateTenant(w.t.Context(), tenant, "Acme", by); err != nil {
			w.t.Fatal(err)
		}
		for _, account := range []auth.Account{
			{Name: viewer, DisplayName: "Vera Viewer", Role: auth.RoleViewer},
			{Name: operator, DisplayName: "Olga Operator", Role: auth.RoleOperator},
			{Name: second, DisplayName: "Otto Operator", Role: auth.RoleOperator},
			{Name: admin, DisplayName: "Anna Admin", Role: auth.RoleAdmin},
			{Name: actor, DisplayName: "Arno Admin", Role: auth.RoleAdmin},
			{Name: service, DisplayName: "Sina Service", Role: auth.RoleViewer, Service: true},
		} {
			account.Tenant, account.PasswordHash = tenant, hash
			if _, err := a.CreateAccount(w.t.Context(), account, by); err != nil {
				w.t.Fatal(err)
			}
		}
		_, text, err := a.CreateToken(w.t.Context(), tenant, auth.RoleWriter, "browsertest", by)
		if err != nil {
			w.t.Fatal(err)
		}
		_, own, err := a.CreatePersonalToken(w.t.Context(), actor, auth.RoleAdmin, "his own", by)
		if err != nil {
			w.t.Fatal(err)
		}
		if side == "erp" {
			w.erpToken, w.actorTokens.erp = text, own
			continue
		}
		w.crmToken, w.actorTokens.crm = text, own
		if _, w.approverToken, err = a.CreatePersonalToken(w.t.Context(), admin, auth.RoleAdmin, "her own", by); err != nil {
			w.t.Fatal(err)
		}
	}
}

// startTargets starts a gateway and a ledger, and tells the ERP of them.
func (w *world) startTargets() {
	w.t.Helper()
	const secret = "the-targets-ask-for-this"
	file := filepath.Join(w.t.TempDir(), "token")
	if err := os.WriteFile(file, []byte(secret+"\n"), 0o600); err != nil {
		w.t.Fatal(err)
	}
	var err error
	w.targets, err = targetsim.Open(targetsim.Config{
		Token: secret, KeyWindow: 24 * time.Hour, Late: targetSettle / 2, Held: targetSettle / 2, Hidden: targetSettle / 2,
		Slow: 50 * time.Millisecond, Pause: time.Second,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	server := httptest.NewServer(w.targets)
	w.t.Cleanup(func() {
		w.targets.EndWaiting()
		server.Close()
		_ = w.targets.Close()
	})
	targets := invoice.NewTargetAdmin(w.erp, app.TargetKinds(targetTimeout))
	for id, s := range map[string]invoice.TargetSettings{
		"gateway": {Kind: einvoice.Kind, Can: target.Capabilities{Keyed: true, KeyWindow: 24 * time.Hour}},
		"books":   {Kind: ledger.Kind},
	} {
		s.ID, s.Tenant, s.CredentialRef, s.BaseURL = id, tenant, "file:"+file, server.URL+"/"+s.Kind
		s.Can.Locatable, s.Can.AbsenceAuthoritative, s.Can.SettleTime = true, true, targetSettle+2*targetTimeout
		if err := targets.Set(w.t.Context(), s, true, audit.By{Actor: "browsertest", Reason: "test"}); err != nil {
			w.t.Fatal(err)
		}
	}
}

// post sends JSON to a service's API.
func (w *world) post(address, token, key, body string) (status int, answer string) {
	w.t.Helper()
	r, err := http.NewRequestWithContext(w.t.Context(), http.MethodPost, address, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Content-Type", "application/json")
	if key != "" {
		r.Header.Set("Idempotency-Key", key)
	}
	response, err := w.http.Do(r)
	if err != nil {
		w.t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

// order is an order as it comes in.
type order struct {
	Source      string            `json:"source"`
	Order       string            `json:"order"`
	Role        string            `json:"role,omitzero"`
	Currency    string            `json:"currency"`
	IssueDate   string            `json:"issue_date"`
	Customer    customer          `json:"customer"`
	Lines       []line            `json:"lines"`
	Note        string            `json:"note,omitzero"`
	Corrects    string            `json:"corrects,omitzero"`
	OrderTotal  string            `json:"order_total,omitzero"`
	ExpectGross string            `json:"expected_gross,omitzero"`
	Metadata    map[string]string `json:"metadata,omitempty"`
}

type customer struct {
	Name    string `json:"name"`
	Country string `json:"country"`
	Email   string `json:"email,omitzero"`
}

type line struct {
	SKU         string `json:"sku"`
	Description string `json:"description,omitzero"`
	Quantity    string `json:"quantity"`
	UnitPrice   string `json:"unit_price"`
	VATRate     string `json:"vat_rate"`
	VATCategory string `json:"vat_category"`
}

// newOrder is an order over 2 x 10.00 and 1 x 1234.50 net at two rates.
func newOrder(number, name string) order {
	return order{
		Source: "shopify-eu", Order: number, Currency: "EUR", IssueDate: "2026-03-02", Customer: customer{Name: name, Country: "DE"},
		Lines: []line{
			{SKU: "P-1", Description: "Paper, 500 sheets", Quantity: "2", UnitPrice: "10.00", VATRate: "19", VATCategory: "S"},
			{SKU: "B-7", Description: "A book", Quantity: "1", UnitPrice: "1234.50", VATRate: "7", VATCategory: "S"},
		},
	}
}

func (w *world) submit(orders ...order) {
	w.t.Helper()
	if status, answer := w.post(w.crmURL+"/v1/orders", w.crmToken, "", asJSON(w.t, orders)); status != http.StatusCreated {
		w.t.Fatalf("orders were not taken: %d %s", status, answer)
	}
}

func asJSON(t testing.TB, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// settled waits until so many operations have succeeded.
func (w *world) settled(n int) {
	w.t.Helper()
	testdb.Await(w.t, fmt.Sprintf("%d operations have succeeded", n), func() bool {
		return number(w.t, w.crm, `SELECT count(*) FROM operations WHERE status = 'succeeded'`) >= n
	})
}

// keyOf is the key of an order's operation.
func (w *world) keyOf(orderNumber string) (key string) {
	w.t.Helper()
	err := w.crm.QueryRow(w.t.Context(), `SELECT key FROM operations WHERE order_id = $1 ORDER BY created_at LIMIT 1`, orderNumber).Scan(&key)
	if err != nil {
		w.t.Fatalf("the operation of %s: %v", orderNumber, err)
	}
	return key
}

// numberOf is the number of an order's invoice, and its id.
func (w *world) numberOf(orderNumber string) (id, invoiceNumber string) {
	w.t.Helper()
	err := w.erp.QueryRow(w.t.Context(), `SELECT id::text, number FROM invoices WHERE order_id = $1 ORDER BY created_at LIMIT 1`, orderNumber).
		Scan(&id, &invoiceNumber)
	if err != nil {
		w.t.Fatalf("the invoice of %s: %v", orderNumber, err)
	}
	return id, invoiceNumber
}

// number runs a query that gives one number.
func number(t testing.TB, pool *pgxpool.Pool, query string, args ...any) (n int) {
	t.Helper()
	if err := pool.QueryRow(t.Context(), query, args...).Scan(&n); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return n
}

// text runs a query that gives one text.
func text(t testing.TB, pool *pgxpool.Pool, query string, args ...any) (s string) {
	t.Helper()
	if err := pool.QueryRow(t.Context(), query, args...).Scan(&s); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return s
}

// onERP is a tab on the ERP's console, with somebody logged in.
func (w *world) onERP(who string) *tab { w.t.Helper(); return w.tab(w.erpURL, who) }

// onCRM is the same on the CRM side's console.
func (w *world) onCRM(who string) *tab { w.t.Helper(); return w.tab(w.crmURL, who) }

func (w *world) tab(base, who string) *tab {
	w.t.Helper()
	b := newTab(w.t, base)
	if who != stranger {
		b.logIn(who, password)
	}
	return b
}
