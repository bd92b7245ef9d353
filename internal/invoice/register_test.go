package invoice_test

import (
	"bytes"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"invoicebridge/internal/target"
	"invoicebridge/internal/target/einvoice"
	"invoicebridge/internal/target/ledger"
	"invoicebridge/internal/target/targetsim"
)

// Q1 and Q2 of the collected faults, and what else a target does to a request: each ends with one effect, the right status,
// and, where it is a success, the target's reference.
func TestWhateverATargetDoesItHasOneEffectAndTheRightEnd(t *testing.T) {
	t.Parallel()
	const fine = "REG-000001"
	succeeded := state{Status: "succeeded", Reference: fine}
	for name, tc := range map[string]struct {
		kind    string
		can     target.Capabilities
		faults  []targetsim.Fault
		pauses  []time.Duration // after each attempt but the last
		want    state
		steps   []string
		effects int
	}{
		"accepted at once":   {einvoice.Kind, keyed, nil, nil, succeeded, []string{"send accepted"}, 1},
		"entered and posted": {ledger.Kind, locatable, nil, nil, succeeded, []string{"send accepted"}, 1},

		"answer lost, key covers it": {einvoice.Kind, keyed, []targetsim.Fault{targetsim.ResetAfter}, []time.Duration{0}, succeeded,
			[]string{"send lost", "send accepted"}, 1},
		"answer lost, key expired": {einvoice.Kind, keyed, []targetsim.Fault{targetsim.ResetAfter}, []time.Duration{window}, succeeded,
			[]string{"send lost", "locate landed"}, 1},
		"answer lost, key about to expire": {einvoice.Kind, keyed, []targetsim.Fault{targetsim.ResetAfter},
			[]time.Duration{window - time.Minute - 2*patience}, succeeded, []string{"send lost", "locate landed"}, 1},
		"half an answer, no keys": {einvoice.Kind, locatable, []targetsim.Fault{targetsim.HalfAnswer}, []time.Duration{0}, succeeded,
			[]string{"send lost", "locate landed"}, 1},
		"502, taken 30 min later, keyed": {einvoice.Kind, keyed, []targetsim.Fault{targetsim.AcceptLate}, []time.Duration{0, 31 * time.Minute},
			succeeded, []string{"send lost", "send wait", "send accepted"}, 1},
		"502, taken 30 min later, asked": {einvoice.Kind, locatable, []targetsim.Fault{targetsim.AcceptLate}, []time.Duration{0, 29 * time.Minute, 2 * time.Minute},
			succeeded, []string{"send lost", "locate absent", "locate absent", "locate landed"}, 1},
		"502, entered 30 min later": {ledger.Kind, locatable, []targetsim.Fault{targetsim.AcceptLate}, []time.Duration{0, 31 * time.Minute, 0},
			succeeded, []string{"send lost", "locate absent", "locate held", "send accepted"}, 1},
		"502, nothing done, settled": {ledger.Kind, locatable, []targetsim.Fault{targetsim.BadGateway}, []time.Duration{0, settle + time.Minute, 0},
			state{Status: "succeeded", Reference: fine}, []string{"send lost", "locate absent", "locate absent", "send accepted"}, 1},
		"late visibility": {ledger.Kind, locatable, []targetsim.Fault{targetsim.Hidden}, []time.Duration{0, 11 * time.Minute, 0},
			succeeded, []string{"send lost", "locate absent", "locate held", "send accepted"}, 1},
		"held for 12 h": {einvoice.Kind, keyed, []targetsim.Fault{targetsim.Held}, []time.Duration{time.Hour, time.Hour, 11 * time.Hour},
			succeeded, []string{"send held", "locate held", "locate held", "locate landed"}, 1},
		"error, then accepted": {einvoice.Kind, locatable, []targetsim.Fault{targetsim.Error}, []time.Duration{time.Hour, 12 * time.Hour},
			succeeded, []string{"send held", "locate held", "locate landed"}, 1},
		"held, then rejected": {einvoice.Kind, keyed, []targetsim.Fault{targetsim.RejectedLater}, []time.Duration{time.Hour, 12 * time.Hour},
			state{Status: "failed", Reason: "rejected"}, []string{"send held", "locate held", "locate rejected"}, 0},
		"asking in vain": {einvoice.Kind, locatable,
			[]targetsim.Fault{targetsim.ResetAfter, targetsim.LookupHTML404, targetsim.LookupError, targetsim.LookupNonsense}, []time.Duration{0, 3 * time.Hour, 0, 0},
			succeeded, []string{"send lost", "locate inconclusive", "locate inconclusive", "locate inconclusive", "locate landed"}, 1},
		"posting lost": {ledger.Kind, locatable, []targetsim.Fault{targetsim.PostLost}, []time.Duration{0},
			succeeded, []string{"send held", "send accepted"}, 1},
		"posting answered 502": {ledger.Kind, locatable, []targetsim.Fault{targetsim.PostBadGateway}, []time.Duration{0},
			succeeded, []string{"send held", "send accepted"}, 1},
		"posting refused for a while": {ledger.Kind, locatable, []targetsim.Fault{targetsim.PostReject}, []time.Duration{0},
			succeeded, []string{"send rejected", "send accepted"}, 1},

		"had that before, with our reference": {einvoice.Kind, keyed, []targetsim.Fault{targetsim.DuplicateOwn}, nil,
			succeeded, []string{"send already_registered"}, 1},
		"had that before, without one": {einvoice.Kind, keyed, []targetsim.Fault{targetsim.DuplicateBare}, []time.Duration{0},
			succeeded, []string{"send already_registered", "locate landed"}, 1},
		"had that entry before, without one": {ledger.Kind, locatable, []targetsim.Fault{targetsim.DuplicateBare}, []time.Duration{0, 0},
			succeeded, []string{"send already_registered", "locate held", "send accepted"}, 1},
		"had that before, but another's": {einvoice.Kind, keyed, []targetsim.Fault{targetsim.DuplicateForeign}, nil,
			state{Status: "failed", Reason: "foreign_invoice", Flagged: true}, []string{"send foreign"}, 1},
		"rejected": {einvoice.Kind, keyed, []targetsim.Fault{targetsim.Reject}, nil,
			state{Status: "failed", Reason: "rejected"}, []string{"send rejected"}, 0},
		"rejected in doubt": {einvoice.Kind, keyed, []targetsim.Fault{targetsim.ResetAfter, targetsim.Reject}, []time.Duration{0, 0},
			succeeded, []string{"send lost", "send rejected", "locate landed"}, 1},
		"with warnings": {einvoice.Kind, keyed, []targetsim.Fault{targetsim.Warnings}, nil, succeeded, []string{"send accepted"}, 1},

		"busy": {ledger.Kind, locatable, []targetsim.Fault{targetsim.Throttled, targetsim.Throttled}, []time.Duration{0, 0},
			succeeded, []string{"send wait", "send wait", "send accepted"}, 1},
		"not authorised": {ledger.Kind, locatable, []targetsim.Fault{targetsim.Unauthorised}, []time.Duration{0},
			succeeded, []string{"send not_authorised", "send accepted"}, 1},
		"a log-in page": {ledger.Kind, locatable, []targetsim.Fault{targetsim.HTML}, []time.Duration{2 * settle, 0},
			succeeded, []string{"send wrong_answer", "locate absent", "send accepted"}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			b := setupRegister(t, tc.kind, tc.can)
			b.opts.HeldTime = 100 * time.Hour
			b.opts.TotalTime = 100 * time.Hour
			b.reg = b.registrar()
			b.issue()
			b.script(tc.faults...)
			b.try()
			for _, pause := range tc.pauses {
				b.pass(pause)
				b.try()
			}
			b.wantAttempts(tc.steps...)
			b.want(tc.want)
			b.pass(13 * time.Hour) // what comes late has come
			b.wantEffects(tc.effects)
			if next := b.try(); !next.Done {
				t.Errorf("a finished registration goes on at %v", next.At)
			}
			b.wantAttempts(tc.steps...)
		})
	}
}

