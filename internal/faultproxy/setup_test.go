package faultproxy

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const patience = 20 * time.Second

const answerBody = `{"id":"0197","number":"INV-2026-000001"}` + "\n"

// seen is what the upstream got of one request.
type seen struct {
	Method, Host, URI, Body string
	Header                  http.Header
	ContentLength           int64
	TransferEncoding        []string
}

// erp is an upstream that answers 201, and keeps what it was sent.
type erp struct {
	*httptest.Server
	mu       sync.Mutex
	requests []seen
	answer   http.HandlerFunc // instead of 201
}

func startERP(t *testing.T, answer http.HandlerFunc) *erp {
	t.Helper()
	e := &erp{answer: answer}
	e.Server = httptest.NewServer(http.HandlerFunc(e.handle))
	t.Cleanup(e.Close)
	return e
}

func (e *erp) handle(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	e.mu.Lock()
	e.requests = append(e.requests, seen{r.Method, r.Host, r.RequestURI, string(body), r.Header, r.ContentLength, r.TransferEncoding})
	e.mu.Unlock()
	if e.answer != nil {
		e.answer(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Location", "/v1/invoices/0197")
	w.WriteHeader(http.StatusCreated)
	_, _ = io.WriteString(w, answerBody)
}

func (e *erp) all() []seen {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]seen(nil), e.requests...)
}

func startProxy(t *testing.T, upstream string, cfg Config) (*Proxy, *httptest.Server) {
	t.Helper()
	target, err := url.Parse(upstream)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Upstream = target
	proxy, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(proxy)
	t.Cleanup(func() {
		if err := proxy.Close(context.Background()); err != nil {
			t.Error(err)
		}
		server.Close()
	})
	return proxy, server
}

// post sends one invoice request without any resending: GetBody is what the Transport would need for it.
func post(t *testing.T, base string) (*http.Response, []byte, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	return postWith(ctx, t, base)
}

func postWith(ctx context.Context, t *testing.T, base string) (*http.Response, []byte, error) {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, base+"/v1/invoices", strings.NewReader(`{"order":"SO-1"}`))
	if err != nil {
		t.Fatal(err)
	}
	r.GetBody = nil
	r.Header.Set("Idempotency-Key", "k-1")
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Do(r)
	if err != nil {
		return nil, nil, err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	return answer, body, err
}

func wantStats(t *testing.T, p *Proxy, want Stats) {
	t.Helper()
	if diff := cmp.Diff(want, p.Stats()); diff != "" {
		t.Errorf("counts (-want +got):\n%s", diff)
	}
}

func wantRequests(t *testing.T, e *erp, n int) {
	t.Helper()
	if got := e.all(); len(got) != n {
		t.Errorf("the upstream saw %d requests, want %d: %v", len(got), n, got)
	}
}

// leaveWhen sends a request and gives up waiting for the answer when the condition holds.
func leaveWhen(t *testing.T, base string, ok func() bool) error {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	result := make(chan error, 1)
	go func() {
		_, _, err := postWith(ctx, t, base)
		result <- err
	}()
	eventually(t, ok)
	cancel()
	return <-result
}

func eventually(t *testing.T, ok func() bool) {
	t.Helper()
	deadline := time.After(patience)
	for !ok() {
		select {
		case <-deadline:
			t.Fatal("did not happen in time")
		case <-time.After(2 * time.Millisecond):
		}
	}
}
