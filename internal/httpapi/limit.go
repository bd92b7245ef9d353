package httpapi

import (
	"context"
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

// places are where requests of the API are at work or wait. There are so many in a process, of which one tenant has no more
// than its share.
type places struct {
	most, share int

	mu      sync.Mutex
	taken   int
	tenants map[string]int // those that have any
}

func newPlaces(most, share int) *places {
	return &places{most: most, share: share, tenants: map[string]int{}}
}

func (p *places) atWork() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.taken
}

func (p *places) take() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.taken >= p.most {
		return false
	}
	p.taken++
	return true
}

func (p *places) giveBack() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.taken--
}

func (p *places) takeShare(tenant string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.tenants[tenant] >= p.share {
		return false
	}
	p.tenants[tenant]++
	return true
}

func (p *places) giveBackShare(tenant string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.tenants[tenant]--; p.tenants[tenant] == 0 {
		delete(p.tenants, tenant)
	}
}

// limitInFlight turns away what is too much at once, before it costs anything: nobody has asked the database whose it is, and
// the service has not read its body.
func (s *server) limitInFlight(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if !s.places.take() {
			return s.overloaded(c, limitService, s.places.most)
		}
		defer s.places.giveBack()
		return next(c)
	}
}

// limitShare keeps a tenant that floods the service from taking every place from the others. It comes once it is known whose
// the request is. That is the tenant's own excess, so it is told 429, and not that the service is overloaded.
func (s *server) limitShare(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		tenant := identity(c).Tenant
		if !s.places.takeShare(tenant) {
			s.turnedAway(c, limitTenant)
			return &problem.Problem{
				Type:       problem.TooManyRequests,
				Detail:     fmt.Sprintf("%d requests of this tenant are at work or waiting already.", s.places.share),
				RetryAfter: retryTurnedAway,
			}
		}
		defer s.places.giveBackShare(tenant)
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
			return s.overloaded(c, by, most)
		}
		return next(c)
	}
}

func (s *server) overloaded(c echo.Context, by limit, most int) error {
	s.turnedAway(c, by)
	return &problem.Problem{
		Type: problem.Overloaded, Detail: fmt.Sprintf("%d such requests are at work or waiting already.", most), RetryAfter: retryTurnedAway,
	}
}

const turnedAwayKey = "turned away"

// turnedAway counts a request that a limit turned away, and keeps it out of the log, where it has its part in a line a second:
// an excess must not take from the others what writing it down costs.
func (s *server) turnedAway(c echo.Context, by limit) {
	c.Set(turnedAwayKey, true)
	s.metrics.turnedAway.WithLabelValues(string(by)).Inc()
	if n := s.excess.add(time.Now()); n > 0 {
		s.log.LogAttrs(context.WithoutCancel(c.Request().Context()), slog.LevelWarn, "requests turned away, too many at once",
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
