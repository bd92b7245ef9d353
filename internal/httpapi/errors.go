package httpapi

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/labstack/echo/v4"

	"invoicebridge/internal/problem"
)

// kind is how a problem type is told over HTTP.
type kind struct {
	problemType problem.Type
	status      int
	title       string
}

// kinds is the one table that joins the vocabulary of problems to HTTP, in the order of the contract. That it is
// complete is tested, and so is that every type has a page and stands in the contract.
func kinds() []kind {
	return []kind{
		{problem.MalformedRequest, http.StatusBadRequest, "The request can't be read"},
		{problem.IdempotencyKeyMissing, http.StatusBadRequest, "The idempotency key is missing"},
		{problem.IdempotencyKeyInvalid, http.StatusBadRequest, "The idempotency key is not valid"},
		{problem.Unauthenticated, http.StatusUnauthorized, "A valid bearer token is needed"},
		{problem.Forbidden, http.StatusForbidden, "The token's role is not enough"},
		{problem.NotFound, http.StatusNotFound, "There is no such thing"},
		{problem.MethodNotAllowed, http.StatusMethodNotAllowed, "The method is not allowed here"},
		{problem.OperationInProgress, http.StatusConflict, "The first request with this key has not ended"},
		{problem.AlreadyInvoiced, http.StatusConflict, "This is already invoiced"},
		{problem.ContentTooLarge, http.StatusRequestEntityTooLarge, "The body is too large"},
		{problem.UnsupportedMediaType, http.StatusUnsupportedMediaType, "The body is in a form that is not supported"},
		{problem.IdempotencyKeyReused, http.StatusUnprocessableEntity, "The key was used for another request"},
		{problem.InvalidInvoice, http.StatusUnprocessableEntity, "The invoice is not valid"},
		{problem.InvalidOrder, http.StatusUnprocessableEntity, "The order is not valid"},
		{problem.VersionConflict, http.StatusConflict, "This version is known with other content"},
		{problem.WrongState, http.StatusConflict, "This can't be done as things stand"},
		{problem.TooManyRequests, http.StatusTooManyRequests, "There are too many requests"},
		{problem.Overloaded, http.StatusServiceUnavailable, "The service has as much to do as it can"},
		{problem.Unavailable, http.StatusServiceUnavailable, "The service is not available right now"},
		{problem.Internal, http.StatusInternalServerError, "Something went wrong on our side"},
	}
}

func kindOf(t problem.Type) (kind, bool) {
	for _, k := range kinds() {
		if k.problemType == t {
			return k, true
		}
	}
	return kind{}, false
}

// document is a problem on the wire (RFC 9457).
type document struct {
	Type        string               `json:"type"`
	Title       string               `json:"title"`
	Status      int                  `json:"status"`
	Detail      string               `json:"detail,omitzero"`
	Instance    string               `json:"instance"`
	Errors      []problem.FieldError `json:"errors,omitempty"`
	Differences []string             `json:"differences,omitempty"`
	Invoice     *problem.InvoiceRef  `json:"invoice,omitzero"`
	SameContent *bool                `json:"same_content,omitzero"`
	Missing     NotReady             `json:"missing,omitempty"`
}

const internalDetail = "The cause was written down under the request id in \"instance\". " +
	"The same request with the same key may be sent again."

// retryUnavailable is how long a caller is asked to wait where nobody knows better.
const retryUnavailable = 2 * time.Second

// handleError is Echo's error handler: the one place where an error becomes an answer. What is no problem is logged
// here, once, and not told.
func (s *server) handleError(err error, c echo.Context) {
	if c.Response().Committed {
		s.log.ErrorContext(c.Request().Context(), "error after the answer had begun", "error", err)
		return
	}
	p := s.asProblem(c.Request().Context(), err)
	s.metrics.problem(p.Type)
	tell := func() error { return writeProblem(c, p) }
	if onPage(c) {
		tell = func() error { return s.tellOnPage(c, p) }
	}
	if err := tell(); err != nil {
		s.log.DebugContext(c.Request().Context(), "answer not written", "error", err)
	}
}

// isAbandonment says whether an error is what becomes of a request whose context ends.
func isAbandonment(err error) bool {
	return problem.Is(err, problem.Unavailable) || problem.As(err) == nil && errors.Is(err, context.Canceled)
}

