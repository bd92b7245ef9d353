// Command chaos runs the built programs under load while everything that may happen happens at any time, and checks
// afterwards what must be true whatever happened. See chaos --help and docs/verification.md.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/alecthomas/kong"

	"invoicebridge/internal/chaos"
	"invoicebridge/internal/fleet"
)

type commands struct {
	Run     run     `cmd:"" default:"withargs" help:"Disturb and check. The exit status is 0 only if no rule was broken."`
	Overlay overlay `cmd:"" help:"Write what go build -overlay needs to build the programs with a wrong clock."`
}

type run struct {
	Duration time.Duration `env:"DURATION" default:"1m" help:"How long to disturb. What was begun is then brought to its end, which takes a minute or two."`
	Seed     uint64        `env:"SEED" help:"Decides what happens when; 0 takes any, and says which."`
	History  string        `placeholder:"FILE" help:"Write every request and answer there, and what else happened, as lines of JSON. Default: chaos-SEED.jsonl in the folder artefacts, or \"none\"."`
	Programs string        `placeholder:"DIR" help:"Where the programs are. Default: beside this one."`
	Other    string        `placeholder:"DIR" help:"Another build of the programs, for rolling restarts. Default: the folder other beside this program, else the programs themselves."`
	Skewed   string        `placeholder:"DIR" help:"A build with a wrong clock. Default: the folder skewed beside this program, if it is there."`
}

type overlay struct {
	Dir string `arg:"" help:"Folder to write to."`
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := start(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "chaos:", err)
		os.Exit(1)
	}
}

func start(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	var c commands
	helped := false
	parser, err := kong.New(&c, kong.Name("chaos"), kong.Writers(stdout, stdout), kong.Exit(func(int) { helped = true }),
		kong.Description("Two ERPs, two workers, targets and a PostgreSQL server, under load, while processes are killed, frozen and "+
			"replaced, the database is stopped at once, connections are cut, and operators press buttons."))
	if err != nil {
		return err
	}
	selected, err := parser.Parse(args)
	if helped {
		return nil
	}
	if err != nil {
		return err
	}
	selected.BindTo(ctx, (*context.Context)(nil))
	return selected.Run(&output{stdout, stderr})
}

type output struct{ stdout, stderr io.Writer }

// Run makes one run.
func (r *run) Run(ctx context.Context, out *output) error {
	here := ""
	if self, err := os.Executable(); err == nil {
		here = filepath.Dir(self)
	}
	o := chaos.Options{
		Programs: fleet.Programs{Dir: first(r.Programs, here)}, Duration: r.Duration, Seed: r.Seed,
		Progress: func(text string) { fmt.Fprintln(out.stderr, text) },
	}
	o.Other.Dir = first(r.Other, there(here, "other"), o.Programs.Dir)
	o.Skewed.Dir = first(r.Skewed, there(here, "skewed"))
	if o.Seed == 0 {
		o.Seed = rand.Uint64N(1_000_000) + 1
	}
	switch r.History {
	case "none":
	case "":
		if err := os.MkdirAll("artefacts", 0o755); err != nil {
			return err
		}
		o.HistoryFile = filepath.Join("artefacts", fmt.Sprintf("chaos-%d.jsonl", o.Seed))
	default:
		o.HistoryFile = r.History
	}
	fmt.Fprintf(out.stderr, "seed %d, %v\n", o.Seed, o.Duration)
	result, err := chaos.Run(ctx, o)
	if err != nil {
		return errors.Join(err, ctx.Err())
	}
	return result.Report(out.stdout)
}

// Run writes the overlay.
func (o *overlay) Run(ctx context.Context) error { return chaos.WriteSkewOverlay(ctx, o.Dir) }

// first is the first text that is not empty.
func first(texts ...string) string {
	for _, text := range texts {
		if text != "" {
			return text
		}
	}
	return ""
}

// there is a folder, or "" if it is not there.
func there(parent, name string) string {
	dir := filepath.Join(parent, name)
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return ""
	}
	return dir
}
