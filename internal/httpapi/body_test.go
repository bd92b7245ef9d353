package httpapi_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"invoicebridge/internal/problem"
)

const mebibyte = 1 << 20

// padded is base with white space up to a size.
func padded(size int) string { return base + strings.Repeat(" ", size-len(base)) }

func packed(t testing.TB, plain io.Reader) []byte {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := io.Copy(w, plain); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// Case C8.
func TestBodyIsReadOnceAndWhole(t *testing.T) {
	t.Parallel()
	e := startERP(t)
	e.post("k-2", "").wantProblem(400, problem.MalformedRequest)
	e.post("k-2", padded(mebibyte+1)).wantProblem(413, problem.ContentTooLarge)
	chunked := func(key, body string) answer {
		r := e.postRequest("writer", key, nil)
		r.Body, r.ContentLength = io.NopCloser(strings.NewReader(body)), -1
		return e.do(r)
	}
	chunked("k-2", padded(mebibyte+1)).wantProblem(413, problem.ContentTooLarge)
	e.halfBody("k-2")
	e.wantStored(0)

	first := e.post("k-1", padded(mebibyte)).wantFirst()
	chunked("k-1", base).wantSame(first)
	e.post("k-1", strings.NewReplacer("SO-1001", "SO-9", "P-1", "Q-9", "10.00", "99").Replace(base)).
		wantProblem(422, problem.IdempotencyKeyReused)
	e.wantStored(1)
	e.post("k-2", forOrder("SO-1002")).wantFirst()
}

// halfBody sends half of a body and closes its side of the connection.
func (e erp) halfBody(key string) {
	e.t.Helper()
	conn := e.dial()
	defer conn.Close()
	fmt.Fprintf(conn, "POST /v1/invoices HTTP/1.1\r\nHost: erp\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\n"+
		"Idempotency-Key: %s\r\nContent-Length: %d\r\n\r\n%s", e.tokens["writer"], key, len(base), base[:len(base)/2])
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		e.t.Fatal(err)
	}
	readAnswer(e.t, bufio.NewReader(conn)).wantProblem(400, problem.MalformedRequest)
}

func (e erp) dial() net.Conn {
	e.t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(e.url, "http://"))
	if err != nil {
		e.t.Fatal(err)
	}
	_ = conn.SetDeadline(time.Now().Add(30 * time.Second)) // a test that hangs tells nothing
	return conn
}

