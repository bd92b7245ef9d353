// Package verify puts an installation to the test before it is put to work: the same request several times, several at
// once, keys reused, answers lost, processes killed, targets that time out, late repeats, work by hand. Each check says
// how many invoices there have to be, and counts what there is. docs/verification.md explains the checks.
package verify

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"text/tabwriter"
	"time"
)

// Row is what one check found.
type Row struct {
	Name string
	// Done says what was done, and how often.
	Done string
	// Expected, Found, Duplicates and Missing count invoices, or, for a target, its entries for them.
	Expected, Found, Duplicates, Missing int
	// Deviations are in words: answers that were not what they have to be. Empty, and nothing doubled or missing: passed.
	Deviations []string
	Took       time.Duration
}

// Passed says whether everything was as it has to be.
func (r Row) Passed() bool {
	return len(r.Deviations) == 0 && r.Duplicates == 0 && r.Missing == 0 && r.Found == r.Expected
}

// check is one of the checks. do returns an error only if it could not be carried out.
type check struct {
	name string
	do   func(ctx context.Context, f *findings) error
}

// findings collect what a check finds. It is safe for concurrent use.
type findings struct {
	mu   sync.Mutex
	row  Row
	more int // deviations beyond the ones that are told
}

// maxDeviations bounds what is told of one check; a broken installation would fill the screen.
const maxDeviations = 5

// deviate notes that something was not as it has to be.
func (f *findings) deviate(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.row.Deviations) >= maxDeviations {
		f.more++
		return
	}
	f.row.Deviations = append(f.row.Deviations, fmt.Sprintf(format, args...))
}

// done says what was done.
func (f *findings) done(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.row.Done = fmt.Sprintf(format, args...)
}

// count compares how many there have to be with those that there are: perClaim is the number for each claim that has any.
func (f *findings) count(expected int, perClaim map[string]int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.row.Expected += expected
	for _, n := range perClaim {
		f.row.Found += n
		f.row.Duplicates += n - 1
	}
	f.row.Missing += max(0, expected-len(perClaim))
}

// run carries out one check.
func (c check) run(ctx context.Context) Row {
	f := &findings{row: Row{Name: c.name}}
	started := time.Now()
	if err := c.do(ctx, f); err != nil {
		f.deviate("the check could not be carried out: %v", err)
	}
	f.row.Took = time.Since(started)
	if f.more > 0 {
		f.row.Deviations = append(f.row.Deviations, fmt.Sprintf("and %d more", f.more))
	}
	return f.row
}

// ErrDeviations is what a run ends with that found any.
var ErrDeviations = errors.New("not everything was as it has to be: do not put this to work")

// Report writes one line a check, and below the table what deviated. It returns ErrDeviations if anything did.
func Report(w io.Writer, rows []Row) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "CHECK\tEXPECTED\tFOUND\tDUPLICATES\tMISSING\tSECONDS\t\tWHAT WAS DONE")
	failed := false
	for i, r := range rows {
		verdict := "passed"
		if !r.Passed() {
			verdict, failed = "FAILED", true
		}
		fmt.Fprintf(table, "%d %s\t%d\t%d\t%d\t%d\t%.1f\t%s\t%s\n",
			i+1, r.Name, r.Expected, r.Found, r.Duplicates, r.Missing, r.Took.Seconds(), verdict, r.Done)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for i, r := range rows {
		if len(r.Deviations) > 0 {
			fmt.Fprintf(w, "\n%d %s:\n  - %s\n", i+1, r.Name, strings.Join(r.Deviations, "\n  - "))
		}
	}
	if failed {
		return ErrDeviations
	}
	return nil
}
