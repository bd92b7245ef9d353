package orderfile

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// Report says what became of a file. Every row of the file is in Results exactly once, in the order of the file.
type Report struct {
	File   string `json:"file"`
	Format Format `json:"format"`
	DryRun bool   `json:"dry_run"`
	// Stored says whether anything of the file is known to be stored: the rows that Results do not call refused,
	// not_stored, unknown or checked.
	Stored    bool            `json:"stored"`
	Rows      int             `json:"rows"`
	BlankRows int             `json:"blank_rows"`
	Orders    int             `json:"orders"` // orders that could be read
	Counts    map[Outcome]int `json:"counts"` // rows by outcome
	// Refusal says why the file was refused as a whole before its rows were looked at: they are not in Results then.
	Refusal string `json:"refusal,omitzero"`
	Results []Row  `json:"results"`
}

// Good says whether nothing was refused, left out or left open.
func (r *Report) Good() bool {
	return r.Refusal == "" && r.Counts[Refused] == 0 && r.Counts[NotStored] == 0 && r.Counts[Unknown] == 0
}

func (r *Report) take(f *File) {
	r.Format, r.Rows, r.BlankRows, r.Orders, r.Results = f.Format, len(f.Rows), f.Blank, len(f.Entries), f.Rows
	r.Counts = map[Outcome]int{}
	for i := range f.Rows {
		r.Counts[f.Rows[i].Outcome]++
	}
	if r.Results == nil {
		r.Results = []Row{}
	}
}

// WriteText tells the report to a person: up to most refused rows, then the sums.
func (r *Report) WriteText(w io.Writer, most int) error {
	var b strings.Builder
	shown := 0
	for i := range r.Results {
		row := &r.Results[i]
		if row.Outcome != Refused {
			continue
		}
		if shown++; shown <= most {
			fmt.Fprintf(&b, "%s:%d: refused: %s\n", r.File, row.Line, strings.TrimSpace(row.label()+row.Reason))
		}
	}
	if shown > most {
		fmt.Fprintf(&b, "%s: %d more refused rows\n", r.File, shown-most)
	}
	fmt.Fprintf(&b, "%s: %s\n", r.File, r.summary())
	_, err := io.WriteString(w, b.String())
	return err
}

func (r *Row) label() string {
	if r.Order == "" {
		return ""
	}
	return fmt.Sprintf("order %s: ", r.Order)
}

func (r *Report) summary() string {
	if r.Refusal != "" {
		return "refused as a whole: " + r.Refusal
	}
	if r.Rows == 0 {
		return "0 rows: the file has a header and nothing else"
	}
	parts := []string{plural(r.Rows, "row"), plural(r.Orders, "order")}
	if r.BlankRows > 0 {
		parts = append(parts, plural(r.BlankRows, "blank row"))
	}
	outcomes := make([]string, 0, len(r.Counts))
	for outcome := range r.Counts {
		outcomes = append(outcomes, string(outcome))
	}
	slices.Sort(outcomes)
	for _, outcome := range outcomes {
		parts = append(parts, fmt.Sprintf("%d %s", r.Counts[Outcome(outcome)], strings.ReplaceAll(outcome, "_", " ")))
	}
	s := strings.Join(parts, ", ")
	switch {
	case r.DryRun || r.Stored:
		return s
	case r.Counts[Unknown] > 0:
		return s + "; whether anything of the file was stored is not known: import it again"
	default:
		return s + "; nothing of the file was stored"
	}
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
