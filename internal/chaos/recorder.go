package chaos

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"

	"github.com/go-json-experiment/json"
)

const maxBody = 2 << 20

// recorder stands in front of an ERP and keeps what workers send and are answered. What does not arrive whole it passes
// on to nobody: neither would the ERP have taken it.
type recorder struct {
	history *History
	server  *http.Server
	address string
}

// startRecorder listens on a free port. Its end is the caller's: close.
func startRecorder(ctx context.Context, h *History, erp string) (*recorder, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	r := &recorder{history: h, address: listener.Addr().String()}
	proxy := &httputil.ReverseProxy{
		Rewrite:      func(p *httputil.ProxyRequest) { p.SetURL(&url.URL{Scheme: "http", Host: erp}) },
		Transport:    &http.Transport{DisableKeepAlives: true}, // a kept connection that breaks would make it send again
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	r.server = &http.Server{ReadHeaderTimeout: requestLimit, Handler: http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		r.pass(w, q, proxy)
	})}
	go func() { _ = r.server.Serve(listener) }()
	return r, nil
}

func (r *recorder) close() { _ = r.server.Close() }

func (r *recorder) pass(w http.ResponseWriter, q *http.Request, proxy http.Handler) {
	body, err := io.ReadAll(io.LimitReader(q.Body, maxBody))
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	q.Body = io.NopCloser(bytes.NewReader(body))
	if q.Method != http.MethodPost {
		proxy.ServeHTTP(w, q)
		return
	}
	x := Exchange{Sent: r.history.now(), By: byAttempts, Key: bare(q.Header.Get("Idempotency-Key")), Content: digest(body)}
	seen := &seeing{ResponseWriter: w}
	defer func() { // also when the ERP does not answer
		x.Ended = r.history.now()
		x.told(seen.status, seen.body.Bytes(), nil)
		r.history.attempt(x)
	}()
	proxy.ServeHTTP(seen, q)
}

// bare is a key without the quotes of a structured field.
func bare(key string) string { return strings.Trim(key, `"`) }

// seeing keeps an answer beside passing it on.
type seeing struct {
	http.ResponseWriter
	status int
	body   bytes.Buffer
}

func (s *seeing) WriteHeader(status int) {
	s.status = status
	s.ResponseWriter.WriteHeader(status)
}

func (s *seeing) Write(p []byte) (int, error) {
	s.body.Write(p)
	return s.ResponseWriter.Write(p)
}

// told takes note of an answer. One that broke off is none.
func (x *Exchange) told(status int, body []byte, err error) {
	if err != nil {
		x.Err = err.Error()
		return
	}
	x.Status = status
	if status == 0 {
		x.Err = "no answer"
		return
	}
	var document struct {
		ID   string `json:"id"`
		Type string `json:"type"`
	}
	unreadable := json.Unmarshal(body, &document)
	if status/100 == 2 {
		x.Answer, x.Invoice = digest(body), document.ID
		if unreadable != nil && x.By != byOrders { // cut: its sender knows no more than without it
			x.Status, x.Answer, x.Err = 0, "", errors.Join(errors.New("half an answer"), unreadable).Error()
		}
		return
	}
	x.Problem = document.Type[strings.LastIndexByte(document.Type, '/')+1:]
}
