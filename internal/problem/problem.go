// Package problem is the one vocabulary of expected errors. Whatever is not a *Problem is internal: it is logged
// at the edge and never told to a caller. The package knows nothing of HTTP; internal/httpapi has the table that
// joins a Type to a status (RFC 9457), internal/erpapi turns documents back into Problems.
package problem

import (
	"errors"
	"fmt"
	"time"
)

// Type names one kind of expected error. Its value is the last segment of the problem document's "type".
type Type string

// The whole vocabulary, in the order of the contract's table.
const (
	MalformedRequest      Type = "malformed-request"
	IdempotencyKeyMissing Type = "idempotency-key-missing"
	IdempotencyKeyInvalid Type = "idempotency-key-invalid"
	Unauthenticated       Type = "unauthenticated"
	Forbidden             Type = "forbidden"
	NotFound              Type = "not-found"
	MethodNotAllowed      Type = "method-not-allowed"
	OperationInProgress   Type = "operation-in-progress"
	AlreadyInvoiced       Type = "already-invoiced"
	ContentTooLarge       Type = "content-too-large"
	UnsupportedMediaType  Type = "unsupported-media-type"
	IdempotencyKeyReused  Type = "idempotency-key-reused"
	InvalidInvoice        Type = "invalid-invoice"
	InvalidOrder          Type = "invalid-order"
	VersionConflict       Type = "version-conflict"
	WrongState            Type = "wrong-state"
	TooManyRequests       Type = "too-many-requests"
	Overloaded            Type = "overloaded"
	Unavailable           Type = "unavailable"
	Internal              Type = "internal"
)

// Problem is an expected error together with what the caller needs to go on.
type Problem struct {
	Type   Type
	Detail string
	// RetryAfter, where positive, is the least time to wait before the same request is worth sending again.
	RetryAfter time.Duration
	// Errors are the members that are wrong (malformed-request, invalid-invoice, invalid-order).
	Errors []FieldError
	// Differences are JSON pointers of members that differ from the first request under this key. No values.
	Differences []string
	// Invoice is the invoice that already has the business claim (already-invoiced) ...
	Invoice *InvoiceRef
	// ... and SameContent says whether this request asks for just that invoice.
	SameContent bool
}

// FieldError says what is wrong with one member of a request.
type FieldError struct {
	Pointer string `json:"pointer"` // RFC 6901
	Detail  string `json:"detail"`
}

// InvoiceRef names an invoice and the operation that made it.
type InvoiceRef struct {
	ID           string `json:"id"`
	Number       string `json:"number"`
	OperationKey string `json:"operation_key"`
}

// Error implements error.
func (p *Problem) Error() string {
	if p.Detail == "" {
		return string(p.Type)
	}
	return string(p.Type) + ": " + p.Detail
}

// New makes a Problem whose detail is formatted as by fmt.Sprintf.
func New(t Type, format string, args ...any) *Problem {
	return &Problem{Type: t, Detail: fmt.Sprintf(format, args...)}
}

// As gives the Problem in err's chain, or nil if there is none: then err is internal.
func As(err error) *Problem {
	var p *Problem
	if errors.As(err, &p) {
		return p
	}
	return nil
}

// Is says whether err's chain holds a Problem of type t.
func Is(err error, t Type) bool {
	p := As(err)
	return p != nil && p.Type == t
}