func TestAnAnswerThatNeverComesIsFoundByTheKey(t *testing.T) {
	b := setupRegister(t, einvoice.Kind, keyed)
	b.issue()
	b.script(targetsim.AcceptSilent)
	b.tryImpatiently()
	b.want(state{Status: "unknown", Reason: "no_answer"})
	b.try()
	b.want(state{Status: "succeeded", Reference: "REG-000001"})
	b.wantEffects(1)
}

func TestAnAnswerThatNeverComesIsAskedForWithoutAKey(t *testing.T) {
	b := setupRegister(t, einvoice.Kind, onlyAsked)
	b.issue()
	b.script(targetsim.AcceptSilent)
	b.tryImpatiently()
	b.want(state{Status: "unknown", Reason: "no_answer"})
	b.try()
	b.want(state{Status: "succeeded", Reference: "REG-000001"})
	b.wantAttempts("send lost", "locate landed")
	b.wantEffects(1)
}

func TestWarningsAndReasonsAreKeptInFull(t *testing.T) {
	b := setupRegister(t, einvoice.Kind, keyed)
	b.issue()
	b.script(targetsim.Warnings)
	b.try()
	if n := b.count("registrations WHERE warnings = ARRAY['buyer''s VAT id could not be verified', 'due date is on a Sunday']"); n != 1 {
		t.Error("the warnings are not kept")
	}

	b.issueAs("op-2", "SO-2")
	if err := b.sim.Script("op-2", targetsim.Reject); err != nil {
		t.Fatal(err)
	}
	b.scan(&b.id, "SELECT id FROM registrations WHERE key = 'op-2'")
	b.try()
	var detail string
	b.scan(&detail, "SELECT detail FROM registration_attempts WHERE registration_id = $1", b.id)
	want := "invalid_document: the document breaks 2 rules\n/customer/vat_id BR-CO-9 must begin with the country's prefix\n" +
		"/lines/0/vat_rate BR-S-5 must be greater than 0"
	if detail != want {
		t.Errorf("kept is\n%s\nwant\n%s", detail, want)
	}
}

