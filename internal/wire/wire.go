// Package wire is a TCP proxy that does to connections what networks do: it cuts, holds, drops and duplicates, at a
// byte or at an event. It knows nothing of what the bytes mean.
package wire

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Direction is the way that bytes go.
type Direction int

// The directions.
const (
	ToServer Direction = iota
	ToClient
)

// Action is what a Fault does.
type Action string

// The actions. The zero value does nothing.
const (
	// Cut resets the connection on both sides.
	Cut Action = "cut"
	// Hold keeps everything from Fault.At on until Fault.After, and passes it on then.
	Hold Action = "hold"
	// Drop makes everything from Fault.At on vanish; the connection stays up.
	Drop Action = "drop"
	// Duplicate sends what the client sends to the server a second time, on a connection of its own whose answer
	// nobody gets: with ToServer at the same time, with ToClient once the answer has come to Fault.At.
	Duplicate Action = "duplicate"
)

// Fault is what happens to one connection, once.
type Fault struct {
	Action    Action
	Direction Direction
	// At is how many bytes pass in the direction before; it happens when the next one arrives.
	At int64
	// After, where given, is waited for at the byte: the action happens once it is closed. A Hold without it lasts
	// until the proxy is closed.
	After <-chan struct{}
	// Reached, where given, is called at the byte, before After is waited for.
	Reached func()
}

// maxRecorded bounds what of a request is kept for Duplicate; a longer one is not duplicated.
const maxRecorded = 2 << 20

const dialTimeout = 5 * time.Second

// Config says where connections go and what happens to them.
type Config struct {
	// Upstreams are taken in turn: host:port, or the path of a Unix socket.
	Upstreams []string
	// Plan gives the fault of the connection with this number, counted from 0; nil: none has any. It is called for one
	// connection after the other.
	Plan func(connection int) Fault
}

// Stats says how often what has happened.
type Stats struct{ Connections, Cut, Held, Dropped, Duplicated int64 }

// Proxy is a running proxy.
type Proxy struct {
	cfg      Config
	listener net.Listener
	ctx      context.Context
	cancel   context.CancelFunc
	running  sync.WaitGroup

	connections, cut, held, dropped, duplicated atomic.Int64
}

// Start listens on a free port of the loopback interface and returns at once.
func Start(ctx context.Context, cfg Config) (*Proxy, error) {
	if len(cfg.Upstreams) == 0 {
		return nil, errors.New("wire: no upstream is given")
	}
	if cfg.Plan == nil {
		cfg.Plan = func(int) Fault { return Fault{} }
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("wire: %w", err)
	}
	p := &Proxy{cfg: cfg, listener: listener}
	p.ctx, p.cancel = context.WithCancel(context.WithoutCancel(ctx))
	p.running.Go(p.accept)
	return p, nil
}

// Addr is where the proxy listens, as host:port.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Stats gives the counts so far.
func (p *Proxy) Stats() Stats {
	return Stats{
		Connections: p.connections.Load(), Cut: p.cut.Load(), Held: p.held.Load(),
		Dropped: p.dropped.Load(), Duplicated: p.duplicated.Load(),
	}
}

// Close resets what is open and returns when everything has ended.
func (p *Proxy) Close() {
	p.cancel()
	_ = p.listener.Close()
	p.running.Wait()
}

func (p *Proxy) accept() {
	for number := 0; ; number++ {
		client, err := p.listener.Accept()
		if err != nil {
			return // closed
		}
		p.connections.Add(1)
		fault := p.cfg.Plan(number)
		upstream := p.cfg.Upstreams[number%len(p.cfg.Upstreams)]
		p.running.Go(func() { p.carry(client, upstream, fault) })
	}
}

// dial connects to an upstream.
func (p *Proxy) dial(upstream string) (net.Conn, error) {
	network := "tcp"
	if strings.HasPrefix(upstream, "/") {
		network = "unix"
	}
	return (&net.Dialer{Timeout: dialTimeout}).DialContext(p.ctx, network, upstream)
}
