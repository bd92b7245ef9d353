package orderfile_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"invoicebridge/internal/erpapi"
	"invoicebridge/internal/orderfile"
)

// table reads rows under these columns; the rest is the same for all rows.
func table(t *testing.T, columns string, rows ...string) *orderfile.File {
	t.Helper()
	constants := map[string]string{
		"currency": "EUR", "issue_date": "2026-03-02", "customer_name": "Test", "customer_country": "DE",
		"quantity": "1", "unit_price": "1.00", "vat_category": "S", "vat_rate": "19",
	}
	return read(t, columns+"\n"+strings.Join(rows, "\n")+"\n", orderfile.Options{
		Format: orderfile.CSV, DefaultSource: "crm-1", CSV: orderfile.CSVOptions{Constants: constants},
	})
}

// told lists the rows as "line outcome: reason".
func told(f *orderfile.File) []string {
	var out []string
	for _, r := range f.Rows {
		out = append(out, strings.TrimSuffix(fmt.Sprintf("%d %s: %s", r.Line, r.Outcome, r.Reason), " : "))
	}
	return out
}

func skus(lines []erpapi.Line) string {
	var out []string
	for _, l := range lines {
		out = append(out, l.SKU)
	}
	return strings.Join(out, " ")
}

// N5.
func TestRowsOfOneOrderAreItsLinesWhereverTheyStand(t *testing.T) {
	t.Parallel()
	f := table(t, "order,sku", "A-1,P-1", "A-2,P-9", "A-1,P-2", "A-1,P-1")
	if ids(f) != "A-1|A-2" || len(f.Rows) != 4 {
		t.Fatalf("orders %s of %d rows", ids(f), len(f.Rows))
	}
	if got := skus(f.Entries[0].Order.Lines); got != "P-1 P-2 P-1" {
		t.Fatalf("lines %s: two equal rows are two lines, in the order of the file", got)
	}
}

// N5.
func TestNumberedLinesTellACopyFromAnEqualLine(t *testing.T) {
	t.Parallel()
	f := table(t, "order,line,sku", "A-1,2,P-2", "A-1,1,P-1", "A-1,3,P-1", "A-1,2,P-2")
	if got := skus(f.Entries[0].Order.Lines); got != "P-1 P-2 P-1" {
		t.Fatalf("lines %s: lines stand by their number, the copy adds none", got)
	}
	if diff := cmp.Diff([]int{3}, f.Entries[0].Copies); diff != "" {
		t.Fatalf("copies (-want +got):\n%s", diff)
	}

	f = table(t, "order,line,sku", "A-1,1,P-1", "B-1,1,P-1", "A-1,1,P-2")
	if diff := cmp.Diff([]string{
		"2 refused: line 4 of the same order was refused", "3",
		"4 refused: line number 1 of this invoice stands in line 2 of the file with other content",
	}, told(f)); diff != "" {
		t.Fatalf("rows (-want +got):\n%s", diff)
	}
	wantContains(t, strings.Join(told(table(t, "order,line,sku", "A-1,1,P-1", "A-1,,P-2")), "\n"), "3 refused: either all rows")
}

func TestRolesAndSequencesMakeSeveralInvoicesOfAnOrder(t *testing.T) {
	t.Parallel()
	f := table(t, "order,role,sequence,sku,note",
		"A-1,advance,,P-1,first", "A-1,partial,1,P-2,", "A-1,partial,2,P-3,", "A-1,partial,1,P-4,", "A-1,final,,P-5,last")
	o := f.Entries[0].Order
	var got []string
	for _, inv := range o.Invoices {
		sequence := int64(0)
		if inv.Sequence != nil {
			sequence = *inv.Sequence
		}
		got = append(got, fmt.Sprintf("%s %d: %s %s", inv.Role, sequence, skus(inv.Lines), inv.Note))
	}
	if diff := cmp.Diff([]string{"advance 0: P-1 first", "partial 1: P-2 P-4 ", "partial 2: P-3 ", "final 0: P-5 last"}, got); diff != "" {
		t.Fatalf("invoices (-want +got):\n%s", diff)
	}
	if len(o.Lines) != 0 || o.IssueDate != "" || o.Invoices[0].IssueDate != "2026-03-02" {
		t.Fatal("with several invoices nothing of them belongs to the order itself")
	}
	one := table(t, "order,role,sequence,sku", "A-1,partial,3,P-1").Entries[0].Order
	if len(one.Invoices) != 0 || one.Role != erpapi.RolePartial || *one.Sequence != 3 {
		t.Fatalf("one group is the order's own invoice: %+v", one)
	}
}

