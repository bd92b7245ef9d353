package erpapi

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"invoicebridge/internal/outbound"
)

// Limits of a Client, unless its ClientConfig says otherwise.
const (
	DefaultAttemptTimeout = 30 * time.Second
	DefaultMaxAnswerBytes = 8 << 20 // an invoice made from the largest request (1 MiB) stays well below
)

// ErrNothingToSend refuses a request without a body: the ERP would only call it malformed, and a body that got lost
// on the way here must not look like a refusal by the ERP.
var ErrNothingToSend = outbound.ErrEmptyBody

// ClientConfig is what a Client is told. BaseURL is required.
type ClientConfig struct {
	BaseURL        string           // where the ERP's paths begin, e.g. https://erp.example/api
	AttemptTimeout time.Duration    // for one call from its beginning to the end of its answer; 0: DefaultAttemptTimeout
	MaxAnswerBytes int64            // longer answers are cut; 0: DefaultMaxAnswerBytes
	Now            func() time.Time // read only for a Retry-After date in an answer without Date; nil: time.Now
	// KeptConnections is how many connections stay open between calls; see outbound.Config.
	KeptConnections int
	// Wrap, where given, is put around what sends the requests; see outbound.Config.
	Wrap func(http.RoundTripper) http.RoundTripper
}

// Client calls the ERP. It never decides what an answer means, it tells all there is to know of it (Exchange).
//
// What it promises on every call: at most one request leaves, on one connection; redirects are answers like any other
// and are not followed, so credentials and keys reach no other host; no secret stands in an error. It is safe for
// concurrent use.
type Client struct {
	base    *url.URL
	timeout time.Duration
	now     func() time.Time
	http    *outbound.Client
}

// NewClient makes a Client or says what is wrong with the configuration. It connects to nothing.
func NewClient(cfg ClientConfig) (*Client, error) {
	base, err := outbound.ParseBase(strings.TrimSpace(cfg.BaseURL))
	if err != nil {
		return nil, fmt.Errorf("the ERP's address: %w", err)
	}
	if cfg.AttemptTimeout <= 0 {
		cfg.AttemptTimeout = DefaultAttemptTimeout
	}
	if cfg.MaxAnswerBytes <= 0 {
		cfg.MaxAnswerBytes = DefaultMaxAnswerBytes
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	client, err := outbound.New(outbound.Config{
		Timeout: cfg.AttemptTimeout, MaxAnswer: cfg.MaxAnswerBytes, KeptConnections: cfg.KeptConnections, Wrap: cfg.Wrap,
	})
	if err != nil {
		return nil, fmt.Errorf("the ERP's client: %w", err)
	}
	return &Client{base: base, timeout: cfg.AttemptTimeout, now: cfg.Now, http: client}, nil
}

// AttemptTimeout is the longest that one call takes.
func (c *Client) AttemptTimeout() time.Duration { return c.timeout }

// CloseIdleConnections closes connections that no call is using.
func (c *Client) CloseIdleConnections() { c.http.Close() }

// CreateInvoice sends one POST /v1/invoices: body as it is, under the key. It fails only by what the Exchange says,
// and can always be called again with the same key and body.
func (c *Client) CreateInvoice(ctx context.Context, token, key string, body []byte) Exchange {
	header := c.header(token)
	header.Set("Content-Type", "application/json")
	header.Set("Idempotency-Key", key)
	return c.exchange(ctx, outbound.Request{
		Method: http.MethodPost, URL: outbound.Address(c.base, nil, "v1", "invoices"), Header: header, Body: body,
	})
}

// GetOperation asks GET /v1/operations/{key}: what the ERP knows of a key. It changes nothing there.
func (c *Client) GetOperation(ctx context.Context, token, key string) Exchange {
	return c.exchange(ctx, outbound.Request{
		Method: http.MethodGet, URL: outbound.Address(c.base, nil, "v1", "operations", key), Header: c.header(token),
	})
}

func (c *Client) header(token string) http.Header {
	return http.Header{
		"Accept":        {"application/json, application/problem+json"},
		"Authorization": {"Bearer " + token},
		"User-Agent":    {"invoicebridge"},
	}
}

func (c *Client) exchange(ctx context.Context, r outbound.Request) Exchange {
	sent := c.http.Do(ctx, r)
	x := Exchange{
		SendingBegan: sent.Begun, Status: sent.Status, Header: sent.Header, Body: sent.Body, Err: sent.Err,
		Complete:   sent.Err == nil && sent.Status != 0,
		RetryAfter: outbound.RetryAfter(sent.Header, c.now()),
	}
	x.RetryAfterGiven = x.RetryAfter > 0
	x.decode(r.Method)
	return x
}
