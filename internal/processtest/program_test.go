package processtest

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// patience bounds every wait for another process; nothing is expected to come near it.
const patience = 60 * time.Second

// binaries are built once for the test run, as `make build` does.
var binaries = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "processtest")
	if err != nil {
		return "", err
	}
	root, err := moduleRoot()
	if err != nil {
		return "", err
	}
	build := exec.CommandContext(context.Background(), "go", "build", "-o", dir, "./cmd/erp-api", "./cmd/crm-worker", "./cmd/targetsim")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the programs: %w\n%s", err, out)
	}
	return dir, nil
})

func moduleRoot() (string, error) {
	_, file, _, ok := runtime.Caller(0)
	if !ok {
		return "", os.ErrNotExist
	}
	return filepath.Join(filepath.Dir(file), "..", ".."), nil
}

func TestMain(m *testing.M) {
	code := m.Run()
	if dir, err := binaries(); err == nil {
		_ = os.RemoveAll(dir)
	}
	os.Exit(code)
}

func binary(t testing.TB, name string) string {
	t.Helper()
	dir, err := binaries()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, name)
}

// command runs a program to its end and gives what it wrote to standard output.
func command(t testing.TB, name string, env []string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), binary(t, name), args...)
	cmd.Env = append(os.Environ(), env...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, stderr.String())
	}
	return strings.TrimSpace(string(out))
}

// process is a serving program.
type process struct {
	cmd  *exec.Cmd
	url  string
	log  *transcript
	done chan struct{}
}

// serve starts a program's "serve" on a free port and returns once it listens. It is killed at the test's end.
func serve(t testing.TB, name string, env ...string) *process {
	t.Helper()
	p := &process{log: &transcript{}, done: make(chan struct{})}
	p.cmd = exec.CommandContext(context.WithoutCancel(t.Context()), binary(t, name), "serve")
	p.cmd.Env = append(append(os.Environ(), "LOG_FORMAT=json", "LOG_LEVEL=info"), env...)
	stderr, err := p.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	listening := make(chan string, 1)
	go func() {
		defer close(p.done)
		p.log.follow(stderr, listening)
		_ = p.cmd.Wait()
	}()
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			t.Logf("log of %s:\n%s", name, p.log.tail())
		}
	})
	select {
	case addr := <-listening:
		p.url = "http://" + addr
	case <-p.done:
		t.Fatalf("%s ended at its start:\n%s", name, p.log.tail())
	case <-time.After(patience):
		t.Fatalf("%s does not listen:\n%s", name, p.log.tail())
	}
	return p
}

// kill is kill -9, and waits for the death.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.done
}

// stop is SIGTERM; it gives the exit status.
func (p *process) stop(t testing.TB) int {
	t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	select {
	case <-p.done:
	case <-time.After(patience):
		t.Fatalf("the program does not stop:\n%s", p.log.tail())
	}
	return p.cmd.ProcessState.ExitCode()
}

// transcript keeps what a program logs.
type transcript struct {
	mu    sync.Mutex
	lines []string
}

var listeningLine = regexp.MustCompile(`"msg":"listening".*"address":"([^"]+)"`)

func (l *transcript) follow(from io.Reader, listening chan<- string) {
	scanner := bufio.NewScanner(from)
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		line := scanner.Text()
		if m := listeningLine.FindStringSubmatch(line); m != nil {
			select {
			case listening <- m[1]:
			default:
			}
		}
		l.mu.Lock()
		l.lines = append(l.lines, line)
		l.mu.Unlock()
	}
}

func (l *transcript) tail() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.lines[max(0, len(l.lines)-40):], "\n")
}

// about counts the lines that hold all of the texts.
func (l *transcript) about(texts ...string) (lines int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, line := range l.lines {
		if !slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(line, text) }) {
			lines++
		}
	}
	return lines
}

// refused starts a program that must not serve, and gives what it says.
func refused(t testing.TB, name string, env ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary(t, name), "serve")
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	if err == nil || ctx.Err() != nil {
		t.Fatalf("%s serves: %s", name, out)
	}
	return string(out)
}

func wantText(t testing.TB, text, part string) {
	t.Helper()
	if !strings.Contains(text, part) {
		t.Errorf("%q is not in:\n%s", part, text)
	}
}
