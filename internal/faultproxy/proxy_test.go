package faultproxy

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

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

const patience = 20 * time.Second

func TestResetLosesTheAnswerAfterTheUpstreamWorked(t *testing.T) {
	t.Parallel()
	e := startERP(t, nil)
	p, server := startProxy(t, e.URL, Config{Rates: Rates{Reset: 1}})
	_, _, err := post(t, server.URL)
	if !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("client got %v, want a reset connection", err)
	}
	wantRequests(t, e, 1)
	wantStats(t, p, Stats{Requests: 1, Forwarded: 1, AnswersLost: 1, Reset: 1})
}

func TestHoldOutlastsTheClient(t *testing.T) {
	t.Parallel()
	e := startERP(t, nil)
	p, server := startProxy(t, e.URL, Config{Rates: Rates{Hold: 1}, Hold: time.Hour})
	err := leaveWhen(t, server.URL, func() bool { return p.Stats().Held == 1 })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("client got %v, want nothing until it left", err)
	}
	wantRequests(t, e, 1)
	eventually(t, func() bool { return p.Stats().AnswersLost == 1 })
	wantStats(t, p, Stats{Requests: 1, Forwarded: 1, AnswersLost: 1, Held: 1})
}

func TestHeldAnswerReachesAClientThatWaits(t *testing.T) {
	t.Parallel()
	e := startERP(t, nil)
	p, server := startProxy(t, e.URL, Config{Rates: Rates{Hold: 1}, Hold: time.Millisecond})
	answer, body, err := post(t, server.URL)
	if err != nil || answer.StatusCode != http.StatusCreated || string(body) != answerBody {
		t.Errorf("got %v, %q, %v", answer, body, err)
	}
	wantStats(t, p, Stats{Requests: 1, Forwarded: 1, Held: 1})
}

func TestCutEndsInTheMiddleOfTheBody(t *testing.T) {
	t.Parallel()
	answers := map[string]http.HandlerFunc{
		"with a length": nil,
		"in chunks": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusCreated)
			_ = http.NewResponseController(w).Flush()
			_, _ = io.WriteString(w, answerBody)
		},
	}
	for name, answer := range answers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := startERP(t, answer)
			p, server := startProxy(t, e.URL, Config{Rates: Rates{Cut: 1}})
			got, body, err := post(t, server.URL)
			if !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("client got %v, want an unexpected end", err)
			}
			if want := answerBody[:len(answerBody)/2]; got == nil || got.StatusCode != http.StatusCreated || string(body) != want {
				t.Errorf("client got %v with %q, want 201 with %q", got, body, want)
			}
			wantRequests(t, e, 1)
			wantStats(t, p, Stats{Requests: 1, Forwarded: 1, AnswersLost: 1, Cut: 1})
		})
	}
}

func TestBadGatewayHidesASuccess(t *testing.T) {
	t.Parallel()
	e := startERP(t, nil)
	p, server := startProxy(t, e.URL, Config{Rates: Rates{BadGateway: 1}})
	answer, body, err := post(t, server.URL)
	if err != nil || answer.StatusCode != http.StatusBadGateway || answer.Header.Get("Location") != "" {
		t.Errorf("got %v, %q, %v, want a 502 without anything of the answer", answer, body, err)
	}
	wantRequests(t, e, 1)
	wantStats(t, p, Stats{Requests: 1, Forwarded: 1, AnswersLost: 1, BadGateways: 1})
}

