package httpapi

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"invoicebridge/internal/auth"
	"invoicebridge/internal/problem"
)

// Sessions is what pages need to know who looks at them. *auth.Sessions is one.
type Sessions interface {
	// LogIn checks a name and a password and begins a session; what is refused is a problem: unauthenticated, or
	// too-many-requests with the time to wait.
	LogIn(ctx context.Context, name, password string, from auth.Origin) (auth.Session, error)
	// Begin begins a session for a person who was recognised in another way, such as OIDC.
	Begin(ctx context.Context, account auth.Account, from auth.Origin) (auth.Session, error)
	// Identify says whose session a cookie's value belongs to; problem unauthenticated if to nobody's. Only where a
	// person did something, and not a page that refreshes itself, does the session count as used.
	Identify(ctx context.Context, value string, used bool) (auth.Identity, error)
	// End ends the session of a cookie's value; nothing if there is none.
	End(ctx context.Context, value string) error
}

// person is who is logged in by the request's cookie; the zero Identity if nobody is.
func (s *server) person(c echo.Context) (auth.Identity, error) {
	value := s.cookieValue(c, s.sessionCookie())
	if value == "" || s.deps.Sessions == nil {
		return auth.Identity{}, nil
	}
	who, err := s.deps.Sessions.Identify(c.Request().Context(), value, !refreshesItself(c))
	if problem.Is(err, problem.Unauthenticated) {
		return auth.Identity{}, nil
	}
	return who, err
}

// refreshesItself says whether a page of ours asks by its script, as it does every few seconds while it is open: a screen
// that was left alone must not keep its session for ever. Browsers tell it (Fetch Metadata, Sec-Fetch-Dest).
func refreshesItself(c echo.Context) bool {
	a, _ := c.Get(accessKey).(access)
	return a.gate == gatePage && c.Request().Header.Get("Sec-Fetch-Dest") == "empty"
}

// recognise finds out who is logged in, where that is not needed. A database that is away makes nobody known: the page
// is for strangers, too.
func (s *server) recognise(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		who, err := s.person(c)
		if err != nil {
			s.log.WarnContext(c.Request().Context(), "who is logged in can't be told", "error", err)
		}
		c.Set(identityKey, who)
		return next(c)
	}
}

// authenticatePerson lets through only people who are logged in. A stranger is led to the log-in page, and from there
// back.
func (s *server) authenticatePerson(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		who, err := s.person(c)
		if err != nil {
			return err
		}
		if who.Zero() {
			return s.askToLogIn(c)
		}
		c.Set(identityKey, who)
		return next(c)
	}
}

func (s *server) askToLogIn(c echo.Context) error {
	if !onPage(c) {
		return problem.New(problem.Unauthenticated, "Log in first.")
	}
	return c.Redirect(http.StatusSeeOther, "/login?"+url.Values{"next": {backTo(c.Request())}}.Encode())
}

// backTo is the page to come back to after log-in: the one asked for or, for a form, the one it stood on.
func backTo(r *http.Request) string {
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return localPath(r.URL.RequestURI())
	}
	from, err := url.Parse(r.Referer())
	if err != nil || from.Host != r.Host {
		return startPage
	}
	return localPath(from.RequestURI())
}

// prefersHTML says whether a client is a browser that asks for a page.
func prefersHTML(r *http.Request) bool {
	return strings.Contains(r.Header.Get(echo.HeaderAccept), echo.MIMETextHTML)
}

// isAPIPath: what is asked for there is never a page.
func isAPIPath(path string) bool {
	return strings.HasPrefix(path, "/v1/") || strings.HasPrefix(path, "/admin/v1/") || path == "/metrics" ||
		strings.HasPrefix(path, QueuePrefix+"/api/")
}

// sessionCookie is named for the service: two services on one host see each other's cookies, whatever their ports.
func (s *server) sessionCookie() string { return s.cookieName("session") }

func (s *server) cookieName(what string) string {
	name := "ib_" + s.look.short + "_" + what
	if s.deps.Secure { // the browser then takes it from this host only, over TLS only (RFC 6265bis, 4.1.3.2)
		return "__Host-" + name
	}
	return name
}

func (s *server) cookieValue(c echo.Context, name string) string {
	cookie, err := c.Request().Cookie(name)
	if err != nil {
		return ""
	}
	return cookie.Value
}

// setCookie sets a cookie for all paths. life 0 ends it with the browser, below 0 at once.
func (s *server) setCookie(c echo.Context, name, value string, life time.Duration) {
	cookie := &http.Cookie{
		Name: name, Value: value, Path: "/", HttpOnly: true, Secure: s.deps.Secure, SameSite: http.SameSiteLaxMode,
		MaxAge: int(life / time.Second),
	}
	if life < 0 {
		cookie.MaxAge = -1
	}
	c.SetCookie(cookie)
}

// origin is where a log-in comes from.
func origin(c echo.Context) auth.Origin {
	return auth.Origin{Address: c.RealIP(), UserAgent: c.Request().UserAgent()}
}
