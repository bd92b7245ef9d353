package main

import (
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// bar shows progress where somebody is looking: on a terminal.
type bar struct {
	out        io.Writer
	name, what string
	bar        *progressbar.ProgressBar
}

// newBar makes a bar with a name, for some number of what.
func newBar(out io.Writer, name, what string) *bar {
	file, ok := out.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return &bar{}
	}
	return &bar{out: out, name: name, what: what}
}

// show is called with a growing done; total never changes.
func (b *bar) show(done, total int) {
	if b.out == nil {
		return
	}
	if b.bar == nil {
		b.bar = progressbar.NewOptions(total, progressbar.OptionSetWriter(b.out), progressbar.OptionSetDescription(b.name),
			progressbar.OptionShowCount(), progressbar.OptionSetItsString(b.what), progressbar.OptionShowIts(),
			progressbar.OptionThrottle(50*time.Millisecond), progressbar.OptionClearOnFinish())
	}
	_ = b.bar.Set(done) // what can't be drawn is not worth a failed command
}

// end leaves the line empty for what comes next.
func (b *bar) end() {
	if b.bar != nil {
		_ = b.bar.Exit()
		_ = b.bar.Clear()
	}
}
