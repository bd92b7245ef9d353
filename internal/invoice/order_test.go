package invoice

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"invoicebridge/internal/erpapi"
	"invoicebridge/internal/problem"
)

// part is an invoice of order SO-1020 in some role over one zero-rated amount; more edits as in request.
func part(t testing.TB, role string, sequence int, amount string, oldNew ...string) *erpapi.InvoiceRequest {
	t.Helper()
	r := request(t, append([]string{
		`"role":"final"`, fmt.Sprintf(`"role":%q,"sequence":%d`, role, sequence), "SO-1001", "SO-1020",
		`"quantity":"2","unit_price":"10.00","vat_rate":"19","vat_category":"S"`,
		fmt.Sprintf(`"quantity":"1","unit_price":%q,"vat_rate":"0","vat_category":"Z"`, amount),
	}, oldNew...)...)
	return r
}

func limit(total string) []string {
	return []string{`"source"`, `"order_total":"` + total + `","source"`}
}

func TestAnOrderIsInvoicedInPartsUpToItsTotal(t *testing.T) {
	t.Parallel()
	e := setup(t)
	parts := map[string]*erpapi.InvoiceRequest{
		"advance": part(t, "advance", 1, "200.00", limit("1000.00")...),
		"part1":   part(t, "partial", 1, "700.00", limit("1000.00")...),
		"part2":   part(t, "partial", 2, "100.00", limit("1000.00")...),
	}
	final := part(t, "final", 1, "1000.00", limit("1000.00")...)
	minus := final.Lines[0]
	deducted := erpapi.MustDecimal("-1000.00")
	minus.UnitPrice = &deducted
	final.Lines = append(final.Lines, minus)
	parts["final"] = final
	for _, key := range []string{"advance", "part1", "part2", "final", "advance", "part1", "part2", "final"} {
		e.mustIssue(key, parts[key])
	}
	for _, again := range []string{"part1", "final"} {
		wantRefused(t, e.issue("another key for "+again, parts[again]), problem.AlreadyInvoiced)
	}
	if n := e.invoices(); n != 4 {
		t.Errorf("%d invoices", n)
	}
	p := wantProblem(t, e.issue("part3", part(t, "partial", 3, "0.01", limit("1000.00")...)), problem.InvalidInvoice)
	if diff := cmp.Diff([]string{"/order_total"}, pointersOf(p)); diff != "" {
		t.Error(diff)
	}
	e.wantBalance("1000.00", "0.00")
}

func (e erp) wantBalance(invoiced, credited string) {
	e.t.Helper()
	if n := e.count(`SELECT count(*) FROM order_balances WHERE order_id = 'SO-1020' AND invoiced_gross::text = $1
	                 AND credited_gross::text = $2`, invoiced, credited); n != 1 {
		e.t.Errorf("the balance is not %s, %s", invoiced, credited)
	}
}

func TestParallelPartsNeverExceedTheOrderTotal(t *testing.T) {
	t.Parallel()
	e := setup(t)
	replicas := []erp{e, e.replica()}
	together(20, func(i int) {
		cmd := command(t, fmt.Sprint("K", i), part(t, "partial", i+1, "300.00", limit("1000.00")...))
		r := replicas[i%2].Issue(context.Background(), []Command{cmd})[0]
		if r.Err != nil && !problem.Is(r.Err, problem.InvalidInvoice) {
			t.Error(r.Err)
		}
	})
	e.wantBalance("900.00", "0.00")
	e.wantNumbers(tenant, "INV", 3)
}

func TestARefusedInvoiceStoresNothingAndItsKeyStaysFree(t *testing.T) {
	t.Parallel()
	e := setup(t)
	for name, r := range map[string]*erpapi.InvoiceRequest{
		"invalid":                request(t, `"19"`, `null`),
		"another total":          request(t, `"role"`, `"expected_gross":"23.79","role"`),
		"over the order's total": request(t, `"role"`, `"order_total":"23.79","role"`),
		"corrects nothing":       request(t, `"final"`, `"credit_note","corrects":"INV-2026-000001"`),
		"reverse charge":         request(t, `"S"`, `"AE"`),
	} {
		wantRefused(t, e.issue("K1", r), problem.InvalidInvoice)
		if n := e.invoices(); n != 0 {
			t.Errorf("%s: %d invoices", name, n)
		}
	}
	e.wantNothingStored()
	if a := e.mustIssue("K1", request(t)); a.Replayed || a.Number != "INV-2026-000001" {
		t.Errorf("corrected: %+v", a)
	}
	wantRefused(t, e.issue("K2", request(t)), problem.AlreadyInvoiced)
}

func TestOneOrderHasOneCurrency(t *testing.T) {
	t.Parallel()
	e := setup(t)
	e.mustIssue("K1", part(t, "partial", 1, "1.00"))
	p := wantProblem(t, e.issue("K2", part(t, "partial", 2, "1.00", "EUR", "USD")), problem.InvalidInvoice)
	if diff := cmp.Diff([]string{"/currency"}, pointersOf(p)); diff != "" {
		t.Error(diff)
	}
}

