package outbound_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"invoicebridge/internal/outbound"
)

const patience = 20 * time.Second

func newClient(t *testing.T, cfg outbound.Config) *outbound.Client {
	t.Helper()
	if cfg.Timeout == 0 {
		cfg.Timeout = patience
	}
	c, err := outbound.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func post(url, body string) outbound.Request {
	return outbound.Request{
		Method: http.MethodPost, URL: url, Body: []byte(body),
		Header: http.Header{"Idempotency-Key": {"k-1"}, "Authorization": {"Bearer secret"}},
	}
}

func serve(t *testing.T, h http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s
}

func TestAPostThatHasAKeyIsNotSentAgainByTheTransport(t *testing.T) {
	t.Parallel()
	var posts atomic.Int64
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if string(body) != "warm-up" {
			posts.Add(1)
			panic(http.ErrAbortHandler) // the work is done, the connection breaks
		}
		_, _ = w.Write([]byte("{}"))
	})
	c := newClient(t, outbound.Config{})
	// net/http resends only on a connection that was used before.
	for range 3 {
		if x := c.Do(t.Context(), post(s.URL, "warm-up")); x.Err != nil {
			t.Fatalf("warm-up: %v", x.Err)
		}
		x := c.Do(t.Context(), post(s.URL, "work"))
		if x.Err == nil || !x.Begun || x.Status != 0 {
			t.Fatalf("got %+v, want a lost answer", x)
		}
	}
	if got := posts.Load(); got != 3 {
		t.Errorf("the server saw %d requests, want 3: one for each Do", got)
	}
}

func TestARedirectIsAnAnswerAndNothingIsSentToWhereItPoints(t *testing.T) {
	t.Parallel()
	var reached atomic.Int64
	other := serve(t, func(http.ResponseWriter, *http.Request) { reached.Add(1) })
	for _, status := range []int{301, 302, 303, 307, 308} {
		s := serve(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, other.URL, status) })
		if x := newClient(t, outbound.Config{}).Do(t.Context(), post(s.URL, "{}")); x.Err != nil || x.Status != status {
			t.Errorf("%d: got status %d, error %v", status, x.Status, x.Err)
		}
	}
	if got := reached.Load(); got != 0 {
		t.Errorf("%d requests reached the other host", got)
	}
}

func TestBeginningIsToldFromNotBeginning(t *testing.T) {
	t.Parallel()
	closed := serve(t, nil)
	closed.Close()
	c := newClient(t, outbound.Config{})
	if x := c.Do(t.Context(), post(closed.URL, "{}")); x.Err == nil || x.Begun {
		t.Errorf("connection refused: got %+v, want an error and nothing begun", x)
	}
	plain := serve(t, func(http.ResponseWriter, *http.Request) {})
	x := c.Do(t.Context(), post(strings.Replace(plain.URL, "http:", "https:", 1), "{}"))
	if x.Err == nil || x.Begun {
		t.Errorf("no TLS at the other end: got %+v, want an error and nothing begun", x)
	}
	silent := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	})
	x = newClient(t, outbound.Config{Timeout: time.Second}).Do(t.Context(), post(silent.URL, "{}"))
	if !errors.Is(x.Err, context.DeadlineExceeded) || !x.Begun {
		t.Errorf("no answer: got %+v, want the time limit's error and begun", x)
	}
}

func TestARequestWithoutABodyIsRefusedBeforeAnythingIsSent(t *testing.T) {
	t.Parallel()
	s := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("a request arrived") })
	if x := newClient(t, outbound.Config{}).Do(t.Context(), post(s.URL, "")); !errors.Is(x.Err, outbound.ErrEmptyBody) || x.Begun {
		t.Errorf("got %+v, want ErrEmptyBody and nothing begun", x)
	}
}

func TestAnAnswerIsWholeOrAnError(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		raw  string
		body string
		is   error
	}{
		"cut":                   {"HTTP/1.1 201 Created\r\nContent-Length: 10\r\n\r\n{\"id", `{"id`, io.ErrUnexpectedEOF},
		"cut between chunks":    {"HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n4\r\n{\"id\r\n", `{"id`, io.ErrUnexpectedEOF},
		"longer than the bound": {"HTTP/1.1 201 Created\r\nContent-Length: 2000000000\r\n\r\n" + strings.Repeat("x", 4096), strings.Repeat("x", 16), outbound.ErrAnswerTooLarge},
		"whole":                 {"HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\n{}", "{}", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := newClient(t, outbound.Config{MaxAnswer: 16}).Do(t.Context(), post(rawServer(t, tc.raw), "{}"))
			if !errors.Is(x.Err, tc.is) || x.Status != 201 || string(x.Body) != tc.body || !x.Begun {
				t.Errorf("got status %d, body %q, error %v; want 201, %q, %v", x.Status, x.Body, x.Err, tc.body, tc.is)
			}
		})
	}
}

// rawServer answers one request with exactly these bytes.
func rawServer(t *testing.T, answer string) string {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer func() { _ = conn.Close() }()
		_, _ = conn.Read(make([]byte, 4096))
		_, _ = io.WriteString(conn, answer)
	}()
	return "http://" + l.Addr().String()
}

func TestABodyArrivesWithItsLengthOnEveryAttempt(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if r.ContentLength != int64(len(body)) || string(body) != `{"a":1}` {
			t.Errorf("got %q with Content-Length %d", body, r.ContentLength)
		}
	})
	c, r := newClient(t, outbound.Config{FreshConnections: true}), post(s.URL, `{"a":1}`)
	for range 3 {
		if x := c.Do(t.Context(), r); x.Err != nil {
			t.Error(x.Err)
		}
	}
}

func TestAnInterruptionIsToldWhateverItsCause(t *testing.T) {
	t.Parallel()
	shutdown := errors.New("shutting down")
	ctx, cancel := context.WithCancelCause(t.Context())
	s := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		cancel(shutdown)
		<-r.Context().Done()
	})
	x := newClient(t, outbound.Config{}).Do(ctx, post(s.URL, "{}"))
	if !x.Begun || !errors.Is(x.Err, context.Canceled) || !errors.Is(x.Err, shutdown) {
		t.Errorf("got %+v, want both the cancellation and its cause", x)
	}
	if x = newClient(t, outbound.Config{}).Do(ctx, post(s.URL, "{}")); x.Begun || !errors.Is(x.Err, context.Canceled) {
		t.Errorf("cancelled before: got %+v, want nothing begun", x)
	}
}
