package httpapi

import (
	"net/http"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"

	"invoicebridge/internal/auth"
	"invoicebridge/internal/logctx"
	"invoicebridge/internal/problem"
	"invoicebridge/internal/tenantdb"
)

// gate is how a route learns who calls.
type gate string

const (
	gateOpen   gate = "open"   // anybody, nobody is asked
	gateToken  gate = "token"  // a bearer token; a stranger gets 401
	gatePage   gate = "page"   // a session; a stranger is led to the log-in page
	gateMount  gate = "mount"  // a session; a stranger is led to the log-in page if it is a page that is asked for, else 401
	gateEither gate = "either" // a bearer token or a session; a stranger gets 401
)

// access is the decision on who may use a route. Each is made where the route is registered, and kept: a test walks
// them all, and a route without one does not pass it.
type access struct {
	gate  gate
	needs auth.Permission // of every gate but the open one
	page  bool            // shows something to people
}

const accessKey = "access"

// register adds a route with its decision; one for GET also for HEAD, where net/http leaves out the body.
func (s *server) register(method, path string, a access, h echo.HandlerFunc, around ...echo.MiddlewareFunc) {
	note := func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			c.Set(accessKey, a)
			return next(c)
		}
	}
	around = append([]echo.MiddlewareFunc{note}, around...)
	methods := []string{method}
	if method == http.MethodGet {
		methods = append(methods, http.MethodHead)
	}
	for _, m := range methods {
		s.echo.Add(m, path, h, around...)
		s.decisions[m+" "+path] = a
	}
}

// Pages are the patterns of all that people can look at, such as /invoices/:id. Whoever looks after the pages walks them by it.
func (s *server) Pages() (patterns []string) {
	for route, a := range s.decisions {
		if path, isGet := strings.CutPrefix(route, http.MethodGet+" "); isGet && a.page {
			patterns = append(patterns, path)
		}
	}
	slices.Sort(patterns)
	return patterns
}

// public is a route for anybody, for GET and HEAD.
func (s *server) public(path string, h echo.HandlerFunc) {
	s.register(http.MethodGet, path, access{gate: gateOpen}, h)
}

// publicPage is a page for anybody, which knows who looks at it if somebody is logged in.
func (s *server) publicPage(path string, h echo.HandlerFunc) {
	s.register(http.MethodGet, path, access{gate: gateOpen, page: true}, h, s.limitTime, s.recognise)
}

// api is a route for callers with a bearer token: a place among the requests in flight, a deadline, and only then
// the database; and no more places than the tenant's share.
func (s *server) api(method, path string, needs auth.Permission, h echo.HandlerFunc) {
	s.register(method, path, access{gate: gateToken, needs: needs}, h, s.limitInFlight, s.limitTime, s.authenticateToken, s.require(needs), s.limitShare)
}

// page is a page for people who are logged in, for GET and HEAD.
func (s *server) page(path string, needs auth.Permission, h echo.HandlerFunc) {
	s.register(http.MethodGet, path, access{gate: gatePage, needs: needs, page: true}, h, s.limitPages, s.limitTime, s.authenticatePerson, s.require(needs))
}

// form takes what a page sends by POST. It answers by s.done, or by s.again if the action was refused.
func (s *server) form(path string, needs auth.Permission, h echo.HandlerFunc) {
	s.register(http.MethodPost, path, access{gate: gatePage, needs: needs}, h, s.limitPages, s.limitTime, s.authenticatePerson, s.require(needs))
}

// either is a route for machines with a token and for people in their browser.
func (s *server) either(method, path string, needs auth.Permission, h echo.HandlerFunc) {
	s.register(method, path, access{gate: gateEither, needs: needs}, h, s.limitPages, s.limitTime, s.authenticateEither, s.require(needs))
}

// mount hands everything under prefix, which ends with /, to another handler. A stranger is led to the log-in page
// where a browser asks for a page, and gets 401 elsewhere.
func (s *server) mount(prefix string, needs auth.Permission, h echo.HandlerFunc) {
	for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
		s.register(method, prefix+"*", access{gate: gateMount, needs: needs}, h,
			s.limitPages, s.limitTime, s.authenticatePerson, s.require(needs))
	}
}

// require lets through only who holds a permission. From here on the request can reach the data of its tenant and of no other,
// whatever the handler asks for.
func (s *server) require(needs auth.Permission) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			who := identity(c)
			setContext(tenantdb.WithCaller(logctx.WithTenant(c.Request().Context(), who.Tenant), who.Tenant), c)
			if !who.May(needs) {
				return problem.New(problem.Forbidden, "This needs the permission to %s, which the role %s does not have.", needs, who.Role)
			}
			return next(c)
		}
	}
}

// onPage says whether an answer is for a person who looks at a page, and so an error is told as one.
func onPage(c echo.Context) bool {
	a, known := c.Get(accessKey).(access)
	switch {
	case known && a.gate == gatePage:
		return true
	case known && (a.gate == gateToken || a.gate == gateEither):
		return false
	}
	return prefersHTML(c.Request()) && !isAPIPath(c.Request().URL.Path)
}
