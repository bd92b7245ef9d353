// Package outbound sends one HTTP request at most once and tells what is known of it afterwards. It is for requests
// whose effect must not happen twice: nothing is followed, resent or guessed here; whether to send again is the
// caller's decision, and Exchange is what it decides on.
package outbound

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
	"time"
)

// Config sets the bounds of every exchange.
type Config struct {
	// Timeout is the time for one whole exchange: name look-up, connection, request, answer to its last byte.
	Timeout time.Duration
	// MaxAnswer is the most bytes of an answer's body that are read. The default is 1 MiB.
	MaxAnswer int64
	// FreshConnections opens a connection for each request. An idle connection that the server is just closing
	// loses the request that is put on it, and whether it was worked on stays open; where that doubt is dear (a
	// request that must not be repeated), a handshake is cheap.
	FreshConnections bool
	// KeptConnections is how many idle connections to a host stay open for the next requests. Who has more requests at once
	// opens connections again and again. The default is 64.
	KeptConnections int
	// Wrap, where given, is put around what sends the requests, to watch them. It must neither send again nor change
	// what is sent but for its header.
	Wrap func(http.RoundTripper) http.RoundTripper
}

const (
	defaultMaxAnswer = 1 << 20
	defaultKept      = 64
	maxAnswerHeader  = 64 << 10
	idleTimeout      = 30 * time.Second // shorter than what servers usually keep, so that they rarely hang up first
	// A host that does not take connections is not worth the whole exchange's time: nothing is lost by giving up early.
	connectTimeout = 5 * time.Second
)

// What an Exchange's Err may be, besides the errors of the network.
var (
	// ErrEmptyBody: the request was refused before anything was sent. A body that has gone missing on the way to
	// the client would otherwise be answered like any other request.
	ErrEmptyBody = errors.New("refused to send a request that needs a body without one")
	// ErrAnswerTooLarge: the answer is longer than Config.MaxAnswer. Body holds its beginning.
	ErrAnswerTooLarge = errors.New("the answer is longer than the client reads")
)

// Client sends requests. It is safe for use by several goroutines.
type Client struct {
	transport *http.Transport
	send      http.RoundTripper // the transport, perhaps watched
	timeout   time.Duration
	maxAnswer int64
}

// New makes a client. It fails if cfg.Timeout is not positive.
func New(cfg Config) (*Client, error) {
	if cfg.Timeout <= 0 {
		return nil, fmt.Errorf("the time limit of a request must be positive, not %v", cfg.Timeout)
	}
	if cfg.MaxAnswer <= 0 {
		cfg.MaxAnswer = defaultMaxAnswer
	}
	if cfg.KeptConnections <= 0 {
		cfg.KeptConnections = defaultKept
	}
	c := &Client{timeout: cfg.Timeout, maxAnswer: cfg.MaxAnswer, transport: newTransport(cfg)}
	c.send = c.transport
	if cfg.Wrap != nil {
		c.send = cfg.Wrap(c.transport)
	}
	return c, nil
}

// newTransport: HTTP/1.1 only, because Go's HTTP/2 sends again by itself after GOAWAY and REFUSED_STREAM; no proxy from
// the environment, because it would be one more place that may send again, and over http see the token; no unpacking,
// so that MaxAnswer bounds memory.
func newTransport(cfg Config) *http.Transport {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	return &http.Transport{
		DialContext:            (&net.Dialer{Timeout: connectTimeout}).DialContext,
		TLSHandshakeTimeout:    connectTimeout,
		Protocols:              protocols,
		DisableKeepAlives:      cfg.FreshConnections,
		DisableCompression:     true,
		MaxIdleConnsPerHost:    cfg.KeptConnections,
		IdleConnTimeout:        idleTimeout,
		MaxResponseHeaderBytes: maxAnswerHeader,
	}
}

// Close closes idle connections.
func (c *Client) Close() { c.transport.CloseIdleConnections() }

// Request is what Do sends. Body is left as it is and may be sent again by the caller.
type Request struct {
	Method string
	URL    string
	Header http.Header
	Body   []byte
}

// Exchange is everything that is known after Do.
type Exchange struct {
	// Begun says that there was a connection to send on: the request, or part of it, may have arrived. While it is
	// false, nothing has left this process.
	Begun bool
	// Err is nil if the answer has arrived to its last byte. Otherwise it says what went wrong, and Status and Body
	// are as much of the answer as came before that; Status 0 means that no status line came.
	Err    error
	Status int
	Header http.Header
	Body   []byte
}

// Do sends r and reads the answer. It returns when the answer is there, ctx has ended or the client's time limit is
// over. A redirect is an answer like any other.
func (c *Client) Do(ctx context.Context, r Request) Exchange {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	// The hook runs before the first byte is written, on the goroutine that waits for RoundTrip: there is no moment in
	// which a byte has left and begun is false.
	var begun atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { begun.Store(true) },
	})
	req, err := newRequest(ctx, r)
	if err != nil {
		return Exchange{Err: err}
	}
	// The transport alone, without http.Client: so nothing can follow a redirect, and no secret reaches the host
	// that one points to.
	res, err := c.send.RoundTrip(req)
	if err != nil {
		return Exchange{Begun: begun.Load(), Err: fmt.Errorf("%s: %w", r.Method, withEnd(ctx, err))}
	}
	defer func() { _ = res.Body.Close() }()
	x := Exchange{Begun: true, Status: res.StatusCode, Header: res.Header}
	x.Body, x.Err = readBounded(res.Body, c.maxAnswer)
	x.Err = withEnd(ctx, x.Err)
	return x
}

// withEnd puts context.Canceled or DeadlineExceeded into the chain of what they brought about: net/http tells such an
// end by its cause alone.
func withEnd(ctx context.Context, err error) error {
	if end := ctx.Err(); err != nil && end != nil && !errors.Is(err, end) {
		return fmt.Errorf("%w: %w", end, err)
	}
	return err
}

func newRequest(ctx context.Context, r Request) (*http.Request, error) {
	if r.Method == http.MethodGet {
		req, err := http.NewRequestWithContext(ctx, r.Method, r.URL, http.NoBody)
		if err != nil {
			return nil, fmt.Errorf("make the request: %w", err)
		}
		req.Header = r.Header.Clone()
		return req, nil
	}
	if len(r.Body) == 0 {
		return nil, ErrEmptyBody
	}
	req, err := http.NewRequestWithContext(ctx, r.Method, r.URL, bytes.NewReader(r.Body))
	if err != nil {
		return nil, fmt.Errorf("make the request: %w", err)
	}
	req.Header = r.Header.Clone()
	// net/http's transport takes a POST with an Idempotency-Key for repeatable and, where it can rewind the body, sends
	// it again by itself after a connection has broken. Without GetBody it cannot.
	req.GetBody = nil
	return req, nil
}

func readBounded(body io.Reader, limit int64) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(body, limit+1))
	switch {
	case err != nil:
		return b, fmt.Errorf("read the answer: %w", err)
	case int64(len(b)) > limit:
		return b[:limit], ErrAnswerTooLarge
	}
	return b, nil
}