func readAnswer(t testing.TB, r *bufio.Reader) answer {
	t.Helper()
	response, err := http.ReadResponse(r, nil)
	if err != nil {
		t.Fatalf("read the answer: %v", err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatalf("read the answer's body: %v", err)
	}
	header := response.Header
	if response.Close {
		header.Set("Connection", "close") // net/http takes the header out
	}
	return answer{t, response.StatusCode, header, body}
}

// K6: nobody sends two megabytes to a door that is shut.
func TestWrongTokenIsRefusedBeforeTheBodyIsAskedFor(t *testing.T) {
	t.Parallel()
	e := startERP(t)
	conn := e.dial()
	defer conn.Close()
	fmt.Fprintf(conn, "POST /v1/invoices HTTP/1.1\r\nHost: erp\r\nAuthorization: Bearer wrong\r\nContent-Type: application/json\r\n"+
		"Idempotency-Key: k-1\r\nContent-Length: 2097152\r\nExpect: 100-continue\r\n\r\n")
	reader := bufio.NewReader(conn)
	first := readAnswer(t, reader) // not "100 Continue"
	first.wantProblem(401, problem.Unauthenticated)
	if first.header.Get("Connection") != "close" {
		t.Errorf("the connection stays open, with a body announced that never comes: %v", first.header)
	}
	fmt.Fprintf(conn, "GET /healthz HTTP/1.1\r\nHost: erp\r\n\r\n")
	if rest, _ := io.ReadAll(reader); len(rest) > 0 {
		t.Errorf("something was answered on a connection that was to be closed: %s", rest)
	}
}

func TestBodyIsAskedForAfterTheTokenWasFoundValid(t *testing.T) {
	t.Parallel()
	e := startERP(t)
	conn := e.dial()
	defer conn.Close()
	fmt.Fprintf(conn, "POST /v1/invoices HTTP/1.1\r\nHost: erp\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\n"+
		"Idempotency-Key: k-1\r\nContent-Length: %d\r\nExpect: 100-continue\r\n\r\n", e.tokens["writer"], len(base))
	reader := bufio.NewReader(conn)
	line, err := reader.ReadString('\n')
	if err != nil || !strings.HasPrefix(line, "HTTP/1.1 100 ") {
		t.Fatalf("got %q, %v, want 100 Continue", line, err)
	}
	if _, err := reader.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(conn, base)
	readAnswer(t, reader).wantFirst()
}

func TestGzipBodyIsTheSameRequest(t *testing.T) {
	t.Parallel()
	e := startERP(t)
	first := e.post("k-1", base).wantFirst()
	encoded := func(key, encoding string, body []byte) answer {
		r := e.postRequest("writer", key, body)
		r.Header.Set("Content-Encoding", encoding)
		return e.do(r)
	}
	good := packed(t, strings.NewReader(base))
	encoded("k-1", "gzip", good).wantSame(first)
	encoded("k-1", "identity", []byte(base)).wantSame(first)
	for encoding, body := range map[string][]byte{"br": []byte(base), "deflate": good, "gzip, gzip": good} {
		encoded("k-2", encoding, body).wantProblem(415, problem.UnsupportedMediaType)
	}
	encoded("k-2", "gzip", []byte(base)).wantProblem(400, problem.MalformedRequest)
	encoded("k-2", "gzip", nil).wantProblem(400, problem.MalformedRequest)
	encoded("k-2", "gzip", good[:len(good)/2]).wantProblem(400, problem.MalformedRequest)
	encoded("k-2", "gzip", good[:len(good)-4]).wantProblem(400, problem.MalformedRequest)
	damaged := bytes.Clone(good)
	damaged[len(damaged)-5] ^= 0xFF // in the checksum
	encoded("k-2", "gzip", damaged).wantProblem(400, problem.MalformedRequest)
	encoded("k-2", "gzip", packed(t, strings.NewReader(padded(mebibyte+1)))).wantProblem(413, problem.ContentTooLarge)
	e.wantStored(1)
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func TestGzipBombCostsNoMoreThanItsLimit(t *testing.T) { // alone: it looks at what the whole process allocates
	e := startERP(t)
	const whole = 128 * mebibyte
	bomb := packed(t, io.LimitReader(zeros{}, whole)) // an eighth of a megabyte
	if len(bomb) > mebibyte {
		t.Fatalf("the bomb has %d bytes and would be refused packed", len(bomb))
	}
	e.post("k-1", padded(mebibyte+1)).wantProblem(413, problem.ContentTooLarge) // what the first answer of a kind costs the test
	r := e.postRequest("writer", "k-1", bomb)
	r.Header.Set("Content-Encoding", "gzip")
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	e.do(r).wantProblem(413, problem.ContentTooLarge)
	runtime.ReadMemStats(&after)
	if grown := after.TotalAlloc - before.TotalAlloc; grown > whole/4 {
		t.Errorf("%d MiB were allocated", grown/mebibyte)
	}
}

func TestOnlyJSONIsTaken(t *testing.T) {
	t.Parallel()
	e := startERP(t)
	as := func(key string, contentType ...string) answer {
		r := e.postRequest("writer", key, []byte(base))
		r.Header["Content-Type"] = contentType
		return e.do(r)
	}
	for _, contentType := range [][]string{
		nil, {""}, {"text/plain"}, {"application/x-www-form-urlencoded"}, {"application/json-patch+json"}, {"json"},
		{"application/json", "text/plain"},
	} {
		as("k-1", contentType...).wantProblem(415, problem.UnsupportedMediaType)
	}
	e.wantStored(0)
	first := as("k-1", "application/json; charset=utf-8").wantFirst()
	as("k-1", "Application/JSON").wantSame(first)
}