func TestWhatBelongsToTheOrderMayStandOnceButNeverDiffer(t *testing.T) {
	t.Parallel()
	f := table(t, "order,customer_email,note,metadata.channel,sku", "A-1,,n,web,P-1", "A-1,a@x.test,,,P-2", "A-1,a@x.test,n,web,P-3")
	o := f.Entries[0].Order
	if o.Customer.Email != "a@x.test" || o.Note != "n" || o.Metadata["channel"] != "web" || len(o.Lines) != 3 {
		t.Fatalf("order %+v", o)
	}

	f = table(t, "order,customer_email,note,metadata.channel,sku",
		"A-1,a@x.test,n,web,P-1", "B-1,,,,P-1", "A-1,b@x.test,m,shop,P-2", "A-1,,,,P-3")
	if ids(f) != "B-1" {
		t.Fatalf("orders %s", ids(f))
	}
	wantContains(t, f.Rows[2].Reason, "customer_email is not the same as in line 2", "note is not", "metadata.channel is not")
	if f.Rows[0].Reason != "line 4 of the same order was refused" || f.Rows[3].Reason != f.Rows[0].Reason {
		t.Fatalf("rows %v", told(f))
	}
}

func TestARowWithoutAnOrderIdTakesTheOrderBeforeItOut(t *testing.T) {
	t.Parallel()
	f := table(t, "order,sku", ",P-0", "A-1,P-1", "B-1,P-1", ",P-2", "A-1,P-3")
	if ids(f) != "A-1" {
		t.Fatalf("orders %s: B-1 may lack a line", ids(f))
	}
	wantContains(t, f.Rows[2].Reason, "line 5")
}

func TestMixedRowsWithAndWithoutRoleAreRefused(t *testing.T) {
	t.Parallel()
	f := table(t, "order,role,sku", "A-1,advance,P-1", "A-1,,P-2")
	wantContains(t, f.Rows[1].Reason, "name a role", "line 2")
}

func TestACancelledOrderNeedsNoLine(t *testing.T) {
	t.Parallel()
	header := "source,order,status,currency,customer_name,customer_country,issue_date,quantity,unit_price,vat_category\n"
	f := read(t, header+"s,A-1,cancelled,,,,,,,\ns,A-2,,EUR,T,DE,2026-03-02,1,1.00,S\ns,A-2,,,,,,,,\n", orderfile.Options{Format: orderfile.CSV})
	if ids(f) != "A-1" || f.Entries[0].Order.Status != "cancelled" || len(f.Entries[0].Order.Lines) != 0 {
		t.Fatalf("orders %s", ids(f))
	}
	wantContains(t, f.Rows[2].Reason, "must hold a line")
}

func TestLineNumbersAreThoseOfTheFile(t *testing.T) {
	t.Parallel()
	text := bom + "sep=,\r\norder,customer,amount\r\n\r\nA-1,\"two\r\nlines\",1.00\r\nA-2,T,x\r\n"
	f := read(t, text, shop(',', '.'))
	if f.Rows[0].Line != 4 || f.Rows[1].Line != 6 {
		t.Fatalf("rows %v, want lines 4 and 6", told(f))
	}
	if got := f.Entries[0].Order.Customer.Name; got != "two\nlines" {
		t.Fatalf("name %q", got)
	}
}

// N6: what WriteCSV guards comes back as it was.
func TestOneApostropheBeforeAFormulaIsTakenOff(t *testing.T) {
	t.Parallel()
	for cell, want := range map[string]string{
		"'=1+1": "=1+1", "'+49 30 1": "+49 30 1", "'-2+3": "-2+3", "'@x": "@x", "'\t=1": "\t=1", "''=1": "'=1",
		"=1+1": "=1+1", "'s Graven": "'s Graven", "'": "'", "''": "''", "O'=1": "O'=1",
	} {
		f := read(t, "order,customer,amount\nA-1,"+cell+",1\n", shop(',', '.'))
		if got := f.Entries[0].Order.Customer.Name; got != want {
			t.Errorf("%q is read as %q, want %q", cell, got, want)
		}
	}
}
