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
	return &weather{dice: rand.New(rand.NewPCG(seed, 2)), history: h}
}

const (
	fair       = 0.18 // share of connections that meet something
	storm      = 0.75
	longestLag = 1500 * time.Millisecond
	farByte    = 6000 // how far into a connection something happens at most
)

// plan is for connections whose server knows keys: anything may happen to them.
func (w *weather) plan(int) wire.Fault { return w.fault(true) }

// planCuts is for those to targets: a second request made by the network itself, or one that it delivers after the
// target's "absent" was believed, only the target could recognise.
func (w *weather) planCuts(int) wire.Fault { return w.fault(false) }

func (w *weather) fault(any bool) wire.Fault {
	w.mu.Lock()
	defer w.mu.Unlock()
	rate := fair
	if w.stormy.Load() {
		rate = storm
	}
	if w.calm.Load() || w.dice.Float64() >= rate {
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
		f.Action, f.After = wire.Hold, later(time.Duration(w.dice.Float64()*float64(longestLag)))
	case 2:
		f.Action, f.At = wire.Duplicate, 0
	}
	return f
}

// later is closed after a while from when it is made, which is when the connection is.
func later(d time.Duration) <-chan struct{} {
	passed := make(chan struct{})
	time.AfterFunc(d, func() { close(passed) })
	return passed
}
