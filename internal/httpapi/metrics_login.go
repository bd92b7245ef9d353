package httpapi

import (
	"github.com/prometheus/client_golang/prometheus"

	"invoicebridge/internal/problem"
)

// How people's log-ins end, for the metrics.
const (
	loginOK        = "ok"
	loginRefused   = "refused"   // name, password or account is not right
	loginThrottled = "throttled" // too many failures before: not even looked at
	loginFailed    = "failed"    // a fault of ours, or of the provider
)

func newLogins() *prometheus.CounterVec {
	logins := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "logins_total", Help: "Log-ins of people by how they ended."}, []string{"result"})
	for _, result := range []string{loginOK, loginRefused, loginThrottled, loginFailed} {
		logins.WithLabelValues(result)
	}
	return logins
}

// loginEnded counts a log-in; err is why nobody is logged in.
func (m *metrics) loginEnded(err error) { m.logins.WithLabelValues(loginResult(err)).Inc() }

func loginResult(err error) string {
	if err == nil {
		return loginOK
	}
	p := problem.As(err)
	if p == nil {
		return loginFailed
	}
	switch p.Type {
	case problem.TooManyRequests:
		return loginThrottled
	case problem.Unavailable, problem.Internal:
		return loginFailed
	}
	return loginRefused
}
