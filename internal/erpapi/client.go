package erpapi

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"time"
)

// Limits of a Client, unless its ClientConfig says otherwise.
const (
	DefaultAttemptTimeout = 30 * time.Second
	DefaultMaxAnswerBytes = 8 << 20 // an invoice made from the largest request (1 MiB) stays well below

	dialTimeout         = 5 * time.Second
	idleConnTimeout     = 30 * time.Second // shorter than what servers usually keep, so that they rarely hang up first
	maxHeaderBytes      = 64 << 10
	maxIdleConnsPerHost = 64
)

// ErrNothingToSend refuses a request without a body: the ERP would only call it malformed, and a body that got lost
// on the way here must not look like a refusal by the ERP.
var ErrNothingToSend = errors.New("the request has no body")

// ClientConfig is what a Client is told. BaseURL is required.
type ClientConfig struct {
	BaseURL        string           // where the ERP's paths begin, e.g. https://erp.example/api
	AttemptTimeout time.Duration    // for one call from its beginning to the end of its answer; 0: DefaultAttemptTimeout
	MaxAnswerBytes int64            // longer answers are cut; 0: DefaultMaxAnswerBytes
	Now            func() time.Time // read only for a Retry-After date in an answer without Date; nil: time.Now
}

// Client calls the ERP. It never decides what an answer means, it tells all there is to know of it (Exchange).
//
// What it promises on every call: at most one request leaves, on one connection; redirects are answers like any other
// and are not followed, so credentials and keys reach no other host; no secret stands in an error. It is safe for
// concurrent use.
type Client struct {
	base       *url.URL
	timeout    time.Duration
	maxAnswer  int64
	now        func() time.Time
	httpClient *http.Client
}

// NewClient makes a Client or says what is wrong with the configuration. It connects to nothing.
func NewClient(cfg ClientConfig) (*Client, error) {
	base, err := parseBaseURL(cfg.BaseURL)
	if err != nil {
		return nil, err
	}
	c := &Client{base: base, timeout: cfg.AttemptTimeout, maxAnswer: cfg.MaxAnswerBytes, now: cfg.Now}
	if c.timeout <= 0 {
		c.timeout = DefaultAttemptTimeout
	}
	if c.maxAnswer <= 0 {
		c.maxAnswer = DefaultMaxAnswerBytes
	}
	if c.now == nil {
		c.now = time.Now
	}
	c.httpClient = &http.Client{
		Transport:     newTransport(),
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return c, nil
}

// newTransport: HTTP/1.1 only, because HTTP/2 sends again by itself after GOAWAY and REFUSED_STREAM; no proxy from the
// environment, because it would see the token; no unpacking, so that the bound on the answer is one on memory.
func newTransport() *http.Transport {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	return &http.Transport{
		DialContext:            (&net.Dialer{Timeout: dialTimeout}).DialContext,
		TLSHandshakeTimeout:    dialTimeout,
		Protocols:              protocols,
		DisableCompression:     true,
		IdleConnTimeout:        idleConnTimeout,
		MaxIdleConns:           maxIdleConnsPerHost,
		MaxIdleConnsPerHost:    maxIdleConnsPerHost,
		MaxResponseHeaderBytes: maxHeaderBytes,
	}
}

func parseBaseURL(text string) (*url.URL, error) {
	u, err := url.Parse(strings.TrimSpace(text))
	switch {
	case err != nil:
		return nil, errors.New("the ERP's address is no URL") // url.Parse's own error would repeat a password
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, errors.New("the ERP's address must begin with http:// or https://")
	case u.Hostname() == "":
		return nil, errors.New("the ERP's address names no host")
	case u.User != nil:
		return nil, errors.New("the ERP's address must hold no user and password: the token is given apart")
	case u.RawQuery != "" || u.Fragment != "":
		return nil, errors.New("the ERP's address must have no query and no fragment")
	}
	return u, nil
}

// AttemptTimeout is the longest that one call takes.
func (c *Client) AttemptTimeout() time.Duration { return c.timeout }

// CloseIdleConnections closes connections that no call is using.
func (c *Client) CloseIdleConnections() { c.httpClient.CloseIdleConnections() }

// CreateInvoice sends one POST /v1/invoices: body as it is, under the key. It fails only by what the Exchange says,
// and can always be called again with the same key and body.
func (c *Client) CreateInvoice(ctx context.Context, token, key string, body []byte) Exchange {
	if len(body) == 0 {
		return Exchange{Err: ErrNothingToSend}
	}
	return c.call(ctx, call{method: http.MethodPost, path: "/v1/invoices", token: token, key: key, body: body})
}

// GetOperation asks GET /v1/operations/{key}: what the ERP knows of a key. It changes nothing there.
func (c *Client) GetOperation(ctx context.Context, token, key string) Exchange {
	return c.call(ctx, call{method: http.MethodGet, path: "/v1/operations/" + url.PathEscape(key), token: token})
}

// call is one request to be.
type call struct {
	method, path, token, key string
	body                     []byte
}

func (c *Client) call(ctx context.Context, want call) Exchange {
	limited, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	x := c.exchange(limited, want)
	if x.Err != nil && ctx.Err() != nil && !errors.Is(x.Err, ctx.Err()) {
		// net/http tells the cause with which ctx ended; that it was ended is what matters to callers.
		x.Err = fmt.Errorf("%w: %w", ctx.Err(), x.Err)
	}
	return x
}

func (c *Client) exchange(ctx context.Context, want call) Exchange {
	var x Exchange
	// A connection is handed out after dialling and the TLS handshake: before that nothing was sent. What happens
	// after it counts as sent, also where the connection was already dead: that costs a repeat, never a duplicate.
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { x.SendingBegan = true },
	})
	req, err := c.request(ctx, want)
	if err != nil {
		x.Err = err
		return x
	}
	resp, err := c.httpClient.Do(req)
	if err != nil {
		x.Err = plainTransportError(err)
		return x
	}
	defer func() { _ = resp.Body.Close() }()
	c.read(&x, resp)
	x.decode(want.method)
	return x
}

