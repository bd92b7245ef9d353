package modeltest

import (
	"flag"
	"os"
	"testing"
	"time"

	"pgregory.net/rapid"

	"invoicebridge/internal/testdb"
)

// shortSequences: what goes wrong, goes wrong in a few steps. More sequences find more than longer ones.
const shortSequences = "12"

func TestMain(m *testing.M) {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "rapid.steps" })
	if !given {
		if err := flag.Set("rapid.steps", shortSequences); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

func TestWhateverHappensAnInvoiceIsRegisteredOnceOrIsUnknownAndShown(t *testing.T) {
	t.Parallel()
	pool := testdb.ERP(t)
	sequences := 0
	rapid.Check(t, func(rt *rapid.T) {
		if sequences++; sequences%100 == 0 {
			tidy(rt, pool, "tenants, targets, invoices, idempotency_records, registrations, registration_attempts, audit_entries")
		}
		w := newWorld(t, rt, pool)
		defer w.leave(rt)
		w.issue(rt)
		actions := w.actions()
		actions[""] = w.check
		rt.Repeat(actions)
		w.settle(rt)
		w.checkEnd(rt)
	})
}

// settle lets all that is left happen: scripts run out, late things come to pass, and workers go on.
func (w *world) settle(rt *rapid.T) {
	const least, most = 4, 100 // rounds; some scripts are long
	if w.paused {
		w.resume(rt)
	}
	for round := range most {
		open := false
		for _, id := range w.ids {
			if s := w.was[id]; !w.ended(s) || round < least && !s.final() {
				open = true
				w.attempt(rt, id)
			}
		}
		if !open {
			break
		}
		w.pass(rt, 7*time.Hour)
		w.check(rt)
	}
	w.pass(rt, 2*window)
	w.check(rt)
}
