package app_test

import (
	"bytes"
	"context"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"invoicebridge/internal/app"
	"invoicebridge/internal/audit"
	"invoicebridge/internal/backoff"
	"invoicebridge/internal/erpapi"
	"invoicebridge/internal/idempotency"
	"invoicebridge/internal/invoice"
	"invoicebridge/internal/target"
	"invoicebridge/internal/target/targetsim"
	"invoicebridge/internal/testdb"
)

func TestERPRefusesToStartWithATargetWhoseAbsenceItWouldBelieveTooEarly(t *testing.T) {
	t.Parallel()
	pool := testdb.ERP(t)
	setTarget(t, pool, "https://gateway.example", "env:GATEWAY_TOKEN", 10*time.Second)
	err := app.RunERP(t.Context(), app.ERPConfig{
		Listen: "127.0.0.1:0", DatabaseURL: testdb.DSN(t, pool), Registering: app.RegisterConfig{TargetTimeout: 20 * time.Second},
	}, slog.New(slog.DiscardHandler), func(string) { t.Error("it serves") })
	for _, want := range []string{"ERP_TARGET_TIMEOUT", "target gw of tenant acme", "--absent-after"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not name %s", err, want)
		}
	}
}

func setTarget(t *testing.T, pool *pgxpool.Pool, url, credential string, absentAfter time.Duration) {
	t.Helper()
	if _, err := pool.Exec(t.Context(), "INSERT INTO tenants (id, name) VALUES ('acme', 'Acme') ON CONFLICT DO NOTHING"); err != nil {
		t.Fatal(err)
	}
	err := invoice.NewTargetAdmin(pool, app.TargetKinds(time.Second)).Set(t.Context(), invoice.TargetSettings{
		Tenant: "acme", ID: "gw", Kind: "einvoice", BaseURL: url, CredentialRef: credential,
		Can: target.Capabilities{Locatable: true, AbsenceAuthoritative: true, SettleTime: absentAfter},
	}, false, audit.By{Actor: "test"})
	if err != nil {
		t.Fatal(err)
	}
}

func TestERPTellsAtStartWhichTargetsCredentialIsMissing(t *testing.T) {
	t.Parallel()
	pool := testdb.ERP(t)
	setTarget(t, pool, "https://gateway.example", "env:NO_SUCH_GATEWAY_TOKEN", time.Hour)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var out bytes.Buffer
	err := app.RunERP(ctx, app.ERPConfig{Listen: "127.0.0.1:0", DatabaseURL: testdb.DSN(t, pool)},
		slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelError})), func(string) { stop() })
	if err != nil {
		t.Fatalf("it serves the others all the same: %v", err)
	}
	for _, want := range []string{"target gw of tenant acme", "NO_SUCH_GATEWAY_TOKEN"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q does not name %s", out.String(), want)
		}
	}
}

// A registration is cut off by the stop: the next process asks what became of it.
func TestStopInterruptsARegistrationAndTheNextProcessFindsItsEffect(t *testing.T) {
	t.Parallel()
	sim, err := targetsim.Open(targetsim.Config{Token: "hush"})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(sim)
	t.Cleanup(func() { sim.EndWaiting(); server.Close() })
	if err := sim.Script("op-1", targetsim.AcceptSilent); err != nil {
		t.Fatal(err)
	}
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("hush\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	pool := testdb.ERP(t)
	setTarget(t, pool, server.URL+"/einvoice", "file:"+token, time.Hour)
	issueOne(t, pool)

	stop := startERP(t, pool)
	waitFor(t, "the request has arrived", func() bool { return len(sim.Requests("op-1")) == 1 })
	stop()
	var status, reason string
	if err := pool.QueryRow(t.Context(), "SELECT status, reason FROM registrations").Scan(&status, &reason); err != nil || status != "unknown" {
		t.Fatalf("it is %s (%s), %v, want unknown", status, reason, err)
	}

	defer startERP(t, pool)()
	waitFor(t, "it is registered", func() bool {
		var n int
		err := pool.QueryRow(t.Context(), "SELECT count(*) FROM registrations WHERE status = 'succeeded' AND reference = 'REG-000001'").Scan(&n)
		return err == nil && n == 1
	})
	if n := sim.Count("op-1"); n != 1 {
		t.Errorf("%d effects, want 1", n)
	}
}

// issueOne issues an invoice whose registration no job belongs to yet: the sweep finds it.
func issueOne(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	key, err := idempotency.ParseKey([]string{"op-1"})
	if err != nil {
		t.Fatal(err)
	}
	request, err := erpapi.DecodeInvoiceRequest([]byte(`{"source":"crm-1","order":"SO-1","role":"final","currency":"EUR","issue_date":"2026-03-02",
		"customer":{"name":"A","country":"DE"},"lines":[{"sku":"P-1","quantity":"2","unit_price":"10.00","vat_rate":"19","vat_category":"S"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	cmd := invoice.Command{Tenant: "acme", Caller: "test", Key: key, Request: request}
	if r := invoice.NewService(pool, invoice.Options{}).Issue(t.Context(), []invoice.Command{cmd})[0]; r.Err != nil {
		t.Fatal(r.Err)
	}
	if _, err := pool.Exec(t.Context(), "UPDATE registrations SET next_attempt_at = now() - interval '1 hour'"); err != nil {
		t.Fatal(err)
	}
}

// startERP starts the service. The function stops it gracefully.
func startERP(t *testing.T, pool *pgxpool.Pool) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ready, ended := make(chan string, 1), make(chan error, 1)
	cfg := app.ERPConfig{
		Listen: "127.0.0.1:0", DatabaseURL: testdb.DSN(t, pool), ShutdownTimeout: 5 * time.Second,
		Registering: app.RegisterConfig{SweepInterval: time.Second, BackOff: backoff.BackOff{Base: time.Millisecond, Cap: time.Millisecond, Slow: time.Millisecond}},
	}
	go func() {
		ended <- app.RunERP(ctx, cfg, slog.New(slog.DiscardHandler), func(addr string) { ready <- addr })
	}()
	select {
	case <-ready:
	case err := <-ended:
		t.Fatalf("it does not start: %v", err)
	}
	return func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("a stop is no error: %v", err)
		}
	}
}

func waitFor(t *testing.T, what string, condition func() bool) {
	t.Helper()
	deadline := time.After(time.Minute)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !condition() {
		select {
		case <-deadline:
			t.Fatalf("waited in vain: %s", what)
		case <-tick.C:
		}
	}
}
