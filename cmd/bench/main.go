// Command bench measures the built programs against what the database underneath allows. See bench --help and
// docs/performance.md.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"

	"invoicebridge/internal/bench"
)

type options struct {
	Only     []string `name:"only" env:"BENCH" placeholder:"PART,..." help:"Measure these parts only: ${parts}."`
	Short    bool     `help:"So little that the values mean nothing: to try the command."`
	Rounds   int      `env:"BENCH_ROUNDS" help:"Rounds of each measurement. Default: 3."`
	Large    int      `env:"BENCH_LARGE" help:"Invoices of the large database. Default: 5000000."`
	Data     string   `env:"BENCH_DATA" placeholder:"DIR" help:"A folder on a disk, with 25 GB of room, for the server's data while it runs. Default: /var/tmp."`
	Profiles string   `env:"BENCH_PROFILES" placeholder:"DIR" help:"Keep CPU profiles of the services there, taken beside the measured rounds."`
	Markdown string   `env:"BENCH_MARKDOWN" placeholder:"FILE" help:"Put the tables also into this file, between its two marker comments."`
	Programs string   `env:"BENCH_PROGRAMS" placeholder:"DIR" help:"Where the built programs are. Default: beside this one."`
}

const description = `How fast is this, measured against what the database underneath allows? Starts a PostgreSQL of its own with durable
settings and the built programs on it, measures in alternation, and prints medians with the least and the greatest, and
what each is a ratio to. The last line is one JSON object. The exit status is 0 unless something could not be measured: a
goal that is missed is marked in the table. Takes all of the machine for 20 to 25 minutes (docs/performance.md).`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

var errHelp = errors.New("help was shown")

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	o, err := parse(args, stdout)
	if errors.Is(err, errHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	if o.Programs == "" {
		self, err := os.Executable()
		if err != nil {
			return fmt.Errorf("where the programs are is not known, say so by --programs: %w", err)
		}
		o.Programs = filepath.Dir(self)
	}
	report, err := bench.Run(ctx, bench.Config{
		Programs: o.Programs, Only: o.Only, Smoke: o.Short, Rounds: o.Rounds, Large: o.Large, DataDir: o.Data, Profiles: o.Profiles,
		Progress: stderr, Log: slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
	})
	if err != nil {
		return err
	}
	if o.Markdown != "" {
		err = report.WriteInto(o.Markdown)
	}
	return errors.Join(report.Write(stdout), err, report.Err())
}

func parse(args []string, stdout io.Writer) (options, error) {
	var o options
	helped := false
	parser, err := kong.New(&o, kong.Name("bench"), kong.Description(description), kong.Writers(stdout, stdout),
		kong.Vars{"parts": strings.Join(bench.Parts(), ", ")}, kong.Exit(func(int) { helped = true }),
		kong.ConfigureHelp(kong.HelpOptions{WrapUpperBound: 120}))
	if err != nil {
		return o, err
	}
	_, err = parser.Parse(args)
	if helped {
		return o, errHelp
	}
	return o, err
}
