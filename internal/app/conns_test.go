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
	"os"
	"strings"
	"testing"
	"time"

	"invoicebridge/internal/app"
	"invoicebridge/internal/testdb"
)

// limited serves with limits of the test's own; the handler reads the body and says how much of it came.
func limited(t *testing.T, times app.ConnTimes) (address string) {
	t.Helper()
	return few(t, times, 0)
}

// few is limited with a number of connections that there may be at once.
func few(t *testing.T, times app.ConnTimes, conns int) (address string) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	ready, ended := make(chan string, 1), make(chan error, 1)
	s := app.Server{
		Name: "test", Listen: "127.0.0.1:0", Log: slog.New(slog.DiscardHandler), RequestTimeout: time.Minute, ShutdownTimeout: 5 * time.Second,
		Conns: times, MaxConns: conns, Ready: func(addr string) { ready <- addr },
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
		times app.ConnTimes
		sends string
	}{
		"nothing is sent":             {app.ConnTimes{ReadHeader: short}, ""},
		"half a line of the header":   {app.ConnTimes{ReadHeader: short}, "POST / HT"},
		"a header without an end":     {app.ConnTimes{ReadHeader: short}, aPost + "X-A: 1\r\n"},
		"half a body":                 {app.ConnTimes{Read: short}, aPost + "Content-Length: 100\r\n\r\n{"},
		"half a chunk":                {app.ConnTimes{Read: short}, aPost + "Transfer-Encoding: chunked\r\n\r\n64\r\n{"},
		"nothing after a request":     {app.ConnTimes{Idle: short}, aPost + "Content-Length: 0\r\n\r\n"},
		"half a line after a request": {app.ConnTimes{Idle: short, ReadHeader: short}, aPost + "Content-Length: 0\r\n\r\nGE"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn := dial(t, limited(t, c.times))
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
	conn := dial(t, limited(t, app.ConnTimes{ReadHeader: 300 * time.Millisecond}))
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

// Somebody who asks and does not take the answer keeps neither the connection nor the handler.
func TestAClientThatDoesNotTakeItsAnswerLosesItsConnection(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	ready, ended, written := make(chan string, 1), make(chan error, 1), make(chan error, 1)
	s := app.Server{
		Name: "test", Listen: "127.0.0.1:0", Log: slog.New(slog.DiscardHandler), RequestTimeout: time.Millisecond, ShutdownTimeout: 5 * time.Second,
		Conns: app.ConnTimes{Read: 100 * time.Millisecond, Write: 100 * time.Millisecond}, Ready: func(addr string) { ready <- addr },
		Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			for some := make([]byte, 1<<20); ; {
				if _, err := w.Write(some); err != nil {
					written <- err
					return
				}
			}
		}),
	}
	go func() { ended <- s.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	conn := dial(t, <-ready)
	send(t, conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	select {
	case err := <-written:
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("the answer ended with %v", err)
		}
	case <-time.After(30 * time.Second):
		t.Error("the handler still writes to a client that takes nothing")
		_ = conn.Close()
	}
}

// The settings of the service itself reach its server.
func TestTheTimesOfConnectionsAreSettings(t *testing.T) {
	t.Parallel()
	pool := testdb.ERP(t)
	ctx, stop := context.WithCancel(t.Context())
	ready, ended := make(chan string, 1), make(chan error, 1)
	cfg := app.ERPConfig{
		Listen: "127.0.0.1:0", DatabaseURL: testdb.DSN(t, pool), ShutdownTimeout: 5 * time.Second,
		Conns: app.ConnTimes{ReadHeader: 100 * time.Millisecond, Read: 200 * time.Millisecond, Write: 100 * time.Millisecond, Idle: 100 * time.Millisecond},
	}
	go func() {
		ended <- app.RunERP(ctx, cfg, slog.New(slog.DiscardHandler), func(addr string) { ready <- addr })
	}()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	address := <-ready
	for what, sent := range map[string]string{
		"half a header": "GET /heal", "nothing after a request": "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n",
		"half a body": "POST /login HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 100\r\n\r\nname=",
	} {
		t.Run(what, func(t *testing.T) { // the default would keep them open for longer than the test waits, or as long
			conn := dial(t, address)
			if err := conn.SetDeadline(time.Now().Add(8 * time.Second)); err != nil {
				t.Fatal(err)
			}
			send(t, conn, sent)
			isClosed(t, conn)
		})
	}
}

func TestWrongTimesOfConnectionsAreNamed(t *testing.T) {
	t.Parallel()
	times := app.ConnTimes{ReadHeader: time.Millisecond, Read: -1, Write: 2 * time.Hour, Idle: time.Nanosecond}
	erp := app.ERPConfig{Listen: "127.0.0.1:0", DatabaseURL: "postgres://localhost/erp", Conns: times}
	side := app.CRMConfig{Listen: "127.0.0.1:0", DatabaseURL: "postgres://localhost/crm", ERPURL: "http://127.0.0.1:1", Conns: times}
	for prefix, err := range map[string]error{"ERP_": erp.Check(), "CRM_": side.Validate()} {
		for _, name := range []string{"READ_HEADER_TIMEOUT", "READ_TIMEOUT", "WRITE_TIMEOUT", "IDLE_TIMEOUT"} {
			if err == nil || strings.Count("\n"+err.Error(), "\n"+prefix+name+": ") != 1 {
				t.Errorf("%s is not told once in:\n%v", prefix+name, err)
			}
		}
	}
	erp.Conns = app.ConnTimes{ReadHeader: time.Minute}
	if err := erp.Check(); err == nil || !strings.Contains(err.Error(), "ERP_READ_TIMEOUT: 30s") || !strings.Contains(err.Error(), "ERP_READ_HEADER_TIMEOUT=1m0s") {
		t.Errorf("less for all than for a part: %v", err)
	}
	erp.Conns.Read = time.Minute
	if err := erp.Check(); err != nil {
		t.Error(err)
	}
}

func TestAHeaderHasALimit(t *testing.T) {
	t.Parallel()
	conn := dial(t, limited(t, app.ConnTimes{}))
	go func() { _, _ = io.WriteString(conn, aPost+"X-Long: "+strings.Repeat("x", 1<<20)+"\r\n\r\n") }()
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil || answer.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Fatalf("got %v, %v, want 431", answer, err)
	}
}

// Half-open: who has closed their side for writing still gets the answer; who is gone costs nothing.
func TestAHalfClosedConnectionIsAnsweredAndEnds(t *testing.T) {
	t.Parallel()
	address := limited(t, app.ConnTimes{})
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
	address := limited(t, app.ConnTimes{})
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
	address := few(t, app.ConnTimes{}, 2)
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
