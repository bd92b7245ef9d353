package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"invoicebridge/internal/crmdb"
	"invoicebridge/internal/erpdb"
	"invoicebridge/internal/faultproxy"
)

// figures are what the demo ends with. Orders, operations and invoices are all that the databases have for the demo
// tenant; requests, lost answers, replays and conflicts are of this run, counted on the wire.
type figures struct {
	Orders      int64 `json:"orders"`
	Operations  int64 `json:"operations"`
	Requests    int64 `json:"requests"`
	AnswersLost int64 `json:"answers_lost"`
	Replays     int64 `json:"replays"`
	Conflicts   int64 `json:"conflicts"`
	Invoices    int64 `json:"invoices"`
	Duplicates  int64 `json:"duplicates"`
	Missing     int64 `json:"missing"`

	Registrations registrations `json:"-"` // for people: the line for programs has the members above and no others
}

// count asks each side by itself, and then whether every operation wanted on the one has its invoice on the other.
// The second result names the first few that have none.
func count(ctx context.Context, erp, crm *pgxpool.Pool, wire faultproxy.Stats) (figures, []string, error) {
	f := figures{
		Requests: wire.Requests, AnswersLost: wire.AnswersLost, Replays: wire.Replays, Conflicts: wire.Conflicts,
	}
	totals, err := crmdb.New(crm).DemoTotals(ctx, demoTenant)
	if err != nil {
		return f, nil, fmt.Errorf("count orders and operations: %w", err)
	}
	f.Orders, f.Operations = totals.Orders, totals.Operations
	if f.Invoices, err = erpdb.New(erp).DemoTotals(ctx, demoTenant); err != nil {
		return f, nil, fmt.Errorf("count invoices: %w", err)
	}
	if f.Duplicates, err = erpdb.New(erp).DemoDuplicates(ctx, demoTenant); err != nil {
		return f, nil, fmt.Errorf("count duplicates: %w", err)
	}
	missing, examples, err := countMissing(ctx, erpdb.New(erp), crmdb.New(crm))
	if err != nil {
		return f, nil, fmt.Errorf("look for missing invoices: %w", err)
	}
	f.Missing = missing
	return f, examples, nil
}

const (
	comparePage  = 1000
	mostExamples = 10
)

func countMissing(ctx context.Context, erp *erpdb.Queries, crm *crmdb.Queries) (n int64, examples []string, err error) {
	var after uuid.UUID // the nil UUID comes before all others
	for {
		page, err := crm.DemoWantedList(ctx, demoTenant, after, comparePage)
		if err != nil || len(page) == 0 {
			return n, examples, err
		}
		after = page[len(page)-1].ID
		invoiced, err := erp.DemoInvoicedList(ctx, claimsOf(page))
		if err != nil {
			return n, examples, err
		}
		found := make([]bool, len(page))
		for _, position := range invoiced {
			found[position-1] = true
		}
		for i, op := range page {
			if found[i] {
				continue
			}
			n++
			if len(examples) < mostExamples {
				examples = append(examples, fmt.Sprintf("order %s of %s, %s %d: operation %s is %s (%s %s)",
					op.OrderID, op.Source, op.Role, op.Sequence, op.Key, op.Status, op.Reason, op.Detail))
			}
		}
	}
}

func claimsOf(page []crmdb.DemoWantedListRow) erpdb.DemoInvoicedListParams {
	claims := erpdb.DemoInvoicedListParams{TenantID: demoTenant}
	for _, op := range page {
		claims.Sources = append(claims.Sources, op.Source)
		claims.OrderIds = append(claims.OrderIds, op.OrderID)
		claims.Roles = append(claims.Roles, op.Role)
		claims.Sequences = append(claims.Sequences, op.Sequence)
	}
	return claims
}

// print writes the table for people.
func (f figures) print(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, row := range []struct {
		what  string
		n     int64
		where string
	}{
		{"orders", f.Orders, "in the CRM's database"},
		{"operations", f.Operations, "in the CRM's database: one for each invoice wanted"},
		{"requests sent", f.Requests, "by the CRM in this run"},
		{"answers lost", f.AnswersLost, "in this run, after the ERP had committed"},
		{"replays", f.Replays, "in this run: the ERP repeated its first answer"},
		{"conflicts", f.Conflicts, "in this run: 409 and 422"},
		{"invoices", f.Invoices, "in the ERP's database"},
		{"duplicates", f.Duplicates, "must be 0: invoices beyond the first of an order, role and sequence"},
		{"missing", f.Missing, "must be 0: operations without an invoice"},
		{"registrations", f.Registrations.Registered, "of invoices at a gateway and a ledger that lose, delay and double"},
		{"registered twice", f.Registrations.Twice, "must be 0: counted by the gateway and the ledger themselves"},
	} {
		fmt.Fprintf(table, "%s\t%d\t\t%s\n", row.what, row.n, row.where)
	}
	return table.Flush()
}

// printJSON writes one line for programs.
func (f figures) printJSON(w io.Writer) error {
	line, err := json.Marshal(f)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "%s\n", line)
	return err
}

// verdict is nil if every wanted invoice is there once.
func (f figures) verdict(examples []string) error {
	var errs []error
	if f.Duplicates > 0 {
		errs = append(errs, fmt.Errorf("%d duplicate invoices", f.Duplicates))
	}
	if f.Missing > 0 {
		errs = append(errs, fmt.Errorf("%d invoices are missing, such as of\n  %s", f.Missing, strings.Join(examples, "\n  ")))
	}
	return errors.Join(errs...)
}