func TestDuplicateSendsTheSameTwiceAtOnceAndAnswersOnce(t *testing.T) {
	t.Parallel()
	var both sync.WaitGroup
	both.Add(2)
	e := startERP(t, func(w http.ResponseWriter, _ *http.Request) {
		both.Done()
		both.Wait() // neither is answered before the other is there
		w.Header().Set("Idempotent-Replayed", "true")
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, answerBody)
	})
	p, server := startProxy(t, e.URL, Config{Rates: Rates{Duplicate: 1}})
	answer, body, err := post(t, server.URL)
	if err != nil || answer.StatusCode != http.StatusCreated || string(body) != answerBody {
		t.Errorf("got %v, %q, %v", answer, body, err)
	}
	got := e.all()
	if len(got) != 2 {
		t.Fatalf("the upstream saw %d requests, want 2", len(got))
	}
	if diff := cmp.Diff(got[0], got[1]); diff != "" {
		t.Errorf("the two differ:\n%s", diff)
	}
	eventually(t, func() bool { return p.Stats().Replays == 2 })
	wantStats(t, p, Stats{Requests: 1, Forwarded: 2, Duplicated: 1, Replays: 2})
}

func TestDelayedRequestArrivesAfterItsClientHasLeft(t *testing.T) {
	t.Parallel()
	e := startERP(t, nil)
	p, server := startProxy(t, e.URL, Config{Rates: Rates{Delay: 1}, Delay: time.Hour})
	err := leaveWhen(t, server.URL, func() bool { return p.Stats().Delayed == 1 })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("client got %v, want nothing until it left", err)
	}
	wantRequests(t, e, 0)
	if err := p.Close(context.Background()); err != nil { // ends the hour
		t.Fatal(err)
	}
	eventually(t, func() bool { return len(e.all()) == 1 })
	wantStats(t, p, Stats{Requests: 1, Forwarded: 1, Delayed: 1})
}

func TestDelayedRequestIsAnswered(t *testing.T) {
	t.Parallel()
	e := startERP(t, nil)
	p, server := startProxy(t, e.URL, Config{Rates: Rates{Delay: 1}, Delay: time.Millisecond})
	answer, body, err := post(t, server.URL)
	if err != nil || answer.StatusCode != http.StatusCreated || string(body) != answerBody {
		t.Errorf("got %v, %q, %v", answer, body, err)
	}
	wantStats(t, p, Stats{Requests: 1, Forwarded: 1, Delayed: 1})
}

func TestRefusedRequestNeverReachesTheUpstream(t *testing.T) {
	t.Parallel()
	e := startERP(t, nil)
	p, server := startProxy(t, e.URL, Config{Rates: Rates{Refuse: 1}})
	_, _, err := post(t, server.URL)
	if !errors.Is(err, syscall.ECONNRESET) && !errors.Is(err, syscall.EPIPE) {
		t.Errorf("client got %v, want a reset connection", err)
	}
	wantRequests(t, e, 0)
	wantStats(t, p, Stats{Requests: 1, Refused: 1})
}

func TestAnswersThatAreNoSuccessAreNotLost(t *testing.T) {
	t.Parallel()
	for name, rates := range map[string]Rates{
		"reset": {Reset: 1}, "hold": {Hold: 1}, "cut": {Cut: 1}, "bad-gateway": {BadGateway: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := startERP(t, func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusConflict) })
			p, server := startProxy(t, e.URL, Config{Rates: rates, Hold: time.Hour})
			answer, body, err := post(t, server.URL)
			if err != nil || answer.StatusCode != http.StatusConflict || string(body) != "no\n" {
				t.Errorf("got %v, %q, %v", answer, body, err)
			}
			wantStats(t, p, Stats{Requests: 1, Forwarded: 1, Conflicts: 1})
		})
	}
}

func TestFaultsStrikeOnlyTheIssuingOfInvoices(t *testing.T) {
	t.Parallel()
	e := startERP(t, nil)
	p, server := startProxy(t, e.URL, Config{Rates: Rates{Refuse: 1}})
	for _, target := range []string{"GET /v1/invoices", "GET /v1/invoices/0197", "POST /v1/invoices/", "POST /v1/orders"} {
		method, path, _ := strings.Cut(target, " ")
		r, _ := http.NewRequestWithContext(t.Context(), method, server.URL+path, nil)
		answer, err := server.Client().Do(r)
		if err != nil {
			t.Errorf("%s: %v", target, err)
			continue
		}
		answer.Body.Close()
	}
	wantRequests(t, e, 4)
	wantStats(t, p, Stats{})
}