// request builds what is sent. Its length is known, and without GetBody Go's Transport can't send it a second time: it
// takes any request with an Idempotency-Key for one that it may repeat by itself when a kept connection breaks, and
// that repeat would be an attempt nobody counted.
func (c *Client) request(ctx context.Context, want call) (*http.Request, error) {
	var body io.Reader
	if want.body != nil {
		body = bytes.NewReader(want.body)
	}
	req, err := http.NewRequestWithContext(ctx, want.method, strings.TrimSuffix(c.base.String(), "/")+want.path, body)
	if err != nil {
		return nil, errors.New("the request can't be built from the ERP's address and the key")
	}
	req.GetBody = nil
	req.Header.Set("Accept", "application/json, application/problem+json")
	req.Header.Set("Authorization", "Bearer "+want.token)
	req.Header.Set("User-Agent", "invoicebridge")
	if want.body != nil {
		req.ContentLength = int64(len(want.body))
		req.Header.Set("Content-Type", "application/json")
	}
	if want.key != "" {
		req.Header.Set("Idempotency-Key", want.key)
	}
	return req, nil
}

// read takes the answer in, up to the bound.
func (c *Client) read(x *Exchange, resp *http.Response) {
	x.Status, x.Header = resp.StatusCode, resp.Header
	body, err := io.ReadAll(io.LimitReader(resp.Body, c.maxAnswer+1))
	switch {
	case err != nil:
		x.Err = fmt.Errorf("the answer broke off after %d bytes: %w", len(body), plainTransportError(err))
	case int64(len(body)) > c.maxAnswer:
		body = body[:c.maxAnswer]
		x.Err = fmt.Errorf("the answer is longer than %d bytes", c.maxAnswer)
	default:
		x.Complete = true
	}
	x.Body = body
	x.RetryAfter, x.RetryAfterGiven = ParseRetryAfter(resp.Header, c.now)
}

// plainTransportError leaves out the method and the URL that net/http puts in front of every error.
func plainTransportError(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}
