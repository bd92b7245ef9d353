package retention

import (
	"time"
)

// The parts of the longest retry, unless the settings say otherwise.
const (
	DefaultTotalTime            = 24 * time.Hour      // crm.DefaultTotalTime
	DefaultReconciliationWindow = 48 * time.Hour      // crm.DefaultReconcileOverlap: how far back reconciliation looks
	DefaultMaxSourceDelay       = 30 * 24 * time.Hour // the longest that a source may deliver a message late
	// RescueTime is how long a job of a dead process waits until another takes it up: internal/jobs refuses settings
	// with which it would be longer.
	RescueTime = 10 * time.Minute
)

// RetryTimes are the times that add up to the longest retry: how long after its first use an operation's key may still
// be sent by anybody.
type RetryTimes struct {
	// Total is how long after its first attempt an operation is tried by itself.
	Total time.Duration
	// Rescue is how long the last of these attempts may lie with a dead process.
	Rescue time.Duration
	// ReconciliationWindow is how far back reconciliation looks, and sends again what it finds open.
	ReconciliationWindow time.Duration
	// SourceDelay is the longest that a source may deliver a message late, or again.
	SourceDelay time.Duration
}

// DefaultRetryTimes are the times without any setting.
func DefaultRetryTimes() RetryTimes {
	return RetryTimes{
		Total: DefaultTotalTime, Rescue: RescueTime, ReconciliationWindow: DefaultReconciliationWindow,
		SourceDelay: DefaultMaxSourceDelay,
	}
}

// Longest is the sum: a reservation must outlive it. Should it not, there is still no second invoice, for the invoice
// remembers its key; but whoever reads Idempotency-Expires is told something that does not hold.
func (r RetryTimes) Longest() time.Duration {
	return r.Total + r.Rescue + r.ReconciliationWindow + r.SourceDelay
}
