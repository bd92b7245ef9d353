package invoice

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"invoicebridge/internal/target"
)

func TestPlan(t *testing.T) {
	t.Parallel()
	const longest, window = time.Minute, 24 * time.Hour
	keyed := target.Capabilities{Keyed: true, KeyWindow: window, Locatable: true}
	onlyKeyed := target.Capabilities{Keyed: true, KeyWindow: window}
	asks := target.Capabilities{Locatable: true}
	lastSafe := window - longest - keyMargin - 1
	for name, tc := range map[string]struct {
		s    standing
		want action
	}{
		"nothing sent":                          {standing{Status: RegistrationPending}, actSend},
		"nothing sent, key used up long ago":    {standing{Status: RegistrationPending, Can: keyed, FirstSent: 100 * window}, actSend},
		"in doubt, key covers":                  {standing{Status: RegistrationUnknown, Can: keyed, FirstSent: lastSafe}, actSend},
		"in doubt, key may expire meanwhile":    {standing{Status: RegistrationUnknown, Can: keyed, FirstSent: lastSafe + 1}, actLocate},
		"in doubt, key expired":                 {standing{Status: RegistrationUnknown, Can: keyed, FirstSent: window}, actLocate},
		"in doubt, key expired, can't be asked": {standing{Status: RegistrationUnknown, Can: onlyKeyed, FirstSent: window}, actNone},
		"in doubt, knows no keys":               {standing{Status: RegistrationUnknown, Can: asks}, actLocate},
		"in doubt, neither":                     {standing{Status: RegistrationUnknown}, actNone},
		"claimed, key covers":                   {standing{Status: RegistrationUnknown, Can: keyed, Claimed: true}, actLocate},
		"claimed, can't be asked":               {standing{Status: RegistrationUnknown, Can: onlyKeyed, Claimed: true}, actNone},
		"refused in doubt, key covers":          {standing{Status: RegistrationUnknown, Can: keyed, Refused: true}, actLocate},
		"begun at the target":                   {standing{Status: RegistrationUnknown, Can: asks, Claimed: true, Known: "entry-1"}, actResume},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tc.s.LongestRequest = longest
			if got := plan(tc.s); got != tc.want {
				t.Errorf("plan is %s, want %s", got, tc.want)
			}
		})
	}
}

