package app

import (
	"net"
	"sync"
)

// atMost is a listener that has at most n connections at once. It accepts the next only when one of them has been closed, so what is
// too much costs the process neither memory nor files.
func atMost(n int, l net.Listener) net.Listener {
	return &fewConns{Listener: l, places: make(chan struct{}, n), closed: make(chan struct{})}
}

type fewConns struct {
	net.Listener
	places chan struct{}
	once   sync.Once
	closed chan struct{}
}

func (l *fewConns) Accept() (net.Conn, error) {
	select {
	case l.places <- struct{}{}:
	case <-l.closed:
		return nil, net.ErrClosed
	}
	conn, err := l.Listener.Accept()
	if err != nil {
		<-l.places
		return nil, err
	}
	return &placedConn{Conn: conn, leave: sync.OnceFunc(func() { <-l.places })}, nil
}

func (l *fewConns) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

type placedConn struct {
	net.Conn
	leave func()
}

func (c *placedConn) Close() error {
	defer c.leave()
	return c.Conn.Close()
}

// CloseWrite lets net/http end an answer to a request that it did not read to its end (431) so that the caller still gets it.
func (c *placedConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}
