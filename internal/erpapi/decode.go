// Package erpapi is the ERP's HTTP contract as Go types, its strict decoding and canonical form, and the client
// that turns problem documents back into problems. Both sides of the bridge meet here and nowhere else.
package erpapi

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"invoicebridge/internal/problem"
)

// strict refuses what json/v2 refuses by default (doubled members, invalid UTF-8, lone surrogates, members in
// another case, trailing data), and unknown members and NUL characters besides.
var strict = json.JoinOptions(
	json.RejectUnknownMembers(true),
	json.WithUnmarshalers(json.UnmarshalFromFunc(unmarshalText)),
)

// errNUL: PostgreSQL text cannot hold U+0000.
var errNUL = errors.New("text must not contain the character U+0000")

func unmarshalText(dec *jsontext.Decoder, s *string) error {
	tok, err := dec.ReadToken()
	if err != nil {
		return err
	}
	switch tok.Kind() {
	case 'n':
		*s = ""
	case '"':
		*s = tok.String()
		if strings.ContainsRune(*s, 0) {
			return errNUL
		}
	default:
		return fmt.Errorf("must be a JSON string, not %v", tok.Kind())
	}
	return nil
}

// DecodeStrict reads exactly one JSON value from body into v. What is wrong with it is told as a problem of type
// malformed-request, with the pointer of the place where that is known.
func DecodeStrict(body []byte, v any) error {
	err := json.Unmarshal(body, v, strict)
	if err == nil {
		return nil
	}
	return malformed(body, err)
}

func malformed(body []byte, err error) *problem.Problem {
	p := problem.New(problem.MalformedRequest, "The body is not one JSON object of the documented form: %s.", plainCause(err))
	var sem *json.SemanticError
	var syn *jsontext.SyntacticError
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF) || len(body) == 0:
		p.Detail = "The body is empty or ends in the middle of the JSON text."
	case errors.As(err, &sem):
		p.Errors = []problem.FieldError{{Pointer: string(sem.JSONPointer), Detail: plainCause(err)}}
	case errors.As(err, &syn):
		p.Errors = []problem.FieldError{{Pointer: string(syn.JSONPointer), Detail: plainCause(err)}}
	}
	return p
}

// DecodeInvoiceRequest reads the body of POST /v1/invoices. See DecodeStrict.
func DecodeInvoiceRequest(body []byte) (*InvoiceRequest, error) {
	if len(body) == 0 || body[0] != '{' && !startsObject(body) {
		return nil, problem.New(problem.MalformedRequest, "The body must be one JSON object.")
	}
	var r InvoiceRequest
	if err := DecodeStrict(body, &r); err != nil {
		return nil, err
	}
	if s := r.Sequence; s != nil && (*s > maxExactInteger || *s < -maxExactInteger) {
		p := problem.New(problem.MalformedRequest, "sequence is beyond what a JSON number can tell exactly.")
		p.Errors = []problem.FieldError{{Pointer: "/sequence", Detail: "is beyond 2^53 - 1"}}
		return nil, p
	}
	return &r, nil
}

// maxExactInteger is the largest that RFC 8785 writes as it is (RFC 7493, 2.2): beyond it two sequences would have one
// canonical form.
const maxExactInteger = 1<<53 - 1

func startsObject(body []byte) bool {
	trimmed := strings.TrimLeft(string(body[:min(len(body), 64)]), " \t\r\n")
	return strings.HasPrefix(trimmed, "{") || trimmed == ""
}

// plainCause tells an error without Go's type names.
func plainCause(err error) string {
	var sem *json.SemanticError
	if errors.As(err, &sem) {
		switch {
		case errors.Is(err, json.ErrUnknownName):
			return fmt.Sprintf("unknown member %s", sem.JSONPointer.LastToken())
		case errors.Is(err, jsontext.ErrDuplicateName):
			return fmt.Sprintf("member %s stands twice", sem.JSONPointer.LastToken())
		case sem.Err != nil && sem.JSONKind == 0:
			return sem.Err.Error()
		case sem.Err != nil:
			return sem.Err.Error()
		default:
			return fmt.Sprintf("a JSON %v does not belong here", sem.JSONKind)
		}
	}
	var syn *jsontext.SyntacticError
	if errors.As(err, &syn) && syn.Err != nil {
		return fmt.Sprintf("%v at byte %d", syn.Err, syn.ByteOffset)
	}
	return strings.TrimPrefix(err.Error(), "json: ")
}