// tellNobody ends an abandoned request. It is no problem that somebody met, and no line in the log.
func (s *server) tellNobody(c echo.Context, err error) {
	if c.Response().Committed {
		return
	}
	p := problem.As(err)
	if p == nil {
		p = unavailable("The request ended before it was answered. " + resend)
	}
	_ = writeProblem(c, p) // who should be told that it could not be written?
}

const resend = "Nobody knows yet whether it took effect: send it again with the same key."

// asProblem gives the problem to tell for an error.
func (s *server) asProblem(ctx context.Context, err error) *problem.Problem {
	var fromEcho *echo.HTTPError
	switch p := problem.As(err); {
	case p != nil && p.Type != problem.Internal:
		return p
	case errors.As(err, &fromEcho):
		if p := echoProblem(fromEcho); p != nil {
			return p
		}
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		s.log.WarnContext(ctx, "request not finished in time, or its caller went away", "error", err)
		return unavailable("The request was not finished in time. " + resend)
	case databaseAway(err):
		s.log.ErrorContext(ctx, "database not available", "error", err)
		return unavailable("The database can't be reached right now.")
	}
	s.log.LogAttrs(ctx, slog.LevelError, "internal error", slog.Any("error", err))
	return problem.New(problem.Internal, internalDetail)
}

func unavailable(detail string) *problem.Problem {
	return &problem.Problem{Type: problem.Unavailable, Detail: detail, RetryAfter: retryUnavailable}
}

// echoProblem is the problem behind an error of Echo's own; nil if there is none.
func echoProblem(err *echo.HTTPError) *problem.Problem {
	switch err.Code {
	case http.StatusNotFound:
		return problem.New(problem.NotFound, "Nothing is served under this path.")
	case http.StatusMethodNotAllowed:
		return problem.New(problem.MethodNotAllowed, "See the header Allow for the methods this path has.")
	case http.StatusRequestEntityTooLarge:
		return problem.New(problem.ContentTooLarge, "The body is too large.")
	case http.StatusUnsupportedMediaType:
		return problem.New(problem.UnsupportedMediaType, "The body must be application/json.")
	case http.StatusBadRequest:
		return problem.New(problem.MalformedRequest, "The request can't be read.")
	}
	return nil
}

// toldDocument is a problem as it is told to a request. A type outside the table is told as internal.
func toldDocument(p *problem.Problem, requestID string) document {
	k, ok := kindOf(p.Type)
	if !ok {
		p = problem.New(problem.Internal, internalDetail)
		k, _ = kindOf(p.Type)
	}
	doc := document{
		Type: ProblemPath(p.Type), Title: k.title, Status: k.status, Detail: p.Detail,
		Instance: "urn:uuid:" + requestID, Errors: p.Errors, Differences: p.Differences, Invoice: p.Invoice,
	}
	if p.Type == problem.AlreadyInvoiced {
		doc.SameContent = &p.SameContent
	}
	return doc
}

// writeProblem tells a problem.
func writeProblem(c echo.Context, p *problem.Problem) error {
	doc := toldDocument(p, requestID(c))
	body, err := json.Marshal(doc, json.Deterministic(true))
	if err != nil {
		return err
	}
	header := c.Response().Header()
	if p.RetryAfter > 0 {
		header.Set(echo.HeaderRetryAfter, retryAfter(p.RetryAfter))
	}
	if p.Type == problem.Unauthenticated {
		header.Set(echo.HeaderWWWAuthenticate, `Bearer realm="invoicebridge"`)
	}
	return c.Blob(doc.Status, "application/problem+json", body)
}

// ProblemPath is the "type" of a problem document and the path of its page.
func ProblemPath(t problem.Type) string { return "/problems/" + string(t) }

// retryAfter is retrySeconds as the header tells it.
func retryAfter(d time.Duration) string { return strconv.FormatInt(retrySeconds(d), 10) }

// retrySeconds is whole seconds (RFC 9110, 10.2.3), rounded up: never sooner than meant, never 0.
func retrySeconds(d time.Duration) int64 { return int64(math.Ceil(d.Seconds())) }
