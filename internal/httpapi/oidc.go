package httpapi

import (
	"context"
	"encoding/base64"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"invoicebridge/internal/audit"
	"invoicebridge/internal/auth"
	"invoicebridge/internal/auth/oidclogin"
	"invoicebridge/web"
)

// OIDCCallback is where the provider sends browsers back to, below the public address.
const OIDCCallback = "/login/oidc/callback"

const (
	oidcBegin = "/login/oidc"
	// oidcLife is how long somebody has for what the provider asks of them.
	oidcLife = 10 * time.Minute
	// maxOIDCNext keeps the cookie below what browsers take.
	maxOIDCNext = 1500
)

// OIDC is log-in by an OpenID Connect provider.
type OIDC struct {
	// Name is the provider's, for the button.
	Name     string
	Provider OIDCProvider
	Accounts OIDCAccounts
}

// OIDCProvider says who somebody is. *oidclogin.Provider is one; what it refuses are problems.
type OIDCProvider interface {
	Begin(ctx context.Context) (flow oidclogin.Flow, address string, err error)
	Finish(ctx context.Context, flow oidclogin.Flow, answer url.Values) (auth.OIDCPerson, error)
	// Away says whether it could not be reached the last time.
	Away() bool
}

// OIDCAccounts says whose account that is. *auth.Admin does; what it refuses are problems.
type OIDCAccounts interface {
	AccountByOIDC(ctx context.Context, person auth.OIDCPerson, by audit.By) (auth.Account, error)
}

// logInByOIDC registers the way to the provider and the way back. Without a provider they lead nowhere.
//
// Both are GET, the way back because the provider sends the browser by a redirect. That begins a session, and so changes
// something, which a GET may not where a link of somebody else's could do it: here it takes the state out of a cookie that only
// this service set, only in the browser that began the log-in, and only for one answer. A link by itself, a prefetcher and a page
// of another site have no such state, or not the cookie's, and change nothing. A HEAD is refused: it would use up the code.
func (s *server) logInByOIDC() {
	for path, h := range map[string]echo.HandlerFunc{oidcBegin: s.beginOIDC, OIDCCallback: s.finishOIDC} {
		s.register(http.MethodGet, path, access{gate: gateOpen}, h, onlyGET, s.limitLogIns, s.limitTime)
	}
}

func onlyGET(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if c.Request().Method != http.MethodGet {
			c.Response().Header().Set(echo.HeaderAllow, http.MethodGet)
			return echo.ErrMethodNotAllowed
		}
		return next(c)
	}
}

// beginOIDC leads to the provider. It writes nothing into the database: what the way back needs is in the browser's cookie.
func (s *server) beginOIDC(c echo.Context) error {
	if s.deps.OIDC == nil {
		return echo.ErrNotFound
	}
	next := localPath(c.QueryParam("next"))
	flow, address, err := s.deps.OIDC.Provider.Begin(c.Request().Context())
	if err != nil {
		s.metrics.loginEnded(err)
		return s.oidcRefused(c, err, next)
	}
	s.setCookie(c, s.oidcCookie(), formatFlow(flow, next), oidcLife)
	return c.Redirect(http.StatusSeeOther, address)
}

// finishOIDC begins a session for whoever the provider vouches for and who has an account. However it ends, the flow is over
// with it.
func (s *server) finishOIDC(c echo.Context) error {
	if s.deps.OIDC == nil {
		return echo.ErrNotFound
	}
	flow, next := parseFlow(s.cookieValue(c, s.oidcCookie()))
	s.setCookie(c, s.oidcCookie(), "", -1)
	session, err := s.sessionByOIDC(c, flow)
	s.metrics.loginEnded(err)
	if err != nil {
		return s.oidcRefused(c, err, next)
	}
	return s.welcome(c, session, next)
}

func (s *server) sessionByOIDC(c echo.Context, flow oidclogin.Flow) (auth.Session, error) {
	ctx := c.Request().Context()
	person, err := s.deps.OIDC.Provider.Finish(ctx, flow, c.QueryParams())
	if err != nil {
		return auth.Session{}, err
	}
	account, err := s.deps.OIDC.Accounts.AccountByOIDC(ctx, person, by(c, ""))
	if err != nil {
		return auth.Session{}, err
	}
	return s.deps.Sessions.Begin(ctx, account, origin(c))
}

// oidcRefused tells on the log-in page why nobody is logged in.
func (s *server) oidcRefused(c echo.Context, err error, next string) error {
	return s.again(c, err, func(c echo.Context) error { return s.showLogin(c, "", next) })
}

// oidcButton is the button on the log-in page; nil without a provider.
func (s *server) oidcButton(next string) *web.Link {
	if s.deps.OIDC == nil {
		return nil
	}
	button := &web.Link{Text: "Log in with " + s.deps.OIDC.Name, Href: oidcBegin + "?" + url.Values{"next": {next}}.Encode()}
	if s.deps.OIDC.Provider.Away() {
		button.About = s.deps.OIDC.Name + " could not be reached the last time. Log in by name and password if you have one, or try again."
	}
	return button
}

func (s *server) oidcCookie() string { return s.cookieName("oidc") }

// formatFlow writes a flow, and where it leads, for a cookie. It is not signed: whoever can write cookies into this browser can
// as well put in one that was made here for them, which the prefix __Host- is against.
func formatFlow(flow oidclogin.Flow, next string) string {
	if len(next) > maxOIDCNext {
		next = startPage
	}
	return strings.Join([]string{flow.State, flow.Nonce, flow.Verifier, base64.RawURLEncoding.EncodeToString([]byte(next))}, ".")
}

// parseFlow takes only what formatFlow gives. It is the zero Flow, which no answer fits, if there is none.
func parseFlow(value string) (flow oidclogin.Flow, next string) {
	parts := strings.Split(value, ".")
	if len(parts) != 4 || slices.Contains(parts, "") {
		return oidclogin.Flow{}, startPage
	}
	path, err := base64.RawURLEncoding.DecodeString(parts[3])
	if err != nil {
		return oidclogin.Flow{}, startPage
	}
	flow = oidclogin.Flow{State: parts[0], Nonce: parts[1], Verifier: parts[2]}
	if formatFlow(flow, string(path)) != value {
		return oidclogin.Flow{}, startPage
	}
	return flow, localPath(string(path))
}