func TestAnOperatorIsToldOfALongHoldOnceAndItIsNotSentAgain(t *testing.T) {
	b := setupRegister(t, einvoice.Kind, keyed)
	b.issue()
	b.script(targetsim.Held)
	b.try()
	b.wantFlags()
	for range 3 {
		b.pass(3 * time.Hour)
		b.try()
	}
	b.want(state{Status: "unknown", Reason: "held", Flagged: true})
	b.wantFlags("held")
	b.pass(4 * time.Hour)
	b.try()
	b.want(state{Status: "succeeded", Reference: "REG-000001"})
	if n := b.sendings(); n != 1 {
		t.Errorf("%d sendings, want 1", n)
	}
	b.wantFlags("held")
}

func TestAnOperatorIsToldOnceWhenTheTimeIsOver(t *testing.T) {
	b := setupRegister(t, ledger.Kind, locatable)
	b.issue()
	b.script(targetsim.Unauthorised, targetsim.Unauthorised, targetsim.Unauthorised)
	b.try()
	b.wantFlags()
	b.pass(25 * time.Hour)
	b.try()
	b.try()
	b.want(state{Status: "pending", Reason: "not_authorised", Flagged: true})
	b.wantFlags("not_authorised")
	b.try() // what is safe goes on
	b.want(state{Status: "succeeded", Reference: "REG-000001"})
	b.wantEffects(1)
}

func TestAnAbsenceThatProvesNothingIsNeverActedUpon(t *testing.T) {
	b := setupRegister(t, ledger.Kind, onlyAsked)
	b.issue()
	b.script(targetsim.BadGateway)
	b.try()
	for range 5 {
		b.pass(30 * time.Hour)
		b.try()
	}
	b.want(state{Status: "unknown", Reason: "absent", Flagged: true})
	b.wantFlags("absent")
	if n := b.sendings(); n != 1 {
		t.Errorf("%d sendings, want 1", n)
	}
}

