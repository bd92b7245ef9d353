package invoice_test

import (
	"testing"
	"time"

	"invoicebridge/internal/invoice"
	"invoicebridge/internal/target"
	"invoicebridge/internal/target/einvoice"
	"invoicebridge/internal/target/ledger"
	"invoicebridge/internal/target/targetsim"
)

// A worker that is suspended between planning and recording its attempt must not send under a key that has expired
// meanwhile.
func TestARepeatPlannedWithinTheKeysWindowIsNotSentAfterIt(t *testing.T) {
	b := setupRegister(t, einvoice.Kind, keyed)
	b.issue()
	b.script(targetsim.ResetAfter)
	b.try()
	b.want(state{Status: "unknown", Reason: "no_answer"})

	opts := b.opts
	opts.Credential = func(string) (target.Secret, error) {
		b.pass(window + time.Hour)
		return target.NewSecret(regToken), nil
	}
	slow := invoice.NewRegistrar(b.pool, opts)
	t.Cleanup(slow.Close)
	if next, err := slow.Register(t.Context(), b.id, nil); err != nil || next.Done {
		t.Fatalf("got %+v, %v; want to be called again", next, err)
	}
	b.wantAttempts("send lost")

	b.try()
	b.want(state{Status: "succeeded", Reference: "REG-000001"})
	b.wantAttempts("send lost", "locate landed")
	b.wantEffects(1)
}

// A settle time that was set for another, shorter time limit of requests than the service has.
func TestAnAbsenceIsNeverBelievedBeforeTheLongestRequestIsOver(t *testing.T) {
	b := setupRegister(t, ledger.Kind, locatable)
	b.exec("UPDATE targets SET absent_after_seconds = 1")
	b.issue()
	b.script(targetsim.ResetBefore)
	b.try()
	b.pass(patience) // the longest request is twice that
	b.try()
	b.want(state{Status: "unknown", Reason: "absent"})
	b.wantEffects(0)
	b.pass(2 * patience)
	b.try()
	b.want(state{Status: "pending", Reason: "proven_absent"})
}
