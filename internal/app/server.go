package app

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

const (
	maxHeaderBytes = 64 << 10
	maxConns       = 4096
)

// Stopping says whether a program has begun to stop. Its zero value says no.
type Stopping struct{ begun atomic.Bool }

// Begun is true from the moment on that the program takes no new work.
func (s *Stopping) Begun() bool { return s.begun.Load() }

// Server serves HTTP until it is told to stop, and then ends what runs.
type Server struct {
	Name    string // in log lines
	Listen  string // host:port; port 0 takes any free one
	Handler http.Handler
	Log     *slog.Logger
	// TLS has the server speak HTTPS, by HTTP/2 where the client can; nil: plain HTTP.
	TLS *tls.Config
	// RequestTimeout is the time the handler gives one request.
	RequestTimeout time.Duration
	// ShutdownTimeout is how long running requests may take after the stop has begun. Then their contexts are
	// cancelled and their connections closed.
	ShutdownTimeout time.Duration
	// Conns are the times that connections have.
	Conns ConnTimes
	// MaxConns is how many there may be; those above wait in the system's queue until another ends. 0: 4096.
	MaxConns int
	// Stopping is set before the listener closes, so that readiness is off first.
	Stopping *Stopping
	// Ready, where given, is told the address once connections are accepted.
	Ready func(addr string)
}

// Run serves until ctx ends. It returns nil after a graceful stop, also if requests had to be cut off at the end of
// the shutdown time; an error only if it could not listen or serve.
func (s *Server) Run(ctx context.Context) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.Listen)
	if err != nil {
		return fmt.Errorf("%s: listen on %s: %w", s.Name, s.Listen, err)
	}
	conns := s.Conns.withDefaults()
	listener = atMost(cmp.Or(s.MaxConns, maxConns), listener)
	requests, cutOff := context.WithCancel(context.WithoutCancel(ctx))
	defer cutOff()
	server := &http.Server{
		Handler:           s.Handler,
		ReadHeaderTimeout: conns.ReadHeader,
		ReadTimeout:       conns.Read,
		WriteTimeout:      conns.Read + s.RequestTimeout + conns.Write,
		IdleTimeout:       conns.Idle,
		MaxHeaderBytes:    maxHeaderBytes,
		BaseContext:       func(net.Listener) context.Context { return requests },
		ErrorLog:          slog.NewLogLogger(s.Log.Handler(), slog.LevelDebug),
	}
	failed := make(chan error, 1)
	go func() { failed <- s.serve(server, listener) }()
	s.Log.Info("listening", "server", s.Name, "address", listener.Addr().String(), "tls", s.TLS != nil)
	if s.Ready != nil {
		s.Ready(listener.Addr().String())
	}
	select {
	case err := <-failed:
		return fmt.Errorf("%s: serve: %w", s.Name, err)
	case <-ctx.Done():
	}
	s.stop(server, cutOff)
	return nil
}

func (s *Server) serve(server *http.Server, listener net.Listener) error {
	if s.TLS == nil {
		return server.Serve(listener)
	}
	server.TLSConfig = s.TLS
	return server.ServeTLS(listener, "", "")
}

// stop ends a server: no new work, then what runs, then by force. A handler that outlives even the cut is left
// behind: its transaction dies with the process, which is what transactions are for.
func (s *Server) stop(server *http.Server, cutOff context.CancelFunc) {
	if s.Stopping != nil {
		s.Stopping.begun.Store(true)
	}
	s.Log.Info("stopping", "server", s.Name, "timeout", s.ShutdownTimeout)
	ctx, cancel := context.WithTimeout(context.Background(), s.ShutdownTimeout)
	defer cancel()
	err := server.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		s.Log.Warn("requests still running at the end of the shutdown time are cut off", "server", s.Name)
		cutOff()
		_ = server.Close()
		return
	}
	if err != nil {
		s.Log.Error("stop server", "server", s.Name, "error", err)
		return
	}
	s.Log.Info("stopped", "server", s.Name)
}
