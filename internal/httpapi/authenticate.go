package httpapi

import (
	"strings"

	"github.com/labstack/echo/v4"

	"invoicebridge/internal/auth"
	"invoicebridge/internal/logctx"
	"invoicebridge/internal/problem"
)

const identityKey = "identity"

// authenticate lets through only callers whose token has at least the needed role, before a byte of the body is
// read. The handler finds who it is by identity.
func (s *server) authenticate(needed auth.Role) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			ctx := c.Request().Context()
			text, err := bearerToken(c.Request().Header.Values(echo.HeaderAuthorization))
			if err != nil {
				return err
			}
			who, err := s.deps.Tokens.Verify(ctx, text)
			if err != nil {
				return err
			}
			setContext(logctx.WithTenant(ctx, who.Tenant), c)
			if !who.Role.Allows(needed) {
				return problem.New(problem.Forbidden, "This needs a token with role %s; this one's is %s.", needed, who.Role)
			}
			c.Set(identityKey, who)
			return next(c)
		}
	}
}

// identity is who calls. Behind authenticate it is always there.
func identity(c echo.Context) auth.Identity {
	who, _ := c.Get(identityKey).(auth.Identity)
	return who
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
