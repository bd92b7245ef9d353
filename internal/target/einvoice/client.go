// Package einvoice registers invoices at an e-invoicing gateway that honours idempotency keys and can be asked what it
// has. The interface it speaks:
//
//	POST {base}/documents?external_reference=R   Idempotency-Key: K, body: the invoice document
//	    201, 202  {"id", "external_reference", "number", "status", "reference", "warnings": [...]}
//	              status: accepted (with reference), held, processing, error (may still be accepted), rejected
//	    409       {"code": "in_progress"}
//	              {"code": "already_submitted", "original": {"id", "reference", "external_reference", "number"}}
//	    422       {"code": "key_reused"} or {"code", "detail", "errors": [{"pointer", "code", "detail"}]}
//	GET {base}/documents?external_reference=R    {"items": [ ... ]}
//	GET {base}/documents/{id}                    one, as above
//
// External references are compared by the gateway as they are. "Already submitted" is a success only where the answer
// says that what was submitted is this invoice.
package einvoice

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"invoicebridge/internal/outbound"
	"invoicebridge/internal/target"
)

// Kind is this package's name in a target's settings.
const Kind = "einvoice"

// Config is what a Client needs. All of it is required but Now and Wrap.
type Config struct {
	BaseURL string
	Token   target.Secret
	// Timeout is the time limit of one request, from the name look-up to the answer's last byte.
	Timeout time.Duration
	Now     func() time.Time // read only for a pause stated as a date in an answer without Date; nil: time.Now
	// Wrap, where given, is put around what sends the requests; see outbound.Config.
	Wrap func(http.RoundTripper) http.RoundTripper
}

// Client speaks to one gateway. It is safe for use by several goroutines.
type Client struct {
	base  *url.URL
	token target.Secret
	now   func() time.Time
	http  *outbound.Client
}

// New makes a client, or says which setting is wrong.
func New(cfg Config) (*Client, error) {
	base, err := outbound.ParseBase(cfg.BaseURL)
	if err != nil {
		return nil, fmt.Errorf("e-invoicing gateway: %w", err)
	}
	if cfg.Token.IsZero() {
		return nil, errors.New("e-invoicing gateway: the credential is missing")
	}
	client, err := outbound.New(outbound.Config{Timeout: cfg.Timeout, Wrap: cfg.Wrap})
	if err != nil {
		return nil, fmt.Errorf("e-invoicing gateway: %w", err)
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return &Client{base: base, token: cfg.Token, now: cfg.Now, http: client}, nil
}

// CheckCapabilities is Capabilities.Check; this kind has nothing to add.
func CheckCapabilities(c target.Capabilities, longestRequest time.Duration) error {
	return c.Check(longestRequest)
}

// Close closes idle connections.
func (c *Client) Close() { c.http.Close() }

func (c *Client) header() http.Header {
	return http.Header{
		"Accept":        {"application/json"},
		"Authorization": {"Bearer " + c.token.Reveal()},
		"User-Agent":    {"invoicebridge"},
	}
}

// keyHeader is the key as the header's value: as it is, or, where a header could not carry that unchanged, as the
// quoted string of RFC 8941. The same key always gives the same value, and two keys never do.
func keyHeader(key string) string {
	if !strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' || r == '"' || r == '\\' || r == ',' }) {
		return key
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(key) + `"`
}

func (c *Client) get(ctx context.Context, query url.Values, elements ...string) outbound.Exchange {
	return c.http.Do(ctx, outbound.Request{
		Method: http.MethodGet, URL: outbound.Address(c.base, query, elements...), Header: c.header(),
	})
}
