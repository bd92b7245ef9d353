package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"invoicebridge/internal/fleet"
	"invoicebridge/internal/postgres"
)

// scale is how much is measured.
type scale struct {
	rounds         int
	window, warmUp time.Duration // of one measurement
	tenants        int
	clients        int
	kept           int // invoices that are asked for again
	deliveries     int // operations in one measurement of deliveries
	submitted      int // orders in one call of bulk submit
	compared       int // operations that reconciliation has to compare
	large          int // invoices of the large database
	soak           int // operations after which memory is looked at
	soakLimit      time.Duration
	idle           time.Duration // of an open-loop measurement
	connections    int           // of an open loop
	overload       float64       // times the maximum
}

func fullScale() scale {
	return scale{
		rounds: 3, window: 5 * time.Second, warmUp: 500 * time.Millisecond, tenants: 100, clients: 64, kept: 10_000, deliveries: 8_000,
		submitted: 1000, compared: 5_000, large: 5_000_000, soak: 100_000, soakLimit: 150 * time.Second, idle: 8 * time.Second,
		connections: 1024, overload: 3,
	}
}

// smokeScale is enough to see that each figure has a value. The values mean nothing.
func smokeScale() scale {
	return scale{
		rounds: 1, window: time.Second, warmUp: 100 * time.Millisecond, tenants: 5, clients: 8, kept: 100, deliveries: 100,
		submitted: 50, compared: 50, large: 2_000, soak: 200, soakLimit: 30 * time.Second, idle: time.Second, connections: 600,
		overload: 20,
	}
}

// lab is what a run has: a server, the programs, and a place for what they leave.
type lab struct {
	config   Config
	scale    scale
	programs fleet.Programs
	dir      string // for logs and scripts; goes with the run
	server   *postgres.Embedded
	pgbench  string
	orders   orders
	tokens   tokens
	progress io.Writer
	begun    time.Time
	sites    int
	rows     []Row // of the phase at work
	figures  []Figure
}

func openLab(ctx context.Context, cfg Config) (l *lab, err error) {
	l = &lab{config: cfg, scale: fullScale(), programs: fleet.Programs{Dir: cfg.Programs}, progress: cfg.Progress, begun: time.Now()}
	if cfg.Smoke {
		l.scale = smokeScale()
	}
	if cfg.Rounds > 0 {
		l.scale.rounds = cfg.Rounds
	}
	if cfg.Large > 0 {
		l.scale.large = cfg.Large
	}
	if err := l.programs.Check(); err != nil {
		return nil, err
	}
	if l.dir, err = os.MkdirTemp("", "invoicebridge-bench-"); err != nil {
		return nil, err
	}
	l.say("starting PostgreSQL")
	l.server, err = postgres.StartTemporary(ctx, postgres.EmbeddedConfig{Dir: cfg.disk(), Settings: cfg.serverSettings(), Logger: cfg.Log})
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(l.dir))
	}
	if l.pgbench, err = findPgbench(l.server.ProgramsDir()); err == nil {
		err = l.makeTemplates(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, l.close(ctx))
	}
	return l, nil
}

func (l *lab) close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	return errors.Join(l.server.Stop(ctx), os.RemoveAll(l.dir))
}

// say tells whoever waits what is being done.
func (l *lab) say(format string, args ...any) {
	fmt.Fprintf(l.progress, "%6.0fs  %s\n", time.Since(l.begun).Seconds(), fmt.Sprintf(format, args...))
}

func (l *lab) tell(row Series) { l.rows = append(l.rows, Row{row}) }

func (l *lab) figure(f Figure) {
	l.figures = append(l.figures, f)
	l.say("  %-34s %8.3f  (%.3f to %.3f)%s", f.Name, f.Ratio, f.Min, f.Max, goalText(f))
}

func goalText(f Figure) string {
	switch {
	case f.Goal == 0:
		return ""
	case f.Met():
		return fmt.Sprintf("  goal %g: met", f.Goal)
	}
	return fmt.Sprintf("  goal %g: MISSED", f.Goal)
}

// measure is one of two things that are measured in turn.
type measure struct {
	what, unit string
	do         func(ctx context.Context) (float64, error)
}

// alternate measures two things in turn, round by round.
func (l *lab) alternate(ctx context.Context, this, other measure) (a, b Series, err error) {
	measured, err := l.inTurn(ctx, this, other)
	if err != nil {
		return a, b, err
	}
	return measured[0], measured[1], nil
}

// inTurn measures any number of things in turn, round by round.
func (l *lab) inTurn(ctx context.Context, things ...measure) ([]Series, error) {
	measured := make([]Series, len(things))
	for i, thing := range things {
		measured[i] = Series{What: thing.what, Unit: thing.unit}
	}
	for range l.scale.rounds {
		for i, thing := range things {
			value, err := thing.do(ctx)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", thing.what, err)
			}
			measured[i].add(value)
			l.say("  %-60s %10.1f %s", thing.what, value, thing.unit)
		}
	}
	return measured, nil
}

// compare makes the figure of two things measured in turn.
func (l *lab) compare(ctx context.Context, name string, goal float64, this, other measure) error {
	a, b, err := l.alternate(ctx, this, other)
	if err != nil {
		return err
	}
	l.figure(newFigure(name, goal, a, b))
	return nil
}

func (cfg Config) logger() *slog.Logger {
	if cfg.Log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return cfg.Log
}
