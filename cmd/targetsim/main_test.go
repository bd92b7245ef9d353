package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"invoicebridge/internal/target"
	"invoicebridge/internal/target/einvoice"
	"invoicebridge/internal/target/ledger"
	"invoicebridge/internal/target/targetsim"
)

const patience = 30 * time.Second

// TestMain lets the test's own binary be the program: a process that can be killed.
func TestMain(m *testing.M) {
	if os.Getenv("TARGETSIM_BE_THE_PROGRAM") != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// process is a running targetsim.
type process struct {
	cmd *exec.Cmd
	url string
}

func start(t *testing.T, args ...string) *process {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], append([]string{"--listen", "127.0.0.1:0"}, args...)...)
	cmd.Env = append(os.Environ(), "TARGETSIM_BE_THE_PROGRAM=1")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("the program has not said where it listens: %v", err)
	}
	_, url, ok := strings.Cut(strings.TrimSpace(line), " on ")
	if !ok {
		t.Fatalf("got %q, want the address", line)
	}
	return &process{cmd, url}
}

func (p *process) kill(t *testing.T) {
	t.Helper()
	if err := p.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = p.cmd.Wait() // says "killed"
}

func (p *process) effects(t *testing.T) targetsim.Summary {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.url+"/sim/effects", nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	var sum targetsim.Summary
	if err := json.Unmarshal(body, &sum); err != nil {
		t.Fatalf("%v in %s", err, body)
	}
	return sum
}

type sender interface {
	Send(ctx context.Context, s target.Submission) target.Sent
}

func clients(t *testing.T, url string) []sender {
	t.Helper()
	e, err := einvoice.New(einvoice.Config{BaseURL: url + "/einvoice", Token: target.NewSecret("hush"), Timeout: patience, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	l, err := ledger.New(ledger.Config{BaseURL: url + "/ledger", Token: target.NewSecret("hush"), Timeout: patience, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	t.Cleanup(l.Close)
	return []sender{e, l}
}

func submission(reference string) target.Submission {
	return target.Submission{Key: reference, Reference: reference, Number: reference, Document: fmt.Appendf(nil, `{"number":%q}`, reference)}
}

func TestKillLosesNothingThatWasAcknowledged(t *testing.T) {
	t.Parallel()
	state := filepath.Join(t.TempDir(), "state.jsonl")
	p := start(t, "--state", state)
	var mu sync.Mutex
	acknowledged := map[string]string{} // external reference to the target's
	enough := make(chan struct{})
	var once sync.Once
	var wg sync.WaitGroup
	for worker, c := range clients(t, p.url) {
		wg.Go(func() {
			for i := 0; ; i++ {
				reference := fmt.Sprintf("op-%d-%d", worker, i)
				sent := c.Send(t.Context(), submission(reference))
				if !sent.Registered() {
					return // the program is dead
				}
				mu.Lock()
				acknowledged[reference] = sent.Reference
				if len(acknowledged) >= 40 {
					once.Do(func() { close(enough) })
				}
				mu.Unlock()
			}
		})
	}
	<-enough
	p.kill(t) // while both are sending
	wg.Wait()

	again := start(t, "--state", state)
	counts := map[string]int{}
	for _, e := range again.effects(t).Items {
		counts[e.ExternalReference] += e.Count
	}
	gateway := clients(t, again.url)[0]
	for reference, registered := range acknowledged {
		if counts[reference] != 1 {
			t.Errorf("%s was acknowledged and counts %d", reference, counts[reference])
		}
		if strings.HasPrefix(reference, "op-0-") {
			if sent := gateway.Send(t.Context(), submission(reference)); sent.Reference != registered {
				t.Errorf("%s: the key gives %q, want %q as before", reference, sent.Reference, registered)
			}
		}
	}
	// At most the two requests in flight may have had their effect without an answer.
	if extra := len(counts) - len(acknowledged); extra < 0 || extra > 2 {
		t.Errorf("%d references that were not acknowledged, want at most 2", extra)
	}
}

func TestATermSignalStopsItGracefully(t *testing.T) {
	t.Parallel()
	p := start(t, "--fault", "accept-silent=1")
	sent := make(chan target.Sent, 1)
	gateway := clients(t, p.url)[0]
	go func() { sent <- gateway.Send(t.Context(), submission("op-1")) }()
	for deadline := time.Now().Add(patience); p.effects(t).Effects == 0; {
		if time.Now().After(deadline) {
			t.Fatal("the request has not arrived")
		}
		<-time.After(time.Millisecond)
	}
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Wait(); err != nil {
		t.Errorf("got %v, want exit status 0", err)
	}
	if got := <-sent; got.Outcome != target.Lost {
		t.Errorf("got %+v", got)
	}
}

func TestHelpNamesEveryFaultAndHowToReadTheCounts(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	if err := run(t.Context(), []string{"--help"}, &out); err != nil {
		t.Fatal(err)
	}
	for _, f := range targetsim.About() {
		if !strings.Contains(out.String(), f.Fault) {
			t.Errorf("%s is not in the help", f.Fault)
		}
	}
	for _, word := range []string{"/sim/effects", "/sim/script", "/sim/advance", "--state", "--key-window"} {
		if !strings.Contains(out.String(), word) {
			t.Errorf("%s is not in the help", word)
		}
	}
}

func TestWrongArgumentsEndWithASentence(t *testing.T) {
	t.Parallel()
	for says, args := range map[string][]string{
		`no fault "nonsense"`: {"--fault", "nonsense=0.5"},
		"between 0 and 1":     {"--fault", "held=2"},
		"--listen":            {"--listen", "127.0.0.1:nonsense"},
		"unknown flag":        {"--nonsense"},
		"state":               {"--state", t.TempDir()},
	} {
		if err := run(t.Context(), args, io.Discard); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v: got %v, want an error that says %q", args, err, says)
		}
	}
}
