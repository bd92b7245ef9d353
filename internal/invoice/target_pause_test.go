package invoice_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"invoicebridge/internal/audit"
	"invoicebridge/internal/invoice"
	"invoicebridge/internal/problem"
	"invoicebridge/internal/target"
	"invoicebridge/internal/target/einvoice"
	"invoicebridge/internal/target/targetsim"
)

var anna = audit.By{Actor: "anna", Reason: "maintenance", Via: audit.ViaConsole, Address: "192.0.2.1", RequestID: "r-1"}

func (b *bench) pauses() {
	b.t.Helper()
	if err := b.service.PauseTarget(b.t.Context(), regTenant, einvoice.Kind, anna); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) resumes() (queued int) {
	b.t.Helper()
	queued, err := b.service.ResumeTarget(b.t.Context(), regTenant, einvoice.Kind, anna)
	if err != nil {
		b.t.Fatal(err)
	}
	return queued
}

func (b *bench) refuses(err error, want problem.Type) {
	b.t.Helper()
	if !problem.Is(err, want) {
		b.t.Errorf("got %v, want problem %s", err, want)
	}
}

func TestAtAPausedTargetNoAttemptBeginsAndResumingGoesOnAtOnce(t *testing.T) {
	b := setupRegister(t, einvoice.Kind, keyed)
	b.pauses()
	b.issue() // invoices are still issued
	if next := b.try(); !next.Done {
		t.Errorf("its job is to come back at %v; it should wait for the resuming", next.At)
	}
	b.wantAttempts([]string{}...)
	b.want(state{Status: "pending"})
	b.queue.ids = nil
	if queued := b.resumes(); queued != 1 {
		t.Errorf("%d queued, want 1", queued)
	}
	if diff := cmp.Diff([]uuid.UUID{b.id}, b.queue.ids); diff != "" {
		t.Errorf("queued (-want +got)\n%s", diff)
	}
	b.try()
	b.wantAttempts("send accepted")
	b.wantEffects(1)
	if n := b.count(`audit_entries WHERE action IN ('target.pause', 'target.resume') AND subject = 'einvoice' AND actor = 'anna'
		AND reason = 'maintenance' AND via = 'console' AND address = '192.0.2.1' AND request_id = 'r-1'`); n != 2 {
		t.Errorf("%d audit entries, want 2", n)
	}
}

// The pause comes after the registration was read and before its attempt begins.
func TestAPauseThatMeetsAnAttemptJustBeginningStopsIt(t *testing.T) {
	b := setupRegister(t, einvoice.Kind, keyed)
	b.issue()
	var once sync.Once
	credential := b.opts.Credential
	b.opts.Credential = func(ref string) (target.Secret, error) { // read while an attempt is planned
		once.Do(b.pauses)
		return credential(ref)
	}
	b.reg = b.registrar()
	if next := b.try(); next.Done {
		t.Error("it is told to be done; it should be looked at again")
	}
	b.wantAttempts([]string{}...)
	if next := b.try(); !next.Done {
		t.Error("its job should wait for the resuming")
	}
	b.wantEffects(0)
}

