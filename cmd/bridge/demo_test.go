package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"invoicebridge/internal/testdb"
)

// patience is for the whole program, on a machine that runs other tests beside it.
const patience = 2 * time.Minute

// program is what the program needs to run in a test: databases, a folder, a file of orders.
type program struct {
	variables map[string]string
	args      []string
}

func setup(t *testing.T) program {
	t.Helper()
	dir := t.TempDir()
	orders := filepath.Join(dir, "orders.jsonl")
	if err := os.WriteFile(orders, []byte(orderLines(40)), 0o600); err != nil {
		t.Fatal(err)
	}
	return program{
		variables: map[string]string{"ERP_DATABASE_URL": testdb.Empty(t), "CRM_DATABASE_URL": testdb.Empty(t)},
		args: []string{
			"--data-dir=" + filepath.Join(dir, "data"), "--orders=" + orders, "--erp-listen=127.0.0.1:0", "--crm-listen=127.0.0.1:0",
			// Enough of everything on a few orders; held answers take the CRM side's whole patience, so few of them.
			"--rate-reset=0.2", "--rate-hold=0.02", "--rate-cut=0.1", "--rate-bad-gateway=0.1", "--rate-duplicate=0.2",
			"--rate-delay=0.05", "--rate-refuse=0.1", "--delay=50ms",
		},
	}
}

func orderLines(n int) string {
	var lines strings.Builder
	for i := range n {
		fmt.Fprintf(&lines, `{"source":"test","order":"T-%d","currency":"EUR","issue_date":"2026-03-02",`+
			`"customer":{"name":"Customer %d","country":"DE"},`+
			`"lines":[{"sku":"P-1","quantity":"%d","unit_price":"10.00","vat_rate":"19","vat_category":"S"}]}`+"\n", i, i, i+1)
	}
	return lines.String()
}

func (p program) run(ctx context.Context, stdout io.Writer, more ...string) error {
	return run(ctx, append(append([]string(nil), p.args...), more...), variables(p.variables), stdout, io.Discard)
}

// once runs the demo to its end and gives the figures of its last line.
func (p program) once(t *testing.T, more ...string) figures {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var out bytes.Buffer
	if err := p.run(ctx, &out, append(more, "--once")...); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	lines := strings.Split(strings.TrimRight(out.String(), "\n"), "\n")
	var f figures
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &f, json.RejectUnknownMembers(true)); err != nil {
		t.Fatalf("the last line is not the figures: %v\n%s", err, out.String())
	}
	return f
}

func TestEveryOrderIsInvoicedOnceThroughAllFaults(t *testing.T) {
	t.Parallel()
	p := setup(t)
	p.variables = nil // on the embedded server, as a newcomer does
	first := p.once(t)
	if first.Orders != 40 || first.Operations != 40 || first.Invoices != 40 || first.Duplicates != 0 || first.Missing != 0 {
		t.Errorf("figures: %+v", first)
	}
	if first.Requests <= 40 || first.AnswersLost == 0 || first.Replays == 0 {
		t.Errorf("the faults left no trace: %+v", first)
	}
	second := p.once(t)
	if want := (figures{Orders: 40, Operations: 40, Invoices: 40}); second != want {
		t.Errorf("the second run on the same data: %+v, want %+v", second, want)
	}
}

func TestWithoutFaultsEveryRequestCounts(t *testing.T) {
	t.Parallel()
	got := setup(t).once(t, "--no-faults")
	if want := (figures{Orders: 40, Operations: 40, Requests: 40, Invoices: 40}); got != want {
		t.Errorf("figures: %+v, want %+v", got, want)
	}
}

func TestTakenPortIsNamedWithTheFlagThatHelps(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	_, port, _ := net.SplitHostPort(taken.Addr().String())
	for _, flag := range []string{"erp-listen", "crm-listen", "proxy-listen"} {
		dir := filepath.Join(t.TempDir(), "data")
		err := run(t.Context(), []string{"--data-dir=" + dir, "--erp-listen=127.0.0.1:0", "--crm-listen=127.0.0.1:0",
			"--" + flag + "=127.0.0.1:" + port}, variables(nil), io.Discard, io.Discard)
		if err == nil || !strings.Contains(err.Error(), "port "+port) || !strings.Contains(err.Error(), "--"+flag+"=") {
			t.Errorf("got %v", err)
		}
		if _, err := os.Stat(dir); err == nil {
			t.Error("data were made all the same")
		}
	}
}

