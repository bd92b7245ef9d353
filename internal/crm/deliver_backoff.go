package crm

import (
	"time"

	"invoicebridge/internal/backoff"
)

// The pauses between attempts, unless DelivererOptions says otherwise.
const (
	DefaultBackOffBase = time.Second
	DefaultBackOffCap  = 5 * time.Minute
	DefaultSlowPause   = 10 * time.Minute
)

// BackOff is how pauses grow.
type BackOff = backoff.BackOff

// DefaultBackOff is BackOff with the default pauses.
func DefaultBackOff() BackOff {
	return BackOff{Base: DefaultBackOffBase, Cap: DefaultBackOffCap, Slow: DefaultSlowPause}
}

// pause is how long to wait after an attempt: never less than the ERP asked for.
func (d *Deliverer) pause(a *attempt) time.Duration {
	jitter := d.opts.Jitter()
	asked := backoff.Asked(a.exchange.RetryAfter, jitter)
	switch a.decision.Step {
	case StepWait:
		if a.exchange.RetryAfterGiven {
			return asked
		}
		return d.opts.BackOff.Pause(int(a.row.Waits)+1, jitter)
	case StepBackOff:
		return max(asked, d.opts.BackOff.Pause(int(a.row.Attempt-a.row.Waits), jitter))
	case StepSlow:
		return max(asked, d.opts.BackOff.SlowPause(jitter))
	case StepDone, StepSoon, StepAttention:
	}
	return 0
}
