package httpapi

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/labstack/echo/v4"

	"invoicebridge/internal/auth"
	"invoicebridge/internal/problem"
)

// readyTimeout bounds a readiness probe: a database that hangs is not ready.
const readyTimeout = 2 * time.Second

// probes registers what runs beside the service's own routes: is it alive, may it get work, its figures, its queue.
func (s *server) probes() {
	s.public("/healthz", func(c echo.Context) error {
		return c.JSONBlob(http.StatusOK, []byte(`{"status":"alive"}`))
	})
	s.public("/readyz", s.ready)
	s.either(http.MethodGet, "/metrics", auth.MayScrape, s.metrics.handler())
	s.riverUI()
}

// Missing is one thing that a service lacks to do its work. What and Detail are for anybody who asks: they name no host
// and no SQL. Cause is for the log.
type Missing struct {
	What   string `json:"what"`   // one of a few words, for machines
	Detail string `json:"detail"` // one sentence, for people
	Cause  error  `json:"-"`
}

// NotReady is the error of Deps.Ready that says what is missing.
type NotReady []Missing

// Error is for the log.
func (n NotReady) Error() string {
	texts := make([]string, len(n))
	for i, m := range n {
		texts[i] = m.What
		if m.Cause != nil {
			texts[i] += " (" + m.Cause.Error() + ")"
		}
	}
	return strings.Join(texts, ", ")
}

func (s *server) ready(c echo.Context) error {
	ctx, cancel := context.WithTimeout(c.Request().Context(), readyTimeout)
	defer cancel()
	err := s.deps.Ready(ctx)
	if err == nil {
		return c.JSONBlob(http.StatusOK, []byte(`{"status":"ready"}`))
	}
	s.log.WarnContext(ctx, "not ready", "missing", err)
	var missing NotReady
	if !errors.As(err, &missing) {
		missing = NotReady{{What: "unknown", Detail: "The reason is in the log."}}
	}
	return s.tellNotReady(c, missing)
}

func (s *server) tellNotReady(c echo.Context, missing NotReady) error {
	k, _ := kindOf(problem.Unavailable)
	details := make([]string, len(missing))
	for i, m := range missing {
		details[i] = m.Detail
	}
	body, err := json.Marshal(document{
		Type: ProblemPath(k.problemType), Title: k.title, Status: k.status, Detail: "Not ready. " + strings.Join(details, " "),
		Instance: "urn:uuid:" + requestID(c), Missing: missing,
	}, json.Deterministic(true))
	if err != nil {
		return err
	}
	s.metrics.problem(k.problemType)
	c.Response().Header().Set(echo.HeaderRetryAfter, retryAfter(retryUnavailable))
	return c.Blob(k.status, "application/problem+json", body)
}
