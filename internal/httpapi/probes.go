package httpapi

import (
	"context"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"invoicebridge/internal/auth"
)

// readyTimeout bounds a readiness probe: a database that hangs is not ready.
const readyTimeout = 2 * time.Second

// probes registers what runs beside the service's own routes: is it alive, may it get work, its figures, its queue.
func (s *server) probes() {
	s.public(http.MethodGet, "/healthz", func(c echo.Context) error {
		return c.JSONBlob(http.StatusOK, []byte(`{"status":"alive"}`))
	})
	s.public(http.MethodGet, "/readyz", s.ready)
	s.either(http.MethodGet, "/metrics", auth.MayScrape, s.metrics.handler())
	s.riverUI()
}

func (s *server) ready(c echo.Context) error {
	ctx, cancel := context.WithTimeout(c.Request().Context(), readyTimeout)
	defer cancel()
	if err := s.deps.Ready(ctx); err != nil {
		s.log.WarnContext(ctx, "not ready", "error", err)
		return unavailable("Not ready. The reason is in the log.")
	}
	return c.JSONBlob(http.StatusOK, []byte(`{"status":"ready"}`))
}