func TestNeitherSweepNorReconciliationTouchesWhatWaitsAtAPausedTarget(t *testing.T) {
	b := setupRegister(t, einvoice.Kind, locatable)
	b.issue()
	b.script(targetsim.Held)
	b.try() // unknown
	b.pauses()
	b.exec("UPDATE registrations SET next_attempt_at = now() - interval '1 hour'")
	sweep := func() invoice.Swept {
		swept, err := invoice.NewSweeper(b.pool, b.queue, invoice.SweeperOptions{JobKind: "register", JobTimeout: time.Minute}).Sweep(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return swept
	}
	asked := len(b.sim.Requests(""))
	if swept := sweep(); swept != (invoice.Swept{}) {
		t.Errorf("swept while paused: %+v", swept)
	}
	if report := b.reconciles(); report.Compared != 0 || report.Unanswered != 1 {
		t.Errorf("reconciled while paused: %+v", report)
	}
	if n := len(b.sim.Requests("")); n != asked {
		t.Errorf("the target was asked %d times while paused", n-asked)
	}
	b.resumes()
	if swept := sweep(); swept.Enqueued != 1 {
		t.Errorf("swept once resumed: %+v", swept)
	}
}

func TestAPausedTargetSaysWhyWhatIsPressedIsNotAvailable(t *testing.T) {
	b := setupRegister(t, einvoice.Kind, keyed)
	b.issue()
	pause := func(id string, by audit.By) error { return b.service.PauseTarget(t.Context(), regTenant, id, by) }
	b.refuses(pause("nowhere", anna), problem.NotFound)
	b.refuses(pause(einvoice.Kind, audit.By{Actor: "anna"}), problem.MalformedRequest)
	b.refuses(b.service.PauseTarget(t.Context(), "other", einvoice.Kind, anna), problem.NotFound)
	_, err := b.service.ResumeTarget(t.Context(), regTenant, einvoice.Kind, anna)
	b.refuses(err, problem.WrongState)
	b.pauses()
	b.refuses(pause(einvoice.Kind, anna), problem.WrongState)
	b.refuses(b.service.ReplayRegistration(t.Context(), regTenant, b.id, anna), problem.WrongState)
	view, err := b.service.Target(t.Context(), regTenant, einvoice.Kind)
	if err != nil {
		t.Fatal(err)
	}
	if view.Pause == nil || view.Pause.By != "anna" || view.Pause.Reason != "maintenance" || view.Pending != 1 {
		t.Errorf("the target is told as %+v", view)
	}
	if states := view.Actions(); states[0].Available || states[0].Why == "" || !states[1].Available {
		t.Errorf("its actions are %+v", states)
	}
	if n := b.count("audit_entries WHERE action = 'target.pause'"); n != 1 {
		t.Errorf("%d pauses in the audit, want 1", n)
	}
}

// Two people press at once: one pauses, the other is told.
func TestTwoPausesAtOnceAreOne(t *testing.T) {
	b := setupRegister(t, einvoice.Kind, keyed)
	errs := make(chan error, 2)
	for range 2 {
		go func() { errs <- b.service.PauseTarget(context.Background(), regTenant, einvoice.Kind, anna) }()
	}
	first, second := <-errs, <-errs
	if (first == nil) == (second == nil) || !problem.Is(first, problem.WrongState) && !problem.Is(second, problem.WrongState) {
		t.Errorf("they were told %v and %v", first, second)
	}
	if n := b.count("audit_entries WHERE action = 'target.pause'"); n != 1 {
		t.Errorf("%d pauses in the audit, want 1", n)
	}
}

// found gives the divergences as a person sees them.
func (b *bench) found(f invoice.DivergenceFilter) []invoice.DivergenceView {
	b.t.Helper()
	page, err := b.service.SearchDivergences(b.t.Context(), regTenant, f, invoice.Walk{})
	if err != nil {
		b.t.Fatal(err)
	}
	return page.Items
}

func (b *bench) differs() {
	b.t.Helper()
	b.registered()
	b.plant("UPDATE registrations SET reference = 'REF-0'")
	b.reconciles()
}

func (b *bench) open() int64 {
	b.t.Helper()
	standing, err := b.reconciler().Standing(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	return standing.Open["status_differs"]
}

func TestAnAcceptedDivergenceStaysAcceptedWhenItIsFoundAgain(t *testing.T) {
	b := setupRegister(t, einvoice.Kind, locatable)
	b.differs()
	d := b.found(invoice.DivergenceFilter{State: invoice.DivergenceOpen})[0]
	if err := b.service.AcceptDivergence(t.Context(), regTenant, d.ID, anna); err != nil {
		t.Fatal(err)
	}
	b.reconciles()
	list := b.found(invoice.DivergenceFilter{})
	if len(list) != 1 || list[0].State() != invoice.DivergenceAccepted || list[0].DecidedBy != "anna" || !list[0].LastSeenAt.After(d.LastSeenAt) {
		t.Errorf("the divergences are %+v", list)
	}
	if n := b.open(); n != 0 {
		t.Errorf("%d count as open, want 0", n)
	}
	b.refuses(b.service.AcceptDivergence(t.Context(), regTenant, d.ID, anna), problem.WrongState)
}

func TestADivergenceClosedByHandOpensAnewWhenItIsFoundAgain(t *testing.T) {
	b := setupRegister(t, einvoice.Kind, locatable)
	b.differs()
	d := b.found(invoice.DivergenceFilter{})[0]
	if err := b.service.CloseDivergence(t.Context(), regTenant, d.ID, anna); err != nil {
		t.Fatal(err)
	}
	if n := b.open(); n != 0 {
		t.Errorf("%d count as open, want 0", n)
	}
	b.refuses(b.service.CloseDivergence(t.Context(), regTenant, d.ID, anna), problem.WrongState)
	b.refuses(b.service.AcceptDivergence(t.Context(), regTenant, d.ID, anna), problem.WrongState)
	b.reconciles()
	list := b.found(invoice.DivergenceFilter{})
	if len(list) != 2 || list[0].State() != invoice.DivergenceOpen || list[1].State() != invoice.DivergenceResolved {
		t.Errorf("the divergences are %+v", list)
	}
	if n := b.open(); n != 1 {
		t.Errorf("%d count as open, want 1", n)
	}
}

func TestDivergencesOfOtherTenantsAreNotThere(t *testing.T) {
	b := setupRegister(t, einvoice.Kind, locatable)
	b.differs()
	d := b.found(invoice.DivergenceFilter{})[0]
	b.refuses(b.service.CloseDivergence(t.Context(), "other", d.ID, anna), problem.NotFound)
	if _, err := b.service.GetDivergence(t.Context(), "other", d.ID); !problem.Is(err, problem.NotFound) {
		t.Errorf("it is told to another tenant: %v", err)
	}
}

// startQueue remembers the tenants whose reconciliation was to be gone on with.
type startQueue struct{ tenants []string }

func (q *startQueue) InsertReconciliation(_ context.Context, _ pgx.Tx, tenant string) error {
	q.tenants = append(q.tenants, tenant)
	return nil
}

func TestAReconciliationStartedByHandIsOneAndIsGoneOnWith(t *testing.T) {
	b := setupRegister(t, einvoice.Kind, locatable)
	b.registered()
	queue := &startQueue{}
	b.service = invoice.NewService(b.pool, invoice.Options{Registrations: b.queue, Reconciliations: queue})
	run, err := b.service.StartReconciliation(t.Context(), regTenant, anna)
	if err != nil {
		t.Fatal(err)
	}
	_, err = b.service.StartReconciliation(t.Context(), regTenant, anna)
	b.refuses(err, problem.WrongState)
	runs, err := b.service.Reconciliations(t.Context(), regTenant, 0)
	if err != nil || len(runs) != 1 || runs[0].ID != run.ID || runs[0].RequestedBy != "anna" || invoice.ReconcileAction(runs).Available {
		t.Errorf("the runs are %+v, %v", runs, err)
	}
	if report := b.reconciles(); report.Compared != 1 { // what the job does
		t.Errorf("the run compared %+v", report)
	}
	runs, err = b.service.Reconciliations(t.Context(), regTenant, 0)
	if err != nil || len(runs) != 1 || runs[0].FinishedAt == nil || !invoice.ReconcileAction(runs).Available {
		t.Errorf("the runs are %+v, %v", runs, err)
	}
	if diff := cmp.Diff([]string{regTenant}, queue.tenants); diff != "" {
		t.Errorf("jobs (-want +got)\n%s", diff)
	}
	if n := b.count("audit_entries WHERE action = 'reconciliation.start' AND subject = $1", run.ID.String()); n != 1 {
		t.Errorf("%d audit entries, want 1", n)
	}
}
