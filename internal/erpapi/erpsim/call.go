package erpsim

import (
	"net"
	"net/http"

	"invoicebridge/internal/problem"
)

// Call is one POST whose body has arrived. Whatever is to become of its answer, Commit can be called before.
type Call struct {
	Post
	W http.ResponseWriter
	R *http.Request

	server *Server
	body   []byte
}

// Commit does what the request asks for, once and for all, and returns the right answer, which nobody has yet.
func (c *Call) Commit() Answer { return c.server.issue(c.Post, c.body) }

// Send sends an answer.
func (c *Call) Send(a Answer) { send(c.W, a) }

// Refuse sends a problem document with the headers given as names and values in turn.
func (c *Call) Refuse(status int, t problem.Type, headers ...string) {
	for i := 0; i+1 < len(headers); i += 2 {
		c.W.Header().Add(headers[i], headers[i+1])
	}
	send(c.W, refusal(status, t, ""))
}

// Hold answers nothing until the client gives up.
func (c *Call) Hold() { <-c.R.Context().Done() }

// HoldUntil waits for the test, or for the end of the connection: a failing test must not hang.
func (c *Call) HoldUntil(release <-chan struct{}) {
	select {
	case <-release:
	case <-c.R.Context().Done():
	}
}

// Reset sends a TCP reset instead of an answer.
func (c *Call) Reset() {
	if tcp, ok := c.hijack().(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
		_ = tcp.Close()
	}
}

// Raw sends these bytes, head and body, and closes the connection in order.
func (c *Call) Raw(answer string) {
	conn := c.hijack()
	_, _ = conn.Write([]byte(answer))
	_ = conn.Close()
}

func (c *Call) hijack() net.Conn {
	conn, _, err := http.NewResponseController(c.W).Hijack()
	if err != nil {
		panic(err) // HTTP/1.1 can
	}
	return conn
}
