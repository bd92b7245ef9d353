package erpapi_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"invoicebridge/internal/erpapi"
	"invoicebridge/internal/problem"
)

const (
	testToken = "ibt_test_very-secret"
	testKey   = "018f-key"
	testBody  = `{"order":"SO-1001"}`
)

func newClient(t *testing.T, cfg erpapi.ClientConfig) *erpapi.Client {
	t.Helper()
	c, err := erpapi.NewClient(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.CloseIdleConnections)
	return c
}

func post(t *testing.T, c *erpapi.Client) erpapi.Exchange {
	t.Helper()
	return c.CreateInvoice(t.Context(), testToken, testKey, []byte(testBody))
}

func serve(t *testing.T, handler http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(handler)
	t.Cleanup(s.Close)
	return s
}

func TestTheRequestIsSentAsGiven(t *testing.T) {
	t.Parallel()
	var got *http.Request
	var body []byte
	s := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		got = r
		body, _ = io.ReadAll(r.Body)
	})
	x := post(t, newClient(t, erpapi.ClientConfig{BaseURL: s.URL + "/erp/"}))
	if x.Status != http.StatusOK || !x.SendingBegan {
		t.Fatalf("exchange is %+v", x)
	}
	if got.Method != http.MethodPost || got.URL.Path != "/erp/v1/invoices" || string(body) != testBody ||
		got.ContentLength != int64(len(testBody)) || len(got.TransferEncoding) != 0 {
		t.Errorf("arrived: %s %s, %q, length %d, encoding %v", got.Method, got.URL.Path, body, got.ContentLength, got.TransferEncoding)
	}
	for name, want := range map[string]string{
		"Authorization": "Bearer " + testToken, "Idempotency-Key": testKey, "Content-Type": "application/json",
	} {
		if got.Header.Get(name) != want {
			t.Errorf("%s is %q", name, got.Header.Get(name))
		}
	}
}

func TestNothingIsSentWithoutABody(t *testing.T) {
	t.Parallel()
	var requests atomic.Int32
	s := serve(t, func(http.ResponseWriter, *http.Request) { requests.Add(1) })
	c := newClient(t, erpapi.ClientConfig{BaseURL: s.URL})
	for _, body := range [][]byte{nil, {}} {
		x := c.CreateInvoice(t.Context(), testToken, testKey, body)
		if !errors.Is(x.Err, erpapi.ErrNothingToSend) || x.SendingBegan {
			t.Errorf("exchange is %+v", x)
		}
	}
	if n := requests.Load(); n != 0 {
		t.Errorf("%d requests arrived", n)
	}
}

// Go's Transport takes a POST with an Idempotency-Key for one that it may send again by itself when a kept connection
// breaks. The server reads the whole request on such a connection and closes it.
func TestNoRequestIsResentByTheTransport(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	var connections, requests atomic.Int32
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			connections.Add(1)
			go func() {
				defer conn.Close()
				reader := bufio.NewReader(conn)
				for {
					req, err := http.ReadRequest(reader)
					if err != nil {
						return
					}
					_, _ = io.Copy(io.Discard, req.Body)
					if requests.Add(1) > 1 {
						return // it was worked on, then the connection breaks
					}
					fmt.Fprint(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
				}
			}()
		}
	}()
	c := newClient(t, erpapi.ClientConfig{BaseURL: "http://" + listener.Addr().String()})
	if x := post(t, c); x.Status != http.StatusOK {
		t.Fatalf("first: %+v", x)
	}
	x := post(t, c)
	if x.Status != 0 || x.Err == nil || !x.SendingBegan {
		t.Errorf("second: %+v, want a lost answer", x)
	}
	if n, m := connections.Load(), requests.Load(); n != 1 || m != 2 {
		t.Errorf("%d requests on %d connections, want 2 on 1", m, n)
	}
}

func TestWhatWasNeverSentIsToldApartFromWhatWasLost(t *testing.T) {
	t.Parallel()
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	refused := closed.Addr().String()
	closed.Close()
	selfSigned := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(selfSigned.Close)
	plain := serve(t, func(http.ResponseWriter, *http.Request) {})
	for name, address := range map[string]string{
		"connection refused":     "http://" + refused,
		"name not found":         "http://no-such-host.invalid",
		"unknown authority":      selfSigned.URL,
		"TLS spoken to no TLS":   strings.Replace(plain.URL, "http://", "https://", 1),
		"port that cannot exist": "http://127.0.0.1:0",
	} {
		if x := post(t, newClient(t, erpapi.ClientConfig{BaseURL: address})); x.SendingBegan || x.Err == nil || x.Status != 0 {
			t.Errorf("%s: %+v", name, x)
		}
	}
	hung := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	})
	x := post(t, newClient(t, erpapi.ClientConfig{BaseURL: hung.URL, AttemptTimeout: 200 * time.Millisecond}))
	if !x.SendingBegan || !errors.Is(x.Err, context.DeadlineExceeded) {
		t.Errorf("time-out: %+v", x)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	x = newClient(t, erpapi.ClientConfig{BaseURL: plain.URL}).CreateInvoice(ctx, testToken, testKey, []byte(testBody))
	if x.SendingBegan || !errors.Is(x.Err, context.Canceled) {
		t.Errorf("cancelled before: %+v", x)
	}
}

func TestAnInterruptionIsToldWhateverItsCause(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	s := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		cancel(errors.New("shutting down"))
		<-r.Context().Done()
	})
	x := newClient(t, erpapi.ClientConfig{BaseURL: s.URL}).CreateInvoice(ctx, testToken, testKey, []byte(testBody))
	if !x.SendingBegan || !errors.Is(x.Err, context.Canceled) {
		t.Errorf("exchange is %+v", x)
	}
}

