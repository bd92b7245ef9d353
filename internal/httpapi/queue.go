package httpapi

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/labstack/echo/v4"

	"invoicebridge/internal/audit"
	"invoicebridge/internal/auth"
	"invoicebridge/internal/problem"
)

// QueuePrefix is where River UI stands, for jobs.NewUI.
const QueuePrefix = "/queue"

// queuePolicy is the console's, except that River UI's style sheet draws its check boxes from data URLs, and that it has
// no forms. The few styles that it makes while it runs (how its messages slide in) are inline and stay without effect:
// nothing is lost with them, and its scripts need nothing inline.
const queuePolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"form-action 'none'; base-uri 'none'; frame-ancestors 'none'"

// Limits of what River UI's buttons send: River UI itself takes 1000 jobs at once.
const (
	maxQueueBody = 64 << 10
	maxQueueJobs = 1000
)

// Queue is River UI: *jobs.UI is one.
type Queue interface {
	http.Handler
	// Describe says what jobs are about, by id, of those that are there.
	Describe(ctx context.Context, ids []int64) (map[int64]string, error)
}

// AuditLog keeps what people do. *auth.Admin is one.
type AuditLog interface {
	// Record writes all entries or, with an error, none.
	Record(ctx context.Context, by audit.By, entries ...auth.AuditEntry) error
}

// riverUI registers River UI. The queue is the whole service's, so it takes more than a role of one tenant.
func (s *server) riverUI() {
	s.page(QueuePrefix, auth.MayQueue, func(c echo.Context) error {
		return c.Redirect(http.StatusSeeOther, QueuePrefix+"/")
	})
	s.mount(QueuePrefix+"/", auth.MayQueue, s.serveQueue)
}

func (s *server) serveQueue(c echo.Context) error {
	if s.deps.Queue == nil {
		return echo.ErrNotFound
	}
	switch c.Request().Method {
	case http.MethodGet, http.MethodHead:
	default:
		if err := s.recordQueueChange(c); err != nil {
			return err
		}
	}
	header := c.Response().Header()
	header.Set("Content-Security-Policy", queuePolicy)
	if strings.HasPrefix(c.Request().URL.Path, QueuePrefix+"/assets/") {
		// The names bear a hash of the content, but River UI answers its start page for a name it lacks: while versions
		// are being replaced, that must not be kept for long.
		header.Set("Cache-Control", "private, max-age=300")
	}
	s.deps.Queue.ServeHTTP(c.Response(), c.Request())
	return nil
}

// recordQueueChange writes down who is about to change what, before it happens. It knows every change that River UI
// offers; what it does not know is not passed on, so that nothing is changed unseen.
func (s *server) recordQueueChange(c echo.Context) error {
	change, err := s.readQueueChange(c)
	if err != nil {
		return err
	}
	who, request := identity(c), c.Request()
	entries := make([]auth.AuditEntry, len(change.subjects))
	for i, subject := range change.subjects {
		entries[i] = auth.AuditEntry{Tenant: who.Tenant, Action: change.action, Subject: subject}
	}
	return s.deps.Audit.Record(request.Context(), by(c, request.Method+" "+request.URL.Path), entries...)
}

// queueChange is one press of a button.
type queueChange struct {
	action   string
	subjects []string // at least one
}

func (s *server) readQueueChange(c echo.Context) (queueChange, error) {
	r := c.Request()
	parts := strings.Split(strings.TrimPrefix(r.URL.Path, QueuePrefix+"/api/"), "/")
	switch {
	case r.Method == http.MethodPost && len(parts) == 2 && parts[0] == "jobs":
		switch parts[1] {
		case "cancel", "delete", "retry":
			subjects, err := s.readQueueJobs(c)
			return queueChange{"queue.job." + parts[1], subjects}, err
		}
	case r.Method == http.MethodPut && len(parts) == 3 && parts[0] == "queues":
		switch parts[2] {
		case "pause", "resume":
			if !isQueueName(parts[1]) {
				return queueChange{}, problem.New(problem.NotFound, "There is no such queue.")
			}
			r.Body = http.NoBody
			return queueChange{"queue." + parts[2], []string{"queue " + parts[1]}}, nil
		}
	}
	return queueChange{}, problem.New(problem.NotFound, "The queue has no such button.")
}

// isQueueName keeps what can't be written down out of the audit; River's own names are shorter, and of plainer letters.
func isQueueName(text string) bool {
	return len(text) <= 128 && utf8.ValidString(text) && !strings.ContainsFunc(text, unicode.IsControl)
}

// readQueueJobs reads which jobs a button is for, and puts in place of the body one that says just that: what is done is
// what was written down, however differently two readers might take the same text.
func (s *server) readQueueJobs(c echo.Context) ([]string, error) {
	r := c.Request()
	body, err := io.ReadAll(http.MaxBytesReader(c.Response().Writer, r.Body, maxQueueBody))
	if err != nil {
		return nil, bodyProblem(err, maxQueueBody)
	}
	var asked struct {
		IDs []string `json:"ids"`
	}
	if err := json.Unmarshal(body, &asked); err != nil {
		return nil, problem.New(problem.MalformedRequest, `The body must be {"ids": ["1", "2"]}.`)
	}
	if len(asked.IDs) < 1 || len(asked.IDs) > maxQueueJobs {
		return nil, problem.New(problem.MalformedRequest, "A button is for 1 to %d jobs.", maxQueueJobs)
	}
	ids := make([]int64, len(asked.IDs))
	for i, text := range asked.IDs {
		if ids[i], err = strconv.ParseInt(text, 10, 64); err != nil {
			return nil, problem.New(problem.MalformedRequest, "%.40q is no id of a job.", text)
		}
	}
	about, err := s.deps.Queue.Describe(r.Context(), ids)
	if err != nil {
		return nil, err
	}
	subjects := make([]string, len(ids))
	for i, id := range ids {
		subjects[i] = strings.TrimSpace("job " + strconv.FormatInt(id, 10) + " " + about[id])
		asked.IDs[i] = strconv.FormatInt(id, 10)
	}
	if body, err = json.Marshal(asked); err != nil {
		return nil, err
	}
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return subjects, nil
}
