package verify

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// startLimit bounds every wait for a program to start or to stop.
const startLimit = 60 * time.Second

// programs are the built binaries.
type programs struct{ dir string }

// check says which of the programs are missing.
func (p programs) check() error {
	for _, name := range []string{"erp-api", "crm-worker", "targetsim"} {
		if _, err := os.Stat(filepath.Join(p.dir, name)); err != nil {
			return fmt.Errorf("the program %s is not in %s: run make build first", name, p.dir)
		}
	}
	return nil
}

// clean is this process's environment without the services' own settings: what is checked must not depend on them.
func clean() []string {
	return slices.DeleteFunc(os.Environ(), func(entry string) bool {
		for _, prefix := range []string{"ERP_", "CRM_", "OTEL_", "LOG_", "ATTEMPT_", "SHUTDOWN_", "TARGETSIM_"} {
			if strings.HasPrefix(entry, prefix) {
				return true
			}
		}
		return false
	})
}

// command runs a program to its end and gives what it wrote to standard output. A program that ends with another status
// than 0 is an error that has what it said.
func (p programs) command(ctx context.Context, name string, env []string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(p.dir, name), args...)
	cmd.Env = append(clean(), env...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return strings.TrimSpace(stdout.String()), nil
}

// process is a program that serves.
type process struct {
	name, url string
	cmd       *exec.Cmd
	ended     chan struct{}
	log       *tail
}

var (
	serviceListens = regexp.MustCompile(`"msg":"listening".*"address":"([^"]+)"`)
	targetListens  = regexp.MustCompile(`^targetsim listens on http://(\S+)$`)
)

// serve starts a program and returns once it listens. Its end is the caller's: kill or stop.
func (p programs) serve(ctx context.Context, name string, listens *regexp.Regexp, env []string, args ...string) (*process, error) {
	s := &process{name: name, ended: make(chan struct{}), log: &tail{}}
	s.cmd = exec.CommandContext(context.WithoutCancel(ctx), filepath.Join(p.dir, name), args...)
	s.cmd.Env = append(append(clean(), "LOG_FORMAT=json"), env...)
	reader, writer := io.Pipe()
	s.cmd.Stdout, s.cmd.Stderr = writer, writer
	if err := s.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	listening := make(chan string, 1)
	go s.log.follow(reader, listens, listening)
	go func() {
		_ = s.cmd.Wait()
		_ = writer.Close()
		close(s.ended)
	}()
	limit := time.NewTimer(startLimit)
	defer limit.Stop()
	select {
	case address := <-listening:
		s.url = "http://" + address
		return s, nil
	case <-s.ended:
		return nil, fmt.Errorf("%s ended at its start: %s", name, s.log)
	case <-limit.C:
	case <-ctx.Done():
	}
	s.kill()
	return nil, errors.Join(fmt.Errorf("%s does not listen: %s", name, s.log), ctx.Err())
}

// kill is kill -9, and waits for the death. One that is dead stays so.
func (s *process) kill() {
	_ = s.cmd.Process.Kill()
	<-s.ended
}

// stop is SIGTERM, and kill -9 if that does not help.
func (s *process) stop() {
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	limit := time.NewTimer(startLimit)
	defer limit.Stop()
	select {
	case <-s.ended:
	case <-limit.C:
		s.kill()
	}
}

// tail keeps the last lines of a log.
type tail struct {
	mu    sync.Mutex
	lines []string
}

const tailLines = 10

func (t *tail) follow(from io.Reader, listens *regexp.Regexp, listening chan<- string) {
	scanner := bufio.NewScanner(from)
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		line := scanner.Text()
		if found := listens.FindStringSubmatch(line); found != nil {
			select {
			case listening <- found[1]:
			default:
			}
		}
		t.mu.Lock()
		t.lines = append(t.lines[max(0, len(t.lines)-tailLines+1):], line)
		t.mu.Unlock()
	}
	_, _ = io.Copy(io.Discard, from) // a line that is too long must not stop the program
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.Join(t.lines, "\n")
}
