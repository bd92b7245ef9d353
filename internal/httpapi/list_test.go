package httpapi_test

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"invoicebridge/internal/erpapi"
	"invoicebridge/internal/idempotency"
	"invoicebridge/internal/invoice"
	"invoicebridge/internal/problem"
)

// issueTogether issues n invoices of t1 in one transaction, so that all have one time.
func (e erp) issueTogether(n int) {
	e.t.Helper()
	commands := make([]invoice.Command, n)
	for i := range commands {
		key, err := idempotency.ParseKey([]string{fmt.Sprintf("together-%03d", i)})
		if err != nil {
			e.t.Fatal(err)
		}
		request, err := erpapi.DecodeInvoiceRequest([]byte(forOrder(fmt.Sprintf("T-%03d", i))))
		if err != nil {
			e.t.Fatal(err)
		}
		commands[i] = invoice.Command{Tenant: "t1", Caller: "test", Key: key, Request: request}
	}
	for i, r := range invoice.NewService(e.pool, invoice.Options{}).Issue(context.Background(), commands) {
		if r.Err != nil {
			e.t.Fatalf("invoice %d: %v", i, r.Err)
		}
	}
	if times := e.count("SELECT count(DISTINCT created_at) FROM invoices"); times != 1 {
		e.t.Fatalf("the invoices have %d times, want 1", times)
	}
}

// walk follows the cursors and gives all numbers in their order. between runs after each page.
func (e erp) walk(token, path string, between func()) (numbers []string) {
	e.t.Helper()
	for cursor := ""; ; {
		var page erpapi.InvoicePage
		a := e.get(token, path+cursor)
		if a.status != 200 {
			e.t.Fatalf("%s: %d %s", path+cursor, a.status, a.body)
		}
		a.decode(&page)
		for _, inv := range page.Items {
			numbers = append(numbers, inv.Number)
		}
		if page.NextCursor == nil {
			return numbers
		}
		cursor = "&cursor=" + url.QueryEscape(*page.NextCursor)
		between()
	}
}

func TestPagesShowEveryInvoiceOnceAlsoWithEqualTimes(t *testing.T) {
	t.Parallel()
	e := startERP(t)
	e.issueTogether(250)
	added := 0
	numbers := e.walk("reader", "/v1/invoices?limit=100", func() {
		added++
		e.post("later-"+strconv.Itoa(added), forOrder("L-"+strconv.Itoa(added))).wantFirst()
	})
	if len(numbers) != 250 {
		t.Errorf("%d invoices were shown, want the 250 there were at the start", len(numbers))
	}
	slices.Sort(numbers)
	if unique := len(slices.Compact(numbers)); unique != 250 {
		t.Errorf("%d different invoices were shown, want 250", unique)
	}
	if got := len(e.walk("reader", "/v1/invoices?limit=126", func() {})); got != 250+added {
		t.Errorf("%d invoices in the end, want %d", got, 250+added)
	}
}

func TestFiltersNarrowAList(t *testing.T) {
	t.Parallel()
	e := startERP(t)
	first := e.post("k-1", base).wantFirst().invoice()
	e.post("k-2", strings.NewReplacer("crm-1", "crm-2", `"final"`, `"partial"`).Replace(forOrder("SO-2"))).wantFirst()
	e.postAs("t2", "k-1", base).wantFirst()
	created := first.CreatedAt.Format("2006-01-02T15:04:05.000000Z")
	for query, want := range map[string]int{
		"":                           2,
		"source=crm-1":               1,
		"source=crm-1&order=SO-1001": 1,
		"source=crm-1&order=SO-2":    0,
		"role=partial":               1,
		"key=k-1":                    1,
		"number=" + first.Number:     1,
		"status=issued":              2,
		"created_from=" + created:    2,
		"created_to=" + created:      0,
		"created_from=2030-01-01T00%3A00%3A00%2B01%3A00": 0,
	} {
		if got := len(e.walk("reader", "/v1/invoices?"+query, func() {})); got != want {
			t.Errorf("%q gives %d invoices, want %d", query, got, want)
		}
	}
}

func TestListRefusesWhatItDoesNotKnow(t *testing.T) {
	t.Parallel()
	e := startERP(t)
	e.post("k-1", base).wantFirst()
	e.post("k-2", forOrder("SO-2")).wantFirst()
	for _, query := range []string{
		"ordr=SO-1001", "source=a&source=b", "limit=0", "limit=201", "limit=x", "limit=", "limit=1e2", "limit=99999999999999999999",
		"created_from=yesterday", "created_to=2026-13-01T00:00:00Z", "cursor=x", "cursor=%00", "order=%00", "%zz=1", "cursor=eyJ9",
	} {
		a := e.get("reader", "/v1/invoices?"+query)
		if d := a.wantProblem(400, problem.MalformedRequest); d.Detail == "" {
			t.Errorf("%s: no detail", query)
		}
	}
	if d := e.get("reader", "/v1/invoices?ordr=1").wantProblem(400, problem.MalformedRequest); !strings.Contains(d.Detail, "source, order, role") {
		t.Errorf("the known parameters are not named: %s", d.Detail)
	}
}

func TestCursorOfAnotherTenantShowsNothingOfTheirs(t *testing.T) {
	t.Parallel()
	e := startERP(t)
	e.issueTogether(3)
	var page erpapi.InvoicePage
	e.get("reader", "/v1/invoices?limit=1").decode(&page)
	if page.NextCursor == nil {
		t.Fatal("no second page")
	}
	a := e.get("t2", "/v1/invoices?cursor="+url.QueryEscape(*page.NextCursor))
	if a.status == 200 && string(a.body) != `{"items":[],"next_cursor":null}` || a.status != 200 && a.status != 400 {
		t.Errorf("a foreign cursor: %d %s", a.status, a.body)
	}
}

func TestIDsThatAreNoIDsAreNotFound(t *testing.T) {
	t.Parallel()
	e := startERP(t)
	id := e.post("k-1", base).wantFirst().invoice().ID
	for _, id := range []string{"x", "00000000-0000-0000-0000-000000000000", strings.ToUpper(id), "%7B" + id + "%7D", id + "%2Flines", "%00", "..%2F" + id} {
		e.get("reader", "/v1/invoices/"+id).wantProblem(404, problem.NotFound)
	}
}
