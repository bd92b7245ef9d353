package examples_test

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"invoicebridge/examples"
	"invoicebridge/internal/crm"
	"invoicebridge/internal/crmdb"
	"invoicebridge/internal/erpapi"
	"invoicebridge/internal/erpdb"
	"invoicebridge/internal/idempotency"
	"invoicebridge/internal/invoice"
	"invoicebridge/internal/jobs"
	"invoicebridge/internal/orderfile"
	"invoicebridge/internal/testdb"
)

var update = flag.Bool("update", false, "write the golden files anew")

const tenant = "demo"

func service(t *testing.T) *crm.Service {
	t.Helper()
	pool := testdb.CRM(t)
	if _, err := crmdb.New(pool).TenantInsert(t.Context(), tenant, "Demo"); err != nil {
		t.Fatal(err)
	}
	inserter, err := jobs.NewInserter(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return crm.NewService(pool, inserter, crm.Options{})
}

func files(t *testing.T) []examples.File {
	t.Helper()
	all, err := examples.Files()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func importFile(t *testing.T, s orderfile.Submitter, r io.Reader, o orderfile.ImportOptions) *orderfile.Report {
	t.Helper()
	o.Tenant = tenant
	report, err := orderfile.Import(t.Context(), s, r, o)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

func counts(r *orderfile.Report) string { return fmt.Sprint(r.Orders, " ", r.Counts) }

func TestTheExamplesAreTakenAndRepeatsInThemChangeNothing(t *testing.T) {
	t.Parallel()
	s := service(t)
	for _, round := range [][]string{
		{"150 map[created:395]", "260 map[already_there:10 created:250]", "80 map[already_there:152 created:54]"},
		{"150 map[already_there:395]", "260 map[already_there:260]", "80 map[already_there:206]"},
	} {
		var got []string
		for _, f := range files(t) {
			report := importFile(t, s, bytes.NewReader(f.Data), orderfile.ImportOptions{Options: f.Options, Name: f.Name})
			if !report.Good() {
				var b bytes.Buffer
				if err := report.WriteText(&b, 5); err != nil {
					t.Fatal(err)
				}
				t.Fatal(b.String())
			}
			got = append(got, counts(report))
		}
		if diff := cmp.Diff(round, got); diff != "" {
			t.Fatalf("orders and rows by outcome (-want +got):\n%s", diff)
		}
	}
}

// Whatever the examples ask for, the ERP does: else the demo would show failures that nobody meant.
func TestEveryInvoiceOfTheExamplesIsIssued(t *testing.T) {
	t.Parallel()
	pool := testdb.ERP(t)
	if _, err := erpdb.New(pool).TenantInsert(t.Context(), tenant, "Demo"); err != nil {
		t.Fatal(err)
	}
	erp := invoice.NewService(pool, invoice.Options{})
	seen := map[string]bool{}
	var commands []invoice.Command
	for _, f := range files(t) {
		read, err := orderfile.Read(bytes.NewReader(f.Data), f.Options)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range read.Entries {
			if seen[e.Order.Source+"/"+e.Order.Order] {
				continue
			}
			seen[e.Order.Source+"/"+e.Order.Order] = true
			commands = append(commands, requests(t, e.Order)...)
		}
	}
	for len(commands) > 0 {
		part := commands[:min(50, len(commands))]
		commands = commands[len(part):]
		for i, result := range erp.Issue(t.Context(), part) {
			if result.Err != nil {
				t.Errorf("order %s, %s %d: %v", part[i].Request.Order, part[i].Request.Role, part[i].Request.EffectiveSequence(), result.Err)
			}
		}
	}
}

// requests are the commands for the invoices of an order, made here independently of crm.
func requests(t *testing.T, o crm.Order) []invoice.Command {
	t.Helper()
	invoices := o.Invoices
	if len(invoices) == 0 {
		invoices = []crm.OrderInvoice{{Role: o.Role, Sequence: o.Sequence, IssueDate: o.IssueDate, DueDate: o.DueDate, Lines: o.Lines, ExpectedGross: o.ExpectedGross}}
	}
	var commands []invoice.Command
	for _, inv := range invoices {
		if inv.Role == "" {
			inv.Role = erpapi.RoleFinal
		}
		r := &erpapi.InvoiceRequest{
			Source: o.Source, Order: o.Order, Role: inv.Role, Sequence: inv.Sequence, Currency: o.Currency, IssueDate: inv.IssueDate,
			DueDate: inv.DueDate, Customer: o.Customer, Lines: inv.Lines, OrderTotal: o.OrderTotal, ExpectedGross: inv.ExpectedGross,
			Note: o.Note, Metadata: o.Metadata,
		}
		key, err := idempotency.ParseKey([]string{fmt.Sprintf("%s-%s-%s-%d", o.Source, o.Order, inv.Role, r.EffectiveSequence())})
		if err != nil {
			t.Fatal(err)
		}
		commands = append(commands, invoice.Command{Tenant: tenant, Caller: "test", Key: key, Request: r})
	}
	return commands
}

func TestTheBrokenExampleTellsEachMistakeAtItsRow(t *testing.T) {
	t.Parallel()
	f, err := os.Open("broken.csv")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	report := importFile(t, service(t), f, orderfile.ImportOptions{
		Options: orderfile.Options{Format: orderfile.CSV}, Name: "broken.csv", KeepGood: true,
	})
	var b bytes.Buffer
	if err := report.WriteText(&b, 100); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile("broken.report.txt", b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile("broken.report.txt")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), b.String()); diff != "" {
		t.Fatalf("report (-want +got):\n%s", diff)
	}
}
