package invoice

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"invoicebridge/internal/erpapi"
	"invoicebridge/internal/problem"
	"invoicebridge/internal/tenantdb"
)

// numbers of what a search finds, in its order.
func (e erp) numbers(f Search) (numbers []string) {
	e.t.Helper()
	page, err := e.Search(context.Background(), tenant, f, Walk{})
	if err != nil {
		e.t.Fatal(err)
	}
	return numbersOf(page)
}

func numbersOf(page Found) (numbers []string) {
	for _, inv := range page.Invoices {
		numbers = append(numbers, inv.Number)
	}
	return numbers
}

func TestATermFindsByNumberOrderCustomerAndKey(t *testing.T) {
	t.Parallel()
	e := setup(t, "t2")
	e.mustIssue("K-1", request(t, "SO-1001", "Web_1%a", "Test Customer A", "Müller & Söhne GmbH"))
	e.mustIssue("K-2", request(t, "SO-1001", "WebX1%a", "Test Customer A", "Meyer"))
	e.mustIssue("K-3", request(t, "SO-1001", "wEb-3", "Test Customer A", "meyer 2", "2026-03-02", "2025-03-02"))
	foreign := command(t, "K-9", request(t, "SO-1001", "web-3"))
	foreign.Tenant = "t2"
	if r := e.Issue(context.Background(), []Command{foreign})[0]; r.Err != nil {
		t.Fatal(r.Err)
	}
	one, two, three := "INV-2026-000001", "INV-2026-000002", "INV-2025-000001"
	for term, want := range map[string][]string{
		"":                 {three, two, one},
		"INV-2026-000002":  {two},
		"inv-2026-000002":  {two},
		"INV-2026-2":       {two},
		"inv-2026":         {two, one},
		"INV-2026-":        {two, one},
		"INV":              {three, two, one},
		"CN":               nil,
		"web":              {three, two, one},
		"WEB_1%":           {one}, // what was typed means itself
		"web-3":            {three},
		"müller":           {one},
		"Meyer":            {three, two},
		"eyer":             nil,
		" K-2 ":            {two},
		"k-2":              nil, // a key is what it is
		"K-9":              nil,
		`\`:                nil,
		"%":                nil,
		"t2/web":           nil,
		"'; DROP TABLE x;": nil,
	} {
		if diff := cmp.Diff(want, e.numbers(Search{Term: term})); diff != "" {
			t.Errorf("%q (-want +got)\n%s", term, diff)
		}
	}
}

func TestFiltersNarrowTogether(t *testing.T) {
	t.Parallel()
	e := setup(t)
	e.mustIssue("K-1", request(t, "crm-1", "shop", "SO-1001", "A"))
	e.mustIssue("K-2", request(t, "SO-1001", "B", "EUR", "JPY", "10.00", "10"))
	e.mustIssue("K-3", request(t, "SO-1001", "C", `"final"`, `"partial"`, "2026-03-02", "2026-03-05"))
	for _, c := range []struct {
		f    Search
		want []string
	}{
		{Search{Source: "shop"}, []string{"INV-2026-000001"}},
		{Search{Currency: "JPY"}, []string{"INV-2026-000002"}},
		{Search{Role: "partial"}, []string{"INV-2026-000003"}},
		{Search{Order: "C"}, []string{"INV-2026-000003"}},
		{Search{Order: "c"}, nil},
		{Search{IssuedFrom: "2026-03-05"}, []string{"INV-2026-000003"}},
		{Search{IssuedTo: "2026-03-04", Source: "crm-1"}, []string{"INV-2026-000002"}},
		{Search{CreatedTo: time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)}, nil},
		{Search{Term: "INV", Role: "final", Currency: "EUR"}, []string{"INV-2026-000001"}},
	} {
		if diff := cmp.Diff(c.want, e.numbers(c.f)); diff != "" {
			t.Errorf("%+v (-want +got)\n%s", c.f, diff)
		}
	}
	sources, err := e.Sources(t.Context(), tenant)
	if diff := cmp.Diff([]string{"crm-1", "shop"}, sources); err != nil || diff != "" {
		t.Errorf("sources %v (-want +got)\n%s", err, diff)
	}
}

// O3.
func TestPagingBothWaysMeetsEachOfOneTimeOnceWhileOthersCome(t *testing.T) {
	t.Parallel()
	e := setup(t, "t2")
	var cmds []Command
	for i := range 250 {
		cmds = append(cmds, command(t, fmt.Sprint("K", i), orderOf(t, fmt.Sprint("SO-", i))))
	}
	for _, r := range e.Issue(t.Context(), cmds) { // one transaction, one time
		if r.Err != nil {
			t.Fatal(r.Err)
		}
	}
	if n := e.count("SELECT count(DISTINCT created_at) FROM invoices"); n != 1 {
		t.Fatalf("there are %d times, want one", n)
	}
	walk := func(w Walk) Found {
		w.Limit = 100
		page, err := e.Search(t.Context(), tenant, Search{}, w)
		if err != nil {
			t.Fatal(err)
		}
		return page
	}
	var forth []string
	page := walk(Walk{})
	if page.Previous != "" {
		t.Error("there is a page before the first")
	}
	for i := 0; ; i++ {
		forth = append(forth, numbersOf(page)...)
		if page.Next == "" {
			break
		}
		e.mustIssue(fmt.Sprint("N", i), orderOf(t, fmt.Sprint("NEW-", i)))
		page = walk(Walk{After: page.Next})
	}
	if seen := slices.Compact(slices.Sorted(slices.Values(forth))); len(forth) != 250 || len(seen) != 250 {
		t.Fatalf("forth: %d, of these %d different, want 250", len(forth), len(seen))
	}
	back := numbersOf(page)
	for page.Previous != "" && len(back) < 300 {
		page = walk(Walk{Before: page.Previous})
		back = append(numbersOf(page), back...)
	}
	if diff := cmp.Diff(forth, back[len(back)-250:]); diff != "" || len(back) != 252 {
		t.Errorf("back are %d, want the same 250 and the 2 that came (-forth +back)\n%.1000s", len(back), diff)
	}
	foreign, err := e.Search(t.Context(), "t2", Search{}, Walk{After: walk(Walk{}).Next})
	if err != nil || len(foreign.Invoices) != 0 {
		t.Errorf("another tenant's cursor shows %d invoices, %v", len(foreign.Invoices), err)
	}
}

func TestAPageThatThereIsNotIsRefused(t *testing.T) {
	t.Parallel()
	e := setup(t)
	good := position{time.Unix(1, 0).UTC(), [16]byte{1}}.cursor()
	for _, c := range []struct {
		f Search
		w Walk
	}{
		{w: Walk{Limit: -1}},
		{w: Walk{Limit: 201}},
		{w: Walk{After: "x"}},
		{w: Walk{Before: good + "A"}},
		{w: Walk{After: good, Before: good}},
		{f: Search{IssuedFrom: "2026-02-30"}},
		{f: Search{IssuedTo: "infinity"}},
		{f: Search{Term: "a\x00"}},
		{f: Search{Source: "\xff"}},
		{f: Search{CreatedFrom: time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)}},
	} {
		if _, err := e.Search(t.Context(), tenant, c.f, c.w); !problem.Is(err, problem.MalformedRequest) {
			t.Errorf("%+v %+v: %v", c.f, c.w, err)
		}
	}
}

// M1, and that credit notes are counted apart.
func TestSumsAreExactPerCurrencyWithCreditNotesApart(t *testing.T) {
	t.Parallel()
	e := setup(t)
	for i, price := range []string{"10000000000.00", "-0.01", "0.05", "20.10"} {
		e.mustIssue(fmt.Sprint("K", i), request(t, "SO-1001", fmt.Sprint("SO-", i), `"2"`, `"1"`, "10.00", price, `"19"`, `"0"`, `"S"`, `"Z"`))
	}
	e.mustIssue("Y", request(t, "SO-1001", "Y", "EUR", "JPY", "10.00", "10"))
	e.mustIssue("C", request(t, "SO-1001", "SO-3", `"2"`, `"1"`, "10.00", "5.00", `"19"`, `"0"`, `"S"`, `"Z"`,
		`"final"`, `"credit_note","corrects":"INV-2026-000004"`))
	got, err := e.Sums(t.Context(), tenant, Search{})
	want := Sums{Invoices: 6, ByCurrency: []Sum{
		{
			Currency: "EUR", Invoices: Amounts{4, "10000000020.14", "0.00", "10000000020.14"}, CreditNotes: Amounts{1, "5.00", "0.00", "5.00"},
			Balance: Amounts{5, "10000000015.14", "0.00", "10000000015.14"},
		},
		{Currency: "JPY", Invoices: Amounts{1, "20", "4", "24"}, CreditNotes: Amounts{0, "0", "0", "0"}, Balance: Amounts{1, "20", "4", "24"}},
	}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
	// M2: a sum over nothing.
	empty, err := e.Sums(t.Context(), tenant, Search{Term: "nobody", Currency: "EUR"})
	zero := Amounts{0, "0.00", "0.00", "0.00"}
	if diff := cmp.Diff(Sums{ByCurrency: []Sum{{"EUR", zero, zero, zero}}}, empty); err != nil || diff != "" {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
	if none, err := e.Sums(t.Context(), "nobody", Search{}); err != nil || len(none.ByCurrency) != 0 {
		t.Errorf("a tenant without invoices: %+v, %v", none, err)
	}
}

func TestSumsThatTakeTooLongAreNotToldAtAll(t *testing.T) {
	t.Parallel()
	e := setup(t)
	e.mustIssue("K", request(t))
	e.exec(`ALTER VIEW own_invoices RENAME TO own_invoices_kept`)
	e.exec(`CREATE VIEW own_invoices AS SELECT i.* FROM own_invoices_kept AS i, LATERAL (SELECT pg_sleep(60) FROM (SELECT i.id) AS x OFFSET 0) AS slow`)
	e.exec(`GRANT SELECT ON own_invoices TO ` + tenantdb.Role)
	if sums, err := e.Sums(t.Context(), tenant, Search{}); err != nil || !sums.Beyond || len(sums.ByCurrency) != 0 {
		t.Errorf("sums are %+v, %v", sums, err)
	}
}

func TestEachMeetsAllOfManyBatchesOnce(t *testing.T) {
	t.Parallel()
	e := setup(t)
	const all = 2*exportBatch + 7
	for from := 0; from < all; from += 250 {
		var cmds []Command
		for i := from; i < min(from+250, all); i++ {
			cmds = append(cmds, command(t, fmt.Sprint("K", i), orderOf(t, fmt.Sprint("SO-", i))))
		}
		for _, r := range e.Issue(t.Context(), cmds) {
			if r.Err != nil {
				t.Fatal(r.Err)
			}
		}
	}
	seen := map[string]int{}
	err := e.Each(t.Context(), tenant, Search{}, func(inv *erpapi.Invoice) error {
		seen[inv.Number]++
		return nil
	})
	if err != nil || len(seen) != all {
		t.Fatalf("%d of %d, %v", len(seen), all, err)
	}
	for number, n := range seen {
		if n != 1 {
			t.Errorf("%s came %d times", number, n)
		}
	}
	stop := errors.New("enough")
	if err := e.Each(t.Context(), tenant, Search{}, func(*erpapi.Invoice) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("it went on: %v", err)
	}
}

// M2: rows from before, with nothing in their optional columns, and a time far ahead.
func TestAnInvoiceWithStrangeTimesIsOnItsPageAndInTheExport(t *testing.T) {
	t.Parallel()
	e := setup(t)
	a := e.mustIssue("K-1", request(t))
	b := e.mustIssue("K-2", orderOf(t, "SO-2"))
	e.exec("ALTER TABLE invoices DISABLE TRIGGER USER")
	e.exec("UPDATE invoices SET created_at = '10000-02-03 04:05:06.7+00' WHERE id = $1", a.InvoiceID)
	if got := e.numbers(Search{}); !slices.Equal(got, []string{a.Number, b.Number}) {
		t.Errorf("the list is %v", got)
	}
	page, err := e.Search(t.Context(), tenant, Search{}, Walk{Limit: 1})
	if err != nil {
		t.Fatal(err)
	}
	if page, err = e.Search(t.Context(), tenant, Search{}, Walk{Limit: 1, After: page.Next}); err != nil || numbersOf(page)[0] != b.Number {
		t.Errorf("the page behind it is %v, %v", numbersOf(page), err)
	}
	if story, err := e.Story(t.Context(), tenant, a.InvoiceID); err != nil || story.FirstSeen.IsZero() {
		t.Errorf("its story: %v", err)
	}
	for _, change := range []string{
		"UPDATE invoices SET created_at = 'infinity'", "UPDATE tokens SET revoked_at = 'infinity'", "UPDATE tokens SET created_at = '-infinity'",
		"INSERT INTO audit_entries (tenant_id, occurred_at, actor, action, subject) VALUES ('t1', 'infinity', 'a', 'b', 'c')",
		"INSERT INTO targets (tenant_id, id, kind, base_url, credential_ref, locatable, disabled_at) VALUES ('t1', 'x', 'ledger', 'http://x', 'env:X', true, 'infinity')",
		"UPDATE invoices SET gross = 'NaN', payable = 'NaN'",
	} {
		e.exec("INSERT INTO tokens (id, tenant_id, role, label, secret_hash) VALUES ('tok', 't1', 'reader', 'x', decode(repeat('00', 32), 'hex')) ON CONFLICT DO NOTHING")
		if _, err := e.pool.Exec(t.Context(), change); err == nil || !strings.Contains(err.Error(), "check constraint") {
			t.Errorf("%s: %v; no constraint forbids it", change, err)
		}
	}
}

func TestAStoryTellsWhatHappenedToAnInvoice(t *testing.T) {
	t.Parallel()
	e := setup(t, "t2")
	first := e.mustIssue("K-1", request(t))
	wantRefused(t, e.issue("K-1", request(t, "10.00", "11.00")), problem.IdempotencyKeyReused)
	credit := e.mustIssue("K-2", request(t, `"final"`, `"credit_note","corrects":"`+first.Number+`"`))
	e.exec("INSERT INTO audit_entries (tenant_id, actor, action, subject, reason) VALUES ('t1', 'anna', 'look', $1, 'why'), ('t2', 'eve', 'look', $1, '')", first.Number)
	story, err := e.Story(t.Context(), tenant, first.InvoiceID)
	if err != nil {
		t.Fatal(err)
	}
	if story.Invoice.Number != first.Number || story.Seller != "Tenant t1" || story.Corrects != nil || story.Expires == nil || story.FirstSeen.IsZero() {
		t.Errorf("the story is %+v", story)
	}
	if len(story.CorrectedBy) != 1 || story.CorrectedBy[0].Number != credit.Number || story.CorrectedBy[0].Gross != "23.80" {
		t.Errorf("corrected by %+v", story.CorrectedBy)
	}
	if len(story.Conflicts) != 1 || !slices.Equal(story.Conflicts[0].Differences, []string{"/lines/0/unit_price"}) || story.Conflicts[0].Caller != "test" {
		t.Errorf("conflicts are %+v", story.Conflicts)
	}
	if len(story.Audit) != 1 || story.Audit[0].Actor != "anna" {
		t.Errorf("the audit is %+v", story.Audit)
	}
	e.exec("DELETE FROM idempotency_records") // purged
	if story, err = e.Story(t.Context(), tenant, credit.InvoiceID); err != nil || story.Corrects == nil || story.Corrects.Number != first.Number || story.Expires != nil {
		t.Errorf("the credit note's story is %+v, %v", story, err)
	}
	if _, err := e.Story(t.Context(), "t2", first.InvoiceID); !problem.Is(err, problem.NotFound) {
		t.Errorf("it is told to another tenant: %v", err)
	}
	page, err := e.ListConflicts(t.Context(), tenant, "", Walk{})
	if err != nil || page.Next != "" || len(page.Items) != 1 || page.Items[0].InvoiceNumber != first.Number {
		t.Errorf("conflicts are %+v, %v", page, err)
	}
	if page, err := e.ListConflicts(t.Context(), "t2", "K-1", Walk{}); err != nil || len(page.Items) != 0 {
		t.Errorf("another tenant's conflicts: %+v, %v", page, err)
	}
}
