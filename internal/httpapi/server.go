// Package httpapi is the HTTP side of both services: routes, authentication, decoding, the error table and the pages
// for people. It alone imports Echo.
package httpapi

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/labstack/echo/v4"
	"github.com/labstack/gommon/log"

	"invoicebridge/internal/auth"
	"invoicebridge/web"
)

// Deps is what both services need.
type Deps struct {
	Logger *slog.Logger
	Tokens *auth.Verifier
	// Sessions are people's; nil: nobody can log in.
	Sessions Sessions
	// OIDC is the log-in by an identity provider, beside that by password; nil: there is none.
	OIDC *OIDC
	// PublicURL is where browsers reach the service, such as https://erp.example, if that is not where it listens.
	PublicURL string
	// Secure: browsers reach the service by TLS, so its cookies are for TLS only.
	Secure bool
	// TrustedProxies are the networks whose word on the caller's address (X-Forwarded-For) is taken.
	TrustedProxies []*net.IPNet
	// Ready returns nil if the service can do its work: database there, schema right, not stopping. The error goes
	// to the log, not to the caller.
	Ready func(ctx context.Context) error
	// Pool is what /metrics reports on; nil leaves it out.
	Pool *pgxpool.Pool
	// Queue is River UI; nil: its paths lead nowhere.
	Queue Queue
	// Audit keeps what people do with the queue.
	Audit AuditLog
	// RequestTimeout is the time for one request, the transaction included. 0 is 20 s.
	RequestTimeout time.Duration
	// MaxInFlight is how many requests of the API may be at work or wait for a connection at once; those above are told at
	// once to come back (503). 0 is 512.
	MaxInFlight int
	// MaxPerTenant is how many of them may be one tenant's; those above are told to come back (429). 0 is half.
	MaxPerTenant int
}

const (
	defaultRequestTimeout = 20 * time.Second
	// defaultMaxInFlight is the two groups of at most 128 that group commit has at work, and as many requests again that wait for
	// their turn: enough that no group goes out half empty, few enough that the last is answered after the time of some groups.
	defaultMaxInFlight = 512
)

// server is Echo with everything around the handlers.
type server struct {
	echo      *echo.Echo
	deps      Deps
	look      look
	log       *slog.Logger
	metrics   *metrics
	web       *web.Pages
	sites     *http.CrossOriginProtection
	decisions map[string]access // by "METHOD /path/:pattern"
	inFlight  atomic.Int64      // of the API
	shares    shares
	onPages   atomic.Int64
	loggingIn atomic.Int64
	excess    excess
}

// look is what the two services' pages differ in.
type look struct {
	short   string // in names of cookies
	service string // for people
	console []navLink
}

// nav are the links of all pages: the console's, and those for everybody.
func (l look) nav() []navLink {
	return append(slices.Clone(l.console), navLink{web.Link{Href: QueuePrefix + "/", Text: "Queue"}, auth.MayQueue},
		navLink{Link: web.Link{Href: "/docs", Text: "API reference"}},
		navLink{Link: web.Link{Href: "/problems", Text: "Problems"}})
}

// navLink is a link that stands on every page of whoever holds a permission; 0: of everybody.
type navLink struct {
	web.Link
	needs auth.Permission
}

func newServer(deps Deps, l look) (*server, error) {
	if deps.Logger == nil {
		deps.Logger = slog.New(slog.DiscardHandler)
	}
	if deps.RequestTimeout <= 0 {
		deps.RequestTimeout = defaultRequestTimeout
	}
	if deps.MaxInFlight <= 0 {
		deps.MaxInFlight = defaultMaxInFlight
	}
	if deps.MaxPerTenant <= 0 {
		deps.MaxPerTenant = max(1, deps.MaxInFlight/2)
	}
	pages, err := web.New()
	if err != nil {
		return nil, err
	}
	s := &server{echo: echo.New(), deps: deps, look: l, log: deps.Logger, web: pages, decisions: map[string]access{}, shares: shares{tenants: map[string]int{}}}
	if s.sites, err = ownSites(deps.PublicURL); err != nil {
		return nil, err
	}
	s.metrics = newMetrics(deps.Pool, &s.inFlight)
	s.echo.HTTPErrorHandler = s.handleError
	s.echo.Logger.SetOutput(io.Discard) // everything is logged by slog
	s.echo.Logger.SetLevel(log.OFF)
	s.echo.IPExtractor = callersAddress(deps.TrustedProxies)
	s.echo.Use(s.identifyRequest, s.observe, securityHeaders, s.onlyByTLS, s.recoverPanic, refuseNoText, s.refuseOtherSites)
	return s, nil
}

// ServeHTTP implements http.Handler.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.echo.ServeHTTP(w, r) }
