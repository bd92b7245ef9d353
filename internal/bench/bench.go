package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"
)

// Config is what a run is told. Programs is required.
type Config struct {
	Programs string   // the folder of the built programs
	Only     []string // the parts to measure, by name; empty: all
	Smoke    bool     // so little that the values mean nothing, only to see that there are some
	Rounds   int      // 0: three
	Large    int      // invoices of the large database; 0: five million
	DataDir  string   // where the server's data are for as long as it runs; "": /var/tmp
	Profiles string   // a folder for CPU profiles of the services, taken beside the measured rounds; "": none
	Progress io.Writer
	Log      *slog.Logger // nil discards
}

// runLimit bounds a whole run; what has not begun by then is told as not measured.
const runLimit = 25*time.Minute - 20*time.Second

// part is one thing that a run measures.
type part struct {
	name  string
	limit time.Duration
	run   func(*lab, context.Context) error
}

// parts are all of them, in the order in which they are run: what others lean on first, the longest last.
func parts() []part {
	return []part{
		{"create", 4 * time.Minute, (*lab).measureCreate},
		{"tenant", 3 * time.Minute, (*lab).measureTenant},
		{"single", 3 * time.Minute, (*lab).measureSingle},
		{"replay", 4 * time.Minute, (*lab).measureReplay},
		{"deliver", 6 * time.Minute, (*lab).measureDeliver},
		{"submit", 3 * time.Minute, (*lab).measureSubmit},
		{"latency", 4 * time.Minute, (*lab).measureLatency},
		{"arrival", 4 * time.Minute, (*lab).measureArrival},
		{"overload", 4 * time.Minute, (*lab).measureOverload},
		{"reconcile", 4 * time.Minute, (*lab).measureReconcile},
		{"scale", 5 * time.Minute, (*lab).measureScale},
		{"large", 12 * time.Minute, (*lab).measureLarge},
		{"memory", 5 * time.Minute, (*lab).measureMemory},
	}
}

// Parts are the names of what can be measured by itself.
func Parts() []string {
	var names []string
	for _, p := range parts() {
		names = append(names, p.name)
	}
	return names
}

// Run measures, and gives what it has measured also if parts have failed; those are in the report's Failed. An error means
// that nothing could be measured at all.
func Run(ctx context.Context, cfg Config) (*Report, error) {
	chosen, err := choose(cfg.Only)
	if err != nil {
		return nil, err
	}
	if cfg.Progress == nil {
		cfg.Progress = io.Discard
	}
	if cfg.Profiles != "" {
		if err := os.MkdirAll(cfg.Profiles, 0o700); err != nil {
			return nil, err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, runLimit)
	defer cancel()
	l, err := openLab(ctx, cfg)
	if err != nil {
		return nil, err
	}
	report, err := l.run(ctx, chosen)
	if closing := l.close(ctx); closing != nil {
		cfg.logger().WarnContext(ctx, "the server did not end in an orderly way", "error", closing)
	}
	return report, err
}

func choose(only []string) (chosen []part, err error) {
	known := Parts()
	only = slices.DeleteFunc(slices.Clone(only), func(name string) bool { return name == "" })
	for _, name := range only {
		if !slices.Contains(known, name) {
			return nil, fmt.Errorf("there is no part %q; there are %s", name, strings.Join(known, ", "))
		}
	}
	for _, p := range parts() {
		if len(only) == 0 || slices.Contains(only, p.name) {
			chosen = append(chosen, p)
		}
	}
	return chosen, nil
}

func (l *lab) run(ctx context.Context, chosen []part) (*Report, error) {
	server, err := l.tellSettings(ctx)
	if err != nil {
		return nil, err
	}
	report := &Report{Begun: l.begun, Machine: machine(ctx), Server: server, Rounds: l.scale.rounds, Window: l.scale.window}
	l.say("%s", report.Machine)
	l.say("%s", server)
	for _, p := range chosen {
		l.say("%s", p.name)
		if err := l.runPart(ctx, p); err != nil {
			l.say("  FAILED: %v", err)
			report.Failed = append(report.Failed, Failure{p.name, err})
		}
	}
	report.Figures, report.Rows, report.Took = l.figures, l.rows, time.Since(l.begun)
	return report, nil
}

// runPart runs one part within its time. One that fails costs the others nothing.
func (l *lab) runPart(ctx context.Context, p part) (err error) {
	if ctx.Err() != nil {
		return errors.New("not measured: the time of the run is over")
	}
	ctx, cancel := context.WithTimeout(ctx, p.limit)
	defer cancel()
	return p.run(l, ctx)
}
