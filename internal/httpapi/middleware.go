package httpapi

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"invoicebridge/internal/logctx"
	"invoicebridge/internal/problem"
)

const requestIDHeader = "X-Request-Id"

// identifyRequest gives every request an id of our own: in the answer, in log lines, in problem documents. One the
// caller sends is not taken, it could be anything.
func (s *server) identifyRequest(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		id := uuid.New().String()
		c.Response().Header().Set(requestIDHeader, id)
		setContext(c, logctx.WithRequest(c.Request().Context(), id))
		return next(c)
	}
}

func requestID(c echo.Context) string { return c.Response().Header().Get(requestIDHeader) }

func setContext(c echo.Context, ctx context.Context) { c.SetRequest(c.Request().WithContext(ctx)) }

// observe logs and counts every request once, with the status its caller got. The context then has what the
// handlers found out: tenant and operation key.
func (s *server) observe(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		start := time.Now()
		if err := next(c); err != nil {
			s.handleError(err, c)
		}
		took := time.Since(start)
		route, status := routeLabel(c), c.Response().Status
		s.metrics.request(c.Request().Method, route, status, took)
		s.log.LogAttrs(c.Request().Context(), accessLevel(route, status), "request",
			slog.String("method", c.Request().Method), slog.String("route", route),
			slog.Int("status", status), slog.Duration("took", took))
		return nil
	}
}

// accessLevel keeps probes and scrapes, which come every few seconds, out of the log unless they fail.
func accessLevel(route string, status int) slog.Level {
	switch route {
	case "/healthz", "/readyz", "/metrics":
		if status < http.StatusInternalServerError {
			return slog.LevelDebug
		}
	}
	return slog.LevelInfo
}

// routeLabel is the route's pattern, never the path: a label has few values.
func routeLabel(c echo.Context) string {
	if c.Path() == "" {
		return "none"
	}
	return c.Path()
}

// securityHeaders sets what holds for every answer. Pages replace the two that are about content.
func securityHeaders(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		h := c.Response().Header()
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Cache-Control", "no-store")
		h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
		h.Set("Referrer-Policy", "no-referrer")
		return next(c)
	}
}

// recoverPanic makes a panic an internal error. Transactions it passed through were rolled back on its way up.
func (s *server) recoverPanic(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) (err error) {
		defer func() {
			r := recover()
			if r == nil {
				return
			}
			if r == http.ErrAbortHandler {
				panic(r)
			}
			err = fmt.Errorf("panic: %v\n%s", r, debug.Stack())
		}()
		return next(c)
	}
}

// limitInFlight turns away what is too much at once, before it costs anything.
func (s *server) limitInFlight(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		defer s.inFlight.Add(-1)
		if s.inFlight.Add(1) > int64(s.deps.MaxInFlight) {
			return &problem.Problem{
				Type:       problem.TooManyRequests,
				Detail:     fmt.Sprintf("More than %d requests are at work at once.", s.deps.MaxInFlight),
				RetryAfter: time.Second,
			}
		}
		return next(c)
	}
}

// limitTime gives a request a deadline. What runs into it is answered 503.
func (s *server) limitTime(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		ctx, cancel := context.WithTimeout(c.Request().Context(), s.deps.RequestTimeout)
		defer cancel()
		setContext(c, ctx)
		return next(c)
	}
}
