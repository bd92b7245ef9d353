package wire

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"sync"
)

// connection is one client's connection with the one it is carried over.
type connection struct {
	proxy          *Proxy
	upstream       string
	client, server net.Conn
	fault          Fault

	mu       sync.Mutex
	recorded bytes.Buffer // what the client sent, for Duplicate
	tooLong  bool
	twin     net.Conn // where ToServer is duplicated to
}

// carry passes bytes both ways until both have ended, or the fault or the proxy's end resets them.
func (p *Proxy) carry(client net.Conn, upstream string, fault Fault) {
	server, err := p.dial(upstream)
	if err != nil {
		reset(client)
		return
	}
	c := &connection{proxy: p, upstream: upstream, client: client, server: server, fault: fault}
	if fault.Action == Duplicate && fault.Direction == ToServer {
		c.openTwin()
	}
	stop := context.AfterFunc(p.ctx, c.reset)
	defer stop()
	var both sync.WaitGroup
	both.Go(func() { c.pump(server, client, ToServer) })
	both.Go(func() { c.pump(client, server, ToClient) })
	both.Wait()
	_ = client.Close()
	_ = server.Close()
	if c.twin != nil {
		c.endTwin(c.twin)
	}
}

// pump passes one direction on. A side that has ended ends the other one's reading; one that broke breaks it.
func (c *connection) pump(to, from net.Conn, d Direction) {
	buffer := make([]byte, 32<<10)
	var passed int64
	pending := c.fault.Action != "" && c.fault.Direction == d
	for {
		n, err := from.Read(buffer)
		data := buffer[:n]
		if pending && passed+int64(n) > c.fault.At {
			before := data[:c.fault.At-passed]
			if !c.pass(to, before, d) || !c.act(from) {
				return
			}
			pending, data = false, data[len(before):]
		}
		if !c.pass(to, data, d) {
			return
		}
		passed += int64(n)
		switch {
		case errors.Is(err, io.EOF):
			closeWrite(to)
			return
		case err != nil:
			c.reset()
			return
		}
	}
}

// pass writes; false if that is no longer possible.
func (c *connection) pass(to net.Conn, data []byte, d Direction) bool {
	if len(data) == 0 {
		return true
	}
	if d == ToServer && c.fault.Action == Duplicate {
		c.record(data)
	}
	if _, err := to.Write(data); err != nil {
		c.reset()
		return false
	}
	return true
}

// act does what the fault says; false if nothing more is to be passed in this direction.
func (c *connection) act(from net.Conn) bool {
	if c.fault.Reached != nil {
		c.fault.Reached()
	}
	if !c.wait() {
		return false
	}
	switch c.fault.Action {
	case Cut:
		c.proxy.cut.Add(1)
		c.reset()
		return false
	case Drop:
		c.proxy.dropped.Add(1)
		_, _ = io.Copy(io.Discard, from)
		return false
	case Hold:
		c.proxy.held.Add(1)
	case Duplicate:
		c.proxy.duplicated.Add(1)
		if c.fault.Direction == ToClient {
			c.sendAgain()
		}
	}
	return true
}

// wait waits for the fault's event; false if the proxy ended first.
func (c *connection) wait() bool {
	after := c.fault.After
	if after == nil && c.fault.Action != Hold {
		return true
	}
	select {
	case <-after: // nil for a Hold without an event: never
		return true
	case <-c.proxy.ctx.Done():
		return false
	}
}

// record keeps what the client sends, and sends it to the twin.
func (c *connection) record(data []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.twin != nil {
		_, _ = c.twin.Write(data)
		return
	}
	if c.recorded.Len()+len(data) > maxRecorded {
		c.tooLong = true
		return
	}
	c.recorded.Write(data)
}

func (c *connection) openTwin() {
	twin, err := c.proxy.dial(c.upstream)
	if err != nil {
		return
	}
	c.twin = twin
	c.proxy.running.Go(func() { _, _ = io.Copy(io.Discard, twin) })
}

// sendAgain sends what was recorded on a connection of its own, beside this one.
func (c *connection) sendAgain() {
	c.mu.Lock()
	again, whole := bytes.Clone(c.recorded.Bytes()), !c.tooLong
	c.mu.Unlock()
	if !whole {
		return
	}
	c.proxy.running.Go(func() {
		twin, err := c.proxy.dial(c.upstream)
		if err != nil {
			return
		}
		if _, err := twin.Write(again); err != nil {
			_ = twin.Close()
			return
		}
		c.endTwin(twin)
	})
}

// endTwin reads a duplicate's answer to its end: a server whose client leaves early might not do all of it.
func (c *connection) endTwin(twin net.Conn) {
	stop := context.AfterFunc(c.proxy.ctx, func() { reset(twin) })
	defer stop()
	closeWrite(twin)
	_, _ = io.Copy(io.Discard, twin)
	_ = twin.Close()
}

// reset breaks both sides.
func (c *connection) reset() {
	reset(c.client)
	reset(c.server)
}

// reset ends a connection by RST.
func reset(conn net.Conn) {
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // one that is gone needs none
	}
	_ = conn.Close()
}

func closeWrite(conn net.Conn) {
	if half, ok := conn.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
	}
}
