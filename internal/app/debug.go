package app

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"time"
)

// DebugConfig is a second listener that shows what the process does: Go's profiles. It is off unless it is asked for, has no
// log-in, and so listens on this machine's own addresses only. Its variable begins with the name of the service.
type DebugConfig struct {
	Listen string `name:"debug-listen" env:"DEBUG_LISTEN" placeholder:"ADDRESS" help:"Serve Go's profiles at /debug/pprof/ on this loopback address, such as 127.0.0.1:6060. Off by default; whoever is on the machine can read them."`
}

func (c DebugConfig) check(prefix string) error {
	if c.Listen == "" {
		return nil
	}
	host, _, err := net.SplitHostPort(c.Listen)
	if err != nil {
		return mistake(prefix+"DEBUG_LISTEN", "%q is no address such as 127.0.0.1:6060", c.Listen)
	}
	if ip := net.ParseIP(host); ip == nil || !ip.IsLoopback() {
		return mistake(prefix+"DEBUG_LISTEN", "%q is not a loopback address such as 127.0.0.1: there is no log-in", host)
	}
	return nil
}

// listen serves the profiles until close is called.
func (c DebugConfig) listen(ctx context.Context, log *slog.Logger) (closeIt func(), err error) {
	if c.Listen == "" {
		return func() {}, nil
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", c.Listen)
	if err != nil {
		return nil, fmt.Errorf("debug: listen on %s: %w", c.Listen, err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	server := &http.Server{Handler: mux, ReadHeaderTimeout: defaultReadHeader, IdleTimeout: time.Minute}
	go func() { _ = server.Serve(listener) }() // ends with close; a service goes on without its profiles
	log.WarnContext(ctx, "profiles can be read without log-in", "debug_address", listener.Addr().String())
	return func() { _ = server.Close() }, nil
}
