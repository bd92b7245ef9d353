package httpapi

import (
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/labstack/echo/v4"

	"invoicebridge/internal/problem"
)

// limit names what turns requests away where there are too many at once.
type limit string

const (
	limitService limit = "service" // the API's, all tenants
	limitTenant  limit = "tenant"  // the API's, one tenant
	limitBatches limit = "batches" // batches of invoices, on the ERP's side only
	limitPages   limit = "pages"
	limitLogIns  limit = "logins"
)

func limits() []limit {
	return []limit{limitService, limitTenant, limitBatches, limitPages, limitLogIns}
}

const (
	// maxPagesAtOnce is few enough to leave the database to the API, and many for people.
	maxPagesAtOnce = 64
	// maxLogInsAtOnce is apart from the pages' limit: who floods the log-in keeps nobody out who is in already.
	maxLogInsAtOnce = 16
	// retryTurnedAway is short: places become free all the time. Callers add their own spread.
	retryTurnedAway = time.Second
)

// shares counts the requests of the API that are at work or wait, by tenant.
type shares struct {
	mu      sync.Mutex
	tenants map[string]int // those that have any
}

// take counts one more, unless the tenant has so many already.
func (s *shares) take(tenant string, most int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tenants[tenant] >= most {
		return false
	}
	s.tenants[tenant]++
	return true
}

func (s *shares) giveBack(tenant string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tenants[tenant]--; s.tenants[tenant] == 0 {
		delete(s.tenants, tenant)
	}
}

// limitInFlight turns away what is too much at once, before it costs anything: nobody has asked the database whose it is, and
// the service has not read its body.
func (s *server) limitInFlight(next echo.HandlerFunc) echo.HandlerFunc {
	return s.limitAtOnce(limitService, &s.inFlight, s.deps.MaxInFlight, next)
}

// limitShare keeps a tenant that floods the service from taking every place from the others. It comes once it is known whose
// the request is. That is the tenant's own excess, so it is told 429, and not that the service is overloaded.
func (s *server) limitShare(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		tenant := identity(c).Tenant
		if !s.shares.take(tenant, s.deps.MaxPerTenant) {
			s.turnedAway(c, limitTenant)
			return &problem.Problem{
				Type:       problem.TooManyRequests,
				Detail:     fmt.Sprintf("%d requests of this tenant are at work or waiting already.", s.deps.MaxPerTenant),
				RetryAfter: retryTurnedAway,
			}
		}
		defer s.shares.giveBack(tenant)
		return next(c)
	}
}

// limitPages counts people's requests apart: those of machines that are too many must not keep an operator out.
func (s *server) limitPages(next echo.HandlerFunc) echo.HandlerFunc {
	return s.limitAtOnce(limitPages, &s.onPages, maxPagesAtOnce, next)
}

func (s *server) limitLogIns(next echo.HandlerFunc) echo.HandlerFunc {
	return s.limitAtOnce(limitLogIns, &s.loggingIn, maxLogInsAtOnce, next)
}

func (s *server) limitAtOnce(by limit, atWork *atomic.Int64, most int, next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		defer atWork.Add(-1)
		if atWork.Add(1) > int64(most) {
			s.turnedAway(c, by)
			return &problem.Problem{
				Type: problem.Overloaded, Detail: fmt.Sprintf("%d such requests are at work or waiting already.", most), RetryAfter: retryTurnedAway,
			}
		}
		return next(c)
	}
}

const turnedAwayKey = "turned away"

// turnedAway counts a request that a limit turned away, and keeps it out of the log, where it has its part in a line a second:
// an excess must not take from the others what writing it down costs.
func (s *server) turnedAway(c echo.Context, by limit) {
	c.Set(turnedAwayKey, true)
	s.metrics.turnedAway.WithLabelValues(string(by)).Inc()
	if n := s.excess.add(time.Now()); n > 0 {
		s.log.LogAttrs(c.Request().Context(), slog.LevelWarn, "requests turned away, too many at once",
			slog.Int64("since_last_line", n), slog.String("last_limit", string(by)))
	}
}

func wasTurnedAway(c echo.Context) bool { return c.Get(turnedAwayKey) != nil }

// excess counts what is not worth a line of its own.
type excess struct {
	n    atomic.Int64
	told atomic.Int64 // when, in Unix nanoseconds
}

// add counts one more. It gives how many there were since it last gave a number, once a second; otherwise 0.
func (e *excess) add(now time.Time) int64 {
	e.n.Add(1)
	told := e.told.Load()
	if now.UnixNano()-told < int64(time.Second) || !e.told.CompareAndSwap(told, now.UnixNano()) {
		return 0
	}
	return e.n.Swap(0)
}
