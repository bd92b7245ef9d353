package invoice_test

import (
	"testing"
	"time"

	"invoicebridge/internal/invoice"
	"invoicebridge/internal/target/einvoice"
)

// Who is told before the commit finds nothing, and looks again only after a while.
func TestTheWorkersAreToldOfRegistrationsAfterTheirCommit(t *testing.T) {
	b := setupRegister(t, einvoice.Kind, keyed)
	step := func(what string, tellings int, committed string, do func()) {
		t.Helper()
		told := 0
		b.queue.woken = func() {
			told++
			if b.count(committed) == 0 {
				t.Errorf("%s: the workers are told before the commit", what)
			}
		}
		do()
		if told != tellings {
			t.Errorf("%s: the workers are told %d times, want %d", what, told, tellings)
		}
	}
	step("an invoice", 1, "registrations", b.issue)
	step("the same again", 0, "registrations", b.issue)
	step("a pause", 0, "registrations", b.pauses)
	step("the target resumed", 1, "audit_entries WHERE action = 'target.resume'", func() { b.resumes() })
	step("a replay", 1, "audit_entries WHERE action = 'registration.replay'", func() {
		if err := b.service.ReplayRegistration(t.Context(), regTenant, b.id, anna); err != nil {
			t.Error(err)
		}
	})
	b.exec("UPDATE registrations SET next_attempt_at = now() - interval '1 hour'")
	sweeper := invoice.NewSweeper(b.pool, b.queue, invoice.SweeperOptions{JobKind: "register", JobTimeout: time.Minute})
	sweep := func() {
		if _, err := sweeper.Sweep(t.Context()); err != nil {
			t.Error(err)
		}
	}
	step("a sweep that finds one", 1, "registrations", sweep)
	b.exec("UPDATE registrations SET next_attempt_at = now()")
	step("a sweep that finds none", 0, "registrations", sweep)
}
