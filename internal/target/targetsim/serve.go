package targetsim

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

const (
	headerTimeout = 10 * time.Second
	stopTimeout   = 5 * time.Second
)

// Serve answers requests on l until ctx ends, then stops gracefully: what waits is ended, what works is finished, the
// journal is closed. It returns nil after such a stop.
func (s *Sim) Serve(ctx context.Context, l net.Listener) error {
	server := &http.Server{Handler: s, ReadHeaderTimeout: headerTimeout}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	var err error
	select {
	case err = <-served:
		err = fmt.Errorf("serve: %w", err)
	case <-ctx.Done():
		s.EndWaiting()
		err = shutDown(context.WithoutCancel(ctx), server)
		if end := <-served; !errors.Is(end, http.ErrServerClosed) {
			err = errors.Join(err, fmt.Errorf("serve: %w", end))
		}
	}
	return errors.Join(err, s.Close())
}

func shutDown(ctx context.Context, server *http.Server) error {
	ctx, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	if err := server.Shutdown(ctx); err != nil {
		return errors.Join(fmt.Errorf("stop: %w", err), server.Close())
	}
	return nil
}
