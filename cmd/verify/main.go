// Command verify says whether invoicebridge, or another implementation of POST /v1/invoices, may be put to work. See
// verify --help.
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
	"syscall"

	"github.com/alecthomas/kong"

	"invoicebridge/internal/verify"
)

type options struct {
	ERPURL   []string `name:"erp-url" env:"ERP_URL" placeholder:"URL" help:"Address of a running implementation of POST /v1/invoices; several, separated by commas, if it has replicas. Only the checks that need nothing but the contract are made, and their invoices stay there."`
	Token    string   `env:"TOKEN" help:"Its bearer token, of a tenant whose books may be filled with invoices of the source \"verify\"."`
	Programs string   `env:"VERIFY_PROGRAMS" placeholder:"DIR" help:"Where the built programs are. Default: beside this one."`
}

const description = `May this be put to work? Makes eight checks and says for each how many invoices there have to be and how many there are.
Without an address it starts the built programs for itself, two replicas of each service on a PostgreSQL of its own, and
kills, cuts and repeats. The exit status is 0 only if nothing is missing, doubled or otherwise than documented
(docs/verification.md).`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "verify:", err)
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
	progress := func(check string) { fmt.Fprintln(stderr, "checking:", check) }
	rows, err := o.rows(ctx, stderr, progress)
	if err != nil {
		return err
	}
	return verify.Report(stdout, rows)
}

func (o options) rows(ctx context.Context, stderr io.Writer, progress func(string)) ([]verify.Row, error) {
	if len(o.ERPURL) > 0 {
		return verify.Foreign{URLs: o.ERPURL, Token: o.Token, Progress: progress}.Run(ctx)
	}
	if o.Programs == "" {
		self, err := os.Executable()
		if err != nil {
			return nil, fmt.Errorf("where the programs are is not known, say so by --programs: %w", err)
		}
		o.Programs = filepath.Dir(self)
	}
	log := slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	return verify.Own{Programs: o.Programs, Log: log, Progress: progress}.Run(ctx)
}

func parse(args []string, stdout io.Writer) (options, error) {
	var o options
	helped := false
	parser, err := kong.New(&o, kong.Name("verify"), kong.Description(description), kong.Writers(stdout, stdout),
		kong.Exit(func(int) { helped = true }), kong.ConfigureHelp(kong.HelpOptions{WrapUpperBound: 120}))
	if err != nil {
		return o, err
	}
	_, err = parser.Parse(args)
	switch {
	case helped:
		return o, errHelp
	case err == nil && len(o.ERPURL) > 0 && o.Token == "":
		return o, errors.New("with --erp-url a --token (TOKEN) is needed")
	}
	return o, err
}