func TestTransparentWithoutRatesAndWhenDisabled(t *testing.T) {
	t.Parallel()
	binary := make([]byte, 300_000)
	for i := range binary {
		binary[i] = byte(i * 7)
	}
	certain := Rates{Reset: 0.2, Hold: 0.2, Cut: 0.2, BadGateway: 0.2, Refuse: 0.2}
	for name, cfg := range map[string]Config{"no rates": {}, "disabled": {Rates: certain, Disabled: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := startERP(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header()["X-Two"] = []string{"a", "b"}
				w.Header().Set("Content-Type", "application/json; charset=utf-8")
				w.WriteHeader(http.StatusCreated)
				_, _ = w.Write(binary)
			})
			p, server := startProxy(t, e.URL, cfg)
			for i, chunked := range []bool{false, true} {
				direct, via := send(t, e.URL, binary, chunked), send(t, server.URL, binary, chunked)
				if diff := cmp.Diff(direct, via); diff != "" {
					t.Errorf("answers differ (-direct +proxy):\n%s", diff)
				}
				got := e.all()[2*i:]
				if diff := cmp.Diff(got[0], got[1]); diff != "" {
					t.Errorf("requests differ (-direct +proxy):\n%s", diff)
				}
				if got[1].Body != string(binary) {
					t.Error("the body was changed")
				}
			}
			wantStats(t, p, Stats{Requests: 2, Forwarded: 2})
		})
	}
}

type answered struct {
	Status  int
	Header  http.Header
	Body    []byte
	Trailer http.Header
}

func send(t *testing.T, base string, body []byte, chunked bool) answered {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, base+"/v1/invoices?debug=1;x&y=%zz", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if chunked {
		r.ContentLength = -1
	}
	r.Host = "erp.example"
	r.Header = http.Header{
		"Idempotency-Key": {`"k-1"`}, "X-Forwarded-For": {"192.0.2.1"}, "Forwarded": {"for=192.0.2.1"},
		"Authorization": {"Bearer x"}, "X-Two": {"1", "2"}, "User-Agent": {""}, "Accept-Encoding": {"br"},
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	got, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	answer.Header.Del("Date")
	answer.Header.Del("Connection") // hop by hop
	return answered{answer.StatusCode, answer.Header, got, answer.Trailer}
}

func TestHopByHopFieldsStayBehind(t *testing.T) {
	t.Parallel()
	e := startERP(t, nil)
	_, server := startProxy(t, e.URL, Config{})
	r, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+"/v1/invoices", strings.NewReader("{}"))
	r.Header.Set("Connection", "X-Private")
	r.Header.Set("X-Private", "1")
	r.Header.Set("Keep-Alive", "timeout=5")
	r.Header.Set("X-Public", "2")
	answer, err := server.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	header := e.all()[0].Header
	if header.Get("X-Private") != "" || header.Get("Keep-Alive") != "" || header.Get("X-Public") != "2" {
		t.Errorf("the upstream got %v", header)
	}
}

func TestBodiesOverTheBoundPassWithoutAFault(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]Config{
		"request": {Rates: Rates{Reset: 1}, MaxRequest: 8},
		"answer":  {Rates: Rates{Reset: 1}, MaxAnswer: 8},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := startERP(t, nil)
			p, server := startProxy(t, e.URL, cfg)
			answer, body, err := post(t, server.URL)
			if err != nil || answer.StatusCode != http.StatusCreated || string(body) != answerBody {
				t.Errorf("got %v, %q, %v", answer, body, err)
			}
			if got := e.all(); len(got) != 1 || got[0].Body != `{"order":"SO-1"}` {
				t.Errorf("the upstream got %v", got)
			}
			wantStats(t, p, Stats{Requests: 1, Forwarded: 1})
		})
	}
}

