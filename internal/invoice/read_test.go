package invoice

import (
	"fmt"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"invoicebridge/internal/erpapi"
	"invoicebridge/internal/problem"
)

func TestGetGivesTheBytesOfTheFirstAnswerToItsTenantOnly(t *testing.T) {
	t.Parallel()
	e := setup(t, "t2")
	a := e.mustIssue("K1", request(t))
	got, err := e.Get(t.Context(), tenant, a.InvoiceID)
	if err != nil || string(got) != string(a.Document) {
		t.Errorf("%s, %v", got, err)
	}
	if _, err := e.Get(t.Context(), "t2", a.InvoiceID); !problem.Is(err, problem.NotFound) {
		t.Errorf("another tenant: %v", err)
	}
	if _, err := e.Get(t.Context(), tenant, uuid.New()); !problem.Is(err, problem.NotFound) {
		t.Errorf("no invoice: %v", err)
	}
}

// walk reads a list page by page.
func (e erp) walk(f Filter, limit int) (orders []string) {
	e.t.Helper()
	page := Page{Limit: limit}
	for {
		items, next, err := e.List(e.t.Context(), tenant, f, page)
		if err != nil {
			e.t.Fatal(err)
		}
		if len(items) > limit {
			e.t.Fatalf("a page of %d", len(items))
		}
		for _, item := range items {
			var inv erpapi.Invoice
			if err := json.Unmarshal(item, &inv); err != nil {
				e.t.Fatal(err)
			}
			orders = append(orders, inv.Order)
		}
		if next == nil {
			return orders
		}
		page.Cursor = *next
	}
}

// The invoices of one transaction have one time.
func TestListMeetsEveryInvoiceOnceAlsoWhereTimesAreEqual(t *testing.T) {
	t.Parallel()
	e := setup(t, "t2")
	var cmds []Command
	for i := range 25 {
		cmds = append(cmds, command(t, fmt.Sprint("K", i), orderOf(t, fmt.Sprint("SO-", i))))
	}
	e.Issue(t.Context(), cmds)
	foreign := command(t, "K", request(t))
	foreign.Tenant = "t2"
	e.Issue(t.Context(), []Command{foreign})
	e.mustIssue("newest", orderOf(t, "SO-newest"))
	if n := e.count("SELECT count(DISTINCT created_at) FROM invoices WHERE tenant_id = 't1'"); n != 2 {
		t.Fatalf("%d times", n)
	}
	want := e.walk(Filter{}, MaxPage)
	if len(want) != 26 || want[0] != "SO-newest" {
		t.Fatalf("the list is %v", want)
	}
	seen := map[string]bool{}
	for _, order := range want {
		seen[order] = true
	}
	if len(seen) != 26 {
		t.Errorf("%d of 26", len(seen))
	}
	for _, limit := range []int{1, 7, 13, 26} {
		if diff := cmp.Diff(want, e.walk(Filter{}, limit)); diff != "" {
			t.Errorf("pages of %d:\n%s", limit, diff)
		}
	}
}

func TestListFilters(t *testing.T) {
	t.Parallel()
	e := setup(t)
	e.mustIssue("K1", orderOf(t, "A"))
	e.mustIssue("K2", request(t, "crm-1", "crm-2", "SO-1001", "B"))
	final := e.issue("K3", part(t, "final", 1, "5.00"))
	e.mustIssue("K4", part(t, "credit_note", 1, "5.00", corrects(final.Answer.Number)...))
	at := final.FirstSeen
	for name, c := range map[string]struct {
		filter Filter
		want   []string
	}{
		"none":                 {Filter{}, []string{"SO-1020", "SO-1020", "B", "A"}},
		"source":               {Filter{Source: "crm-2"}, []string{"B"}},
		"order":                {Filter{Order: "A"}, []string{"A"}},
		"role":                 {Filter{Role: "credit_note"}, []string{"SO-1020"}},
		"an unknown role":      {Filter{Role: "none"}, nil},
		"key":                  {Filter{Key: "K2"}, []string{"B"}},
		"number":               {Filter{Number: "INV-2026-000001"}, []string{"A"}},
		"status":               {Filter{Status: "issued", Order: "A"}, []string{"A"}},
		"another status":       {Filter{Status: "paid"}, nil},
		"from, inclusive":      {Filter{CreatedFrom: at}, []string{"SO-1020", "SO-1020"}},
		"to, exclusive":        {Filter{CreatedTo: at}, []string{"B", "A"}},
		"a microsecond":        {Filter{CreatedFrom: at, CreatedTo: at.Add(time.Microsecond)}, []string{"SO-1020"}},
		"two that do not meet": {Filter{Key: "K1", Order: "B"}, nil},
	} {
		if diff := cmp.Diff(c.want, e.walk(c.filter, 2)); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
	}
}

