package httpapi

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"invoicebridge/internal/tracectx"
)

// describeSpan names a request's span by its route, as log and metrics do, and says whose request it was. The span was
// begun before the router knew. Where there is no such route it keeps its name: anybody can make up a method.
func describeSpan(c echo.Context, route string, status int) {
	ctx := c.Request().Context()
	if c.Path() != "" && status != http.StatusMethodNotAllowed {
		tracectx.Name(ctx, c.Request().Method+" "+route)
		tracectx.Set(ctx, "http.route", route)
	}
	if tenant := identity(c).Tenant; tenant != "" {
		tracectx.Set(ctx, tracectx.Tenant, tenant)
	}
}
