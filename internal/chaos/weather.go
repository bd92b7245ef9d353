package chaos

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"invoicebridge/internal/wire"
)

// weather decides what happens to connections: a little always, much in a storm, nothing once it is calm.
type weather struct {
	stormy, calm atomic.Bool
	mu           sync.Mutex
	dice         *rand.Rand
	history      *History
}

func newWeather(seed uint64, h *History) *weather {
	w := &weather{dice: rand.New(rand.NewPCG(seed, 2)), history: h}
	w.calm.Store(true) // until everything is up
	return w
}

const (
	fair       = 0.18 // share of connections that meet something
	storm      = 0.75
	longestLag = 1500 * time.Millisecond
	farByte    = 6000 // how far into a connection something happens at most

	// Of connections to PostgreSQL a process needs a dozen to start at all, so each is safer, by this factor; and some live long:
	// where something happens is 1 KiB at most, or that doubled, again and again.
	pooled       = 4
	farDoublings = 9
)

// plan is for connections whose server knows keys: anything may happen to them.
func (w *weather) plan(int) wire.Fault { return w.fault(true) }

// planCuts is for those to targets: a second request made by the network itself, or one that it delivers after the
// target's "absent" was believed, only the target could recognise.
func (w *weather) planCuts(int) wire.Fault { return w.fault(false) }

// planDatabase is for connections to PostgreSQL, which live long: they break before a commit, between it and its answer, or
// after. Some fall silent instead, and neither side hears of it.
func (w *weather) planDatabase(int) wire.Fault {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.strikes(pooled) {
		return wire.Fault{}
	}
	f := wire.Fault{Action: wire.Cut, Direction: wire.ToClient, At: w.dice.Int64N(1024 << w.dice.IntN(farDoublings))}
	if w.dice.IntN(3) == 0 {
		f.Direction = wire.ToServer
	}
	switch w.dice.IntN(6) {
	case 0:
		f.Action = wire.Drop
	case 1:
		w.hold(&f)
	}
	return f
}

// strikes says whether a new connection meets anything, the share of those that do being divided.
func (w *weather) strikes(by float64) bool {
	rate := fair
	if w.stormy.Load() {
		rate = storm
	}
	return !w.calm.Load() && w.dice.Float64() < rate/by
}

func (w *weather) fault(any bool) wire.Fault {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.strikes(1) {
		return wire.Fault{}
	}
	f := wire.Fault{Action: wire.Cut, Direction: wire.ToClient, At: w.dice.Int64N(farByte)}
	if w.dice.IntN(2) == 0 {
		f.At = 0 // right after the commit
	}
	if w.dice.IntN(3) == 0 {
		f.Direction = wire.ToServer
	}
	if !any {
		return f
	}
	switch w.dice.IntN(5) {
	case 0:
		f.Action = wire.Drop
	case 1:
		w.hold(&f)
	case 2:
		f.Action, f.At = wire.Duplicate, 0
	}
	return f
}

// hold makes of a fault a delay.
func (w *weather) hold(f *wire.Fault) {
	lasts, passed := time.Duration(w.dice.Float64()*float64(longestLag)), make(chan struct{})
	f.Action, f.After = wire.Hold, passed
	f.Reached = func() { time.AfterFunc(lasts, func() { close(passed) }) }
}