func corrects(what string) []string {
	return []string{`"source"`, `"corrects":"` + what + `","source"`}
}

func TestCreditNotesOfAnInvoiceStayWithinItsGross(t *testing.T) {
	t.Parallel()
	e := setup(t)
	invoice := e.mustIssue("K1", part(t, "final", 1, "100.00"))
	first := e.mustIssue("C1", part(t, "credit_note", 1, "60.00", corrects(invoice.Number)...))
	if first.Number != "CN-2026-000001" {
		t.Errorf("number %s", first.Number)
	}
	over := part(t, "credit_note", 2, "40.01", corrects(invoice.InvoiceID.String())...)
	p := wantProblem(t, e.issue("C2", over), problem.InvalidInvoice)
	if diff := cmp.Diff([]string{"/corrects"}, pointersOf(p)); diff != "" {
		t.Error(diff)
	}
	e.mustIssue("C2", part(t, "credit_note", 2, "40.00", corrects(strings.ToUpper(invoice.InvoiceID.String()))...))
	e.wantBalance("100.00", "100.00")
	if n := e.count("SELECT count(*) FROM invoices WHERE corrects_id = $1", invoice.InvoiceID); n != 2 {
		t.Errorf("%d credit notes name the invoice", n)
	}
	// I3 (b). Credited in full, and yet the order's final invoice exists: again only as a correction, which says so.
	wantRefused(t, e.issue("K2", part(t, "final", 1, "100.00")), problem.AlreadyInvoiced)
	again := e.mustIssue("K3", part(t, "correction", 1, "100.00", corrects(invoice.Number)...))
	if again.Number != "COR-2026-000001" || e.invoices() != 4 {
		t.Errorf("correction: %+v", again)
	}
	e.wantBalance("100.00", "100.00")
}

func TestParallelCreditNotesNeverExceedTheInvoice(t *testing.T) {
	t.Parallel()
	e := setup(t)
	invoice := e.mustIssue("K1", part(t, "final", 1, "100.00"))
	replicas := []erp{e, e.replica()}
	together(10, func(i int) {
		cmd := command(t, fmt.Sprint("C", i), part(t, "credit_note", i+1, "40.00", corrects(invoice.Number)...))
		r := replicas[i%2].Issue(context.Background(), []Command{cmd})[0]
		if r.Err != nil && !problem.Is(r.Err, problem.InvalidInvoice) {
			t.Error(r.Err)
		}
	})
	e.wantBalance("100.00", "80.00")
}

func TestWhatCanNotBeCorrected(t *testing.T) {
	t.Parallel()
	e := setup(t, "t2")
	invoice := e.mustIssue("K1", part(t, "final", 1, "100.00"))
	elsewhere := e.mustIssue("K2", request(t))
	credit := e.mustIssue("C1", part(t, "credit_note", 1, "1.00", corrects(invoice.Number)...))
	foreign := command(t, "K3", part(t, "final", 1, "100.00"))
	foreign.Tenant = "t2"
	others := e.Issue(t.Context(), []Command{foreign})[0].Answer
	for name, r := range map[string]*erpapi.InvoiceRequest{
		"an invoice of another order":  part(t, "credit_note", 2, "1.00", corrects(elsewhere.Number)...),
		"an invoice of another tenant": part(t, "credit_note", 2, "1.00", corrects(others.InvoiceID.String())...),
		"a credit note by another":     part(t, "credit_note", 2, "1.00", corrects(credit.Number)...),
		"nothing that exists":          part(t, "credit_note", 2, "1.00", corrects("INV-2026-000009")...),
		"with a negative amount":       part(t, "credit_note", 2, "-1.00", corrects(invoice.Number)...),
		"with no amount":               part(t, "credit_note", 2, "0.00", corrects(invoice.Number)...),
	} {
		if got := e.issue("K4", r); !problem.Is(got.Err, problem.InvalidInvoice) {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if n := e.count("SELECT count(*) FROM order_balances WHERE tenant_id = 't2' AND credited_gross = 0"); n != 1 {
		t.Error("the balance of another tenant was touched")
	}
}

func TestCommandsOfOneOrderInOneCallFollowEachOther(t *testing.T) {
	t.Parallel()
	e := setup(t)
	results := e.Issue(t.Context(), []Command{
		command(t, "K1", part(t, "final", 1, "100.00")),
		command(t, "C1", part(t, "credit_note", 1, "100.00", corrects("INV-2026-000001")...)),
		command(t, "K1", part(t, "final", 1, "100.00")),
		command(t, "K1", part(t, "final", 1, "99.00")),
		command(t, "K5", part(t, "final", 1, "99.00")),
	})
	if results[0].Err != nil || results[1].Err != nil || results[2].Err != nil || !results[2].Answer.Replayed {
		t.Errorf("%+v", results)
	}
	wantRefused(t, results[3], problem.IdempotencyKeyReused)
	wantRefused(t, results[4], problem.AlreadyInvoiced)
}
