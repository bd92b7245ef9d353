package crm

import "time"

// The pauses between attempts, unless DelivererOptions says otherwise.
const (
	DefaultBackOffBase = time.Second
	DefaultBackOffCap  = 5 * time.Minute
	DefaultSlowPause   = 10 * time.Minute
	retryAfterJitter   = 0.04 // of the pause the ERP asked for, on top: so that not all come back at one instant
)

// BackOff is how pauses grow: Base, twice that, and so on up to Cap, each shortened by up to half at random. Slow is the
// pause where a person has to change something first.
type BackOff struct {
	Base, Cap, Slow time.Duration
}

// DefaultBackOff is BackOff with the default pauses.
func DefaultBackOff() BackOff {
	return BackOff{Base: DefaultBackOffBase, Cap: DefaultBackOffCap, Slow: DefaultSlowPause}
}

// Pause is the pause after the nth failure in a row (from 1). jitter lies in [0, 1).
func (b BackOff) Pause(n int, jitter float64) time.Duration {
	pause := b.Base
	for i := 1; i < n && pause < b.Cap; i++ {
		pause *= 2
	}
	return shortened(min(pause, b.Cap), jitter)
}

func shortened(pause time.Duration, jitter float64) time.Duration {
	return pause - time.Duration(float64(pause)/2*jitter)
}

// pause is how long to wait after an attempt: never less than the ERP asked for.
func (d *Deliverer) pause(a *attempt) time.Duration {
	jitter := d.opts.Jitter()
	asked := a.exchange.RetryAfter // 0 if it asked for none
	asked += time.Duration(float64(asked) * retryAfterJitter * jitter)
	switch a.decision.Step {
	case StepWait:
		if a.exchange.RetryAfterGiven {
			return asked
		}
		return d.opts.BackOff.Pause(int(a.row.Waits)+1, jitter)
	case StepBackOff:
		return max(asked, d.opts.BackOff.Pause(int(a.row.Attempt-a.row.Waits), jitter))
	case StepSlow:
		return max(asked, shortened(d.opts.BackOff.Slow, jitter))
	case StepDone, StepSoon, StepAttention:
	}
	return 0
}