func TestUpstreamThatHangsUpIsNotAskedAgain(t *testing.T) {
	t.Parallel()
	for name, rates := range map[string]Rates{"no fault": {}, "delay": {Delay: 1}, "reset": {Reset: 1}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := startERP(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
			p, server := startProxy(t, e.URL, Config{Rates: rates, Delay: time.Millisecond})
			answer, _, err := post(t, server.URL)
			if err != nil || answer.StatusCode != http.StatusBadGateway {
				t.Errorf("got %v, %v, want 502", answer, err)
			}
			wantRequests(t, e, 1)
			if got := p.Stats(); got.Unreachable != 1 || got.AnswersLost != 0 {
				t.Errorf("counts: %+v", got)
			}
		})
	}
}

func TestCloseEndsWhatIsHeld(t *testing.T) {
	t.Parallel()
	e := startERP(t, nil)
	p, server := startProxy(t, e.URL, Config{Rates: Rates{Hold: 1}, Hold: time.Hour})
	result := make(chan error, 1)
	go func() {
		_, _, err := post(t, server.URL)
		result <- err
	}()
	eventually(t, func() bool { return p.Stats().Held == 1 })
	if err := p.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	if err := <-result; !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("client got %v, want a reset connection", err)
	}
	if err := p.Close(context.Background()); err != nil {
		t.Errorf("second Close: %v", err)
	}
}

func TestSeedAndSequenceDecide(t *testing.T) {
	t.Parallel()
	rates := Rates{Reset: 0.1, Hold: 0.1, Cut: 0.1, BadGateway: 0.1, Duplicate: 0.1, Delay: 0.1, Refuse: 0.1}
	const n = 20_000
	draw := func(seed uint64) ([]Fault, map[Fault]int) {
		d, list, count := newDice(seed, rates), make([]Fault, n), map[Fault]int{}
		for i := range list {
			list[i] = d.throw()
			count[list[i]]++
		}
		return list, count
	}
	one, count := draw(7)
	again, _ := draw(7)
	other, _ := draw(8)
	if !cmp.Equal(one, again) {
		t.Error("one seed gave two sequences")
	}
	if cmp.Equal(one, other) {
		t.Error("two seeds gave one sequence")
	}
	for _, s := range rates.shares() {
		if got := count[s.fault]; got < n*9/100 || got > n*11/100 { // over four standard deviations
			t.Errorf("%s struck %d of %d", s.fault, got, n)
		}
	}
	if got := count[None]; got < n*28/100 || got > n*32/100 {
		t.Errorf("%d of %d met no fault", got, n)
	}
}

func TestWrongSettingsAreNamed(t *testing.T) {
	t.Parallel()
	upstream, _ := url.Parse("http://127.0.0.1:1")
	zero := 0.0
	for want, cfg := range map[string]Config{
		"rate of cut is 1.5":            {Upstream: upstream, Rates: Rates{Cut: 1.5}},
		"rate of delay is -0.1":         {Upstream: upstream, Rates: Rates{Delay: -0.1}},
		"rate of reset is NaN":          {Upstream: upstream, Rates: Rates{Reset: zero / zero}},
		"the rates add up to 1.2":       {Upstream: upstream, Rates: Rates{Cut: 0.6, Delay: 0.6}},
		"no upstream":                   {},
		"times and limits can't be neg": {Upstream: upstream, Delay: -1},
	} {
		if _, err := New(cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q in it", err, want)
		}
	}
	tenTenths := Rates{Reset: 0.1, Hold: 0.2, Cut: 0.1, BadGateway: 0.2, Duplicate: 0.1, Delay: 0.2, Refuse: 0.1}
	if err := tenTenths.Validate(); err != nil {
		t.Errorf("rates of 1 in all: %v", err)
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
	for deadline := time.Now().Add(patience); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("did not happen in time")
		}
	}
}
