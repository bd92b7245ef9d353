package faultproxy

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

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
