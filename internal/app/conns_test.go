package app_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"invoicebridge/internal/app"
)

// limited serves with limits of the test's own; the handler reads the body and says how much of it came.
func limited(t *testing.T, limits app.ConnLimits) (address string) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	ready, ended := make(chan string, 1), make(chan error, 1)
	s := app.Server{
		Name: "test", Listen: "127.0.0.1:0", Log: slog.New(slog.DiscardHandler), RequestTimeout: time.Minute, ShutdownTimeout: 5 * time.Second,
		Conns: limits, Ready: func(addr string) { ready <- addr },
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			n, err := io.Copy(io.Discard, r.Body)
			if err != nil {
				w.WriteHeader(http.StatusBadRequest)
			}
			_, _ = fmt.Fprintf(w, "read %d", n)
		}),
	}
	go func() { ended <- s.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return <-ready
}

func dial(t *testing.T, address string) net.Conn {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	return conn
}

func send(t *testing.T, conn net.Conn, text string) {
	t.Helper()
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(err)
	}
}

// isClosed waits until the server has closed the connection, and gives what it said before.
func isClosed(t *testing.T, conn net.Conn) string {
	t.Helper()
	said, err := io.ReadAll(conn)
	if errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		t.Fatal("the connection stays open")
	}
	return string(said)
}

const aPost = "POST / HTTP/1.1\r\nHost: x\r\n"

func TestAClientThatIsSlowLosesItsConnection(t *testing.T) {
	t.Parallel()
	const short = 100 * time.Millisecond
	for name, c := range map[string]struct {
		limits app.ConnLimits
		sends  string
	}{
		"nothing is sent":             {app.ConnLimits{ReadHeader: short}, ""},
		"half a line of the header":   {app.ConnLimits{ReadHeader: short}, "POST / HT"},
		"a header without an end":     {app.ConnLimits{ReadHeader: short}, aPost + "X-A: 1\r\n"},
		"half a body":                 {app.ConnLimits{Read: short}, aPost + "Content-Length: 100\r\n\r\n{"},
		"half a chunk":                {app.ConnLimits{Read: short}, aPost + "Transfer-Encoding: chunked\r\n\r\n64\r\n{"},
		"nothing after a request":     {app.ConnLimits{Idle: short}, aPost + "Content-Length: 0\r\n\r\n"},
		"half a line after a request": {app.ConnLimits{Idle: short, ReadHeader: short}, aPost + "Content-Length: 0\r\n\r\nGE"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn := dial(t, limited(t, c.limits))
			send(t, conn, c.sends)
			said := isClosed(t, conn)
			if strings.Contains(name, "body") && !strings.Contains(said, "400") {
				t.Errorf("half a body was answered %q", said)
			}
		})
	}
}

// One that drips: each byte comes in time, the whole does not.
func TestAClientThatDripsLosesItsConnectionToo(t *testing.T) {
	t.Parallel()
	conn := dial(t, limited(t, app.ConnLimits{ReadHeader: 300 * time.Millisecond}))
	send(t, conn, aPost)
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		_, _ = io.Copy(io.Discard, conn)
	}()
	for tick := time.NewTicker(20 * time.Millisecond); ; {
		select {
		case <-closed:
			tick.Stop()
			return
		case <-tick.C:
			_, _ = io.WriteString(conn, "X-Drip: 1\r\n")
		case <-time.After(30 * time.Second):
			t.Fatal("a dripping client keeps its connection")
		}
	}
}

func TestAHeaderHasALimit(t *testing.T) {
	t.Parallel()
	conn := dial(t, limited(t, app.ConnLimits{}))
	go func() { _, _ = io.WriteString(conn, aPost+"X-Long: "+strings.Repeat("x", 1<<20)+"\r\n\r\n") }()
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil || answer.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Fatalf("got %v, %v, want 431", answer, err)
	}
}

// Half-open: who has closed their side for writing still gets the answer; who is gone costs nothing.
func TestAHalfClosedConnectionIsAnsweredAndEnds(t *testing.T) {
	t.Parallel()
	address := limited(t, app.ConnLimits{})
	conn := dial(t, address)
	send(t, conn, aPost+"Content-Length: 2\r\n\r\n{}")
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if said := isClosed(t, conn); !strings.Contains(said, "read 2") {
		t.Errorf("answered %q", said)
	}
	for range 50 { // they leave in the middle
		gone := dial(t, address)
		send(t, gone, aPost+"Content-Length: 100\r\n\r\n{")
		_ = gone.Close()
	}
	after := dial(t, address)
	send(t, after, aPost+"Connection: close\r\nContent-Length: 1\r\n\r\nx")
	if said := isClosed(t, after); !strings.Contains(said, "read 1") {
		t.Errorf("answered %q", said)
	}
}

// Two requests in one go are two requests, and the rest of a body that nobody read is none: what could be taken in two ways is refused.
func TestABodyIsNeverTakenForARequest(t *testing.T) {
	t.Parallel()
	address := limited(t, app.ConnLimits{})
	for name, request := range map[string]string{
		"two lengths":            aPost + "Content-Length: 5\r\nContent-Length: 6\r\n\r\nGET / ",
		"a length and chunks":    aPost + "Content-Length: 5\r\nTransfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n",
		"a length that is none":  aPost + "Content-Length: +5\r\n\r\nhello",
		"a chunk that is none":   aPost + "Transfer-Encoding: chunked\r\n\r\n0x5\r\nhello\r\n0\r\n\r\n",
		"a header with a blank":  "POST / HTTP/1.1\r\nHost: x\r\nContent-Length : 5\r\n\r\nhello",
		"a line end in the path": "GET /\nX: y HTTP/1.1\r\nHost: x\r\n\r\n",
		"no host":                "GET / HTTP/1.1\r\n\r\n",
		"two hosts":              "GET / HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n",
	} {
		conn := dial(t, address)
		send(t, conn, request)
		if said := isClosed(t, conn); strings.Contains(said, "200 OK") {
			t.Errorf("%s: answered %q", name, said)
		}
	}
}

func TestMoreConnectionsThanThereMayBeWaitForAPlace(t *testing.T) {
	t.Parallel()
	address := limited(t, app.ConnLimits{Conns: 2})
	first, second := dial(t, address), dial(t, address)
	for _, conn := range []net.Conn{first, second} {
		send(t, conn, aPost+"Content-Length: 1\r\n\r\nx")
		if answer, err := http.ReadResponse(bufio.NewReader(conn), nil); err != nil || answer.StatusCode != http.StatusOK {
			t.Fatal(answer, err)
		}
	}
	third := dial(t, address) // by the system
	send(t, third, aPost+"Connection: close\r\nContent-Length: 3\r\n\r\nabc")
	if err := third.SetReadDeadline(time.Now().Add(200 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if n, err := third.Read(make([]byte, 1)); err == nil {
		t.Fatalf("the third is served beside two: %d", n)
	}
	if err := third.SetReadDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	_ = first.Close() // the place is free once the server has seen that
	if said := isClosed(t, third); !strings.Contains(said, "read 3") {
		t.Errorf("answered %q", said)
	}
}
