package faultproxy

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
)

// trip takes one request to the upstream, with a fault.
type trip struct {
	proxy    *Proxy
	fault    Fault
	upstream http.RoundTripper
}

// RoundTrip implements http.RoundTripper. From when the request has been read whole, the client's leaving no longer
// stops it: a network does not call back what was sent either.
func (t trip) RoundTrip(r *http.Request) (*http.Response, error) {
	if t.fault == Refuse {
		t.proxy.counts.refused.Add(1)
		return nil, errReset
	}
	body, whole, err := keep(r.Body, t.proxy.cfg.MaxRequest)
	if err != nil {
		return nil, err
	}
	if !whole {
		r.Body = rejoin(body, r.Body)
		return t.upstream.RoundTrip(r)
	}
	clientCtx := r.Context()
	send := func() (*http.Response, error) { return t.sendDetached(r, body) }
	switch t.fault {
	case Delay:
		t.proxy.counts.delayed.Add(1)
		t.proxy.pause(context.WithoutCancel(clientCtx), t.proxy.cfg.Delay)
		return send()
	case Duplicate:
		t.proxy.counts.duplicated.Add(1)
		return t.sendTwice(send)
	}
	answer, err := send()
	if err != nil {
		return nil, err
	}
	return t.spoil(clientCtx, answer)
}

// sendDetached sends the request with a time limit of its own and returns when the answer's head is there.
func (t trip) sendDetached(r *http.Request, body []byte) (*http.Response, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), t.proxy.cfg.UpstreamTimeout)
	out := r.Clone(ctx)
	out.Body = nil
	if len(body) > 0 {
		out.Body = io.NopCloser(bytes.NewReader(body)) // ContentLength stays what the client said
	}
	answer, err := t.upstream.RoundTrip(out)
	if err != nil {
		cancel()
		return nil, err
	}
	upstreamBody := answer.Body
	answer.Body = closing{Reader: upstreamBody, close: func() error {
		defer cancel()
		return upstreamBody.Close()
	}}
	return answer, nil
}

// sendTwice returns the first answer; the other is waited for and thrown away.
func (t trip) sendTwice(send func() (*http.Response, error)) (*http.Response, error) {
	type result struct {
		answer *http.Response
		err    error
	}
	results := make(chan result, 2)
	for range 2 {
		go func() {
			answer, err := send() //nolint:bodyclose // one body is the caller's, the other is closed below
			results <- result{answer, err}
		}()
	}
	first := <-results
	if first.err != nil {
		first = <-results
		return first.answer, first.err
	}
	t.proxy.goOn(func() {
		if other := <-results; other.err == nil {
			_, _ = io.Copy(io.Discard, other.answer.Body)
			other.answer.Body.Close()
		}
	})
	return first.answer, nil
}

// spoil does to a successful answer what the fault says, after the whole of it has been read.
func (t trip) spoil(clientCtx context.Context, answer *http.Response) (*http.Response, error) {
	if answer.StatusCode/100 != 2 {
		return answer, nil
	}
	upstreamBody := answer.Body
	body, whole, err := keep(upstreamBody, t.proxy.cfg.MaxAnswer)
	if err != nil {
		upstreamBody.Close()
		return nil, err
	}
	if !whole {
		answer.Body = rejoin(body, upstreamBody)
		return answer, nil
	}
	upstreamBody.Close()
	answer.Body = io.NopCloser(bytes.NewReader(body))
	counts := &t.proxy.counts
	switch t.fault {
	case Hold:
		return t.hold(clientCtx, answer)
	case Cut:
		if len(body) == 0 {
			break // nothing to cut: it is lost whole
		}
		counts.cut.Add(1)
		counts.answersLost.Add(1)
		answer.Body = io.NopCloser(io.MultiReader(bytes.NewReader(body[:len(body)/2]), broken{}))
		return answer, nil
	case BadGateway:
		counts.badGateways.Add(1)
		counts.answersLost.Add(1)
		return nil, errBadGateway
	}
	counts.reset.Add(1)
	counts.answersLost.Add(1)
	return nil, errReset
}

// hold passes the answer on late, if the client is still there to take it.
func (t trip) hold(clientCtx context.Context, answer *http.Response) (*http.Response, error) {
	t.proxy.counts.held.Add(1)
	t.proxy.pause(clientCtx, t.proxy.cfg.Hold)
	select {
	case <-t.proxy.stopping:
	case <-clientCtx.Done():
	default:
		return answer, nil
	}
	t.proxy.counts.answersLost.Add(1)
	return nil, errReset
}

// keep reads a body up to the limit. If there is more, whole is false and the rest is still to be read.
func keep(body io.Reader, limit int64) (read []byte, whole bool, err error) {
	if body == nil {
		return nil, true, nil
	}
	read, err = io.ReadAll(io.LimitReader(body, limit+1))
	if err != nil {
		return nil, false, err
	}
	return read, int64(len(read)) <= limit, nil
}

// rejoin is a body of which the beginning has been read.
func rejoin(read []byte, rest io.ReadCloser) io.ReadCloser {
	return closing{Reader: io.MultiReader(bytes.NewReader(read), rest), close: rest.Close}
}

type closing struct {
	io.Reader
	close func() error
}

func (c closing) Close() error { return c.close() }

var errCut = errors.New("fault: answer cut")

// broken is where a cut answer ends. ReverseProxy then ends the client's connection.
type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, errCut }
