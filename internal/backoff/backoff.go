// Package backoff has the pauses between attempts, the same for deliveries, registrations and jobs.
package backoff

import "time"

// BackOff is how pauses grow: Base, twice that, and so on up to Cap, each shortened by up to half at random. Slow is the
// pause where a person has to change something first.
type BackOff struct {
	Base, Cap, Slow time.Duration
}

// Pause is the pause after the nth failure in a row (from 1). jitter lies in [0, 1).
func (b BackOff) Pause(n int, jitter float64) time.Duration {
	pause := b.Base
	for i := 1; i < n && pause < b.Cap; i++ {
		pause *= 2
	}
	return Shortened(min(pause, b.Cap), jitter)
}

// SlowPause is Slow, shortened like the others.
func (b BackOff) SlowPause(jitter float64) time.Duration { return Shortened(b.Slow, jitter) }

// Shortened is a pause less up to half of it.
func Shortened(pause time.Duration, jitter float64) time.Duration {
	return pause - time.Duration(float64(pause)/2*jitter)
}

// retryAfterJitter is the part of a pause that somebody asked for which is put on top, so that not all come back at one
// instant.
const retryAfterJitter = 0.04

// Asked is the pause that somebody asked for (0: none), and a little more at random, never less.
func Asked(pause time.Duration, jitter float64) time.Duration {
	return pause + time.Duration(float64(pause)*retryAfterJitter*jitter)
}
