package wire_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"invoicebridge/internal/testdb"
	"invoicebridge/internal/wire"
)

// server counts what arrives whole.
type server struct {
	*httptest.Server
	mu     sync.Mutex
	bodies []string
}

func newServer(t *testing.T) *server {
	t.Helper()
	s := &server{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		s.mu.Lock()
		s.bodies = append(s.bodies, string(body))
		s.mu.Unlock()
		_, _ = io.WriteString(w, "answer to "+string(body))
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *server) arrived() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.bodies)
}

func start(t *testing.T, s *server, plan func(int) wire.Fault) *wire.Proxy {
	t.Helper()
	p, err := wire.Start(t.Context(), wire.Config{Upstreams: []string{s.Listener.Addr().String()}, Plan: plan})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

func always(f wire.Fault) func(int) wire.Fault { return func(int) wire.Fault { return f } }

// post sends one request on a connection of its own.
func post(t *testing.T, p *wire.Proxy, body string, limit time.Duration) (string, error) {
	t.Helper()
	client := &http.Client{Timeout: limit, Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := client.Post("http://"+p.Addr(), "text/plain", strings.NewReader(body))
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	return string(text), err
}

const long = 30 * time.Second

func TestWithoutAFaultNothingIsChanged(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	p := start(t, s, nil)
	big := strings.Repeat("x", 1<<20)
	if got, err := post(t, p, big, long); err != nil || got != "answer to "+big {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	if got := p.Stats(); got != (wire.Stats{Connections: 1}) {
		t.Errorf("%+v", got)
	}
}

func TestCutBeforeTheAnswerLeavesTheRequestDone(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	p := start(t, s, always(wire.Fault{Action: wire.Cut, Direction: wire.ToClient}))
	if got, err := post(t, p, "a", long); err == nil {
		t.Errorf("answered %q", got)
	}
	if s.arrived() != 1 || p.Stats().Cut != 1 {
		t.Errorf("%d arrived, %+v", s.arrived(), p.Stats())
	}
}

func TestCutInTheRequestKeepsItFromArriving(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	p := start(t, s, always(wire.Fault{Action: wire.Cut, Direction: wire.ToServer, At: 2000}))
	if got, err := post(t, p, strings.Repeat("x", 100_000), long); err == nil {
		t.Errorf("answered %q", got)
	}
	if s.arrived() != 0 {
		t.Error("half a request was taken for a whole one")
	}
}

func TestCutInTheAnswerGivesItsBeginningOnly(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	p := start(t, s, always(wire.Fault{Action: wire.Cut, Direction: wire.ToClient, At: 50_000}))
	got, err := post(t, p, strings.Repeat("x", 100_000), long)
	if err == nil || len(got) >= 100_000 {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	if s.arrived() != 1 {
		t.Errorf("%d arrived", s.arrived())
	}
}

func TestHoldLastsUntilItsEventAndLosesNothing(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	reached, release := make(chan struct{}), make(chan struct{})
	p := start(t, s, always(wire.Fault{
		Action: wire.Hold, Direction: wire.ToClient, After: release, Reached: func() { close(reached) },
	}))
	answered := make(chan string, 1)
	go func() {
		got, _ := post(t, p, "a", long)
		answered <- got
	}()
	<-reached
	select {
	case got := <-answered:
		t.Fatalf("answered %q while held", got)
	default:
	}
	close(release)
	if got := <-answered; got != "answer to a" || p.Stats().Held != 1 {
		t.Errorf("%q, %+v", got, p.Stats())
	}
}

func TestCutAfterAnEventHappensThen(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	reached, event := make(chan struct{}), make(chan struct{})
	p := start(t, s, always(wire.Fault{
		Action: wire.Cut, Direction: wire.ToClient, After: event, Reached: func() { close(reached) },
	}))
	failed := make(chan error, 1)
	go func() {
		_, err := post(t, p, "a", long)
		failed <- err
	}()
	<-reached
	if p.Stats().Cut != 0 {
		t.Error("cut before its event")
	}
	close(event)
	if err := <-failed; err == nil || p.Stats().Cut != 1 {
		t.Errorf("%v, %+v", err, p.Stats())
	}
}

func TestDropLeavesTheClientWaiting(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	p := start(t, s, always(wire.Fault{Action: wire.Drop, Direction: wire.ToClient}))
	if got, err := post(t, p, "a", 200*time.Millisecond); err == nil {
		t.Errorf("answered %q", got)
	}
	if s.arrived() != 1 || p.Stats().Dropped != 1 {
		t.Errorf("%d arrived, %+v", s.arrived(), p.Stats())
	}
}

func TestDuplicateArrivesTwiceAndIsAnsweredOnce(t *testing.T) {
	t.Parallel()
	for name, direction := range map[string]wire.Direction{"at the same time": wire.ToServer, "after the answer": wire.ToClient} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t)
			p := start(t, s, always(wire.Fault{Action: wire.Duplicate, Direction: direction}))
			if got, err := post(t, p, "a", long); err != nil || got != "answer to a" {
				t.Errorf("%q, %v", got, err)
			}
			testdb.Await(t, "the duplicate has arrived", func() bool { return s.arrived() == 2 })
			if s.bodies[0] != "a" || s.bodies[1] != "a" {
				t.Errorf("arrived: %q", s.bodies)
			}
		})
	}
}

func TestUpstreamsAreTakenInTurn(t *testing.T) {
	t.Parallel()
	a, b := newServer(t), newServer(t)
	p, err := wire.Start(t.Context(), wire.Config{Upstreams: []string{a.Listener.Addr().String(), b.Listener.Addr().String()}})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	for range 4 {
		if _, err := post(t, p, "a", long); err != nil {
			t.Fatal(err)
		}
	}
	if a.arrived() != 2 || b.arrived() != 2 {
		t.Errorf("%d and %d", a.arrived(), b.arrived())
	}
}

func TestCloseEndsWhatIsHeld(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	reached := make(chan struct{})
	p := start(t, s, always(wire.Fault{Action: wire.Hold, Direction: wire.ToClient, Reached: func() { close(reached) }}))
	failed := make(chan error, 1)
	go func() {
		_, err := post(t, p, "a", long)
		failed <- err
	}()
	<-reached
	p.Close()
	if err := <-failed; err == nil {
		t.Error("a held answer came through after the end")
	}
}
