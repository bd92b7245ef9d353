package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/term"

	"invoicebridge/internal/crmdb"
	"invoicebridge/internal/faultproxy"
)

const (
	settlePoll    = 100 * time.Millisecond
	plainInterval = 2 * time.Second // between lines where there is no terminal
)

// progress shows how far the demo is: one line that is written over on a terminal, else a line now and then.
type progress struct {
	out      io.Writer
	live     bool
	nextLine time.Time
	lastLine string
}

func newProgress(out io.Writer) *progress {
	file, ok := out.(*os.File)
	return &progress{out: out, live: ok && term.IsTerminal(int(file.Fd())), nextLine: time.Now().Add(plainInterval)}
}

func (p *progress) show(totals crmdb.DemoTotalsRow, wire faultproxy.Stats) {
	line := fmt.Sprintf("%d of %d operations settled (%d failed), %d requests, %d answers lost, %d replays",
		totals.Operations-totals.Open, totals.Operations, totals.Failed, wire.Requests, wire.AnswersLost, wire.Replays)
	switch now := time.Now(); {
	case p.live:
		fmt.Fprintf(p.out, "\r\x1b[K%s", line)
	case now.After(p.nextLine) && line != p.lastLine:
		p.nextLine, p.lastLine = now.Add(plainInterval), line
		fmt.Fprintln(p.out, line)
	}
}

// end leaves the terminal's line empty for what comes next.
func (p *progress) end() {
	if p.live {
		fmt.Fprint(p.out, "\r\x1b[K")
	}
}

// settle waits until no operation of the demo is open, and at most for the limit. The number is of those still open.
func (p *progress) settle(ctx context.Context, crm *pgxpool.Pool, wire func() faultproxy.Stats, limit time.Duration) (int64, error) {
	defer p.end()
	deadline := time.Now().Add(limit)
	tick := time.NewTicker(settlePoll)
	defer tick.Stop()
	for {
		totals, err := crmdb.New(crm).DemoTotals(ctx, demoTenant)
		if err != nil {
			return 0, fmt.Errorf("ask how far the operations are: %w", err)
		}
		p.show(totals, wire())
		if totals.Open == 0 || time.Now().After(deadline) {
			return totals.Open, nil
		}
		select {
		case <-ctx.Done():
			return totals.Open, context.Cause(ctx)
		case <-tick.C:
		}
	}
}
