package faultproxy

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httputil"
	"sync"
	"time"
)

// Proxy is an http.Handler for an HTTP/1.1 server: a connection that can't be hijacked is closed where it should be
// reset.
type Proxy struct {
	cfg    Config
	dice   *dice
	counts counters
	direct *httputil.ReverseProxy           // for what is none of our business
	faulty map[Fault]*httputil.ReverseProxy // for POST /v1/invoices, one for each fault and for None

	mu       sync.Mutex
	closing  bool
	stopping chan struct{}  // closed by Close: nothing is held or delayed any more
	rest     sync.WaitGroup // second halves of duplicated requests
}

// New makes a proxy. It fails if the settings are wrong, naming all of them.
func New(cfg Config) (*Proxy, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	p := &Proxy{
		cfg: cfg, dice: newDice(cfg.Seed, cfg.Rates), stopping: make(chan struct{}),
		faulty: map[Fault]*httputil.ReverseProxy{},
	}
	// A connection a request: no idle connection that the upstream may close in the same moment, and with that none
	// of the resending that http.Transport does by itself for requests with an Idempotency-Key.
	transport := &http.Transport{DisableKeepAlives: true, DisableCompression: true}
	upstream := counted{next: transport, counts: &p.counts}
	p.direct = p.reverse(transport)
	p.faulty[None] = p.reverse(upstream)
	for _, s := range cfg.Rates.shares() {
		p.faulty[s.fault] = p.reverse(trip{proxy: p, fault: s.fault, upstream: upstream})
	}
	return p, nil
}

func (p *Proxy) reverse(transport http.RoundTripper) *httputil.ReverseProxy {
	return &httputil.ReverseProxy{
		Rewrite:       p.rewrite,
		Transport:     transport,
		FlushInterval: -1, // every byte at once, also the last one before a cut
		ErrorHandler:  p.fail,
		ErrorLog:      slog.NewLogLogger(p.cfg.Logger.Handler(), slog.LevelDebug),
	}
}

// rewrite undoes what ReverseProxy changes beyond the hop-by-hop fields.
func (p *Proxy) rewrite(r *httputil.ProxyRequest) {
	r.Out.URL.Scheme, r.Out.URL.Host = p.cfg.Upstream.Scheme, p.cfg.Upstream.Host
	r.Out.URL.RawQuery = r.In.URL.RawQuery
	r.Out.Host = r.In.Host
	for _, name := range []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"} {
		if values, ok := r.In.Header[name]; ok {
			r.Out.Header[name] = values
		}
	}
}

// ServeHTTP passes the request on, with at most one fault.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost || r.URL.Path != "/v1/invoices" {
		p.direct.ServeHTTP(w, r)
		return
	}
	p.counts.requests.Add(1)
	fault := None
	if !p.cfg.Disabled {
		fault = p.dice.throw()
	}
	if fault != None {
		p.cfg.Logger.Debug("fault", "fault", fault, "operation_key", r.Header.Get("Idempotency-Key"))
	}
	p.faulty[fault].ServeHTTP(w, r)
}

// Close ends the holding of answers (their connections are reset) and the delaying of requests (they go out at once),
// and waits for what clients no longer wait for. If ctx ends first, its error is returned; those requests end within
// Config.UpstreamTimeout. The HTTP server is not the proxy's: shut it down after Close.
func (p *Proxy) Close(ctx context.Context) error {
	p.mu.Lock()
	if !p.closing {
		p.closing = true
		close(p.stopping)
	}
	p.mu.Unlock()
	ended := make(chan struct{})
	go func() {
		p.rest.Wait()
		close(ended)
	}()
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("fault proxy: wait for requests on their way: %w", ctx.Err())
	}
}

// goOn runs f beside the request that started it. While closing it runs before that request ends.
func (p *Proxy) goOn(f func()) {
	p.mu.Lock()
	if p.closing {
		p.mu.Unlock()
		f()
		return
	}
	p.rest.Go(f)
	p.mu.Unlock()
}

// pause waits, but not for longer than ctx lives or the proxy is open.
func (p *Proxy) pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	case <-p.stopping:
	}
}

var (
	errReset      = errors.New("fault: connection reset")
	errBadGateway = errors.New("fault: bad gateway")
)

// fail answers instead of the upstream.
func (p *Proxy) fail(w http.ResponseWriter, r *http.Request, err error) {
	if errors.Is(err, errReset) {
		reset(w)
		return
	}
	if !errors.Is(err, errBadGateway) {
		p.cfg.Logger.Debug("the upstream gave no answer", "path", r.URL.Path, "error", err)
	}
	http.Error(w, "502 Bad Gateway", http.StatusBadGateway)
}

// reset ends the client's connection by RST, without an answer.
func reset(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler) // the documented way to end the connection without an answer
	}
	if tcp, ok := conn.(interface{ SetLinger(seconds int) error }); ok {
		_ = tcp.SetLinger(0) // a connection that is gone already needs no reset
	}
	conn.Close()
}
