// Package httpapi is the HTTP side of both services: routes, authentication, decoding, the error table and the pages
// for people. It alone imports Echo.
package httpapi

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/labstack/echo/v4"
	"github.com/labstack/gommon/log"

	"invoicebridge/internal/auth"
)

// Deps is what both services need.
type Deps struct {
	Logger *slog.Logger
	Tokens *auth.Verifier
	// Ready returns nil if the service can do its work: database there, schema right, not stopping. The error goes
	// to the log, not to the caller.
	Ready func(ctx context.Context) error
	// Pool is what /metrics reports on; nil leaves it out.
	Pool *pgxpool.Pool
	// RequestTimeout is the time for one request, the transaction included. 0 is 20 s.
	RequestTimeout time.Duration
	// MaxInFlight is how many requests may be at work or wait for a connection at once; those above are told to
	// come back (429). 0 is 256.
	MaxInFlight int
}

const (
	defaultRequestTimeout = 20 * time.Second
	defaultMaxInFlight    = 256
)

// server is Echo with everything around the handlers.
type server struct {
	echo     *echo.Echo
	deps     Deps
	log      *slog.Logger
	metrics  *metrics
	inFlight atomic.Int64
}

func newServer(deps Deps) *server {
	if deps.Logger == nil {
		deps.Logger = slog.New(slog.DiscardHandler)
	}
	if deps.RequestTimeout <= 0 {
		deps.RequestTimeout = defaultRequestTimeout
	}
	if deps.MaxInFlight <= 0 {
		deps.MaxInFlight = defaultMaxInFlight
	}
	s := &server{echo: echo.New(), deps: deps, log: deps.Logger}
	s.metrics = newMetrics(deps.Pool, &s.inFlight)
	s.echo.HTTPErrorHandler = s.handleError
	s.echo.Logger.SetOutput(io.Discard) // everything is logged by slog
	s.echo.Logger.SetLevel(log.OFF)
	s.echo.Use(s.identifyRequest, s.observe, securityHeaders, s.recoverPanic)
	return s
}

// get registers a handler for GET and HEAD; net/http leaves out the body of an answer to HEAD.
func (s *server) get(path string, h echo.HandlerFunc, m ...echo.MiddlewareFunc) {
	s.echo.GET(path, h, m...)
	s.echo.HEAD(path, h, m...)
}

// api is the middleware of every route that asks for a token: a place among the requests in flight, a deadline,
// and only then the database.
func (s *server) api(needed auth.Role) []echo.MiddlewareFunc {
	return []echo.MiddlewareFunc{s.limitInFlight, s.limitTime, s.authenticate(needed)}
}

// ServeHTTP implements http.Handler.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.echo.ServeHTTP(w, r) }
