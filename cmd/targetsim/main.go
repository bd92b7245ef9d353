// Command targetsim is a simulator of external targets, an e-invoicing gateway and a ledger, for trying out what an
// integration does when answers get lost. It counts its effects. See targetsim --help.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/alecthomas/kong"

	"invoicebridge/internal/target/targetsim"
)

type options struct {
	Listen    string                      `help:"Address to listen on. Port 0 takes a free one." default:"127.0.0.1:8090" env:"TARGETSIM_LISTEN"`
	State     string                      `help:"File of the durable state; made if it is not there. Without it, state ends with the program." type:"path" env:"TARGETSIM_STATE"`
	Token     string                      `help:"Bearer token that is asked for. Without it, none is." env:"TARGETSIM_TOKEN"`
	Seed      uint64                      `help:"Seed of the dice that faults are thrown with." default:"1"`
	Fault     map[targetsim.Fault]float64 `help:"Share of requests (0 to 1) that meet a fault; may be given several times. For the names see below." placeholder:"NAME=RATE"`
	KeyWindow time.Duration               `help:"How long the gateway honours a key." default:"24h"`
	Late      time.Duration               `help:"How much later than its answer accept-late takes effect." default:"30m"`
	Held      time.Duration               `help:"How long held, error and rejected-later stay undecided." default:"12h"`
	Hidden    time.Duration               `help:"How long hidden is not found." default:"10m"`
	Slow      time.Duration               `help:"How long a slow answer takes." default:"2s"`
}

const description = `Simulates two external targets and counts the effects it has for each external reference.

Gateway (honours Idempotency-Key for --key-window):
  POST /einvoice/documents?external_reference=R   GET /einvoice/documents?external_reference=R   GET /einvoice/documents/{id}
Ledger (no keys: every creation is one more entry; posting may be repeated):
  POST /ledger/entries   POST /ledger/entries/{id}/post   GET /ledger/entries?external_reference=R

What has happened, as JSON ("duplicates" must be 0):
  curl 127.0.0.1:8090/sim/effects      curl 127.0.0.1:8090/sim/requests      both take ?external_reference=R
What is to happen to the next requests of a reference ("*": of any):
  curl -d '{"external_reference":"R","faults":["accept-silent","lookup-html-404"]}' 127.0.0.1:8090/sim/script
Let time pass:
  curl -d '{"by":"30m"}' 127.0.0.1:8090/sim/advance`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "targetsim:", err)
		os.Exit(1)
	}
}

// errHelp ends run after help was shown.
var errHelp = errors.New("help was shown")

// run serves until ctx ends. It says on stdout where it listens once it does.
func run(ctx context.Context, args []string, stdout io.Writer) error {
	o, err := parse(args, stdout)
	if errors.Is(err, errHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	sim, err := targetsim.Open(targetsim.Config{
		Journal: o.State, Token: o.Token, KeyWindow: o.KeyWindow, Late: o.Late, Held: o.Held, Hidden: o.Hidden,
		Slow: o.Slow, Seed: o.Seed, Rates: o.Fault, Now: time.Now,
	})
	if err != nil {
		return err
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", o.Listen)
	if err != nil {
		return errors.Join(fmt.Errorf("%w (--listen takes another address)", err), sim.Close())
	}
	if _, err := fmt.Fprintf(stdout, "targetsim listens on http://%s\n", l.Addr()); err != nil {
		return errors.Join(err, l.Close(), sim.Close())
	}
	return sim.Serve(ctx, l)
}

func parse(args []string, stdout io.Writer) (options, error) {
	var o options
	helped := false
	parser, err := kong.New(&o, kong.Name("targetsim"), kong.Description(description+"\n\n"+faultList()),
		kong.Writers(stdout, stdout), kong.Exit(func(int) { helped = true }), kong.ConfigureHelp(kong.HelpOptions{WrapUpperBound: 140}))
	if err != nil {
		return o, err
	}
	_, err = parser.Parse(args)
	if helped {
		return o, errHelp
	}
	return o, err
}

func faultList() string {
	var b strings.Builder
	b.WriteString("Faults:\n")
	for _, f := range targetsim.About() {
		fmt.Fprintf(&b, "  %-18s %s\n", f.Fault, f.Does)
	}
	return b.String()
}