func TestUnsettledOrdersAreAnErrorOnceTimeIsUp(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	err := setup(t).run(t.Context(), &out, "--once", "--settle-timeout=1ms", "--rate-refuse=1", "--rate-reset=0",
		"--rate-hold=0", "--rate-cut=0", "--rate-bad-gateway=0", "--rate-duplicate=0", "--rate-delay=0")
	if err == nil || !strings.Contains(err.Error(), "40 operations are still open after 1ms") ||
		!strings.Contains(err.Error(), "40 invoices are missing") {
		t.Errorf("got %v", err)
	}
	if !strings.HasSuffix(out.String(), `"duplicates":0,"missing":40}`+"\n") {
		t.Errorf("the figures are not told:\n%s", out.String())
	}
}

func TestInterruptedBeforeTheFiguresIsAnErrorOnlyForWhoWantsThem(t *testing.T) {
	t.Parallel()
	for _, more := range [][]string{nil, {"--once"}} {
		ctx, interrupt := context.WithCancel(t.Context())
		out := &watched{onWrite: func(text string) {
			if strings.Contains(text, "CRM ") { // everything is up
				interrupt()
			}
		}}
		err := setup(t).run(ctx, out, more...)
		if want := more != nil; errors.Is(err, errInterrupted) != want || (err != nil) != want {
			t.Errorf("with %v: %v", more, err)
		}
		interrupt()
	}
}

func TestRefusedOrdersAreTold(t *testing.T) {
	t.Parallel()
	p := setup(t)
	bad := filepath.Join(t.TempDir(), "bad.jsonl")
	if err := os.WriteFile(bad, []byte("{\"source\":\"test\",\"oder\":\"T-1\"}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	err := p.run(t.Context(), io.Discard, "--once", "--orders="+bad)
	if err == nil || !strings.Contains(err.Error(), "bad.jsonl") {
		t.Errorf("got %v", err)
	}
}

// TestPrintedCommandsWork starts the program as a person does, pastes what it prints, and ends it by a signal's context.
func TestPrintedCommandsWork(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"sh", "curl"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Skipf("no %s on this machine", name)
		}
	}
	ctx, interrupt := context.WithTimeout(t.Context(), patience)
	defer interrupt()
	out := &watched{}
	ended := make(chan error, 1)
	go func() { ended <- setup(t).run(ctx, out) }()
	for !strings.Contains(out.String(), "/docs") {
		select {
		case err := <-ended:
			t.Fatalf("ended early: %v\n%s", err, out.String())
		case <-time.After(10 * time.Millisecond):
		}
	}
	_, commands, _ := strings.Cut(out.String(), "Everything stays up")
	_, commands, _ = strings.Cut(commands, "\n")
	commands, _, _ = strings.Cut(commands, "  The ERP's contract")
	invoice := regexp.MustCompile(`(?m)^  curl -si "\$ERP/v1/invoices" -H .*\\\n.*$`).FindString(commands)
	commands = strings.Replace(commands, invoice, invoice+"\n"+invoice, 1) // "once more the same"

	answer, err := exec.CommandContext(ctx, "sh", "-c", commands).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, answer)
	}
	var statuses []string
	for _, m := range regexp.MustCompile(`HTTP/1\.1 (\d+)`).FindAllStringSubmatch(string(answer), -1) {
		statuses = append(statuses, m[1])
	}
	if got := strings.Join(statuses, " "); got != "201 201 422 409 200 200 201" {
		t.Errorf("statuses %s\n%s", got, answer)
	}
	if n := strings.Count(strings.ToLower(string(answer)), "idempotent-replayed: true"); n != 1 {
		t.Errorf("%d replays, want 1\n%s", n, answer)
	}
	interrupt()
	if err := <-ended; err != nil {
		t.Errorf("interrupted, it ends with %v", err)
	}
}

// watched is a buffer that can be read while it is written.
type watched struct {
	onWrite func(text string)

	mu  sync.Mutex
	buf bytes.Buffer
}

func (w *watched) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.onWrite != nil {
		w.onWrite(string(p))
	}
	return w.buf.Write(p)
}

func (w *watched) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.buf.String()
}
