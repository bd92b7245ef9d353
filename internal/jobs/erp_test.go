package jobs

import (
	"context"
	"fmt"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	dto "github.com/prometheus/client_model/go"

	"invoicebridge/internal/audit"
	"invoicebridge/internal/backoff"
	"invoicebridge/internal/erpapi"
	"invoicebridge/internal/idempotency"
	"invoicebridge/internal/invoice"
	"invoicebridge/internal/target"
	"invoicebridge/internal/target/einvoice"
	"invoicebridge/internal/target/ledger"
	"invoicebridge/internal/target/targetsim"
	"invoicebridge/internal/testdb"
)

// erpBench is an ERP with its queue, and a gateway and a ledger of a simulator.
type erpBench struct {
	*bench
	sim      *targetsim.Sim
	queue    *ERPInserter
	service  *invoice.Service
	requests time.Duration // the time limit of one request
}

func setupERP(t *testing.T, rates map[targetsim.Fault]float64) *erpBench {
	t.Helper()
	t.Parallel()
	b := &erpBench{bench: &bench{t: t, pool: testdb.ERP(t)}, requests: 10 * time.Second}
	b.cfg = Config{Workers: 8, SweepInterval: time.Hour, SoftStopTimeout: 10 * time.Second}
	var err error
	if b.sim, err = targetsim.Open(targetsim.Config{Seed: 1, Rates: rates, Slow: time.Millisecond}); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(b.sim)
	t.Cleanup(func() {
		b.sim.EndWaiting()
		server.Close()
		if err := b.sim.Close(); err != nil {
			t.Error(err)
		}
	})
	if b.queue, err = NewERPInserter(b.pool, time.Minute, nil); err != nil {
		t.Fatal(err)
	}
	b.service = invoice.NewService(b.pool, invoice.Options{Registrations: b.queue})
	b.exec("INSERT INTO tenants (id, name) VALUES ($1, 'Acme')", testTenant)
	can := target.Capabilities{Keyed: true, KeyWindow: 24 * time.Hour, Locatable: true}
	b.target(server.URL, einvoice.Kind, can)
	// What the ledger may lose here has always been entered, so that nothing has to wait for a settle time.
	b.target(server.URL, ledger.Kind, target.Capabilities{Locatable: true})
	return b
}

func (b *erpBench) kinds() invoice.TargetKinds {
	return invoice.TargetKinds{LongestRequest: 2 * b.requests, Kinds: map[string]invoice.TargetKind{
		einvoice.Kind: {
			Open: func(base string, secret target.Secret) (invoice.Target, error) {
				return einvoice.New(einvoice.Config{BaseURL: base, Token: secret, Timeout: b.requests, Now: time.Now})
			},
			Check: einvoice.CheckCapabilities,
		},
		ledger.Kind: {
			Open: func(base string, secret target.Secret) (invoice.Target, error) {
				return ledger.New(ledger.Config{BaseURL: base, Token: secret, Timeout: b.requests, Now: time.Now})
			},
			Check: ledger.CheckCapabilities,
		},
	}}
}

func (b *erpBench) target(url, kind string, can target.Capabilities) {
	b.t.Helper()
	err := invoice.NewTargetAdmin(b.pool, b.kinds()).Set(context.Background(), invoice.TargetSettings{
		Tenant: testTenant, ID: kind, Kind: kind, BaseURL: url + "/" + kind, CredentialRef: "env:NONE", Can: can,
	}, false, audit.By{Actor: "test"})
	if err != nil {
		b.t.Fatal(err)
	}
}

