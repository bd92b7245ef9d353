package orderfile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"invoicebridge/internal/crm"
	"invoicebridge/internal/problem"
)

// Submitter stores orders; *crm.Service is one.
type Submitter interface {
	Submit(ctx context.Context, tenant string, channel crm.Channel, orders []crm.Order, opt crm.SubmitOptions) ([]crm.Submission, error)
}

// keepGoodBatch is how many orders are submitted at a time where good orders are kept whatever others are.
const keepGoodBatch = 500

// ImportOptions say how a file is read and what is taken of it.
type ImportOptions struct {
	Options
	Name   string // the file's name, for the report
	Tenant string
	// KeepGood takes the orders that are in order when others are refused. Without it one refusal keeps all out.
	KeepGood bool
	// DryRun reads and checks the file and submits nothing.
	DryRun bool
	// Progress, if given, hears how many of the file's orders have been dealt with.
	Progress func(done, total int)
}

// Import reads a file and submits its orders. The report is complete in every case and says what is stored.
//
// The error is nil where the report tells all there is to tell, also if rows or the whole file were refused: ask
// Report.Good. It is not nil if reading or storing failed for another reason. Rows of which nobody knows whether they
// are stored are reported as unknown. Importing the file again is safe at any time.
//
// Without KeepGood all orders are submitted in one transaction, so that none or all are stored. With it they go in
// transactions of up to 500 orders.
func Import(ctx context.Context, s Submitter, r io.Reader, o ImportOptions) (*Report, error) {
	report := &Report{File: o.Name, Format: o.Format, DryRun: o.DryRun, Results: []Row{}, Counts: map[Outcome]int{}}
	file, err := Read(r, o.Options)
	var refused *FileError
	if errors.As(err, &refused) {
		report.Refusal = refused.Error()
		return report, nil
	}
	if err != nil {
		report.Refusal = "it could not be read"
		return report, fmt.Errorf("read %s: %w", o.Name, err)
	}
	if o.Progress == nil {
		o.Progress = func(int, int) {}
	}
	im := importing{file: file, options: o, submitter: s}
	err = im.run(ctx)
	report.take(file)
	report.Stored = im.stored
	if err != nil {
		return report, fmt.Errorf("import %s: %w", o.Name, err)
	}
	return report, nil
}

type importing struct {
	file      *File
	options   ImportOptions
	submitter Submitter
	stored    bool
}

func (im *importing) run(ctx context.Context) error {
	entries := im.file.Entries
	switch {
	case im.options.DryRun:
		im.check()
		im.settle(Checked, "")
		return nil
	case im.anyRefused() && !im.options.KeepGood:
		im.check() // so that all refusals are told at once, not those of reading first
		im.settle(NotStored, "other rows of the file were refused")
		return nil
	}
	batch := len(entries)
	if im.options.KeepGood {
		batch = keepGoodBatch
	}
	im.options.Progress(0, len(entries))
	for done := 0; done < len(entries); {
		part := entries[done:min(done+batch, len(entries))]
		if err := im.submit(ctx, part); err != nil {
			im.fail(part, err)
			return err
		}
		done += len(part)
		im.options.Progress(done, len(entries))
	}
	im.settle(NotStored, "other rows of the file were refused")
	return nil
}

// fail tells the rows of the orders that could not be stored, and those behind them. A problem is the service's own
// word that nothing was stored; with any other error the transaction may have been committed and only the word of
// it lost.
func (im *importing) fail(part []Entry, err error) {
	if problem.As(err) == nil {
		for i := range part {
			for _, index := range part[i].Rows {
				im.file.Rows[index].Outcome = Unknown
				im.file.Rows[index].Reason = "storing failed, perhaps only after it was done; import the file again"
			}
		}
	}
	im.settle(NotStored, "storing failed before this row")
}

func (im *importing) anyRefused() bool {
	for i := range im.file.Rows {
		if im.file.Rows[i].Outcome == Refused {
			return true
		}
	}
	return false
}

// check refuses what Submit would refuse.
func (im *importing) check() {
	for i := range im.file.Entries {
		e := &im.file.Entries[i]
		if faults := crm.Check(e.Order); len(faults) > 0 {
			im.refuse(e, faults, "")
		}
	}
}

// settle gives the rows that have no outcome yet this one.
func (im *importing) settle(outcome Outcome, reason string) {
	for i := range im.file.Rows {
		if r := &im.file.Rows[i]; r.Outcome == "" {
			r.Outcome, r.Reason = outcome, reason
		}
	}
}

// submit hands over some orders. That one of them was refused is no error: the submissions tell.
func (im *importing) submit(ctx context.Context, entries []Entry) error {
	orders := make([]crm.Order, len(entries))
	for i := range entries {
		orders[i] = entries[i].Order
	}
	o := im.options
	subs, err := im.submitter.Submit(ctx, o.Tenant, crm.ChannelImport, orders, crm.SubmitOptions{KeepGood: o.KeepGood})
	refusal := problem.Is(err, problem.InvalidOrder) || problem.Is(err, problem.VersionConflict)
	if err != nil && !refusal {
		return err
	}
	if len(subs) != len(entries) { // a fault of the submitter's: nobody can say which answer is whose
		return fmt.Errorf("%d orders were submitted and %d answered", len(entries), len(subs))
	}
	for i := range entries {
		im.tell(&entries[i], &subs[i], err == nil)
	}
	return nil
}

// tell writes what became of an order to its rows. A submission of a call that stored nothing counts only where it
// is a refusal.
func (im *importing) tell(e *Entry, sub *crm.Submission, stored bool) {
	if sub.Outcome == crm.OutcomeRefused {
		im.refuse(e, sub.Errors, sub.Detail)
		return
	}
	if !stored || sub.Outcome == crm.OutcomeNone {
		return
	}
	im.stored = true
	for _, index := range e.Rows {
		im.file.Rows[index].Outcome = Outcome(sub.Outcome)
		im.file.Rows[index].Reason = sub.Detail
	}
	for _, index := range e.Copies {
		im.file.Rows[index].Outcome = AlreadyThere
		im.file.Rows[index].Reason = "a copy of another row of this file"
	}
}

// refuse tells each mistake at the row that made it, where the pointer says so, and else at the order's first row.
func (im *importing) refuse(e *Entry, faults []problem.FieldError, detail string) {
	reasons := map[int][]string{}
	for _, fault := range faults {
		index := e.rowOf(fault.Pointer)
		reasons[index] = append(reasons[index], fieldErrors([]problem.FieldError{fault}))
	}
	if len(reasons) == 0 {
		reasons[e.Rows[0]] = []string{detail}
	}
	im.file.refuseOrder(e.Rows, reasons)
}

// rowOf is the row that a pointer such as /lines/1/quantity or /invoices/0/lines/1 is about.
func (e *Entry) rowOf(pointer string) int {
	parts := strings.Split(strings.TrimPrefix(pointer, "/"), "/")
	invoice := 0
	if len(parts) >= 2 && parts[0] == "invoices" {
		invoice = indexOf(parts[1])
		parts = parts[2:]
	}
	if invoice < 0 || invoice >= len(e.lines) {
		return e.Rows[0]
	}
	rows := e.lines[invoice]
	if len(parts) >= 2 && parts[0] == "lines" {
		if line := indexOf(parts[1]); line >= 0 && line < len(rows) {
			return rows[line]
		}
	}
	if len(rows) > 0 && len(e.lines) > 1 {
		return rows[0]
	}
	return e.Rows[0]
}

func indexOf(text string) int {
	i, err := strconv.Atoi(text)
	if err != nil {
		return -1
	}
	return i
}
