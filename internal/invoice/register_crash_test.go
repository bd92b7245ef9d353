package invoice_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"invoicebridge/internal/audit"
	"invoicebridge/internal/invoice"
	"invoicebridge/internal/target/einvoice"
	"invoicebridge/internal/target/ledger"
	"invoicebridge/internal/target/targetsim"
)

// die makes an attempt whose worker ends at once, as by kill -9, before or after its request.
func (b *bench) die(before, after func()) {
	b.t.Helper()
	r := b.hookedRegistrar(before, after)
	var ended sync.WaitGroup
	ended.Go(func() { _, _ = r.Register(context.Background(), b.id, nil) })
	ended.Wait()
	b.want(state{Status: "processing"})
}

func (b *bench) sweep() invoice.Swept {
	b.t.Helper()
	swept, err := invoice.NewSweeper(b.pool, b.queue, invoice.SweeperOptions{JobKind: "register_invoice", JobTimeout: time.Minute}).Sweep(context.Background())
	if err != nil {
		b.t.Fatal(err)
	}
	return swept
}

func TestAWorkerThatDiesAfterItsRequestIsFoundByTheSweepAndTheTargetIsAsked(t *testing.T) {
	b := setupRegister(t, einvoice.Kind, locatable)
	b.issue()
	b.die(nil, runtime.Goexit)
	if swept := b.sweep(); swept != (invoice.Swept{}) {
		t.Errorf("a live attempt was swept: %+v", swept)
	}
	if next := b.try(); next.Done || next.At.Before(time.Now()) {
		t.Errorf("a live attempt was overtaken: %+v", next)
	}
	b.queue.ids = nil
	b.pass(time.Minute)
	if swept := b.sweep(); swept.Overtaken != 1 || len(b.queue.ids) != 1 || b.queue.ids[0] != b.id {
		t.Fatalf("swept %+v, enqueued %v", swept, b.queue.ids)
	}
	b.want(state{Status: "unknown", Reason: "worker_died"})
	if swept := b.sweep(); swept != (invoice.Swept{}) {
		t.Errorf("a second sweep finds %+v", swept)
	}
	b.try()
	b.want(state{Status: "succeeded", Reference: "REG-000001"})
	b.wantAttempts("send overtaken", "locate landed")
	b.wantEffects(1)
}

func TestAWorkerThatDiesBeforeItsRequestLeavesADoubtThatOnlyTheTargetRemoves(t *testing.T) {
	b := setupRegister(t, ledger.Kind, locatable)
	b.issue()
	b.die(runtime.Goexit, nil)
	b.pass(time.Minute)
	b.try() // finds it without a sweep
	b.want(state{Status: "unknown", Reason: "absent"})
	b.pass(settle)
	b.try()
	b.want(state{Status: "pending", Reason: "proven_absent"})
	b.try()
	b.want(state{Status: "succeeded", Reference: "REG-000001"})
	b.wantAttempts("send overtaken", "locate absent", "locate absent", "send accepted")
	b.wantEffects(1)
}

func TestAWorkerThatDiesWhileItAsksLeavesWhatIsKnown(t *testing.T) {
	b := setupRegister(t, einvoice.Kind, locatable)
	b.issue()
	b.script(targetsim.ResetAfter)
	b.try()
	r := b.hookedRegistrar(runtime.Goexit, nil)
	var ended sync.WaitGroup
	ended.Go(func() { _, _ = r.Register(context.Background(), b.id, nil) })
	ended.Wait()
	b.pass(time.Minute)
	b.try()
	b.want(state{Status: "succeeded", Reference: "REG-000001"})
	b.wantAttempts("send lost", "locate overtaken", "locate landed")
	b.wantEffects(1)
}