func TestListRefusesWhatItCanNotDo(t *testing.T) {
	t.Parallel()
	e := setup(t)
	for name, c := range map[string]struct {
		filter Filter
		page   Page
	}{
		"limit above":      {Filter{}, Page{Limit: MaxPage + 1}},
		"limit below":      {Filter{}, Page{Limit: -1}},
		"a forged cursor":  {Filter{}, Page{Cursor: "nonsense"}},
		"NUL in a filter":  {Filter{Order: "a\x00"}, Page{}},
		"a filter no text": {Filter{Key: "\xff"}, Page{}},
	} {
		if _, _, err := e.List(t.Context(), tenant, c.filter, c.page); !problem.Is(err, problem.MalformedRequest) {
			t.Errorf("%s: %v", name, err)
		}
	}
	items, next, err := e.List(t.Context(), tenant, Filter{}, Page{})
	if err != nil || next != nil || items == nil || len(items) != 0 {
		t.Errorf("an empty list: %v, %v, %v", items, next, err)
	}
}

func TestOperationTellsWhatBecameOfAKey(t *testing.T) {
	t.Parallel()
	e := setup(t, "t2")
	first := e.issue("K1", request(t))
	want := erpapi.Operation{
		Key: "K1", Kind: "issue_invoice", Status: "succeeded",
		Invoice:   &erpapi.InvoiceLink{ID: first.Answer.InvoiceID.String(), Number: first.Answer.Number},
		FirstSeen: &first.FirstSeen, ExpiresAt: &first.Expires, Registrations: []erpapi.Registration{},
	}
	got, err := e.Operation(t.Context(), tenant, "K1")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for name, c := range map[string][2]string{
		"another tenant": {"t2", "K1"}, "another key": {tenant, "k1"}, "no text": {tenant, "\xff"}, "NUL": {tenant, "\x00"},
	} {
		if _, err := e.Operation(t.Context(), c[0], c[1]); !problem.Is(err, problem.NotFound) {
			t.Errorf("%s: %v", name, err)
		}
	}
	e.exec("DELETE FROM idempotency_records")
	want.ExpiresAt = nil
	got, err = e.Operation(t.Context(), tenant, "K1")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error("purged:", diff)
	}
}

// Rows that some SQL has bent: nothing fails and nothing vanishes.
func TestReadsLiveWithOddTimes(t *testing.T) {
	t.Parallel()
	e := setup(t)
	a := e.mustIssue("K1", request(t))
	e.mustIssue("K2", orderOf(t, "SO-2"))
	e.exec("UPDATE idempotency_records SET expires_at = '12026-01-01 00:00:00+00'")
	e.exec("ALTER TABLE invoices DISABLE TRIGGER invoices_never_change")
	e.exec("UPDATE invoices SET created_at = '12026-01-01 00:00:00+00', due_date = NULL, customer_vat_id = NULL WHERE id = $1", a.InvoiceID)
	if diff := cmp.Diff([]string{"SO-1001", "SO-2"}, e.walk(Filter{}, 1)); diff != "" {
		t.Error(diff)
	}
	op, err := e.Operation(t.Context(), tenant, "K1")
	if err != nil || op.ExpiresAt != nil {
		t.Errorf("%+v, %v", op, err)
	}
	if _, err := json.Marshal(op); err != nil {
		t.Error(err)
	}
	if !e.mustIssue("K1", request(t)).Replayed {
		t.Error("no replay")
	}
}
