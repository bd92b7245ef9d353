package bench

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
)

// Report is what a run has measured.
type Report struct {
	Begun   time.Time
	Took    time.Duration
	Machine string
	Server  string // with the settings that matter
	Rounds  int
	Window  time.Duration
	Figures []Figure
	Rows    []Row
	Failed  []Failure
}

// Failure is a part that could not be measured.
type Failure struct {
	Part string
	Err  error
}

// Err says which parts failed; nil if none did. A goal that was missed is no failure.
func (r *Report) Err() error {
	if len(r.Failed) == 0 {
		return nil
	}
	names := make([]string, len(r.Failed))
	for i, f := range r.Failed {
		names[i] = f.Part
	}
	return fmt.Errorf("%d parts failed: %s", len(names), strings.Join(names, ", "))
}

// Write writes the tables and then, as the last line, the figures as one JSON object.
func (r *Report) Write(w io.Writer) error {
	var out bytes.Buffer
	out.WriteString("\n")
	r.Markdown(&out)
	figures := r.Figures
	if figures == nil {
		figures = []Figure{}
	}
	line, err := json.Marshal(struct {
		Figures []Figure `json:"figures"`
	}{figures})
	if err != nil {
		return fmt.Errorf("write the figures: %w", err)
	}
	out.WriteString("\n")
	out.Write(line)
	out.WriteString("\n")
	_, err = w.Write(out.Bytes())
	return err
}

// Markdown writes the tables for docs/performance.md.
func (r *Report) Markdown(out *bytes.Buffer) {
	fmt.Fprintf(out, "Run of %s, %s, %d rounds of %s each. %s. %s.\n\n", r.Begun.UTC().Format("2006-01-02 15:04 UTC"),
		r.Took.Round(time.Second), r.Rounds, r.Window, r.Machine, r.Server)
	out.WriteString("| figure | what | to | ratio | least to most | goal | |\n|---|---|---|---|---|---|---|\n")
	for _, f := range r.Figures {
		goal, met := "", ""
		if f.Goal > 0 {
			goal, met = fmt.Sprint(f.Goal), map[bool]string{true: "met", false: "**missed**"}[f.Met()]
		}
		fmt.Fprintf(out, "| `%s` | %s | %s | **%s** | %s to %s | %s | %s |\n", f.Name, f.This.text(), f.Other.text(), short(f.Ratio), short(f.Min), short(f.Max), goal, met)
	}
	if len(r.Rows) > 0 {
		out.WriteString("\n| measured besides | median | least to most |\n|---|---|---|\n")
		for _, row := range r.Rows {
			low, middle, high := spread(row.All)
			fmt.Fprintf(out, "| %s | %s %s | %s to %s |\n", row.What, short(middle), row.Unit, short(low), short(high))
		}
	}
	for _, f := range r.Failed {
		fmt.Fprintf(out, "\nNot measured: %s: %s\n", f.Part, strings.ReplaceAll(f.Err.Error(), "\n", " "))
	}
}

// text is a series in a cell of a table.
func (s Series) text() string {
	if len(s.All) == 0 {
		return s.What
	}
	low, middle, high := spread(s.All)
	if low == high {
		return fmt.Sprintf("%s: %s %s", s.What, short(middle), s.Unit)
	}
	return fmt.Sprintf("%s: %s %s (%s to %s)", s.What, short(middle), s.Unit, short(low), short(high))
}

// short writes as many digits as mean something.
func short(x float64) string {
	switch {
	case x >= 100:
		return fmt.Sprintf("%.0f", x)
	case x >= 10:
		return fmt.Sprintf("%.1f", x)
	}
	return fmt.Sprintf("%.2f", x)
}

const (
	markdownBegin = "<!-- bench: begin -->"
	markdownEnd   = "<!-- bench: end -->"
)

// WriteInto puts the tables into a file, between two lines of comments that it has for them.
func (r *Report) WriteInto(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	before, rest, found := bytes.Cut(text, []byte(markdownBegin))
	_, after, ended := bytes.Cut(rest, []byte(markdownEnd))
	if !found || !ended {
		return fmt.Errorf("%s has no lines %s and %s for the tables to stand between", path, markdownBegin, markdownEnd)
	}
	var out bytes.Buffer
	out.Write(before)
	out.WriteString(markdownBegin + "\n")
	r.Markdown(&out)
	out.WriteString(markdownEnd)
	out.Write(after)
	return os.WriteFile(path, out.Bytes(), 0o644) //nolint:gosec // a document, for everybody
}

// machine says what the figures come from.
func machine(ctx context.Context) string {
	told := fmt.Sprintf("%d processors, %s/%s, %s", runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, runtime.Version())
	if out, err := exec.CommandContext(ctx, "uptime").Output(); err == nil {
		if _, load, found := strings.Cut(strings.TrimSpace(string(out)), "load average: "); found {
			told += ", load before the run " + load
		}
	}
	return told + ", the generator of the load included"
}
