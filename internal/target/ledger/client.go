// Package ledger registers invoices in an accounting system that knows no idempotency keys. The interface it speaks:
//
//	POST {base}/entries            {"external_reference", "number", "document": {...}}
//	    201  {"id", "external_reference", "number", "status": "draft"}       every call makes one more entry
//	    409  {"code": "already_entered", "original": {"id", "reference", "external_reference", "number"}}
//	    422  {"code", "detail", "errors": [{"pointer", "code", "detail"}]}
//	POST {base}/entries/{id}/post  {"external_reference"}                    may be repeated
//	    200  {"id", "external_reference", "number", "status": "posted", "reference", "warnings": [...]}
//	GET  {base}/entries?external_reference=R                                 {"items": [ ... ]}
//
// Creating is not repeatable, posting is. So a lost answer of the creation is Lost, to be located before anything is
// sent again; once an id is known, Send with Submission.Known posts that entry as often as needed.
//
// "Not found" right after a time-out proves nothing: the request may still be running in the ledger and commit after
// the look-up. How long that can take is Capabilities.SettleTime, which only the ledger's operator knows; this package
// reports Absent as it hears it.
package ledger

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"invoicebridge/internal/outbound"
	"invoicebridge/internal/target"
)

// Kind is this package's name in a target's settings.
const Kind = "ledger"

// Config is what a Client needs. All of it is required but Now and Wrap.
type Config struct {
	BaseURL string
	Token   target.Secret
	// Timeout is the time limit of one request, from the name look-up to the answer's last byte. Send makes up to two.
	Timeout time.Duration
	Now     func() time.Time // read only for a pause stated as a date in an answer without Date; nil: time.Now
	// Wrap, where given, is put around what sends the requests; see outbound.Config.
	Wrap func(http.RoundTripper) http.RoundTripper
}

// Client speaks to one ledger. It is safe for use by several goroutines.
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
		return nil, fmt.Errorf("ledger: %w", err)
	}
	if cfg.Token.IsZero() {
		return nil, errors.New("ledger: the credential is missing")
	}
	// An idle connection that breaks under a creation would leave it in doubt for the whole settle time.
	client, err := outbound.New(outbound.Config{Timeout: cfg.Timeout, FreshConnections: true, Wrap: cfg.Wrap})
	if err != nil {
		return nil, fmt.Errorf("ledger: %w", err)
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return &Client{base: base, token: cfg.Token, now: cfg.Now, http: client}, nil
}

// CheckCapabilities is Capabilities.Check, and refuses keys besides: believing in them would mean to create again
// after a lost answer.
func CheckCapabilities(c target.Capabilities, longestRequest time.Duration) error {
	err := c.Check(longestRequest)
	if c.Keyed {
		err = errors.Join(errors.New("keyed: a ledger has no idempotency keys"), err)
	}
	return err
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
