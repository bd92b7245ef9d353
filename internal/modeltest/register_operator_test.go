package modeltest

import (
	"context"
	"slices"
	"strings"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"invoicebridge/internal/invoice"
	"invoicebridge/internal/problem"
	"invoicebridge/internal/target/targetsim"
)

// pressOn is an action on one registration. What was done is in the audit once; what is refused changes nothing.
func (w *world) pressOn(rt *rapid.T, what string, id uuid.UUID, act func() error) (done bool) {
	before := w.look(rt, id)
	err := act()
	if err == nil {
		w.acts++
		return true
	}
	if !problem.Is(err, problem.WrongState) {
		rt.Fatalf("%s: %v", what, err)
	}
	if after := w.look(rt, id); after != before {
		rt.Fatalf("%s was refused, and has changed the registration\nbefore %+v\nafter  %+v", what, before, after)
	}
	return false
}

// replay is an operator's "try again".
func (w *world) replay(rt *rapid.T) {
	id := w.one(rt)
	w.pressOn(rt, "replay", id, func() error {
		return w.service.ReplayRegistration(context.Background(), w.tenant, id, people()[0])
	})
}

// resolve has a person say what became of a registration. Nobody is asked, so people tell the truth, and say that nothing
// came of it only once nothing more can.
func (w *world) resolve(rt *rapid.T) {
	id := w.one(rt)
	s := w.was[id]
	truth := invoice.Resolution{Status: invoice.RegistrationFailed, Evidence: "seen"}
	switch {
	case w.undecided(s, targetsim.RejectedLater):
		rt.Skip("the target has it, and may refuse it yet")
	case w.sim.Count(s.Key) > 0:
		truth.Status, truth.Reference = invoice.RegistrationSucceeded, "REG-"+w.effectID(s)
	case w.undecided(s):
		rt.Skip("something may come of it yet")
	}
	w.pressOn(rt, "resolve", id, func() error {
		return w.service.ResolveRegistration(context.Background(), w.tenant, id, truth, people()[1])
	})
}

// undecided says whether the target may have it otherwise later than it does now: after requests that met one of these faults,
// or any.
func (w *world) undecided(s standing, faults ...targetsim.Fault) bool {
	now := w.sim.Effects(s.Key).Now
	return slices.ContainsFunc(w.sim.Requests(s.Key), func(r targetsim.Request) bool {
		sending := r.Operation == "submit" || r.Operation == "create"
		return sending && (len(faults) == 0 || slices.Contains(faults, r.Fault)) && now.Before(r.At.Add(max(held, late)))
	})
}

// effectID is the number of the one effect, which the simulator gives to it and to its reference alike.
func (w *world) effectID(s standing) string {
	return strings.TrimPrefix(w.sim.Effects(s.Key).Items[0].IDs[0], w.promise.kind+"-")
}

func (w *world) acknowledge(rt *rapid.T) {
	id := w.one(rt)
	w.pressOn(rt, "acknowledge", id, func() error {
		return w.service.AcknowledgeRegistration(context.Background(), w.tenant, id, people()[0])
	})
}

// pauseOrResume presses either button. A pause does not end an attempt that has begun.
func (w *world) pauseOrResume(rt *rapid.T) {
	if rapid.Bool().Draw(rt, "pause") {
		w.toggled(rt, "pause", w.service.PauseTarget(context.Background(), w.tenant, targetID, people()[0]), true)
		return
	}
	w.resume(rt)
}

func (w *world) resume(rt *rapid.T) {
	_, err := w.service.ResumeTarget(context.Background(), w.tenant, targetID, people()[0])
	w.toggled(rt, "resume", err, false)
}

func (w *world) toggled(rt *rapid.T, what string, err error, paused bool) {
	if err != nil && !problem.Is(err, problem.WrongState) {
		rt.Fatalf("%s: %v", what, err)
	}
	if done := err == nil; done == (w.paused == paused) {
		rt.Fatalf("%s: done is %v, and paused was %v", what, done, w.paused)
	}
	if err == nil {
		w.acts++
	}
	w.paused = paused
}

// operate is one button, pressed while something else goes on.
func (w *world) operate(rt *rapid.T) {
	if !rapid.Bool().Draw(rt, "an operator pauses or resumes") {
		return
	}
	w.pauseOrResume(rt)
}

// attempt has a worker register. While the target is paused nothing reaches it, and no attempt begins; an attempt whose
// worker is dead may be taken note of.
func (w *world) attempt(rt *rapid.T, id uuid.UUID) {
	paused, before, asked := w.paused, w.look(rt, id), 0
	if paused {
		asked = len(w.sim.Requests(before.Key))
	}
	if _, err := w.registrar.Register(context.Background(), id, nil); err != nil {
		rt.Fatalf("register %s: %v", id, err)
	}
	if !paused {
		return
	}
	if after := w.look(rt, id); after.Attempt != before.Attempt || len(w.sim.Requests(before.Key)) != asked {
		rt.Fatalf("its target is paused, and it was worked on\nbefore %+v\nafter  %+v", before, after)
	}
}

// checkActs: what people have done is in the audit, each once, and nothing else is.
func (w *world) checkActs(rt *rapid.T) {
	var n int
	err := w.pool.QueryRow(context.Background(), "SELECT count(*) FROM audit_entries WHERE tenant_id = $1 AND action <> 'target.set'", w.tenant).Scan(&n)
	if err != nil {
		rt.Fatal(err)
	}
	if n != w.acts {
		rt.Fatalf("%d actions of people were done, %d are in the audit", w.acts, n)
	}
}
