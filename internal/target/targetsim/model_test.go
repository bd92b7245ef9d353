package targetsim_test

import (
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"invoicebridge/internal/target"
	"invoicebridge/internal/target/targetsim"
)

// The rules of the simulators in the tests below: not the defaults, and each different.
const (
	modelWindow = 24 * time.Hour
	modelLate   = 30 * time.Minute
	modelHeld   = 5 * time.Hour
	modelHidden = 10 * time.Minute
)

func modelConfig() targetsim.Config {
	return targetsim.Config{KeyWindow: modelWindow, Late: modelLate, Held: modelHeld, Hidden: modelHidden}
}

var (
	withoutEffect = []targetsim.Fault{
		targetsim.ResetBefore, targetsim.Reject, targetsim.Busy, targetsim.Throttled, targetsim.BadGateway,
		targetsim.HTML, targetsim.Redirect, targetsim.Unauthorised,
	}
	withEffect = []targetsim.Fault{
		targetsim.None, targetsim.AcceptLate, targetsim.ResetAfter, targetsim.HalfAnswer, targetsim.DuplicateOwn,
		targetsim.DuplicateBare, targetsim.DuplicateForeign, targetsim.Held, targetsim.Error, targetsim.RejectedLater,
		targetsim.Hidden, targetsim.Warnings,
	}
	sendingFaults = slices.Concat(withoutEffect, withEffect)
)

// model says by the documented rules alone what a simulator should have counted.
type model struct {
	now     time.Duration
	effects []effect
	keys    map[string][]time.Duration // first requests that had an effect
}

type effect struct {
	reference   string
	from, until time.Duration // until 0: for good
}

func (m *model) request(kind string, s target.Submission, f targetsim.Fault) {
	if slices.Contains(withoutEffect, f) {
		return
	}
	if kind == "einvoice" {
		for _, first := range m.keys[s.Key] {
			if m.now < first+modelWindow {
				return
			}
		}
		m.keys[s.Key] = append(m.keys[s.Key], m.now)
	}
	e := effect{reference: s.Reference, from: m.now}
	switch {
	case f == targetsim.AcceptLate:
		e.from += modelLate
	case f == targetsim.RejectedLater && kind == "einvoice":
		e.until = m.now + modelHeld
	}
	m.effects = append(m.effects, e)
}

func (m *model) count(reference string) int {
	n := 0
	for _, e := range m.effects {
		if e.reference == reference && m.now >= e.from && (e.until == 0 || m.now < e.until) {
			n++
		}
	}
	return n
}

func TestTheCountIsWhatTheRulesSayAlsoAcrossRestarts(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	rapid.Check(t, func(rt *rapid.T) {
		cfg := modelConfig()
		file, err := os.CreateTemp(dir, "journal-*.jsonl")
		if err != nil {
			rt.Fatal(err)
		}
		_ = file.Close()
		cfg.Journal = file.Name()
		f, m := setup(rt, cfg), &model{keys: map[string][]time.Duration{}}
		references := []string{"r1", "r2"}
		rt.Repeat(map[string]func(*rapid.T){
			"send": func(rt *rapid.T) {
				kind := rapid.SampledFrom([]string{"einvoice", "ledger"}).Draw(rt, "kind")
				s := target.Submission{
					Key:       rapid.SampledFrom([]string{"k1", "k2"}).Draw(rt, "key"),
					Reference: rapid.SampledFrom(references).Draw(rt, "reference"), Number: "INV-1",
					Document: fmt.Appendf(nil, `{"number":"INV-1","revision":%d}`, rapid.IntRange(1, 2).Draw(rt, "revision")),
				}
				fault := rapid.SampledFrom(sendingFaults).Draw(rt, "fault")
				if err := f.Script(s.Reference, fault); err != nil {
					rt.Fatal(err)
				}
				f.clients[kind].Send(t.Context(), s)
				m.request(kind, s, fault)
			},
			"locate": func(rt *rapid.T) {
				kind := rapid.SampledFrom([]string{"einvoice", "ledger"}).Draw(rt, "kind")
				f.clients[kind].Locate(t.Context(), target.Query{Reference: rapid.SampledFrom(references).Draw(rt, "reference")})
			},
			"advance": func(rt *rapid.T) {
				by := time.Duration(rapid.Int64Range(1, int64(modelWindow)).Draw(rt, "by"))
				f.advance(rt, by)
				m.now += by
			},
			"restart": func(rt *rapid.T) {
				if err := f.Close(); err != nil {
					rt.Fatal(err)
				}
				f = setup(rt, cfg)
			},
			"": func(rt *rapid.T) {
				for _, r := range references {
					if got, want := f.Count(r), m.count(r); got != want {
						rt.Fatalf("%s: the simulator counts %d, its rules say %d", r, got, want)
					}
				}
			},
		})
	})
}
