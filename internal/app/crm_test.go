package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"invoicebridge/internal/audit"
	"invoicebridge/internal/auth"
	"invoicebridge/internal/auth/crmstore"
	"invoicebridge/internal/crm"
	"invoicebridge/internal/erpapi"
	"invoicebridge/internal/testdb"
)

func goodCRMConfig() CRMConfig {
	return CRMConfig{
		Listen: "127.0.0.1:0", DatabaseURL: "postgres://localhost/crm", ERPURL: "http://127.0.0.1:1",
		ERPTokens: []string{"acme=ibt_x"},
	}
}

func TestEveryMistakeOfTheCRMConfigurationNamesItsVariable(t *testing.T) {
	t.Parallel()
	if err := goodCRMConfig().Validate(); err != nil {
		t.Fatalf("a good configuration is refused: %v", err)
	}
	bad := CRMConfig{
		Listen: "8081", MaxConns: -1, MaxInFlight: -1, MaxPerTenant: -1, RequestTimeout: 1, Workers: -1, ERPURL: "erp",
		ERPTokens: []string{"acme"}, AttemptTimeout: time.Hour, TotalTime: 1, SweepInterval: 1, ShutdownTimeout: 1,
	}
	err := bad.Validate()
	if err == nil {
		t.Fatal("a wrong configuration is accepted")
	}
	for _, variable := range []string{
		"CRM_LISTEN", "CRM_DATABASE_URL", "CRM_MAX_CONNS", "CRM_MAX_IN_FLIGHT", "CRM_MAX_IN_FLIGHT_PER_TENANT", "CRM_REQUEST_TIMEOUT", "CRM_WORKERS",
		"ERP_URL", "ERP_TOKENS", "ATTEMPT_TIMEOUT", "TOTAL_TIME", "CRM_SWEEP_INTERVAL", "SHUTDOWN_TIMEOUT",
	} {
		if strings.Count("\n"+err.Error(), "\n"+variable+": ") != 1 {
			t.Errorf("%s is not told once in:\n%v", variable, err)
		}
	}
}

func TestERPTokensAreReadPerTenantAlsoFromFiles(t *testing.T) {
	t.Parallel()
	readFile := func(path string) ([]byte, error) {
		if path != "/run/secrets/b" {
			return nil, errors.New("no such file")
		}
		return []byte("secret-b\n"), nil
	}
	got, err := readERPTokens([]string{"a=secret=a", " b = @/run/secrets/b", ""}, readFile)
	if diff := cmp.Diff(erpTokens{"a": "secret=a", "b": "secret-b"}, got); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
	for _, entry := range []string{"a", "=x", "a=", "a=@", "a=@/missing", "a=sec ret", "a=s\u00e9cret"} {
		_, err := readERPTokens([]string{entry}, readFile)
		if err == nil || strings.Contains(err.Error(), "ret") {
			t.Errorf("%q: %v", entry, err)
		}
	}
	if _, err := readERPTokens([]string{"a=x", "a=y"}, readFile); err == nil {
		t.Error("two tokens of one tenant are accepted")
	}
}

// runningCRM is a CRM side that serves, with an ERP of the test's own.
type runningCRM struct {
	t     *testing.T
	pool  *pgxpool.Pool
	url   string
	token string
	stop  context.CancelFunc
	ended chan error
}

func startCRM(t *testing.T, erp http.HandlerFunc, change func(*CRMConfig)) *runningCRM {
	t.Helper()
	t.Parallel()
	pool := testdb.CRM(t)
	admin := auth.NewAdmin(crmstore.New(pool))
	if err := admin.CreateTenant(t.Context(), "acme", "Acme", audit.By{Actor: "test"}); err != nil {
		t.Fatal(err)
	}
	_, token, err := admin.CreateToken(t.Context(), "acme", auth.RoleWriter, "test", audit.By{Actor: "test"})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(erp)
	t.Cleanup(server.Close)
	cfg := goodCRMConfig()
	cfg.DatabaseURL, cfg.ERPURL, cfg.MaxConns = testdb.DSN(t, pool), server.URL, 4
	change(&cfg)
	ctx, stop := context.WithCancel(context.Background())
	r := &runningCRM{t: t, pool: pool, token: token, stop: stop, ended: make(chan error, 1)}
	ready := make(chan string, 1)
	go func() {
		r.ended <- RunCRM(ctx, cfg, slog.New(slog.DiscardHandler), func(addr string) { ready <- addr })
	}()
	t.Cleanup(stop)
	select {
	case addr := <-ready:
		r.url = "http://" + addr
	case err := <-r.ended:
		t.Fatalf("RunCRM: %v", err)
	}
	return r
}

