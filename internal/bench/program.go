package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"invoicebridge/internal/fleet"
)

// program is a running service. Unlike fleet's it logs to a file and nobody reads along, which would be work for the
// processors that are measured.
type program struct {
	name    string
	address string
	debug   string // where its profiles are, if they were asked for
	log     string
	cmd     *exec.Cmd
	ended   chan struct{}
}

const (
	serveLimit = 60 * time.Second
	stopLimit  = 40 * time.Second
)

// start starts a service on a free port and returns once it is ready.
func (l *lab) start(ctx context.Context, name string, env []string) (*program, error) {
	ports, err := freePorts(ctx, 2)
	if err != nil {
		return nil, err
	}
	prefix := map[string]string{fleet.ERP: "ERP_", fleet.CRM: "CRM_"}[name]
	p := &program{name: name, address: ports[0], ended: make(chan struct{})}
	env = append(env, prefix+"LISTEN="+p.address)
	if l.config.Profiles != "" {
		p.debug = ports[1]
		env = append(env, prefix+"DEBUG_LISTEN="+p.debug)
	}
	log, err := os.CreateTemp(l.dir, name+"-*.log")
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }()
	p.log = log.Name()
	p.cmd = exec.CommandContext(context.WithoutCancel(ctx), filepath.Join(l.programs.Dir, name), "serve") //nolint:gosec // one of our own
	p.cmd.Env = append(fleet.Environment(), env...)
	p.cmd.Stdout, p.cmd.Stderr = log, log
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	go func() {
		_ = p.cmd.Wait()
		close(p.ended)
	}()
	if err := p.untilReady(ctx); err != nil {
		p.stop()
		return nil, fmt.Errorf("%s is not ready: %w: %s", name, err, lastLines(p.log, 10))
	}
	return p, nil
}

func (p *program) untilReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, serveLimit)
	defer cancel()
	return await(ctx, p.name+" is ready", 20*time.Millisecond, func(ctx context.Context) (bool, error) {
		select {
		case <-p.ended:
			return false, errors.New("it has ended")
		default:
		}
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+p.address+"/readyz", http.NoBody)
		if err != nil {
			return false, err
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return false, nil // it does not listen yet
		}
		defer func() { _ = response.Body.Close() }()
		return response.StatusCode == http.StatusOK, nil
	})
}

// stop ends a program in an orderly way, or by force, and removes its log.
func (p *program) stop() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	timer := time.NewTimer(stopLimit)
	defer timer.Stop()
	select {
	case <-p.ended:
	case <-timer.C:
		_ = p.cmd.Process.Kill()
		<-p.ended
	}
	_ = os.Remove(p.log)
}

// failure is what a program that has ended by itself said last; nil if it lives.
func (p *program) failure() error {
	select {
	case <-p.ended:
		return fmt.Errorf("%s has ended: %s", p.name, lastLines(p.log, 10))
	default:
		return nil
	}
}

var residentLine = regexp.MustCompile(`VmRSS:\s+(\d+) kB`)

// resident is how much memory the program has, in MiB.
func (p *program) resident(ctx context.Context) (float64, error) {
	pid := strconv.Itoa(p.cmd.Process.Pid)
	if status, err := os.ReadFile("/proc/" + pid + "/status"); err == nil {
		if found := residentLine.FindSubmatch(status); found != nil {
			kib, err := strconv.ParseFloat(string(found[1]), 64)
			return kib / 1024, err
		}
	}
	out, err := exec.CommandContext(ctx, "ps", "-o", "rss=", "-p", pid).Output()
	if err != nil {
		return 0, fmt.Errorf("memory of %s: %w", p.name, err)
	}
	kib, err := strconv.ParseFloat(strings.TrimSpace(string(out)), 64)
	return kib / 1024, err
}

// watchMemory gives the most memory that the program had until ctx ended.
func (p *program) watchMemory(ctx context.Context) (most float64) {
	for ctx.Err() == nil {
		if now, err := p.resident(context.WithoutCancel(ctx)); err == nil {
			most = max(most, now)
		}
		pause(ctx, 200*time.Millisecond)
	}
	return most
}

// profile keeps what the program's processors do in the next seconds, where that was asked for.
func (l *lab) profile(ctx context.Context, p *program, figure string) error {
	if p.debug == "" {
		return nil
	}
	seconds := max(1, int(l.scale.window.Seconds()))
	url := fmt.Sprintf("http://%s/debug/pprof/profile?seconds=%d", p.debug, seconds)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	profile, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(l.config.Profiles, figure+"-"+p.name+".pprof"), profile, 0o600)
}

// profiled keeps profiles of the programs under a load, beside what is measured.
func (l *lab) profiled(ctx context.Context, figure string, of measure, programs ...*program) error {
	if l.config.Profiles == "" {
		return nil
	}
	failed := make(chan error, len(programs))
	for _, p := range programs {
		go func() { failed <- l.profile(ctx, p, figure) }()
	}
	_, err := of.do(ctx)
	for range programs {
		err = errors.Join(err, <-failed)
	}
	return err
}

func addresses(programs []*program) []string {
	all := make([]string, len(programs))
	for n, p := range programs {
		all[n] = p.address
	}
	return all
}

// freePorts gives addresses that were free a moment ago.
func freePorts(ctx context.Context, n int) (addresses []string, err error) {
	for range n {
		listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer func() { _ = listener.Close() }()
		addresses = append(addresses, listener.Addr().String())
	}
	return addresses, nil
}
