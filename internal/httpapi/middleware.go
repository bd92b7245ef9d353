package httpapi

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"invoicebridge/internal/logctx"
)

const requestIDHeader = "X-Request-Id"

// identifyRequest gives every request an id of our own: in the answer, in log lines, in problem documents. One the
// caller sends is not taken, it could be anything.
func (s *server) identifyRequest(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		id := uuid.New().String()
		c.Response().Header().Set(requestIDHeader, id)
		setContext(logctx.WithRequest(c.Request().Context(), id), c)
		return next(c)
	}
}

func requestID(c echo.Context) string { return c.Response().Header().Get(requestIDHeader) }

func setContext(ctx context.Context, c echo.Context) { c.SetRequest(c.Request().WithContext(ctx)) }

// observe logs and counts every request once, with the status its caller got. The context then has what the
// handlers found out: tenant and operation key.
//
// A request that failed because its caller went away is counted as 499: impatient callers are no failure of the
// service. It is answered like any other, since "away" may be one half of a connection only: whoever still reads must
// not find the empty 200 that net/http writes where nobody else has written.
func (s *server) observe(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		start, caller := time.Now(), c.Request().Context()
		err := next(c)
		gone := caller.Err() != nil && isAbandonment(err)
		if gone {
			s.tellNobody(c, err)
		} else if err != nil {
			s.handleError(err, c)
		}
		took := time.Since(start)
		route, status := routeLabel(c), c.Response().Status
		if gone {
			status = statusCallerGone
		}
		s.metrics.request(c.Request().Method, route, status, took)
		describeSpan(c, route, status)
		s.log.LogAttrs(c.Request().Context(), accessLevel(c, route, status), "request",
			slog.String("method", c.Request().Method), slog.String("route", route),
			slog.Int("status", status), slog.Duration("took", took))
		return nil
	}
}

// statusCallerGone is for log and metrics only.
const statusCallerGone = 499

// accessLevel keeps probes and scrapes, which come every few seconds, out of the log unless they fail, and what was turned away
// because there was too much.
func accessLevel(c echo.Context, route string, status int) slog.Level {
	if wasTurnedAway(c) {
		return slog.LevelDebug
	}
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
		h.Set("X-Frame-Options", "DENY")        // beside frame-ancestors, for what does not know that
		h.Set("Referrer-Policy", "same-origin") // not no-referrer: a form of ours would then say Origin: null
		return next(c)
	}
}

// onlyByTLS has browsers come back by TLS alone for a year (RFC 6797), where they came by it. It holds for the host with all
// its ports, and not for hosts below it: those are others'.
func (s *server) onlyByTLS(next echo.HandlerFunc) echo.HandlerFunc {
	if !s.deps.Secure {
		return next
	}
	return func(c echo.Context) error {
		c.Response().Header().Set(echo.HeaderStrictTransportSecurity, "max-age=31536000")
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
			if aborted, ok := r.(error); ok && errors.Is(aborted, http.ErrAbortHandler) {
				panic(r)
			}
			err = fmt.Errorf("panic: %v\n%s", r, debug.Stack())
		}()
		return next(c)
	}
}

// limitTime gives a request a deadline. What runs into it is answered 503.
func (s *server) limitTime(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		ctx, cancel := context.WithTimeout(c.Request().Context(), s.deps.RequestTimeout)
		defer cancel()
		setContext(ctx, c)
		return next(c)
	}
}
