package httpapi_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"invoicebridge/internal/erpapi"
	"invoicebridge/internal/problem"
)

// Case E1: two tenants with the same keys and the same orders, one after the other and at once: each its own invoice in its own
// series, and neither sees, blocks or is told anything of the other's.
func TestTwoTenantsWithTheSameKeysAndOrdersHaveNothingToDoWithEachOther(t *testing.T) {
	t.Parallel()
	e := startERP(t)
	const mark = "Only of one"
	body := func(order, tenant string) string {
		if tenant == "writer" {
			return strings.Replace(forOrder(order), "Test Customer A", mark, 1)
		}
		return strings.Replace(forOrder(order), `"10.00"`, `"11.00"`, 1)
	}
	var group sync.WaitGroup
	for i := range 50 {
		for _, tenant := range []string{"writer", "t2"} {
			group.Go(func() {
				a := e.postAs(tenant, fmt.Sprint("order-", i), body(fmt.Sprint(i), tenant))
				if a.status != http.StatusCreated || a.header.Get("Idempotent-Replayed") != "" || tenant == "t2" && strings.Contains(string(a.body), mark) {
					t.Errorf("%s is answered %d %s", tenant, a.status, a.body)
				}
			})
		}
	}
	group.Wait()
	e.wantStored(100)
	theirs := e.get("reader", "/v1/operations/order-1")
	var operation erpapi.Operation
	theirs.decode(&operation)
	var own erpapi.Operation
	e.get("t2", "/v1/operations/order-1").decode(&own)
	if own.Invoice == nil || own.Invoice.ID == operation.Invoice.ID {
		t.Errorf("under its key the other tenant is told of %+v", own.Invoice)
	}
	e.post("only-of-one", body("only of one", "writer")).wantFirst()
	for _, path := range []string{"/v1/invoices/" + operation.Invoice.ID, "/v1/operations/only-of-one"} {
		if own := e.get("reader", path); own.status != http.StatusOK {
			t.Fatalf("%s is not there for its own tenant: %d", path, own.status)
		}
		a := e.get("t2", path)
		a.wantProblem(404, problem.NotFound)
		if strings.Contains(string(a.body), mark) {
			t.Errorf("%s tells of the other tenant: %s", path, a.body)
		}
	}
	// The other's exact body under its own key: it is judged by what is its own.
	again := e.postAs("t2", "order-1", body("1", "writer"))
	again.wantProblem(422, problem.IdempotencyKeyReused)
	if strings.Contains(string(again.body), mark) || strings.Contains(string(again.body), operation.Invoice.ID) {
		t.Errorf("the refusal tells of the other tenant: %s", again.body)
	}
	for _, tenant := range []string{"t1", "t2"} {
		if n := e.count("SELECT count(DISTINCT series_number) FROM invoices WHERE tenant_id = $1 AND series_number BETWEEN 1 AND 50", tenant); n != 50 {
			t.Errorf("%s has %d numbers of 1 to 50", tenant, n)
		}
	}
}

// Case G1: VAT is rounded per rate, and the same amounts stand in the answer, in the document read back, on the page and in the
// export. (A target gets the document's own bytes.) A total that differs is refused with both values.
func TestTheSameAmountsStandWhereverAnInvoiceIsShown(t *testing.T) {
	e := startConsole(t)
	line := `{"sku":"P","quantity":"1","unit_price":"33.33","vat_rate":"19","vat_category":"S"}`
	request := func(order, expected string) []byte {
		head, _, _ := strings.Cut(forOrder(order), `"lines"`)
		return []byte(head + `"expected_gross":"` + expected + `","lines":[` + line + "," + line + "," + line + "]}")
	}
	inv := e.issue("K1", request("SO-1", "118.99"))
	for _, l := range inv.Lines {
		if l.Net != "33.33" {
			t.Errorf("a line's net is %s", l.Net)
		}
	}
	if inv.Net != "99.99" || inv.VAT != "19.00" || inv.Gross != "118.99" || inv.VATBreakdown[0].VAT != "19.00" {
		t.Errorf("the answer says %s + %s = %s", inv.Net, inv.VAT, inv.Gross)
	}
	b := e.as("sam")
	for path, a := range map[string]answer{"the page": b.get("/invoices/" + inv.ID), "the list": b.get("/invoices"), "the export": b.get("/invoices/export.csv")} {
		if !strings.Contains(string(a.body), "118.99") || strings.Contains(string(a.body), "118.98") {
			t.Errorf("%s does not tell 118.99", path)
		}
		if path != "the list" && (!strings.Contains(string(a.body), "99.99") || !strings.Contains(string(a.body), "19.00")) {
			t.Errorf("%s does not tell 99.99 and 19.00", path)
		}
	}
	yen := strings.NewReplacer(`"EUR"`, `"JPY"`, `"10.00"`, `"1980"`, `"quantity":"2"`, `"quantity":"3"`, `"vat_rate":"19"`, `"vat_rate":"10"`).Replace(forOrder("SO-yen"))
	if inv := e.issue("K2", []byte(yen)); inv.Gross != "6534" { // case G3
		t.Errorf("gross of the yen is %s", inv.Gross)
	}
}