func TestAnOvertakenAttemptWritesNothing(t *testing.T) {
	b := setupRegister(t, einvoice.Kind, keyed)
	b.issue()
	first := true
	slow := b.hookedRegistrar(nil, func() {
		if !first {
			return
		}
		first = false
		b.exec("UPDATE registrations SET lease_until = now() - interval '1 second'")
		b.try() // somebody else
	})
	next, err := slow.Register(context.Background(), b.id, func(context.Context, pgx.Tx) error {
		t.Error("an overtaken attempt completes its job")
		return nil
	})
	if err != nil || !next.Done {
		t.Errorf("got %+v, %v", next, err)
	}
	b.want(state{Status: "succeeded", Reference: "REG-000001"})
	b.wantAttempts("send overtaken", "send accepted")
	b.wantEffects(1)
}

func TestAnAttemptThatShowsSignsOfLifeIsNotOvertakenHoweverLongItsCallTakes(t *testing.T) {
	b := setupRegister(t, einvoice.Kind, keyed)
	b.issue()
	b.opts.Lease = 2 * time.Second
	slow := b.hookedRegistrar(func() {
		var began time.Time
		b.scan(&began, "SELECT lease_until FROM registrations")
		deadline := time.After(patience)
		for extended := began; !extended.After(began); {
			select {
			case <-deadline:
				t.Error("no sign of life")
				return
			case <-time.After(10 * time.Millisecond):
			}
			b.scan(&extended, "SELECT lease_until FROM registrations")
		}
	}, nil)
	if _, err := slow.Register(context.Background(), b.id, nil); err != nil {
		t.Fatal(err)
	}
	b.want(state{Status: "succeeded", Reference: "REG-000001"})
	b.wantAttempts("send accepted")
}

func TestNoTransactionIsOpenDuringACall(t *testing.T) {
	b := setupRegister(t, ledger.Kind, locatable)
	b.issue()
	asked := 0
	r := b.hookedRegistrar(func() {
		asked++
		n := b.count("pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() AND xact_start IS NOT NULL")
		if n != 0 {
			t.Errorf("%d transactions are open during the call", n)
		}
		if n := b.count("registration_attempts WHERE outcome = 'sent'"); n != 1 {
			t.Errorf("%d attempts are on record, want the one that is about to be made", n)
		}
	}, nil)
	if _, err := r.Register(context.Background(), b.id, nil); err != nil || asked != 1 {
		t.Fatalf("%d calls, %v", asked, err)
	}
}

// P4: invoice, registrations and jobs are one commit.
func TestWhatIsNotCommittedWithItsJobIsNotIssued(t *testing.T) {
	b := setupRegister(t, einvoice.Kind, keyed)
	b.target("books", ledger.Kind, locatable)
	b.queue.err = errors.New("the queue is broken")
	if r := b.tryIssue(regKey, "SO-1"); r.Err == nil {
		t.Error("issued without its job")
	}
	if b.count("invoices") != 0 || b.count("registrations") != 0 || b.count("idempotency_records") != 0 {
		t.Error("a part of it is there")
	}
	b.queue.err = nil
	b.issueAs(regKey, "SO-1")
	b.issueAs(regKey, "SO-1") // a replay owes nothing more
	if n := b.count("registrations WHERE status = 'pending' AND key = $1 AND attempt = 0", regKey); n != 2 || len(b.queue.ids) != 2 {
		t.Errorf("%d registrations, %d jobs, want 2 of each", n, len(b.queue.ids))
	}
	b.exec("UPDATE targets SET disabled_at = now() WHERE id = 'books'")
	b.issueAs("op-2", "SO-2")
	if n := b.count("registrations WHERE key = 'op-2'"); n != 1 {
		t.Errorf("%d registrations, want one: the other target is disabled", n)
	}
}

func TestTenRegistrationsUnderTwoWorkersHaveOneEffectEach(t *testing.T) {
	b := setupRegister(t, ledger.Kind, locatable)
	for i := range 10 {
		b.issueAs(fmt.Sprintf("op-%d", i), fmt.Sprintf("SO-%d", i))
	}
	if err := b.sim.Script(targetsim.AnyReference, targetsim.ResetAfter, targetsim.HalfAnswer, targetsim.PostLost, targetsim.Throttled); err != nil {
		t.Fatal(err)
	}
	var workers sync.WaitGroup
	for range 2 {
		r := b.registrar()
		for _, id := range b.queue.ids {
			workers.Go(func() { b.work(r, id) })
		}
	}
	workers.Wait()
	if n := b.count("registrations WHERE status = 'succeeded'"); n != 10 {
		t.Errorf("%d succeeded, want 10", n)
	}
	if sum := b.sim.Effects(""); sum.Effects != 10 || sum.Duplicates != 0 {
		t.Errorf("%d effects, %d duplicates, want 10 and 0", sum.Effects, sum.Duplicates)
	}
}

