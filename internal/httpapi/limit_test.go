package httpapi_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"

	"invoicebridge/internal/httpapi"
	"invoicebridge/internal/invoice"
	"invoicebridge/internal/problem"
)

// holding keeps requests for invoices in their places until the test lets them go on.
type holding struct {
	begun chan chan struct{} // for each that has begun what lets it go on
	ended chan struct{}
}

func holdInvoices(d *httpapi.ERPDeps) holding {
	h := holding{make(chan chan struct{}), make(chan struct{})}
	service := d.Invoices
	d.Invoices = standIn{service, func(ctx context.Context, cmds []invoice.Command) []invoice.Result {
		goOn := make(chan struct{})
		select {
		case h.begun <- goOn:
			select {
			case <-goOn:
			case <-h.ended:
			}
		case <-h.ended:
		}
		return service.Issue(ctx, cmds)
	}}
	return h
}

// end lets go on whatever is held, so that a test that has failed ends.
func (h holding) end() { close(h.ended) }

// begin sends a request that takes a place, and returns when it has it. finish lets it go on, and gives its answer.
func (h holding) begin(e erp, token, key, order string) (finish func() answer) {
	e.t.Helper()
	answers := make(chan answer, 1)
	go func() { answers <- e.postAs(token, key, forOrder(order)) }()
	select {
	case goOn := <-h.begun:
		return func() answer {
			close(goOn)
			return <-answers
		}
	case a := <-answers:
		e.t.Fatalf("%s has no place: %d %s", key, a.status, a.body)
		return nil
	}
}

// refused sends a request that is to get no place, and gives its answer.
func (h holding) refused(e erp, token, key, order string) answer {
	e.t.Helper()
	answers := make(chan answer, 1)
	go func() { answers <- e.postAs(token, key, forOrder(order)) }()
	select {
	case <-h.begun:
		e.t.Fatalf("%s has a place", key)
		return answer{}
	case a := <-answers:
		return a
	}
}

// D1 (c)
func TestWhenAllPlacesAreTakenTheNextIsTurnedAwayBeforeItIsLookedAt(t *testing.T) {
	t.Parallel()
	var h holding
	var lines logBuffer
	e := serveERP(t, func(d *httpapi.ERPDeps) {
		d.MaxInFlight, d.MaxPerTenant = 2, 2
		d.Logger = slog.New(slog.NewTextHandler(&lines, nil))
		h = holdInvoices(d)
	})
	defer h.end()
	first := h.begin(e, "writer", "k-1", "SO-1")
	second := h.begin(e, "t2", "k-2", "SO-2")
	queries := e.pool.Stat().AcquireCount()
	for range 3 {
		a := h.refused(e, "writer", "k-3", "SO-3")
		a.wantProblem(503, problem.Overloaded)
		a.wantRetryAfter()
	}
	h.refused(e, "reader", "k-3", "SO-3").wantProblem(503, problem.Overloaded)
	if n := e.pool.Stat().AcquireCount(); n != queries {
		t.Errorf("turning them away took %d queries", n-queries)
	}
	if n := strings.Count(lines.String(), "\n"); n == 0 || n >= 4 {
		t.Errorf("4 requests turned away are written down in %d lines:\n%s", n, lines.String())
	}
	if a := e.get("", "/healthz"); a.status != 200 {
		t.Errorf("a busy service must still say that it is alive: %d", a.status)
	}
	metrics := string(e.get("metrics", "/metrics").body)
	for _, line := range []string{
		`http_requests_turned_away_total{limit="service"} 4`, `http_problems_total{type="overloaded"} 4`, "http_requests_in_flight 2",
	} {
		if !strings.Contains(metrics, line) {
			t.Errorf("/metrics does not say %s", line)
		}
	}

	first().wantFirst()
	third := h.begin(e, "writer", "k-3", "SO-3")
	second().wantFirst()
	third().wantFirst()
	e.wantStored(3)
}

func TestAFloodOfOneTenantLeavesPlacesToTheOthers(t *testing.T) {
	t.Parallel()
	var h holding
	e := serveERP(t, func(d *httpapi.ERPDeps) {
		d.MaxInFlight = 4 // half of them for each
		h = holdInvoices(d)
	})
	defer h.end()
	first := h.begin(e, "writer", "k-1", "SO-1")
	second := h.begin(e, "admin", "k-2", "SO-2") // another token of the same tenant
	for range 5 {
		a := h.refused(e, "writer", "k-3", "SO-3")
		a.wantProblem(429, problem.TooManyRequests)
		a.wantRetryAfter()
	}
	others := h.begin(e, "t2", "k-1", "SO-1")
	if metrics := string(e.get("metrics", "/metrics").body); !strings.Contains(metrics, `http_requests_turned_away_total{limit="tenant"} 5`) {
		t.Error("they are not counted as turned away for their tenant's share")
	}
	others().wantFirst()
	first().wantFirst()
	third := h.begin(e, "writer", "k-3", "SO-3")
	second().wantFirst()
	third().wantFirst()
	e.wantStored(4)
}

// A place is for as long as the request is at work, however it ends.
func TestEveryEndOfARequestGivesItsPlaceBack(t *testing.T) {
	t.Parallel()
	thrown := false
	e := serveERP(t, func(d *httpapi.ERPDeps) {
		d.MaxInFlight, d.MaxPerTenant = 1, 1
		service := d.Invoices
		d.Invoices = standIn{service, func(ctx context.Context, cmds []invoice.Command) []invoice.Result {
			if !thrown {
				thrown = true
				panic("thrown by the test")
			}
			return service.Issue(ctx, cmds)
		}}
	})
	e.post("k-1", base).wantProblem(500, problem.Internal)
	e.postAs("", "k-1", base).wantProblem(401, problem.Unauthenticated)
	e.postAs("reader", "k-1", base).wantProblem(403, problem.Forbidden)
	e.post("", base).wantProblem(400, problem.IdempotencyKeyMissing)
	e.post("k-1", "{").wantProblem(400, problem.MalformedRequest)
	e.post("k-1", base).wantFirst()
	e.postAs("t2", "k-1", base).wantFirst()
}
