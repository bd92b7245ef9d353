package targetsim_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"invoicebridge/internal/target"
	"invoicebridge/internal/target/targetsim"
)

// cautious registers one invoice as the documentation of package target demands: it never sends again on doubt unless a
// key still covers the first request, or the target was asked and its absence proves something.
type cautious struct {
	client client
	can    target.Capabilities
	now    func() time.Time

	end       string // "", registered, failed, attention
	doubt     bool   // a request may have had its effect, or have it later
	mustAsk   bool   // the target claims to have it: asking is all there is left
	known     string // the target's id, while the rest may be sent
	firstSent time.Time
	lastSent  time.Time
}

func (c *cautious) step(ctx context.Context) {
	switch {
	case c.end != "":
	case c.known != "":
		s := submission()
		s.Known = c.known
		c.hear(c.client.Send(ctx, s))
	case !c.doubt || c.keyed():
		if !c.doubt {
			c.firstSent = c.now()
		}
		c.lastSent = c.now()
		c.hear(c.client.Send(ctx, submission()))
	default:
		c.learn(c.client.Locate(ctx, query()))
	}
}

// keyed: with a margin for the request's own time.
func (c *cautious) keyed() bool {
	return c.can.Keyed && !c.mustAsk && c.now().Add(time.Minute).Before(c.firstSent.Add(c.can.KeyWindow))
}

func (c *cautious) hear(s target.Sent) {
	c.known = ""
	switch {
	case s.Registered():
		c.end = "registered"
		return
	case s.Outcome == target.Foreign:
		c.end = "attention"
		return
	case s.NotApplied && c.doubt:
		return // an earlier request's doubt is not removed by this one
	case s.NotApplied && s.Outcome == target.Rejected:
		c.end = "failed"
		return
	case s.NotApplied:
		return
	}
	c.doubt = true
	c.mustAsk = c.mustAsk || s.Outcome == target.Held || s.Outcome == target.AlreadyRegistered
	if s.Resume {
		c.known = s.ID
	}
}

func (c *cautious) learn(l target.Located) {
	switch l.State {
	case target.Landed:
		c.end = "registered"
	case target.StateRejected:
		c.end = "failed"
	case target.StateHeld:
		if l.Resume {
			c.known = l.ID
		}
	case target.Absent:
		if c.can.AbsenceAuthoritative && c.now().Sub(c.lastSent) > c.can.SettleTime && !c.mustAsk {
			c.doubt = false
		}
	case target.Inconclusive:
	}
}

func TestWhoNeverResendsOnDoubtWithoutAskingHasAtMostOneEffectAndAlwaysGetsToAnEnd(t *testing.T) {
	t.Parallel()
	settled := target.Capabilities{Locatable: true, AbsenceAuthoritative: true, SettleTime: time.Hour}
	keyed := settled
	keyed.Keyed, keyed.KeyWindow = true, modelWindow
	for name, tc := range map[string]struct {
		kind string
		can  target.Capabilities
	}{
		"keyed gateway":   {"einvoice", keyed},
		"gateway, asking": {"einvoice", settled},
		"ledger":          {"ledger", settled},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := tc.can.Check(patience); err != nil {
				t.Fatal(err)
			}
			rapid.Check(t, func(rt *rapid.T) { carefully(t.Context(), rt, tc.kind, tc.can) })
		})
	}
}

// pauses end just before and after the moments at which something changes.
var pauses = []time.Duration{
	time.Second, modelHidden - time.Second, modelLate - 5*time.Minute, 3 * time.Hour, modelWindow - 10*time.Minute, modelWindow,
}

// What may happen to each kind of request. After the dangerous faults an absence, or the end of the key's window, would be
// believed too early.
var (
	dangerous = []targetsim.Fault{targetsim.AcceptLate, targetsim.Hidden, targetsim.ResetAfter}
	sending   = slices.Concat(sendingFaults, dangerous, dangerous, dangerous, dangerous, dangerous)
	posting   = []targetsim.Fault{targetsim.PostLost, targetsim.PostBadGateway, targetsim.PostReject}
	looking   = []targetsim.Fault{
		targetsim.None, targetsim.None, targetsim.None, targetsim.LookupHTML404, targetsim.LookupError, targetsim.LookupNonsense,
	}
)

func carefully(ctx context.Context, rt *rapid.T, kind string, can target.Capabilities) {
	f := setup(rt, modelConfig())
	c := &cautious{client: f.clients[kind], can: can, now: func() time.Time { return f.Effects("").Now }}
	rt.Repeat(map[string]func(*rapid.T){
		"step": func(rt *rapid.T) {
			f.script(rt,
				rapid.SampledFrom(sending).Draw(rt, "sending"),
				rapid.SampledFrom(posting).Draw(rt, "posting"),
				rapid.SampledFrom(looking).Draw(rt, "looking"))
			c.step(ctx)
		},
		"advance": func(rt *rapid.T) { f.advance(rt, rapid.SampledFrom(pauses).Draw(rt, "by")) },
		"": func(rt *rapid.T) {
			if n := f.Count(reference); n > 1 {
				rt.Fatalf("%d effects; requests: %+v", n, f.Requests(""))
			}
		},
	})

	// Scripts that are left run out, late things happen: then everybody knows.
	for range 500 {
		if c.end != "" {
			break
		}
		c.step(ctx)
		f.advance(rt, 2*time.Hour)
	}
	f.advance(rt, 2*modelWindow)
	want := map[string][2]int{"registered": {1, 1}, "failed": {0, 0}, "attention": {0, 1}}
	n, bounds := f.Count(reference), want[c.end]
	if c.end == "" || n < bounds[0] || n > bounds[1] {
		rt.Fatalf("ended %q with %d effects; requests: %+v", c.end, n, f.Requests(""))
	}
}

func TestWhoBelievesAnAbsenceTooEarlyMakesASecondEntry(t *testing.T) {
	t.Parallel()
	f := setup(t, modelConfig())
	f.script(t, targetsim.AcceptLate)
	c := f.clients["ledger"]
	if sent := c.Send(t.Context(), submission()); sent.Outcome != target.Lost || sent.NotApplied {
		t.Fatalf("got %+v, want a lost answer", sent)
	}
	if l := c.Locate(t.Context(), query()); l.State != target.Absent {
		t.Fatalf("found %+v, want the absence that proves nothing yet", l)
	}
	c.Send(t.Context(), submission()) // what must not be done
	f.advance(t, modelLate)
	if n := f.Count(reference); n != 2 {
		t.Errorf("%d entries, want 2: the simulator protects nobody", n)
	}
}
