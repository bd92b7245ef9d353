package targetsim

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"time"
)

// AnyReference as the reference of a script is for requests of any external reference that has no script of its own.
const AnyReference = "*"

var errClosed = errors.New("the simulator is closed")

// Sim is the simulator. It is an http.Handler, and safe for use by several goroutines: requests have their effects one
// after the other.
type Sim struct {
	cfg     Config
	mux     *http.ServeMux
	stopped chan struct{}
	stop    func()

	mu      sync.Mutex
	state   *state
	journal *journal
	scripts map[string][]Fault
	random  *rand.Rand
}

// Open makes a simulator with the state that its journal has.
func Open(cfg Config) (*Sim, error) {
	cfg = cfg.withDefaults()
	if err := cfg.check(); err != nil {
		return nil, err
	}
	s := &Sim{
		cfg: cfg, stopped: make(chan struct{}), state: newState(), scripts: map[string][]Fault{},
		// The second word only has to be the same every time.
		random: rand.New(rand.NewPCG(cfg.Seed, 0)),
	}
	s.stop = sync.OnceFunc(func() { close(s.stopped) })
	var err error
	if s.journal, err = openJournal(cfg.Journal, s.state.apply); err != nil {
		return nil, err
	}
	s.mux = s.routes()
	return s, nil
}

// ServeHTTP implements http.Handler.
func (s *Sim) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.mux.ServeHTTP(w, r) }

// EndWaiting ends all requests that are never answered or answered slowly, now and later. A server that is to stop
// gracefully calls it first.
func (s *Sim) EndWaiting() { s.stop() }

// Close ends what is waiting and closes the journal. Requests that come after it have no effect and are answered 500.
func (s *Sim) Close() error {
	s.stop()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.journal.err == nil {
		s.journal.err = errClosed
		return s.journal.close()
	}
	return nil
}

// now is the simulator's clock. Held s.mu is needed.
func (s *Sim) now() time.Time { return moment(s.cfg.Now()).Add(s.state.moved) }

// Advance moves the simulator's clock forward, and with it everything that is to happen later. It is durable.
func (s *Sim) Advance(by time.Duration) error {
	if by < 0 {
		return fmt.Errorf("the clock goes forward only, not by %v", by)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.commit(true, event{Moved: by.String()})
}

// Script lays down what the next requests with this external reference meet: each takes the first fault that fits its
// kind (a submission or creation, a posting, a look-up). None lets one pass. Scripts are kept in memory only.
func (s *Sim) Script(reference string, faults ...Fault) error {
	for _, f := range faults {
		if _, ok := behaviourOf(f); !ok {
			return fmt.Errorf("there is no fault %q", f)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.scripts[reference] = append(s.scripts[reference], faults...)
	return nil
}

// meet decides what a request meets: the script of its reference, the script for any, else the dice.
func (s *Sim) meet(p phase, reference string) behaviour {
	s.mu.Lock()
	defer s.mu.Unlock()
	fault, scripted := s.scripted(p, reference)
	if !scripted {
		fault, scripted = s.scripted(p, AnyReference)
	}
	if !scripted {
		fault = s.throw(p)
	}
	b, _ := behaviourOf(fault)
	return b
}

func (s *Sim) scripted(p phase, reference string) (Fault, bool) {
	queue := s.scripts[reference]
	for i, f := range queue {
		if b, _ := behaviourOf(f); b.phase == p || b.phase == noSpecific {
			s.scripts[reference] = slices.Delete(slices.Clone(queue), i, i+1)
			return f, true
		}
	}
	return None, false
}

func (s *Sim) throw(p phase) Fault {
	at := s.random.Float64()
	for _, f := range slices.Sorted(maps.Keys(s.cfg.Rates)) {
		if b, _ := behaviourOf(f); b.phase != p {
			continue
		}
		if at < s.cfg.Rates[f] {
			return f
		}
		at -= s.cfg.Rates[f]
	}
	return None
}

// commit writes events and then applies them. Held s.mu is needed. What it has returned from without an error is in
// the state and, where durable, on disk; with an error nothing was applied.
func (s *Sim) commit(durable bool, events ...event) error {
	if err := s.journal.append(durable, events...); err != nil {
		return err
	}
	for _, e := range events {
		if err := s.state.apply(e); err != nil {
			return err
		}
	}
	return nil
}
