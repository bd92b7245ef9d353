package jobs

import (
	"math/rand/v2"
	"time"

	"github.com/riverqueue/river/rivertype"

	"invoicebridge/internal/backoff"
)

// The pauses after a run that ended in an error of ours, or was rescued from a dead process.
const (
	retryBase = time.Second
	retryCap  = time.Minute
)

// retryPolicy is River's, for runs that failed. It does not space attempts at the ERP or at targets:
// crm.Deliverer and invoice.Registrar do.
type retryPolicy struct {
	now    func() time.Time
	jitter func() float64
}

func newRetryPolicy() *retryPolicy { return &retryPolicy{now: time.Now, jitter: rand.Float64} }

// NextRetry implements river.ClientRetryPolicy.
func (p *retryPolicy) NextRetry(job *rivertype.JobRow) time.Time {
	pauses := backoff.BackOff{Base: retryBase, Cap: retryCap}
	return p.now().Add(pauses.Pause(job.Attempt, p.jitter()))
}
