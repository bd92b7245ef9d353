package httpapi

import (
	"strings"

	"github.com/labstack/echo/v4"

	"invoicebridge/internal/audit"
	"invoicebridge/internal/auth"
	"invoicebridge/internal/problem"
)

const identityKey = "identity"

// authenticateToken lets through only callers with a valid bearer token, before a byte of the body is read. The
// handler finds who it is by identity.
func (s *server) authenticateToken(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		text, err := bearerToken(c.Request().Header.Values(echo.HeaderAuthorization))
		if err != nil {
			return err
		}
		who, err := s.deps.Tokens.Verify(c.Request().Context(), text)
		if err != nil {
			return err
		}
		c.Set(identityKey, who)
		return next(c)
	}
}

// authenticateEither takes the header if there is one, and the session's cookie if there is none.
func (s *server) authenticateEither(next echo.HandlerFunc) echo.HandlerFunc {
	withToken := s.authenticateToken(next)
	return func(c echo.Context) error {
		if len(c.Request().Header.Values(echo.HeaderAuthorization)) > 0 {
			return withToken(c)
		}
		who, err := s.person(c)
		if err != nil {
			return err
		}
		if who.Zero() {
			return problem.New(problem.Unauthenticated, "Send one header \"Authorization: Bearer <token>\", or log in.")
		}
		c.Set(identityKey, who)
		return next(c)
	}
}

// identity is who calls. Behind every gate but the open one it is always there; on a public page it is the zero
// Identity unless somebody is logged in.
func identity(c echo.Context) auth.Identity {
	who, _ := c.Get(identityKey).(auth.Identity)
	return who
}

// by says for the audit who acts, from where and why.
func by(c echo.Context, reason string) audit.By {
	who := identity(c)
	via := audit.ViaAPI
	if who.TokenID == "" {
		via = audit.ViaConsole
	}
	return audit.By{
		Actor: who.Actor(), Reason: reason, Via: via, Address: c.RealIP(), RequestID: requestID(c), Account: who.Account,
	}
}

// bearerToken reads the header (RFC 6750, 2.1; the scheme's name has no case). Two headers are refused: two readers
// might choose differently.
func bearerToken(values []string) (string, error) {
	if len(values) != 1 {
		return "", problem.New(problem.Unauthenticated, "Send one header \"Authorization: Bearer <token>\".")
	}
	scheme, token, found := strings.Cut(values[0], " ")
	if !found || !strings.EqualFold(scheme, "Bearer") {
		return "", problem.New(problem.Unauthenticated, "Send one header \"Authorization: Bearer <token>\".")
	}
	return strings.Trim(token, " "), nil
}
