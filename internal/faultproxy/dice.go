package faultproxy

import (
	"math/rand/v2"
	"sync"
)

// dice decide what each request meets: one throw a request, in the order of their arrival.
type dice struct {
	shares []share

	mu     sync.Mutex
	random *rand.Rand
}

func newDice(seed uint64, rates Rates) *dice {
	// The second word only has to be the same every time.
	return &dice{shares: rates.shares(), random: rand.New(rand.NewPCG(seed, 0))}
}

func (d *dice) throw() Fault {
	d.mu.Lock()
	at := d.random.Float64()
	d.mu.Unlock()
	for _, s := range d.shares {
		if at < s.rate {
			return s.fault
		}
		at -= s.rate
	}
	return None
}