// startERP starts a client; it stops with the test.
func (b *erpBench) startERP() {
	b.t.Helper()
	registrar := invoice.NewRegistrar(b.pool, invoice.RegistrarOptions{
		Kinds: b.kinds(), Worker: "test", Credential: func(string) (target.Secret, error) { return target.NewSecret("x"), nil },
		BackOff: backoff.BackOff{Base: time.Millisecond, Cap: time.Millisecond, Slow: time.Millisecond},
	})
	b.t.Cleanup(registrar.Close)
	client, err := NewERPClient(b.pool, ERPDeps{Registrar: registrar, Inserter: b.queue, Metrics: NewERPMetrics(b.pool, nil)}, b.cfg)
	if err != nil {
		b.t.Fatal(err)
	}
	b.run(client)
}

func (b *erpBench) issue(n int) {
	b.t.Helper()
	for i := range n {
		if r := b.service.Issue(context.Background(), []invoice.Command{b.command(i)})[0]; r.Err != nil {
			b.t.Fatal(r.Err)
		}
	}
}

func (b *erpBench) command(i int) invoice.Command {
	b.t.Helper()
	key, err := idempotency.ParseKey([]string{fmt.Sprintf("op-%d", i)})
	if err != nil {
		b.t.Fatal(err)
	}
	quantity, price, rate := erpapi.MustDecimal("2"), erpapi.MustDecimal("10.00"), erpapi.MustDecimal("19")
	return invoice.Command{Tenant: testTenant, Caller: "test", Key: key, Request: &erpapi.InvoiceRequest{
		Source: "crm-1", Order: fmt.Sprintf("SO-%d", i), Role: "final", Currency: "EUR", IssueDate: "2026-03-02",
		Customer: erpapi.Customer{Name: "A", Country: "DE"},
		Lines:    []erpapi.Line{{SKU: "P-1", Quantity: &quantity, UnitPrice: &price, VATRate: &rate, VATCategory: "S"}},
	}}
}

// waitRegistered waits until n registrations have succeeded and no job is left to run.
func (b *erpBench) waitRegistered(n int) {
	b.t.Helper()
	testdb.Await(b.t, fmt.Sprintf("%d registrations succeeded", n), func() bool {
		return b.count("registrations WHERE status = 'succeeded'") == n &&
			b.count("river_job WHERE kind = $1 AND state NOT IN ('completed', 'discarded', 'cancelled')", RegisterKind) == 0
	})
}

func TestInvoicesAreRegisteredOnceAtEachTargetByTwoClientsThroughAllFaults(t *testing.T) {
	b := setupERP(t, map[targetsim.Fault]float64{
		targetsim.ResetAfter: 0.2, targetsim.HalfAnswer: 0.1, targetsim.DuplicateBare: 0.1, targetsim.DuplicateOwn: 0.1, targetsim.Slow: 0.1,
		targetsim.PostLost: 0.2, targetsim.PostBadGateway: 0.2, targetsim.LookupError: 0.2, targetsim.LookupHTML404: 0.2,
	})
	b.startERP()
	b.startERP()
	b.issue(10)
	b.waitRegistered(20)
	if sum := b.sim.Effects(""); sum.Effects != 20 || sum.Duplicates != 0 {
		t.Errorf("%d effects, %d duplicates, want 20 and 0", sum.Effects, sum.Duplicates)
	}
	if n := b.count("registrations WHERE reference = '' OR finished_at IS NULL"); n != 0 {
		t.Errorf("%d registrations succeeded without a reference", n)
	}
}

func TestARollbackLeavesNoRegistrationAndNoJob(t *testing.T) {
	b := setupERP(t, nil)
	b.exec("CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'disk full' USING ERRCODE = '53100'; END $$")
	// At the very end: with the commit itself.
	b.exec("CREATE CONSTRAINT TRIGGER fail AFTER INSERT ON registrations DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION fail()")
	if r := b.service.Issue(context.Background(), []invoice.Command{b.command(0)})[0]; r.Err == nil {
		t.Error("issued all the same")
	}
	for _, table := range []string{"invoices", "registrations", "river_job"} {
		if n := b.count(table); n != 0 {
			t.Errorf("%d rows in %s", n, table)
		}
	}
}

