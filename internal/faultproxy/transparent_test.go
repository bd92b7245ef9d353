package faultproxy

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

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