func TestTheTimeLimitCoversTheBody(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.WriteHeader(http.StatusCreated)
		fmt.Fprint(w, `{"id":`)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	x := post(t, newClient(t, erpapi.ClientConfig{BaseURL: s.URL, AttemptTimeout: 300 * time.Millisecond}))
	if x.Status != http.StatusCreated || x.Complete || x.Invoice != nil || !errors.Is(x.Err, context.DeadlineExceeded) {
		t.Errorf("exchange is %+v", x)
	}
}

func TestAnAnswerIsReadToABound(t *testing.T) {
	t.Parallel()
	const bound = 1 << 16
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusCreated)
		chunk := bytes.Repeat([]byte(" "), 1<<20)
		for range 2048 { // 2 GiB
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	})
	x := post(t, newClient(t, erpapi.ClientConfig{BaseURL: s.URL, MaxAnswerBytes: bound}))
	if x.Status != http.StatusCreated || x.Complete || len(x.Body) > bound {
		t.Errorf("status %d, complete %v, %d bytes", x.Status, x.Complete, len(x.Body))
	}
}

// CASES K2.
func TestNoRedirectIsFollowed(t *testing.T) {
	t.Parallel()
	var elsewhere atomic.Int32
	other := serve(t, func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) })
	for _, status := range []int{300, 301, 302, 303, 304, 305, 307, 308} {
		for _, location := range []string{other.URL + "/v1/invoices", "/v1/invoices/", "https://127.0.0.1:1/v1/invoices", ""} {
			var here atomic.Int32
			s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				here.Add(1)
				if location != "" {
					w.Header().Set("Location", location)
				}
				w.WriteHeader(status)
			})
			c := newClient(t, erpapi.ClientConfig{BaseURL: s.URL})
			if x := post(t, c); x.Status != status || x.Err != nil {
				t.Errorf("%d to %q: %+v", status, location, x)
			}
			if x := c.GetOperation(t.Context(), testToken, testKey); x.Status != status {
				t.Errorf("GET, %d to %q: %+v", status, location, x)
			}
			if n := here.Load(); n != 2 {
				t.Errorf("%d to %q: %d requests, want 2", status, location, n)
			}
		}
	}
	if n := elsewhere.Load(); n != 0 {
		t.Errorf("the other host saw %d requests", n)
	}
}

func TestAProblemDocumentBecomesTheProblem(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/problem+json")
		w.Header().Set("Retry-After", "7")
		w.WriteHeader(http.StatusConflict)
		fmt.Fprint(w, `{"type":"https://erp.example/problems/already-invoiced","title":"Already invoiced","status":409,
			"detail":"It is.","invoice":{"id":"i","number":"n","operation_key":"k"},"same_content":true,"new_member":1}`)
	})
	p := post(t, newClient(t, erpapi.ClientConfig{BaseURL: s.URL})).Problem
	if p == nil || p.Type != problem.AlreadyInvoiced || p.Detail != "It is." || p.Invoice == nil ||
		p.Invoice.OperationKey != "k" || !p.SameContent || p.RetryAfter != 7*time.Second {
		t.Errorf("problem is %+v", p)
	}
}

func TestWhatIsNoProblemDocumentIsNoProblem(t *testing.T) {
	t.Parallel()
	for _, body := range []string{"", "null", "[]", "{}", `"x"`, `{"type":"about:blank"}`, `{"type":"a","type":"b"}`, `{"type":"a"} x`, "<html>"} {
		if p := erpapi.FromDocument([]byte(body)); p != nil {
			t.Errorf("%q is read as %+v", body, p)
		}
	}
}

func TestAnOperationIsAskedForByItsKey(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet || r.URL.EscapedPath() != "/v1/operations/a%2Fb%3Fc" || r.Header.Get("Authorization") != "Bearer "+testToken {
			w.WriteHeader(http.StatusTeapot)
		}
		fmt.Fprint(w, `{"key":"a/b?c","status":"succeeded","invoice":{"id":"i","number":"n"},"registrations":[]}`)
	})
	x := newClient(t, erpapi.ClientConfig{BaseURL: s.URL}).GetOperation(t.Context(), testToken, "a/b?c")
	if x.Status != http.StatusOK || x.Operation == nil || x.Operation.Invoice.Number != "n" {
		t.Errorf("exchange is %+v", x)
	}
}

func TestNoErrorHoldsASecret(t *testing.T) {
	t.Parallel()
	broken := newClient(t, erpapi.ClientConfig{BaseURL: "http://127.0.0.1:0"})
	for _, x := range []erpapi.Exchange{
		broken.CreateInvoice(t.Context(), testToken, testKey, []byte(testBody)),
		broken.CreateInvoice(t.Context(), testToken+"\n", testKey, []byte(testBody)),
		broken.CreateInvoice(t.Context(), testToken, "key\x00", []byte(testBody)),
	} {
		if x.Err == nil || x.SendingBegan || strings.Contains(x.Err.Error(), testToken) {
			t.Errorf("error is %v, began %v", x.Err, x.SendingBegan)
		}
	}
	for _, address := range []string{"", "erp.example", "ftp://erp.example", "http://", "http://u:hunter2@erp.example", "http://erp.example?x=hunter2", "http://u:hunter2@%zz"} {
		if _, err := erpapi.NewClient(erpapi.ClientConfig{BaseURL: address}); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: %v", address, err)
		}
	}
}