func TestARegistrationWhoseJobIsLostOrWhoseWorkerDiedIsTakenUpByTheSweep(t *testing.T) {
	b := setupERP(t, nil)
	b.issue(3)
	b.exec("DELETE FROM river_job")
	b.exec("UPDATE registrations SET next_attempt_at = now() - interval '1 hour'")
	// One of them was being sent when its worker died, and its job still counts as running.
	b.exec(`UPDATE registrations SET status = 'processing', attempt = 1, next_attempt_at = NULL, lease_until = now() - interval '1 second',
		first_sent_at = now() - interval '2 minutes', last_sent_at = now() - interval '2 minutes', tried_since = now() - interval '2 minutes'
		WHERE id = (SELECT id FROM registrations WHERE target_id = 'einvoice' LIMIT 1)`)
	b.exec("INSERT INTO registration_attempts (registration_id, number, action, worker) SELECT id, 1, 'send', 'dead' FROM registrations WHERE status = 'processing'")
	b.startERP()
	b.waitRegistered(6)
	if n := b.count("registration_attempts WHERE worker = 'dead' AND outcome = 'overtaken' AND finished_at IS NOT NULL"); n != 1 {
		t.Errorf("%d attempts were overtaken, want 1", n)
	}
	if sum := b.sim.Effects(""); sum.Effects != 6 || sum.Duplicates != 0 {
		t.Errorf("%d effects, %d duplicates, want 6 and 0", sum.Effects, sum.Duplicates)
	}
}

// Reconciliation asks a target between two attempts; what it hears may put the next one forward.
func TestARegistrationThatIsDueLongBeforeItsJobIsTakenUpByTheSweep(t *testing.T) {
	b := setupERP(t, nil)
	b.issue(1)
	b.exec("UPDATE river_job SET state = 'scheduled', scheduled_at = now() + interval '1 hour'")
	b.exec("UPDATE registrations SET next_attempt_at = now() - interval '1 hour'")
	b.startERP()
	testdb.Await(b.t, "both are registered", func() bool { return b.count("registrations WHERE status = 'succeeded'") == 2 })
}

func TestAQueuedRegistrationIsKnownAsSuchOnlyWhileAJobIsAboutToWorkOnIt(t *testing.T) {
	b := setupERP(t, nil)
	b.issue(1)
	var id uuid.UUID
	b.scan(&id, "SELECT id FROM registrations LIMIT 1")
	for _, tc := range []struct {
		change string
		want   bool
	}{
		{"state = 'available'", true},
		{"state = 'scheduled', scheduled_at = now() + interval '1 hour'", false},
		{"state = 'running', attempted_at = now()", true},
		{"state = 'running', attempted_at = now() - interval '1 day'", false}, // of a client that died
		{"state = 'completed', finalized_at = now()", false},
	} {
		b.exec("UPDATE river_job SET " + tc.change)
		err := pgx.BeginFunc(context.Background(), b.pool, func(tx pgx.Tx) error {
			got, err := b.queue.RegistrationIsQueued(context.Background(), tx, id)
			if got != tc.want {
				t.Errorf("with %s queued is %t", tc.change, got)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestMetricsTellThatATargetTakesNoCredentialAndHowManyInvoicesGoTogether(t *testing.T) {
	b := setupERP(t, nil)
	m := NewERPMetrics(b.pool, nil)
	wantFigures(t, gather(t, m), map[string]float64{"erp_target_not_authorised_total": 0})
	m.TargetNotAuthorised("acme", "gateway")
	m.TargetNotAuthorised("other", "gateway")
	m.Committed(3)
	wantFigures(t, gather(t, m), map[string]float64{"erp_target_not_authorised_total": 2})
	var group dto.Metric
	if err := m.groups.Write(&group); err != nil {
		t.Fatal(err)
	}
	if h := group.GetHistogram(); h.GetSampleCount() != 1 || h.GetSampleSum() != 3 {
		t.Errorf("one group of three invoices is told as %v", h)
	}
}
