package bench

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"time"
)

// caller is a client with one kept connection. It does as little as HTTP/1.1 allows, since what the generator of the load
// uses up is missing to those it measures.
type caller struct {
	address string
	conn    net.Conn
	r       *bufio.Reader
	buffer  []byte // where requests are put together
	answer  answer
}

// answer is what came back. Its body is good until the next request.
type answer struct {
	status     int
	replayed   bool
	retryAfter bool
	closed     bool // the server will close the connection
	body       []byte
}

const (
	connectLimit = 10 * time.Second
	answerLimit  = 30 * time.Second
)

func dial(ctx context.Context, address string) (*caller, error) {
	c := &caller{address: address, buffer: make([]byte, 0, 4<<10)}
	return c, c.connect(ctx)
}

func (c *caller) connect(ctx context.Context) error {
	c.close()
	conn, err := (&net.Dialer{Timeout: connectLimit}).DialContext(ctx, "tcp", c.address)
	if err != nil {
		return err
	}
	c.conn, c.r = conn, bufio.NewReaderSize(conn, 8<<10)
	return nil
}

func (c *caller) close() {
	if c.conn != nil {
		_ = c.conn.Close()
		c.conn = nil
	}
}

// do sends a request and reads the answer. After an error the next request has a new connection.
func (c *caller) do(ctx context.Context, request []byte) (*answer, error) {
	if c.conn == nil {
		if err := c.connect(ctx); err != nil {
			return nil, err
		}
	}
	err := c.conn.SetDeadline(time.Now().Add(answerLimit))
	if err == nil {
		_, err = c.conn.Write(request)
	}
	if err == nil {
		err = c.read()
	}
	if err != nil || c.answer.closed {
		c.close()
	}
	return &c.answer, err
}

func (c *caller) read() error {
	a := &c.answer
	*a = answer{body: a.body[:0]}
	line, err := c.r.ReadSlice('\n')
	if err != nil {
		return err
	}
	if len(line) < 12 || !bytes.HasPrefix(line, []byte("HTTP/1.1 ")) {
		return fmt.Errorf("not an answer: %.100q", line)
	}
	if a.status, err = strconv.Atoi(string(line[9:12])); err != nil {
		return fmt.Errorf("not an answer: %.100q", line)
	}
	length, chunked, err := c.readHeader()
	switch {
	case err != nil:
		return err
	case chunked:
		return c.readChunks()
	case length < 0:
		return errors.New("an answer without its length")
	}
	return c.readBody(length)
}

func (c *caller) readHeader() (length int, chunked bool, err error) {
	length = -1
	for {
		line, err := c.r.ReadSlice('\n')
		if err != nil {
			return 0, false, err
		}
		line = bytes.TrimRight(line, "\r\n")
		if len(line) == 0 {
			return length, chunked, nil
		}
		name, value, _ := bytes.Cut(line, []byte(": "))
		switch string(name) { // as net/http writes them
		case "Content-Length":
			if length, err = strconv.Atoi(string(value)); err != nil {
				return 0, false, err
			}
		case "Transfer-Encoding":
			chunked = true
		case "Connection":
			c.answer.closed = string(value) == "close"
		case "Retry-After":
			c.answer.retryAfter = true
		case "Idempotent-Replayed":
			c.answer.replayed = true
		}
	}
}

func (c *caller) readBody(length int) error {
	a := &c.answer
	from := len(a.body)
	a.body = append(a.body, make([]byte, length)...)
	_, err := io.ReadFull(c.r, a.body[from:])
	return err
}

func (c *caller) readChunks() error {
	for {
		line, err := c.r.ReadSlice('\n')
		if err != nil {
			return err
		}
		length, err := strconv.ParseInt(string(bytes.TrimSpace(line)), 16, 32)
		if err != nil {
			return err
		}
		if err := c.readBody(int(length)); err != nil {
			return err
		}
		if _, err := c.r.Discard(len("\r\n")); err != nil {
			return err
		}
		if length == 0 {
			return nil
		}
	}
}
