package faultproxy

import (
	"net/http"
	"sync/atomic"
)

// Stats are counts since the proxy was made. They are about POST /v1/invoices only.
type Stats struct {
	Requests    int64 // came from clients
	Forwarded   int64 // went to the upstream; a duplicated request is two
	AnswersLost int64 // 2xx answers of the upstream that the client did not get whole: reset, held, cut and 502

	Reset       int64
	Held        int64 // also those that the client waited for after all
	Cut         int64
	BadGateways int64
	Duplicated  int64
	Delayed     int64
	Refused     int64

	Replays     int64 // answers of the upstream with Idempotent-Replayed
	Conflicts   int64 // answers of the upstream with 409 or 422
	Unreachable int64 // requests that the upstream gave no answer to
}

type counters struct {
	requests, forwarded, answersLost                            atomic.Int64
	reset, held, cut, badGateways, duplicated, delayed, refused atomic.Int64
	replays, conflicts, unreachable                             atomic.Int64
}

// Stats returns the counts as they are now; those of one running request may still be on their way.
func (p *Proxy) Stats() Stats {
	c := &p.counts
	return Stats{
		Requests: c.requests.Load(), Forwarded: c.forwarded.Load(), AnswersLost: c.answersLost.Load(),
		Reset: c.reset.Load(), Held: c.held.Load(), Cut: c.cut.Load(), BadGateways: c.badGateways.Load(),
		Duplicated: c.duplicated.Load(), Delayed: c.delayed.Load(), Refused: c.refused.Load(),
		Replays: c.replays.Load(), Conflicts: c.conflicts.Load(), Unreachable: c.unreachable.Load(),
	}
}

// counted counts what passes between the proxy and the upstream.
type counted struct {
	next   http.RoundTripper
	counts *counters
}

func (t counted) RoundTrip(r *http.Request) (*http.Response, error) {
	t.counts.forwarded.Add(1)
	answer, err := t.next.RoundTrip(r)
	if err != nil {
		t.counts.unreachable.Add(1)
		return nil, err
	}
	if answer.Header.Get("Idempotent-Replayed") == "true" {
		t.counts.replays.Add(1)
	}
	if answer.StatusCode == http.StatusConflict || answer.StatusCode == http.StatusUnprocessableEntity {
		t.counts.conflicts.Add(1)
	}
	return answer, nil
}
