// Package targetsim is a simulator of external targets: a real HTTP server that speaks the interfaces of the packages
// einvoice and ledger, keeps durable state, counts the effects it has had for each external reference, and misbehaves
// on request. Tests use it in the same process, cmd/targetsim runs it by hand.
//
//	/einvoice/...   an e-invoicing gateway that honours Idempotency-Key for Config.KeyWindow and not a moment longer
//	/ledger/...     an accounting system without keys: every creation is one more entry
//	/sim/...        what has happened, as JSON; scripts; the clock
//
// It never protects anybody from a second effect (beyond the gateway's key): what a caller gets wrong shows in the count.
package targetsim

import (
	"errors"
	"fmt"
	"time"
)

// Config sets the rules. The zero value of each member has the default that is named; durations are on the simulator's
// own clock (see Advance) except Slow.
type Config struct {
	Journal   string        // file of the durable state, of one simulator at a time; made if it is not there; empty: memory only
	Token     string        // bearer token that is asked for; empty: none
	KeyWindow time.Duration // how long the gateway honours a key, from its first request on: 24 h
	Late      time.Duration // how much later than its answer a request takes effect (accept-late): 30 min
	Held      time.Duration // how long a document is held (held, error, rejected-later): 12 h
	Hidden    time.Duration // how long what was accepted is not found (hidden): 10 min
	Slow      time.Duration // how long a slow answer takes, in real time (slow): 2 s
	Pause     time.Duration // what an answer that asks to come back later asks for, in whole seconds: 2 min
	Seed      uint64        // of the dice that Rates are thrown with
	// Rates is the share of requests (0 to 1) that meet a fault by chance. The rates of one phase add up to at most 1.
	Rates map[Fault]float64
	Now   func() time.Time // time.Now
}

func (c Config) withDefaults() Config {
	for _, d := range []struct {
		value *time.Duration
		is    time.Duration
	}{
		{&c.KeyWindow, 24 * time.Hour}, {&c.Late, 30 * time.Minute}, {&c.Held, 12 * time.Hour},
		{&c.Hidden, 10 * time.Minute}, {&c.Slow, 2 * time.Second}, {&c.Pause, 2 * time.Minute},
	} {
		if *d.value == 0 {
			*d.value = d.is
		}
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return c
}

func (c Config) check() error {
	var problems []error
	for name, d := range map[string]time.Duration{
		"key window": c.KeyWindow, "late": c.Late, "held": c.Held, "hidden": c.Hidden, "slow": c.Slow, "pause": c.Pause,
	} {
		if d < 0 {
			problems = append(problems, fmt.Errorf("%s must not be negative: %v", name, d))
		}
	}
	sums := map[phase]float64{}
	for fault, rate := range c.Rates {
		b, ok := behaviourOf(fault)
		switch {
		case !ok:
			problems = append(problems, fmt.Errorf("there is no fault %q", fault))
		case !(rate >= 0 && rate <= 1): // NaN is neither
			problems = append(problems, fmt.Errorf("the rate of %s must be between 0 and 1: %v", fault, rate))
		default:
			sums[b.phase] += rate
		}
	}
	for phase, sum := range sums {
		if sum > 1 {
			problems = append(problems, fmt.Errorf("the rates of faults in %s add up to %v, more than 1", phase, sum))
		}
	}
	return errors.Join(problems...)
}
