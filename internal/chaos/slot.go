package chaos

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"syscall"
	"time"

	"invoicebridge/internal/fleet"
)

// slot is a place for a process, which dies and comes again under the same address.
type slot struct {
	name    string // of the program, for notes
	program string
	env     []string
	history *History

	turn    sync.Mutex // held by the disturbance that is under way
	mu      sync.Mutex // held by whoever does something to the process
	process *fleet.Process
	address string
}

const restartPause = 200 * time.Millisecond

// start starts the process, again and again until it is up: the database may be away.
func (s *slot) start(ctx context.Context, p fleet.Programs) error {
	listen := s.address
	if listen == "" {
		listen = "127.0.0.1:0"
	}
	var err error
	for ctx.Err() == nil {
		if s.process, err = p.Serve(ctx, s.program, listen, s.env); err == nil {
			s.address = s.process.Address
			return nil
		}
		s.history.note("%s does not start: %v", s.name, err)
		if !pause(ctx, restartPause) {
			break
		}
	}
	return fmt.Errorf("start %s: %w", s.name, err)
}

var errBusy = errors.New("something else is being done to the process")

// unlessBusy does something to the process if nothing else is under way: where starting takes longer than the time between two
// disturbances, they would queue, and the process never work.
func (s *slot) unlessBusy(disturb func() error) error {
	if !s.turn.TryLock() {
		return errBusy
	}
	defer s.turn.Unlock()
	return disturb()
}

// inTurn does something to the process once what is under way has ended.
func (s *slot) inTurn(disturb func() error) error {
	s.turn.Lock()
	defer s.turn.Unlock()
	return disturb()
}

// kill is kill -9, and a start after a while.
func (s *slot) kill(ctx context.Context, p fleet.Programs, down time.Duration) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.history.note("%s is killed", s.name)
	s.process.Kill()
	pause(ctx, down)
	return s.again(ctx, p)
}

// restart is an orderly stop and a start.
func (s *slot) restart(ctx context.Context, p fleet.Programs, down time.Duration) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.history.note("%s is stopped", s.name)
	s.process.Stop()
	pause(ctx, down)
	return s.again(ctx, p)
}

func (s *slot) again(ctx context.Context, p fleet.Programs) error {
	if err := s.start(context.WithoutCancel(ctx), p); err != nil {
		return err
	}
	s.history.note("%s is up again", s.name)
	return nil
}

// freeze stops the process as if the machine had gone to sleep.
func (s *slot) freeze(ctx context.Context, lasts time.Duration) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.history.note("%s is frozen", s.name)
	s.process.Signal(syscall.SIGSTOP)
	pause(ctx, lasts)
	s.process.Signal(syscall.SIGCONT)
	s.history.note("%s goes on", s.name)
	return nil
}

// watch starts a process again that has ended by itself, which none of them should.
func (s *slot) watch(ctx context.Context, p fleet.Programs) {
	for pause(ctx, restartPause) {
		s.mu.Lock()
		select {
		case <-s.process.Ended():
			if ctx.Err() == nil {
				s.history.fell(fmt.Sprintf("%s ended by itself: %s", s.name, s.process.Log()))
				_ = s.again(ctx, p)
			}
		default:
		}
		s.mu.Unlock()
	}
}

// stop ends the process for good.
func (s *slot) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process != nil {
		s.process.Stop()
	}
}

// pause waits; false if ctx ended first.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}
