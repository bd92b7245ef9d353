package targetsim_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"invoicebridge/internal/target"
	"invoicebridge/internal/target/targetsim"
)

// row is what a fault does to one submission: what the client hears, what it finds by asking, what is there; at once,
// and after everything that was to happen has happened.
type row struct {
	outcome      target.Outcome
	notApplied   bool
	found, later target.State
	count, final int
}

const (
	landed, held, rejected, absent = target.Landed, target.StateHeld, target.StateRejected, target.Absent
)

func nothing(o target.Outcome, proven bool) row { return row{o, proven, absent, absent, 0, 0} }

func TestEachFaultAtTheGateway(t *testing.T) {
	t.Parallel()
	checkFaults(t, "einvoice", map[targetsim.Fault]row{
		targetsim.None:             {target.Accepted, false, landed, landed, 1, 1},
		targetsim.Slow:             {target.Accepted, false, landed, landed, 1, 1},
		targetsim.Warnings:         {target.Accepted, false, landed, landed, 1, 1},
		targetsim.AcceptSilent:     {target.Lost, false, landed, landed, 1, 1},
		targetsim.AcceptLate:       {target.Lost, false, absent, landed, 0, 1},
		targetsim.ResetBefore:      nothing(target.Lost, false),
		targetsim.ResetAfter:       {target.Lost, false, landed, landed, 1, 1},
		targetsim.HalfAnswer:       {target.Lost, false, landed, landed, 1, 1},
		targetsim.DuplicateOwn:     {target.AlreadyRegistered, false, landed, landed, 1, 1},
		targetsim.DuplicateBare:    {target.AlreadyRegistered, false, landed, landed, 1, 1},
		targetsim.DuplicateForeign: {target.Foreign, false, landed, landed, 1, 1},
		targetsim.Held:             {target.Held, false, held, landed, 1, 1},
		targetsim.Error:            {target.Held, false, held, landed, 1, 1},
		targetsim.RejectedLater:    {target.Held, false, held, rejected, 1, 0},
		targetsim.Hidden:           {target.Lost, false, absent, landed, 1, 1},
		targetsim.Reject:           nothing(target.Rejected, true),
		targetsim.Busy:             nothing(target.Wait, false),
		targetsim.Throttled:        nothing(target.Wait, true),
		targetsim.BadGateway:       nothing(target.Lost, false),
		targetsim.HTML:             nothing(target.Misconfigured, false),
		targetsim.Redirect:         nothing(target.Misconfigured, false),
		targetsim.Unauthorised:     nothing(target.NotAuthorised, true),
	})
}

func TestEachFaultAtTheLedger(t *testing.T) {
	t.Parallel()
	normal := row{target.Accepted, false, landed, landed, 1, 1}
	lostDraft := row{target.Lost, false, held, held, 1, 1}
	checkFaults(t, "ledger", map[targetsim.Fault]row{
		targetsim.None:             normal,
		targetsim.Slow:             normal,
		targetsim.Warnings:         normal,
		targetsim.Held:             normal,
		targetsim.Error:            normal,
		targetsim.RejectedLater:    normal,
		targetsim.AcceptSilent:     lostDraft,
		targetsim.AcceptLate:       {target.Lost, false, absent, held, 0, 1},
		targetsim.ResetBefore:      nothing(target.Lost, false),
		targetsim.ResetAfter:       lostDraft,
		targetsim.HalfAnswer:       lostDraft,
		targetsim.DuplicateOwn:     {target.AlreadyRegistered, false, held, held, 1, 1},
		targetsim.DuplicateBare:    {target.AlreadyRegistered, false, held, held, 1, 1},
		targetsim.DuplicateForeign: {target.Foreign, false, held, held, 1, 1},
		targetsim.Hidden:           {target.Lost, false, absent, held, 1, 1},
		targetsim.Reject:           nothing(target.Rejected, true),
		targetsim.Busy:             nothing(target.Wait, false),
		targetsim.Throttled:        nothing(target.Wait, true),
		targetsim.BadGateway:       nothing(target.Lost, false),
		targetsim.HTML:             nothing(target.Misconfigured, false),
		targetsim.Redirect:         nothing(target.Misconfigured, false),
		targetsim.Unauthorised:     nothing(target.NotAuthorised, true),
	})
}

