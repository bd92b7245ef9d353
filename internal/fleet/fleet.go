// Package fleet runs the built programs as processes, to be stopped, killed, frozen and started again by whoever tries
// what becomes of the work then.
package fleet

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

// The programs.
const (
	ERP       = "erp-api"
	CRM       = "crm-worker"
	TargetSim = "targetsim"
)

// startLimit bounds every wait for a program to start or to stop.
const startLimit = 60 * time.Second

// Programs are the built binaries in a folder.
type Programs struct{ Dir string }

// Check says which of the programs are missing.
func (p Programs) Check() error {
	for _, name := range []string{ERP, CRM, TargetSim} {
		if _, err := os.Stat(filepath.Join(p.Dir, name)); err != nil {
			return fmt.Errorf("the program %s is not in %s: run make build first", name, p.Dir)
		}
	}
	return nil
}

// Build builds the programs into a folder, with further flags of go build. It is for tests: it needs Go, and this module as
// the one it is called in.
func Build(ctx context.Context, dir string, flags ...string) (Programs, error) {
	const module = "invoicebridge"
	args := append(append([]string{"build", "-o", dir}, flags...), module+"/cmd/"+ERP, module+"/cmd/"+CRM, module+"/cmd/"+TargetSim)
	if out, err := exec.CommandContext(ctx, "go", args...).CombinedOutput(); err != nil {
		return Programs{}, fmt.Errorf("build the programs: %w\n%s", err, out)
	}
	return Programs{Dir: dir}, nil
}

// Administer migrates a service's database and makes a tenant with two tokens, of the roles writer and admin.
func (p Programs) Administer(ctx context.Context, program string, env []string, tenant string) (writer, admin string, err error) {
	for _, args := range [][]string{{"migrate", "up"}, {"tenant", "create", tenant, "--name", tenant}} {
		if _, err := p.Command(ctx, program, env, args...); err != nil {
			return "", "", err
		}
	}
	for role, token := range map[string]*string{"writer": &writer, "admin": &admin} {
		*token, err = p.Command(ctx, program, env, "token", "create", "--tenant", tenant, "--role", role, "--label", role)
		if err != nil {
			return "", "", err
		}
	}
	return writer, admin, nil
}

// Environment is this process's environment without the services' own settings: what is tried must not depend on them.
func Environment() []string {
	return slices.DeleteFunc(os.Environ(), func(entry string) bool {
		for _, prefix := range []string{"ERP_", "CRM_", "OTEL_", "LOG_", "ATTEMPT_", "SHUTDOWN_", "TARGETSIM_"} {
			if strings.HasPrefix(entry, prefix) {
				return true
			}
		}
		return false
	})
}

// Command runs a program to its end and gives what it wrote to standard output. A program that ends with another status
// than 0 is an error that has what it said.
func (p Programs) Command(ctx context.Context, name string, env []string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(p.Dir, name), args...)
	cmd.Env = append(Environment(), env...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return strings.TrimSpace(stdout.String()), nil
}

// Process is a program that serves.
type Process struct {
	Name string
	// Address is where it listens, as host:port.
	Address string

	cmd   *exec.Cmd
	ended chan struct{}
	log   *tail
}

// URL is the process's address for HTTP.
func (s *Process) URL() string { return "http://" + s.Address }

var (
	serviceListens = regexp.MustCompile(`"msg":"listening".*"address":"([^"]+)"`)
	targetListens  = regexp.MustCompile(`^targetsim listens on http://(\S+)$`)
)

// Serve starts a program and returns once it listens. Its end is the caller's: Kill or Stop. env has what it is told, with
// the address to listen on; that of the simulator of targets is listen.
func (p Programs) Serve(ctx context.Context, name, listen string, env []string) (*Process, error) {
	args, listens := []string{"serve"}, serviceListens
	switch name {
	case TargetSim:
		args, listens = []string{"--listen", listen}, targetListens
	case ERP:
		env = append([]string{"ERP_LISTEN=" + listen}, env...)
	case CRM:
		env = append([]string{"CRM_LISTEN=" + listen}, env...)
	}
	s := &Process{Name: name, ended: make(chan struct{}), log: &tail{}}
	s.cmd = exec.CommandContext(context.WithoutCancel(ctx), filepath.Join(p.Dir, name), args...)
	s.cmd.Env = append(append(Environment(), "LOG_FORMAT=json"), env...)
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
		s.Address = address
		return s, nil
	case <-s.ended:
		return nil, fmt.Errorf("%s ended at its start: %s", name, s.log)
	case <-limit.C:
	case <-ctx.Done():
	}
	s.Kill()
	return nil, errors.Join(fmt.Errorf("%s does not listen: %s", name, s.log), ctx.Err())
}

// PID is the process's number.
func (s *Process) PID() int { return s.cmd.Process.Pid }

// Kill is kill -9, and waits for the death. One that is dead stays so.
func (s *Process) Kill() {
	_ = s.cmd.Process.Kill()
	<-s.ended
}

// Signal sends one. A process that is dead gets none.
func (s *Process) Signal(signal os.Signal) { _ = s.cmd.Process.Signal(signal) }

// Ended is closed when the process is dead.
func (s *Process) Ended() <-chan struct{} { return s.ended }

// Log is the end of what the process wrote.
func (s *Process) Log() string { return s.log.String() }

// LinesWith counts the lines written of late that hold all of the texts.
func (s *Process) LinesWith(texts ...string) int { return s.log.with(texts) }

// Stop is SIGTERM, and kill -9 if that does not help. It gives the exit status; -1 is that of a process that was killed.
func (s *Process) Stop() int {
	s.Signal(syscall.SIGTERM)
	limit := time.NewTimer(startLimit)
	defer limit.Stop()
	select {
	case <-s.ended:
	case <-limit.C:
		s.Kill()
	}
	return s.cmd.ProcessState.ExitCode()
}

// tail keeps the last lines of a log, and shows the very last.
type tail struct {
	mu    sync.Mutex
	lines []string
}

const (
	keptLines  = 5000
	shownLines = 20
)

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
		t.lines = append(t.lines[max(0, len(t.lines)-keptLines+1):], line)
		t.mu.Unlock()
	}
	_, _ = io.Copy(io.Discard, from) // a line that is too long must not stop the program
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.Join(t.lines[max(0, len(t.lines)-shownLines):], "\n")
}

func (t *tail) with(texts []string) (lines int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, line := range t.lines {
		if !slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(line, text) }) {
			lines++
		}
	}
	return lines
}
