// Command bridge runs everything in one process, for a first look: an embedded PostgreSQL, both services, and between
// them a proxy with the faults of a real network. It carries the example orders over, counts what became of them on
// both sides, and stays up.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the program at once
	err := run(ctx, os.Args[1:], os.Getenv, os.Stdout, os.Stderr)
	if err != nil && !errors.Is(err, errHelp) {
		fmt.Fprintln(os.Stderr, "bridge:", err)
		os.Exit(1)
	}
}
