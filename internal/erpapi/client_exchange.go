package erpapi

import (
	"bytes"
	"mime"
	"net/http"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"invoicebridge/internal/outbound"
	"invoicebridge/internal/problem"
)

// Exchange is all that is known after one call: what left, what came back, and how far it got.
type Exchange struct {
	// SendingBegan: a connection was there and the ERP may have got the request. False is proof that it has not.
	SendingBegan bool
	// Status is 0 if no answer began.
	Status int
	Header http.Header
	// Body is what arrived of the body. Complete: it ended as announced and within the bound.
	Body     []byte
	Complete bool
	// Err is what went wrong in transport, at whatever stage. It holds no secret.
	Err error

	// What the body holds, as far as it is complete and of that form; otherwise nil.
	Invoice   *Invoice         // from a 200 or 201 of POST /v1/invoices
	Operation *Operation       // from a 200 of GET /v1/operations/{key}
	Problem   *problem.Problem // from any answer with a problem document

	// RetryAfter is the least pause that the answer asks for, within RetryAfterFloor and RetryAfterCap. It is given
	// only by one well-formed header.
	RetryAfter      time.Duration
	RetryAfterGiven bool
}

// Replayed says whether the ERP marked the answer as the stored one of an earlier request.
func (x *Exchange) Replayed() bool { return x.Header.Get("Idempotent-Replayed") == "true" }

// HTML says whether the body is, or calls itself, a page for people.
func (x *Exchange) HTML() bool {
	switch x.mediaType() {
	case "text/html", "application/xhtml+xml":
		return true
	}
	return bytes.HasPrefix(bytes.TrimLeft(x.Body, " \t\r\n\ufeff"), []byte("<"))
}

func (x *Exchange) mediaType() string {
	mediaType, _, err := mime.ParseMediaType(x.Header.Get("Content-Type"))
	if err != nil {
		return ""
	}
	return mediaType
}

// decode reads the body. It takes unknown members (a newer ERP may tell more), but nothing that json/v2 finds
// ambiguous: doubled members, invalid UTF-8, trailing data.
func (x *Exchange) decode(method string) {
	found := x.Status == http.StatusOK || x.Status == http.StatusCreated
	switch {
	case !x.Complete:
	case found && method == http.MethodPost:
		x.Invoice = decoded[Invoice](x.Body)
	case found:
		x.Operation = decoded[Operation](x.Body)
	case x.Status >= http.StatusBadRequest:
		x.Problem = FromDocument(x.Body)
		if x.Problem != nil {
			x.Problem.RetryAfter = x.RetryAfter
		}
	}
}

// decoded is nil unless body is one JSON object of that form.
func decoded[T any](body []byte) *T {
	if !startsObject(body) { // json takes null for any form
		return nil
	}
	var v T
	if json.Unmarshal(body, &v) != nil {
		return nil
	}
	return &v
}

// document is a problem document (RFC 9457) with the members that this contract adds.
type document struct {
	Type        string               `json:"type"`
	Title       string               `json:"title"`
	Detail      string               `json:"detail"`
	Errors      []problem.FieldError `json:"errors"`
	Differences []string             `json:"differences"`
	Invoice     *problem.InvoiceRef  `json:"invoice"`
	SameContent bool                 `json:"same_content"`
}

// FromDocument turns a problem document back into the problem that it tells. It is nil if body is no such document.
// The type's last path segment is the problem's type, whether or not this binary knows it.
func FromDocument(body []byte) *problem.Problem {
	d := decoded[document](body)
	if d == nil {
		return nil
	}
	slug := d.Type[strings.LastIndex(d.Type, "/")+1:]
	if slug == "" || slug == "about:blank" {
		return nil
	}
	p := &problem.Problem{
		Type: problem.Type(slug), Detail: d.Detail, Errors: d.Errors, Differences: d.Differences,
		Invoice: d.Invoice, SameContent: d.SameContent,
	}
	if p.Detail == "" {
		p.Detail = d.Title
	}
	return p
}

// The bounds of a pause that an answer asks for; see outbound.RetryAfter.
const (
	RetryAfterFloor = outbound.MinRetryAfter
	RetryAfterCap   = outbound.MaxRetryAfter
)
