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
	width    int // of the terminal, in columns; 0 if unknown
	nextLine time.Time
	lastLine string
}

func newProgress(out io.Writer) *progress {
	p := &progress{out: out, nextLine: time.Now().Add(plainInterval)}
	file, ok := out.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return p
	}
	p.live = true
	if width, _, err := term.GetSize(int(file.Fd())); err == nil {
		p.width = width
	}
	return p
}

func (p *progress) show(totals crmdb.DemoTotalsRow, wire faultproxy.Stats) {
	line := fmt.Sprintf("%d of %d settled, %d requests, %d answers lost, %d replays",
		totals.Operations-totals.Open, totals.Operations, wire.Requests, wire.AnswersLost, wire.Replays)
	if totals.Failed > 0 {
		line += fmt.Sprintf(", %d failed", totals.Failed)
	}
	switch now := time.Now(); {
	case p.live:
		if p.width > 0 && len(line) >= p.width {
			line = line[:p.width-1] // a wrapped line can't be written over
		}
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
