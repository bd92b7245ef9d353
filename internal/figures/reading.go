// Package figures keeps what a scrape of /metrics shows of the database: read at most so often, by one query at a time, and
// never waited for longer than a moment. A figure may so be old; its reading says how old it is.
package figures

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// How a Reading reads, unless Options says otherwise.
const (
	DefaultEvery = 5 * time.Second
	DefaultWait  = time.Second
	DefaultLimit = 10 * time.Second
	// restFactor spaces a slow query: it is at work for no more than one part in 1 + restFactor of the time.
	restFactor = 10
)

// Options are a Reading's settings. Zero values take the defaults.
type Options struct {
	Every  time.Duration // how old a value is at least when it is read again
	Wait   time.Duration // how long Get waits for a value that is being read
	Limit  time.Duration // how long one reading may take
	Logger *slog.Logger  // nil discards
	Now    func() time.Time
}

// Reading is a value read from elsewhere, as of its newest reading. It is safe for concurrent use: however many ask, one
// reads, and they share what it brings.
type Reading[T any] struct {
	name string
	read func(ctx context.Context) (T, error)
	opts Options

	mu       sync.Mutex
	current  State[T]
	notUntil time.Time     // the next reading begins no earlier
	running  chan struct{} // closed when the reading at work ends; nil where there is none
}

// State is a value and how it stands.
type State[T any] struct {
	Value T
	Standing
}

// Standing is how a Reading stands.
type Standing struct {
	Known    bool          // there is a value; false until the first reading has succeeded
	At       time.Time     // when the reading that brought the value began; zero while there is none
	Took     time.Duration // the newest reading, also one that failed
	Failures uint64        // readings that brought nothing
}

// New makes a Reading that has read nothing yet. read must end with its context.
func New[T any](name string, read func(ctx context.Context) (T, error), opts Options) *Reading[T] {
	if opts.Every <= 0 {
		opts.Every = DefaultEvery
	}
	if opts.Wait <= 0 {
		opts.Wait = DefaultWait
	}
	if opts.Limit <= 0 {
		opts.Limit = DefaultLimit
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	return &Reading[T]{name: name, read: read, opts: opts}
}

// Get gives the value as it stands, after it has seen to it that one older than Every is being read anew, and has waited
// for that a little. What takes longer is for the next who asks.
func (r *Reading[T]) Get() State[T] {
	if running := r.begin(); running != nil {
		timer := time.NewTimer(r.opts.Wait)
		defer timer.Stop()
		select {
		case <-running:
		case <-timer.C:
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.current
}

// begin gives the end of the reading at work, which it starts if it is time; nil if the value is young enough.
func (r *Reading[T]) begin() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.running == nil && !r.opts.Now().Before(r.notUntil) {
		r.running = make(chan struct{})
		go r.run(r.running)
	}
	return r.running
}

func (r *Reading[T]) run(done chan struct{}) {
	begun := r.opts.Now()
	value, err := r.tryRead()
	ended := r.opts.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.current.Took = ended.Sub(begun)
	if err != nil {
		r.current.Failures++
		r.opts.Logger.Warn("figures could not be read, the last ones stand", "figures", r.name, "error", err)
	} else {
		r.current.Value, r.current.Known, r.current.At = value, true, begun
	}
	r.notUntil = begun.Add(max(r.opts.Every, (1+restFactor)*r.current.Took))
	r.running = nil
	close(done)
}

// tryRead makes a panic an error: a figure is never worth the process.
func (r *Reading[T]) tryRead() (value T, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	ctx, cancel := context.WithTimeout(context.Background(), r.opts.Limit)
	defer cancel()
	return r.read(ctx)
}