// work makes attempts until nothing is left to do, as a job does that does not wait.
func (b *bench) work(r *invoice.Registrar, id uuid.UUID) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for {
		next, err := r.Register(ctx, id, nil)
		if err != nil {
			b.t.Errorf("register: %v", err)
			return
		}
		if next.Done {
			return
		}
		b.exec("UPDATE registrations SET next_attempt_at = now() WHERE id = $1 AND next_attempt_at > now()", id)
	}
}

func TestSucceededIsLeftByNoPath(t *testing.T) {
	b := setupRegister(t, einvoice.Kind, keyed)
	b.issue()
	b.try()
	done := state{Status: "succeeded", Reference: "REG-000001"}
	b.want(done)
	if next := b.try(); !next.Done {
		t.Error("it goes on")
	}
	by := audit.By{Actor: "a", Reason: "r"}
	if err := b.service.ReplayRegistration(context.Background(), regTenant, b.id, by); err == nil {
		t.Error("it is tried again")
	}
	resolution := invoice.Resolution{Status: invoice.RegistrationFailed, Evidence: "e"}
	if err := b.service.ResolveRegistration(context.Background(), regTenant, b.id, resolution, by); err == nil {
		t.Error("it is settled otherwise")
	}
	b.pass(1000 * time.Hour)
	if swept := b.sweep(); swept != (invoice.Swept{}) {
		t.Errorf("it is swept: %+v", swept)
	}
	if _, err := b.pool.Exec(context.Background(), "UPDATE registrations SET status = 'unknown', next_attempt_at = now(), finished_at = NULL"); err == nil {
		t.Error("the database lets it go")
	}
	b.want(done)
}

func TestAPersonAndAnAttemptNeverBothSettle(t *testing.T) {
	b := setupRegister(t, einvoice.Kind, locatable)
	b.issue()
	b.script(targetsim.ResetAfter)
	b.try()
	by, resolution := audit.By{Actor: "a", Reason: "r"}, invoice.Resolution{Status: invoice.RegistrationFailed, Evidence: "e"}
	r := b.hookedRegistrar(func() {
		if err := b.service.ResolveRegistration(context.Background(), regTenant, b.id, resolution, by); err == nil {
			t.Error("settled by hand while it was being asked")
		}
		if err := b.service.ReplayRegistration(context.Background(), regTenant, b.id, by); err == nil {
			t.Error("replayed while it was being asked")
		}
	}, nil)
	if _, err := r.Register(context.Background(), b.id, nil); err != nil {
		t.Fatal(err)
	}
	b.want(state{Status: "succeeded", Reference: "REG-000001"})
}

func TestReplayTakesTheFlagOffAndChangesNoRule(t *testing.T) {
	b := setupRegister(t, ledger.Kind, onlyAsked)
	b.issue()
	b.script(targetsim.BadGateway)
	b.try()
	b.pass(30 * time.Hour)
	b.try()
	b.wantFlags("absent")
	b.queue.ids = nil
	if err := b.service.ReplayRegistration(context.Background(), regTenant, b.id, audit.By{Actor: "a", Reason: "r"}); err != nil {
		t.Fatal(err)
	}
	if len(b.queue.ids) != 1 {
		t.Errorf("%d jobs, want 1", len(b.queue.ids))
	}
	b.try()
	b.want(state{Status: "unknown", Reason: "absent"})
	b.wantAttempts("send lost", "locate absent", "locate absent")
	b.pass(30 * time.Hour)
	b.try()
	b.wantFlags("absent", "absent") // told anew, once
	if n := b.sendings(); n != 1 {
		t.Errorf("%d sendings, want 1", n)
	}
}