const orderBody = `{"source":"crm-1","order":"SO-1","currency":"EUR","issue_date":"2026-03-02","customer":{"name":"A","country":"DE"},
	"lines":[{"sku":"P-1","quantity":"2","unit_price":"10.00","vat_rate":"19","vat_category":"S"}]}`

func (r *runningCRM) submit() {
	r.t.Helper()
	request, err := http.NewRequestWithContext(r.t.Context(), http.MethodPost, r.url+"/v1/orders", strings.NewReader(orderBody))
	if err != nil {
		r.t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+r.token)
	request.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		r.t.Fatal(err)
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusCreated {
		r.t.Fatalf("status is %d", answer.StatusCode)
	}
}

// until waits for the order's operation to have a status.
func (r *runningCRM) until(want crm.OperationStatus) {
	r.t.Helper()
	var got string
	testdb.Await(r.t, "the operation is "+string(want), func() bool {
		if err := r.pool.QueryRow(r.t.Context(), "SELECT status FROM operations").Scan(&got); err != nil {
			r.t.Fatal(err)
		}
		return crm.OperationStatus(got) == want
	})
}

// stopped stops the service and wants it to end without an error.
func (r *runningCRM) stopped() {
	r.t.Helper()
	r.stop()
	select {
	case err := <-r.ended:
		if err != nil {
			r.t.Errorf("the service ended with %v", err)
		}
	case <-time.After(time.Minute):
		r.t.Fatal("the service does not end")
	}
}

// issuing answers as the ERP does, for as much as the worker looks at.
func issuing(w http.ResponseWriter, req *http.Request) {
	body, _ := io.ReadAll(req.Body)
	r, err := erpapi.DecodeInvoiceRequest(body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	document, _ := json.Marshal(erpapi.Invoice{
		ID: uuid.NewString(), Number: "INV-2026-000001", Status: "issued", Source: r.Source, Order: r.Order, Role: r.Role,
		Sequence: r.EffectiveSequence(), OperationKey: strings.Trim(req.Header.Get("Idempotency-Key"), `"`),
		Currency: r.Currency, IssueDate: r.IssueDate, Customer: r.Customer, CreatedAt: time.Unix(0, 0).UTC(),
	})
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusCreated)
	_, _ = w.Write(document)
}

func TestAnOrderThatComesInIsDeliveredAndTheServiceStops(t *testing.T) {
	r := startCRM(t, issuing, func(*CRMConfig) {})
	r.submit()
	r.until(crm.StatusSucceeded)
	r.stopped()
}

func TestDeliveryThatDoesNotEndIsLeftUnknownWhenTheServiceStops(t *testing.T) {
	arrived, release := make(chan struct{}, 10), make(chan struct{})
	r := startCRM(t, func(_ http.ResponseWriter, req *http.Request) {
		_, _ = io.Copy(io.Discard, req.Body)
		arrived <- struct{}{}
		<-release
	}, func(c *CRMConfig) { c.ShutdownTimeout = time.Second })
	t.Cleanup(func() { close(release) })
	r.submit()
	<-arrived
	r.stopped()
	r.until(crm.StatusUnknown)
}

// A connection that is not kept is opened anew for the next delivery, with all its handshakes.
func TestAConnectionToTheERPIsKeptForEachDeliveryAtOnce(t *testing.T) {
	t.Parallel()
	const workers = 100
	var opened atomic.Int64
	arrived, answer := make(chan struct{}), make(chan struct{})
	erp := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		arrived <- struct{}{}
		<-answer
		issuing(w, req)
	}))
	erp.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			opened.Add(1)
		}
	}
	erp.Start()
	t.Cleanup(erp.Close)
	cfg := goodCRMConfig()
	cfg.ERPURL, cfg.Workers = erp.URL, workers
	client, err := cfg.erpClient()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.CloseIdleConnections)
	for range 3 {
		var all sync.WaitGroup
		for i := range workers {
			all.Go(func() {
				if x := client.CreateInvoice(t.Context(), "token", fmt.Sprint("k-", i), []byte(orderBody)); !x.Complete {
					t.Errorf("call %d: %v", i, x.Err)
				}
			})
		}
		for range workers {
			<-arrived
		}
		for range workers {
			answer <- struct{}{}
		}
		all.Wait()
	}
	if n := opened.Load(); n != workers {
		t.Errorf("%d connections were opened for %d deliveries at once", n, workers)
	}
}

func TestCRMSideRefusesASchemaItDoesNotKnow(t *testing.T) {
	t.Parallel()
	cfg := goodCRMConfig()
	cfg.DatabaseURL = testdb.Empty(t)
	err := RunCRM(t.Context(), cfg, slog.New(slog.DiscardHandler), nil)
	if err == nil || !strings.Contains(fmt.Sprint(err), "crm-worker migrate up") {
		t.Errorf("error is %v", err)
	}
}
