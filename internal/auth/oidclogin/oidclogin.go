// Package oidclogin finds out by an OpenID Connect provider who somebody is: authorization code with PKCE (RFC 7636, S256),
// state and nonce. Whose account that is, and whether they may come in, is decided elsewhere.
package oidclogin

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"invoicebridge/internal/problem"
)

const (
	// callTime is for one call to the provider, maxAnswer the most that is read of its answer.
	callTime  = 5 * time.Second
	maxAnswer = 1 << 20
	// pause is how long a provider that could not be reached is left alone: the log-in page must not be a way to make
	// this service knock at another one.
	pause = 3 * time.Second
)

// Config is what the provider knows this service by.
type Config struct {
	Issuer, ClientID, ClientSecret string
	// Redirect is where the provider sends the browser back to; registered there, letter by letter.
	Redirect string
	Logger   *slog.Logger
	Now      func() time.Time // nil: time.Now
}

// Provider is an OIDC provider. It is looked up when it is first needed, and again until that succeeds: a provider that is
// away keeps nobody out who has a password, nor the service from starting. It is safe for concurrent use.
type Provider struct {
	config Config
	client *http.Client
	log    *slog.Logger
	now    func() time.Time

	away   atomic.Bool
	mu     sync.Mutex // held for one look-up, which ends by callTime
	found  *endpoints
	failed time.Time // of the last look-up that failed
}

// endpoints are what discovery gives.
type endpoints struct {
	oauth    *oauth2.Config
	verifier *oidc.IDTokenVerifier
}

// New makes a Provider. It calls nobody.
func New(c Config) *Provider {
	p := &Provider{config: c, log: c.Logger, now: c.Now, client: &http.Client{
		Timeout: callTime, Transport: bounded{http.DefaultTransport},
		// A redirect of the token endpoint would carry the code, and perhaps the secret, to another place.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	if p.log == nil {
		p.log = slog.New(slog.DiscardHandler)
	}
	if p.now == nil {
		p.now = time.Now
	}
	return p
}

// Away says whether the provider could not be reached the last time that somebody needed it. It calls nobody.
func (p *Provider) Away() bool { return p.away.Load() }

// discover gives the endpoints, by a look-up if they are not known yet. Unavailable if the provider can't be reached.
func (p *Provider) discover(ctx context.Context) (*endpoints, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.found != nil {
		return p.found, nil
	}
	if !p.failed.IsZero() && p.now().Sub(p.failed) < pause {
		return nil, away()
	}
	// Not the browser's context: who goes away must not make the provider look as if it were away.
	ctx, cancel := context.WithTimeout(p.calling(context.WithoutCancel(ctx)), callTime)
	defer cancel()
	provider, err := oidc.NewProvider(ctx, p.config.Issuer)
	if err != nil {
		p.failed = p.now()
		return nil, p.unreachable(ctx, fmt.Errorf("look up the OIDC provider: %w", err))
	}
	p.away.Store(false)
	p.found = &endpoints{
		oauth: &oauth2.Config{
			ClientID: p.config.ClientID, ClientSecret: p.config.ClientSecret, RedirectURL: p.config.Redirect,
			Endpoint: provider.Endpoint(), Scopes: []string{oidc.ScopeOpenID, "email"},
		},
		verifier: provider.Verifier(&oidc.Config{ClientID: p.config.ClientID, Now: p.now}),
	}
	return p.found, nil
}

// calling makes both libraries use the client with limits.
func (p *Provider) calling(ctx context.Context) context.Context {
	return oidc.ClientContext(ctx, p.client)
}

// unreachable notes err, but only the beginning: that of a look-up has all that the provider answered.
func (p *Provider) unreachable(ctx context.Context, err error) error {
	p.away.Store(true)
	p.log.ErrorContext(ctx, "the OIDC provider is of no use just now", "issuer", p.config.Issuer, "error", clipped(err.Error()))
	return away()
}

func away() error {
	away := problem.New(problem.Unavailable, "The identity provider can't be reached just now.")
	away.RetryAfter = pause
	return away
}

// bounded reads only so much of an answer.
type bounded struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := b.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	response.Body = http.MaxBytesReader(nil, response.Body, maxAnswer)
	return response, nil
}
