// Package answer reads answers of targets as far as all kinds are alike: what transport failures, proxies and load
// balancers in between, and the common members of JSON answers say, and above all what they don't.
package answer

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"invoicebridge/internal/outbound"
	"invoicebridge/internal/target"
)

// Sent says what an exchange that should have changed something at a target means. Where it is not decided, the answer
// is complete JSON with one of the statuses that kinds read for themselves (see ownStatus), and s has what is common.
//
// The one rule for NotApplied: only what the target's own interface (JSON) says, or what comes before any work by its
// nature (no connection, 401, 429), proves that nothing happened. A page may come from anybody in between, at any
// time: after a time-out behind a load balancer, or from a filter that did not like the answer.
func Sent(x outbound.Exchange, now time.Time) (s target.Sent, decided bool) {
	s = target.Sent{
		Detail: describe(x), RetryAfter: outbound.RetryAfter(x.Header, now), HTTPStatus: x.Status, Answer: x.Body,
	}
	isJSON := outbound.IsJSON(x.Header)
	switch {
	case x.Status == 0 && !x.Begun:
		s.Outcome, s.NotApplied = target.NotSent, true
	case x.Status == 0:
		s.Outcome = target.Lost
	case x.Status == http.StatusUnauthorized:
		s.Outcome, s.NotApplied = target.NotAuthorised, true
	case x.Status == http.StatusTooManyRequests:
		s.Outcome, s.NotApplied = target.Wait, true
	case x.Status == http.StatusServiceUnavailable:
		// Some proxies say 503, too, where the connection broke behind them after the request had gone through.
		s.Outcome = target.Wait
	case x.Status >= 300 && x.Status <= 399:
		// Not followed. It may well be the way to the result of work that was done (303).
		s.Outcome = target.Misconfigured
	case x.Err != nil:
		s.Outcome = target.Lost
	case ownStatus(x.Status) && isJSON:
		return s, false
	case x.Status == http.StatusForbidden && isJSON:
		s.Outcome, s.NotApplied = target.NotAuthorised, true
	case noSuchInterface(x.Status):
		s.Outcome, s.NotApplied = target.Misconfigured, isJSON
	case !isJSON && len(x.Body) > 0 && x.Status < 500 && x.Status != http.StatusRequestTimeout:
		s.Outcome = target.Misconfigured
	default:
		s.Outcome = target.Lost
	}
	return s, true
}

// ownStatus: what these mean is told by the body.
func ownStatus(status int) bool {
	return Succeeded(status) || Refused(status) || status == http.StatusConflict
}

// Succeeded says whether a target tells of what it has with this status.
func Succeeded(status int) bool {
	return status == http.StatusOK || status == http.StatusCreated || status == http.StatusAccepted
}

// Refused says whether a target refuses a request for what is in it with this status.
func Refused(status int) bool {
	switch status {
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType,
		http.StatusUnprocessableEntity:
		return true
	}
	return false
}

func noSuchInterface(status int) bool {
	switch status {
	case http.StatusForbidden, http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusNotAcceptable, http.StatusGone:
		return true
	}
	return false
}

// describe says in one line what came back.
func describe(x outbound.Exchange) string {
	var b strings.Builder
	switch {
	case x.Status == 0 && x.Err != nil && !x.Begun:
		return fmt.Sprintf("nothing was sent: %v", x.Err)
	case x.Status == 0:
		return fmt.Sprintf("no answer: %v", x.Err)
	}
	fmt.Fprintf(&b, "answered %d %s", x.Status, http.StatusText(x.Status))
	switch contentType := x.Header.Get("Content-Type"); {
	case len(x.Body) == 0:
		b.WriteString(", empty")
	case contentType != "" && !outbound.IsJSON(x.Header):
		fmt.Fprintf(&b, ", %.80q", contentType)
	}
	if location := x.Header.Get("Location"); location != "" && x.Status >= 300 && x.Status <= 399 {
		fmt.Fprintf(&b, ", not followed to %.200q", location)
	}
	if x.Err != nil {
		fmt.Fprintf(&b, ", incomplete: %v", x.Err)
	}
	return b.String()
}
