package httpapi

import (
	"net/http"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/labstack/echo/v4"

	"invoicebridge/internal/auth"
	"invoicebridge/internal/problem"
	"invoicebridge/web"
)

// maxLoginForm is plenty for a name, a password and a path.
const maxLoginForm = 64 << 10

// logIn registers the way in and the way out.
func (s *server) logIn() {
	s.publicPage("/login", s.loginPage)
	s.register(http.MethodPost, "/login", access{gate: gateOpen}, s.login, s.limitLogIns, s.limitTime)
	s.register(http.MethodPost, "/logout", access{gate: gateOpen}, s.logout, s.limitPages, s.limitTime)
	s.logInByOIDC()
}

// loginPage asks for name and password. Who is logged in already is where they wanted to go.
func (s *server) loginPage(c echo.Context) error {
	next := localPath(c.QueryParam("next"))
	if refusal(c) == nil && !identity(c).Zero() {
		return c.Redirect(http.StatusSeeOther, next)
	}
	return s.showLogin(c, "", next)
}

func (s *server) showLogin(c echo.Context, name, next string) error {
	page := web.Login{Layout: s.layout(c, "Log in", "/login"), Name: name, Next: next, Password: true, OIDC: s.oidcButton(next)}
	if p := refusal(c); p != nil {
		page.Error, page.Layout.Flash = refusalText(p), nil // said once, beside the form
		if p.RetryAfter > 0 {
			page.RetryAfter = inWords(p.RetryAfter)
		}
	}
	return s.show(c, page)
}

// login begins a session. The old one of this browser, whoever's it was, is ended: nobody goes on under a cookie that
// was there before.
func (s *server) login(c echo.Context) error {
	form, err := readForm(c, maxLoginForm)
	if err != nil {
		return err
	}
	ctx, next := c.Request().Context(), localPath(form.Get("next"))
	session, err := s.deps.Sessions.LogIn(ctx, form.Get("name"), form.Get("password"), origin(c))
	s.metrics.loginEnded(err)
	if err != nil {
		return s.again(c, err, func(c echo.Context) error { return s.showLogin(c, form.Get("name"), next) })
	}
	return s.welcome(c, session, next)
}

// welcome hands a new session to the browser and leads on to a path of ours.
func (s *server) welcome(c echo.Context, session auth.Session, next string) error {
	if old := s.cookieValue(c, s.sessionCookie()); old != "" {
		if err := s.deps.Sessions.End(c.Request().Context(), old); err != nil {
			return err
		}
	}
	s.setCookie(c, s.sessionCookie(), session.Value, 0)
	return c.Redirect(http.StatusSeeOther, localPath(next))
}

// logout ends the session, in the database first.
func (s *server) logout(c echo.Context) error {
	if value := s.cookieValue(c, s.sessionCookie()); value != "" && s.deps.Sessions != nil {
		if err := s.deps.Sessions.End(c.Request().Context(), value); err != nil {
			return err
		}
	}
	s.setCookie(c, s.sessionCookie(), "", -1)
	return s.done(c, "/login", "You are logged out.")
}

// readForm reads a form of at most limit bytes out of the body. What stands in the address does not count. Text that the
// database can't keep is malformed.
func readForm(c echo.Context, limit int64) (url.Values, error) {
	r := c.Request()
	r.Body = http.MaxBytesReader(c.Response().Writer, r.Body, limit)
	if err := r.ParseForm(); err != nil {
		return nil, bodyProblem(err, limit)
	}
	for name, values := range r.PostForm {
		for _, value := range append(values, name) {
			if !utf8.ValidString(value) || strings.ContainsRune(value, 0) {
				return nil, problem.New(problem.MalformedRequest, "The field %.80q is not text.", name)
			}
		}
	}
	return r.PostForm, nil
}