func TestWhereNothingIsSafeItStaysUnknownWithOneFlag(t *testing.T) {
	for name, can := range map[string]target.Capabilities{"neither keyed nor locatable": neitherCaps, "the key has expired": onlyKeyed} {
		t.Run(name, func(t *testing.T) {
			b := setupRegister(t, einvoice.Kind, can)
			b.issue()
			b.script(targetsim.ResetAfter)
			b.try()
			b.pass(window)
			for range 3 {
				if next := b.try(); !next.Done {
					t.Errorf("goes on at %v", next.At)
				}
			}
			b.want(state{Status: "unknown", Reason: "nothing_is_safe", Flagged: true})
			b.wantFlags("nothing_is_safe")
			b.wantAttempts("send lost")
			b.wantEffects(1)
			if n := b.count("registrations WHERE status = 'unknown' AND next_attempt_at IS NOT NULL"); n != 1 {
				t.Error("it is not there any more")
			}
		})
	}
}

func TestWhoWasToldAlreadyIsNotToldAgainThatNothingIsSafe(t *testing.T) {
	b := setupRegister(t, einvoice.Kind, target.Capabilities{Keyed: true, KeyWindow: 2 * window})
	b.issue()
	b.script(targetsim.BadGateway, targetsim.BadGateway)
	b.try()
	b.pass(window + time.Hour)
	b.try()
	b.wantFlags("no_answer")
	b.pass(window)
	b.try()
	b.want(state{Status: "unknown", Reason: "nothing_is_safe", Flagged: true})
	b.wantFlags("no_answer")
	b.wantAttempts("send lost", "send lost")
}

func TestACredentialThatIsMissingSendsNothingAndIsNotKept(t *testing.T) {
	b := setupRegister(t, ledger.Kind, locatable)
	b.issue()
	opts := b.opts
	b.opts.Credential = func(ref string) (target.Secret, error) {
		return target.ResolveCredential(ref, func(string) string { return "" }, nil)
	}
	b.reg = b.registrar()
	b.try()
	b.want(state{Status: "pending", Reason: "not_authorised"})
	if n := b.count("registrations WHERE first_sent_at IS NULL AND last_sent_at IS NULL AND detail LIKE '%TARGET_TOKEN%'"); n != 1 {
		t.Error("it counts as sent, or the variable is not named")
	}
	b.opts = opts
	b.reg = b.registrar()
	b.try()
	b.want(state{Status: "succeeded", Reference: "REG-000001"})
}

// A flag comes only after a day, and until then all that the tenant issues would wait with nobody told.
func TestARefusedCredentialIsToldAtEachAttemptWithWhatToChange(t *testing.T) {
	b := setupRegister(t, einvoice.Kind, locatable)
	b.issue()
	var log bytes.Buffer
	b.opts.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelError}))
	good := b.opts.Credential
	secret, err := target.NewSecret("revoked"), error(nil)
	b.opts.Credential = func(string) (target.Secret, error) { return secret, err }
	b.reg = b.registrar()
	told := func(times int) {
		t.Helper()
		want := slices.Repeat([]string{regTenant + " " + einvoice.Kind}, times)
		if diff := cmp.Diff(want, b.flags.refused); diff != "" {
			t.Errorf("counted (-want +got)\n%s", diff)
		}
		if lines := strings.Count(log.String(), "\n"); lines != times {
			t.Errorf("%d errors, want %d:\n%s", lines, times, &log)
		}
		for _, part := range []string{"tenant=" + regTenant, "target=" + einvoice.Kind, "credential_ref=env:TARGET_TOKEN", "erp-api target set"} {
			if strings.Count(log.String(), part) != times {
				t.Errorf("%s is not told each time:\n%s", part, &log)
			}
		}
		if strings.Contains(log.String(), "revoked") {
			t.Errorf("the credential is in the log:\n%s", &log)
		}
	}
	b.try()
	told(1)
	b.try()
	told(2)
	secret, err = target.Secret{}, errors.New("TARGET_TOKEN is not set")
	b.try()
	told(3)
	b.want(state{Status: "pending", Reason: "not_authorised"})

	secret, err = good("")
	b.script(targetsim.ResetAfter)
	b.try()
	secret = target.NewSecret("revoked") // and now it is only asked
	b.try()
	told(4)
	secret, err = good("")
	b.try()
	told(4)
	b.want(state{Status: "succeeded", Reference: "REG-000001"})
	b.wantFlags()
}
