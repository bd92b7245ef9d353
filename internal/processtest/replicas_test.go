package processtest

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync"
	"testing"

	"invoicebridge/internal/faultproxy"
	"invoicebridge/internal/fleet"
	"invoicebridge/internal/testdb"
)

func TestTwoHundredParallelRequestsOverTwoReplicasMakeOneInvoice(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	replicas := []string{w.serveERP().URL(), w.serveERP().URL()}
	answers := make([]answer, 200)
	var wg sync.WaitGroup
	for i := range answers {
		wg.Go(func() { answers[i] = w.invoice(replicas[i%2], "K1", "SO-1001") })
	}
	wg.Wait()
	last := w.invoice(replicas[0], "K1", "SO-1001")
	if last.status != http.StatusCreated || last.header.Get("Idempotent-Replayed") != "true" {
		t.Fatalf("afterwards: %d %s", last.status, last.body)
	}
	first := 0
	for _, got := range answers {
		switch {
		case got.err != nil:
			t.Errorf("no answer: %v", got.err)
		case got.status == http.StatusConflict && got.header.Get("Retry-After") != "": // in progress
		case got.status != http.StatusCreated || got.body != last.body:
			t.Errorf("answered %d %s", got.status, got.body)
		case got.header.Get("Idempotent-Replayed") == "":
			first++
		}
	}
	if first != 1 {
		t.Errorf("%d answers say they are the first", first)
	}
	w.wantInvoices(1)
}

func TestTwoHundredParallelOrdersOverTwoReplicasGetUnbrokenNumbers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	replicas := []string{w.serveERP().URL(), w.serveERP().URL()}
	var wg sync.WaitGroup
	for i := range 200 {
		wg.Go(func() {
			got := w.invoice(replicas[i%2], fmt.Sprintf("K%d", i), fmt.Sprintf("SO-%d", i))
			if got.err != nil || got.status != http.StatusCreated {
				t.Errorf("order %d: %d %v %s", i, got.status, got.err, got.body)
			}
		})
	}
	wg.Wait()
	w.wantInvoices(200)
}

func TestKilledReplicasAndLostAnswersLeaveEveryOrderWithOneInvoice(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first, second := w.serveERP(), w.serveERP()
	balanced := balance(t, first.URL(), second.URL())
	lossy := faulty(t, balanced.url, faultproxy.Rates{Reset: 0.1, Cut: 0.05, BadGateway: 0.05, Duplicate: 0.1, Refuse: 0.05})
	rec := record(t, lossy, nil)
	workers := []*fleet.Process{w.serveCRM(rec.URL), w.serveCRM(rec.URL)}
	const orders = 200
	names := make([]string, orders)
	for i := range names {
		names[i] = fmt.Sprintf("SO-%d", i)
	}
	w.submit(workers[0].URL(), names...)
	testdb.Await(t, "some orders are invoiced", func() bool {
		return number(t, w.erp, `SELECT count(*) FROM invoices`) > orders/10
	})
	first.Kill()
	workers[0].Kill()
	testdb.Await(t, "an answer was lost with the dead replica", func() bool {
		return number(t, w.crm, `SELECT count(*) FROM attempts WHERE http_status = 502`) > 0
	})
	balanced.replace(first.URL(), parse(t, w.serveERP().URL()))
	w.submit(workers[1].URL(), "SO-after")
	testdb.Await(t, "the killed worker's neighbour has gone on", func() bool {
		return number(t, w.crm, `SELECT count(*) FROM operations WHERE status = 'succeeded'`) > orders/2
	})
	w.timePasses()
	testdb.Await(t, "every order is settled", w.settled)
	w.wantInvoices(orders + 1)
	w.wantDelivered(orders + 1)
	if n := rec.wantOneBodyPerKey(t); n <= orders {
		t.Errorf("only %d requests: no answer was lost", n)
	}
}

// balancer spreads requests over ERPs. What one of them does not answer fails as 502, as behind a load balancer.
type balancer struct {
	url     string
	mu      sync.Mutex
	targets []*url.URL
	turn    int
}

func balance(t testing.TB, urls ...string) *balancer {
	t.Helper()
	b := &balancer{}
	for _, u := range urls {
		b.targets = append(b.targets, parse(t, u))
	}
	server := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite:  func(r *httputil.ProxyRequest) { r.SetURL(b.next()) },
		ErrorLog: log.New(io.Discard, "", 0),
	})
	t.Cleanup(server.Close)
	b.url = server.URL
	return b
}

func (b *balancer) next() *url.URL {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.turn++
	return b.targets[b.turn%len(b.targets)]
}

func (b *balancer) replace(dead string, live *url.URL) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, target := range b.targets {
		if target.String() == dead {
			b.targets[i] = live
		}
	}
}