func TestDecideSent(t *testing.T) {
	t.Parallel()
	sure, doubt, resumed := asked{Action: actSend}, asked{Action: actSend, Doubt: true}, asked{Action: actResume, Doubt: true, Known: "e-1", Claimed: true}
	no := func(o target.Outcome) target.Sent { return target.Sent{Outcome: o, NotApplied: true, Detail: "d"} }
	open := func(o target.Outcome) target.Sent { return target.Sent{Outcome: o, Detail: "d"} }
	v := func(o registrationOutcome, s RegistrationStatus, p pace, r RegistrationReason) verdict {
		return verdict{Outcome: o, Status: s, Pace: p, Reason: r, Detail: "d"}
	}
	const pending, unknown, failed = RegistrationPending, RegistrationUnknown, RegistrationFailed
	with := func(v verdict, change func(*verdict)) verdict { change(&v); return v }
	attention := func(v *verdict) { v.Attention = true }
	for name, tc := range map[string]struct {
		a    asked
		s    target.Sent
		want verdict
	}{
		"accepted": {
			doubt, target.Sent{Outcome: target.Accepted, Reference: "R", Warnings: []string{"w"}},
			verdict{Outcome: outcomeAccepted, Status: RegistrationSucceeded, Pace: paceDone, Reference: "R", Warnings: []string{"w"}},
		},
		"accepted without a reference": {sure, open(target.Accepted), v(outcomeAlreadyRegistered, unknown, paceSoon, ReasonClaimed)},
		"had it, ours": {
			sure, target.Sent{Outcome: target.AlreadyRegistered, Reference: "R"},
			verdict{Outcome: outcomeAlreadyRegistered, Status: RegistrationSucceeded, Pace: paceDone, Reference: "R"},
		},
		"had it, says not whose": {sure, open(target.AlreadyRegistered), v(outcomeAlreadyRegistered, unknown, paceSoon, ReasonClaimed)},
		"another's": {
			sure, target.Sent{Outcome: target.Foreign, ForeignInvoice: "INV-9", Detail: "d"},
			verdict{
				Outcome: outcomeForeign, Status: failed, Pace: paceDone, Reason: ReasonForeign, Attention: true,
				Detail: "the target answers with another invoice, INV-9: d",
			},
		},
		"another's, in doubt": {
			doubt, target.Sent{Outcome: target.Foreign, Detail: "d"},
			verdict{
				Outcome: outcomeForeign, Status: unknown, Pace: paceSlow, Reason: ReasonForeign, Attention: true,
				Detail: "the target answers with another invoice, which it does not name: d",
			},
		},
		"held": {sure, target.Sent{Outcome: target.Held, ID: "h", Detail: "d"}, with(v(outcomeHeld, unknown, paceGrow, ReasonHeld), func(v *verdict) { v.Held = true })},
		"held, to be finished": {
			sure, target.Sent{Outcome: target.Held, ID: "e-1", Resume: true, Detail: "d"},
			with(v(outcomeHeld, unknown, paceGrow, ReasonHeld), func(v *verdict) { v.Held, v.Known = true, "e-1" }),
		},
		"rejected":                 {sure, no(target.Rejected), v(outcomeRejected, failed, paceDone, ReasonRejected)},
		"rejected in doubt":        {doubt, no(target.Rejected), v(outcomeRejected, unknown, paceGrow, ReasonRejected)},
		"rejected, proves nothing": {sure, open(target.Rejected), v(outcomeRejected, unknown, paceGrow, ReasonRejected)},
		"refuses to finish": {
			resumed, target.Sent{Outcome: target.Rejected, ID: "e-1", Resume: true, Detail: "d"},
			with(v(outcomeRejected, unknown, paceSlow, ReasonRejected), func(v *verdict) { v.Attention, v.Held, v.Known = true, true, "e-1" }),
		},
		"not sent":                      {sure, no(target.NotSent), v(outcomeNotSent, pending, paceGrow, ReasonNotSent)},
		"not sent in doubt":             {doubt, no(target.NotSent), v(outcomeNotSent, unknown, paceGrow, ReasonNotSent)},
		"not sent, to be finished":      {resumed, no(target.NotSent), with(v(outcomeNotSent, unknown, paceGrow, ReasonNotSent), func(v *verdict) { v.Known = "e-1" })},
		"busy":                          {sure, no(target.Wait), v(outcomeWait, pending, paceWait, ReasonWaiting)},
		"busy, proves nothing":          {sure, open(target.Wait), v(outcomeWait, unknown, paceWait, ReasonWaiting)},
		"busy in doubt":                 {doubt, no(target.Wait), v(outcomeWait, unknown, paceWait, ReasonWaiting)},
		"not authorised":                {sure, no(target.NotAuthorised), v(outcomeNotAuthorised, pending, paceSlow, ReasonNotAuthorised)},
		"not authorised in doubt":       {doubt, no(target.NotAuthorised), v(outcomeNotAuthorised, unknown, paceSlow, ReasonNotAuthorised)},
		"misconfigured":                 {sure, no(target.Misconfigured), with(v(outcomeWrongAnswer, pending, paceSlow, ReasonConfiguration), attention)},
		"misconfigured, proves nothing": {sure, open(target.Misconfigured), v(outcomeWrongAnswer, unknown, paceSlow, ReasonConfiguration)},
		"lost":                          {sure, open(target.Lost), v(outcomeLost, unknown, paceGrow, ReasonNoAnswer)},
		"lost, whatever it says":        {sure, no(target.Lost), v(outcomeLost, unknown, paceGrow, ReasonNoAnswer)},
		"entry gone":                    {resumed, open(target.Lost), v(outcomeLost, unknown, paceGrow, ReasonNoAnswer)},
		"of a class nobody knows":       {sure, no("new"), v(outcomeLost, unknown, paceGrow, ReasonNoAnswer)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, decideSent(tc.a, tc.s)); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}

func TestDecideLocated(t *testing.T) {
	t.Parallel()
	const settle = time.Hour
	can := target.Capabilities{Locatable: true, AbsenceAuthoritative: true, SettleTime: settle}
	a := asked{Action: actLocate, Doubt: true, Can: can, LastSent: settle + 1}
	claimed, early, unproven := a, a, a
	claimed.Claimed = true
	early.LastSent = settle
	unproven.Can = target.Capabilities{Locatable: true}
	const unknown = RegistrationUnknown
	for name, tc := range map[string]struct {
		a    asked
		l    target.Located
		want verdict
	}{
		"landed": {a, target.Located{State: target.Landed, Reference: "R", Warnings: []string{"w"}},
			verdict{Outcome: outcomeLanded, Status: RegistrationSucceeded, Pace: paceDone, Reference: "R", Warnings: []string{"w"}}},
		"landed without a reference": {a, target.Located{State: target.Landed},
			verdict{Outcome: outcomeInconclusive, Status: unknown, Pace: paceGrow, Reason: ReasonInconclusive}},
		"landed twice": {a, target.Located{State: target.Landed, Reference: "R", Duplicates: []string{"x", "y"}, Detail: "d"},
			verdict{Outcome: outcomeLanded, Status: RegistrationSucceeded, Pace: paceDone, Reference: "R", Reason: ReasonDuplicate, Attention: true,
				Detail: "d; it may have more than the one: x, y"}},
		"held": {a, target.Located{State: target.StateHeld, ID: "h"},
			verdict{Outcome: outcomeHeld, Status: unknown, Pace: paceGrow, Reason: ReasonHeld, Held: true}},
		"begun": {a, target.Located{State: target.StateHeld, ID: "e", Resume: true},
			verdict{Outcome: outcomeHeld, Status: unknown, Pace: paceGrow, Reason: ReasonHeld, Held: true, Known: "e"}},
		"begun twice": {a, target.Located{State: target.StateHeld, ID: "e", Resume: true, Duplicates: []string{"f"}},
			verdict{Outcome: outcomeHeld, Status: unknown, Pace: paceSlow, Reason: ReasonDuplicate, Held: true, Attention: true,
				Detail: "; it may have more than the one: f"}},
		"rejected finally": {a, target.Located{State: target.StateRejected, Detail: "d", Reasons: []target.Reason{{Pointer: "/a", Code: "C", Detail: "x"}, {Detail: "y"}}},
			verdict{Outcome: outcomeRejected, Status: RegistrationFailed, Pace: paceDone, Reason: ReasonRejected, Detail: "d\n/a C x\ny"}},
		"absent, proven": {a, target.Located{State: target.Absent},
			verdict{Outcome: outcomeAbsent, Status: RegistrationPending, Pace: paceSoon, Reason: ReasonProvenAbsent}},
		"absent, too early": {early, target.Located{State: target.Absent},
			verdict{Outcome: outcomeAbsent, Status: unknown, Pace: paceSettle, Reason: ReasonAbsent, Settle: time.Second,
				Detail: "; that proves nothing before its settle time is over"}},
		"absent, proves nothing": {unproven, target.Located{State: target.Absent},
			verdict{Outcome: outcomeAbsent, Status: unknown, Pace: paceGrow, Reason: ReasonAbsent, Detail: "; that proves nothing at this target"}},
		"absent, said otherwise": {claimed, target.Located{State: target.Absent},
			verdict{Outcome: outcomeAbsent, Status: unknown, Pace: paceGrow, Reason: ReasonAbsent, Detail: "; it has said before that it has it"}},
		"another's": {a, target.Located{State: target.Inconclusive, ForeignInvoice: "INV-9", Detail: "d"},
			verdict{Outcome: outcomeForeign, Status: unknown, Pace: paceSlow, Reason: ReasonForeign, Attention: true,
				Detail: "under our reference the target has another invoice, INV-9: d"}},
		"inconclusive": {a, target.Located{State: target.Inconclusive, RetryAfter: time.Minute},
			verdict{Outcome: outcomeInconclusive, Status: unknown, Pace: paceGrow, Reason: ReasonInconclusive, RetryAfter: time.Minute}},
		"of a state nobody knows": {a, target.Located{State: "new"},
			verdict{Outcome: outcomeInconclusive, Status: unknown, Pace: paceGrow, Reason: ReasonInconclusive}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, decideLocated(tc.a, tc.l)); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}

// Whatever is answered, nothing but the target's own word for this invoice is a success, and in doubt no sending ends as
// failed or as if nothing had been sent.
func TestNoAnswerTurnsDoubtIntoCertainty(t *testing.T) {
	t.Parallel()
	for _, o := range []target.Outcome{
		target.Accepted, target.Held, target.Rejected, target.AlreadyRegistered, target.Foreign, target.Wait, target.NotSent,
		target.NotAuthorised, target.Misconfigured, target.Lost, "",
	} {
		for _, notApplied := range []bool{false, true} {
			for _, reference := range []string{"", "R"} {
				s := target.Sent{Outcome: o, NotApplied: notApplied, Reference: reference}
				got := decideSent(asked{Action: actSend, Doubt: true}, s)
				want := RegistrationUnknown
				if s.Registered() {
					want = RegistrationSucceeded
				}
				if got.Status != want {
					t.Errorf("%+v in doubt is %s, want %s", s, got.Status, want)
				}
				sure := decideSent(asked{Action: actSend}, s)
				if !notApplied && !s.Registered() && sure.Status != RegistrationUnknown && o != target.Foreign {
					t.Errorf("%+v is %s, want unknown", s, sure.Status)
				}
			}
		}
	}
}