func checkFaults(t *testing.T, kind string, table map[targetsim.Fault]row) {
	t.Helper()
	for _, f := range targetsim.About() {
		aboutSending := !strings.HasPrefix(f.Fault, "post-") && !strings.HasPrefix(f.Fault, "lookup-")
		if _, ok := table[targetsim.Fault(f.Fault)]; ok != aboutSending {
			t.Errorf("%s: in the table %v, about sending %v", f.Fault, ok, aboutSending)
		}
	}
	for fault, want := range table {
		t.Run(string(fault), func(t *testing.T) {
			t.Parallel()
			cfg := inFile(t)
			f := setup(t, cfg)
			f.script(t, fault)
			ctx := t.Context()
			if fault == targetsim.AcceptSilent {
				ctx = f.untilArrived(t, 0)
			}
			c := f.clients[kind]
			sent := c.Send(ctx, submission())
			got := row{outcome: sent.Outcome, notApplied: sent.NotApplied, found: c.Locate(t.Context(), query()).State, count: f.Count(reference)}
			f.advance(t, 13*time.Hour)
			got.later, got.final = c.Locate(t.Context(), query()).State, f.Count(reference)
			if diff := cmp.Diff(want, got, cmp.AllowUnexported(row{})); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			checkJournal(t, f, fault)
		})
	}
}

// checkJournal opens a second simulator on the same journal and expects the same state; the first one's lines are on
// disk, because it has answered.
func checkJournal(t *testing.T, f *fixture, fault targetsim.Fault) {
	t.Helper()
	again, err := targetsim.Open(f.cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = again.Close() }()
	if diff := cmp.Diff(f.Effects(""), again.Effects("")); diff != "" {
		t.Errorf("effects after a restart (-want +got)\n%s", diff)
	}
	requests := again.Requests(reference)
	if diff := cmp.Diff(f.Requests(reference), requests); diff != "" {
		t.Errorf("requests after a restart (-want +got)\n%s", diff)
	}
	if requests[0].Fault != fault || requests[0].BodySum == "" || !requests[0].At.Equal(fixedClock()) {
		t.Errorf("the journal has %+v, want a request that met %s", requests[0], fault)
	}
}

func TestFaultsOfPosting(t *testing.T) {
	t.Parallel()
	for fault, want := range map[targetsim.Fault]struct {
		outcome target.Outcome
		found   target.State
	}{
		targetsim.PostLost:       {target.Held, landed},
		targetsim.PostBadGateway: {target.Held, held},
		targetsim.PostReject:     {target.Rejected, held},
	} {
		t.Run(string(fault), func(t *testing.T) {
			t.Parallel()
			f := setup(t, targetsim.Config{})
			f.script(t, fault)
			c, s := f.clients["ledger"], submission()
			sent := c.Send(t.Context(), s)
			if sent.Outcome != want.outcome || sent.NotApplied || !sent.Resume {
				t.Errorf("got %+v, want %s that can be resumed", sent, want.outcome)
			}
			if l := c.Locate(t.Context(), query()); l.State != want.found {
				t.Errorf("found %s, want %s", l.State, want.found)
			}
			s.Known = sent.ID
			if sent = c.Send(t.Context(), s); sent.Outcome != target.Accepted || sent.Reference == "" {
				t.Errorf("the rest: got %+v", sent)
			}
			if n := f.Count(reference); n != 1 {
				t.Errorf("%d entries, want 1", n)
			}
		})
	}
}

func TestFaultsOfLookingUpAreInconclusive(t *testing.T) {
	t.Parallel()
	for kind := range map[string]bool{"einvoice": true, "ledger": true} {
		for _, fault := range []targetsim.Fault{
			targetsim.LookupHTML404, targetsim.LookupError, targetsim.LookupSilent, targetsim.LookupNonsense,
		} {
			t.Run(kind+" "+string(fault), func(t *testing.T) {
				t.Parallel()
				f := setup(t, targetsim.Config{})
				f.script(t, fault)
				c := f.clients[kind]
				if sent := c.Send(t.Context(), submission()); !sent.Registered() {
					t.Fatalf("got %+v", sent)
				}
				ctx := t.Context()
				if fault == targetsim.LookupSilent {
					ctx = f.untilArrived(t, len(f.Requests("")))
				}
				if l := c.Locate(ctx, query()); l.State != target.Inconclusive {
					t.Errorf("found %+v, want inconclusive", l)
				}
				if l := c.Locate(t.Context(), query()); l.State != landed {
					t.Errorf("afterwards found %+v, want landed", l)
				}
			})
		}
	}
}
