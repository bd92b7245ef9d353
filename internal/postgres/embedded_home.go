package postgres

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// home is the folder of an embedded server:
//
//	lock         held by the program
//	password     of the superuser, mode 0600
//	data/        PostgreSQL's own folder
//	server.log   what the server says
//	.s.PGSQL...  its socket, if the path is short enough for one
type home struct {
	dir       string
	owner     owner
	socketDir string
}

// rootHome is where the server lives for root if the wanted folder is closed to the server's user.
const rootHome = "/var/lib/invoicebridge"

func (h home) dataDir() string       { return filepath.Join(h.dir, "data") }
func (h home) lockFile() string      { return filepath.Join(h.dir, "lock") }
func (h home) passwordFile() string  { return filepath.Join(h.dir, "password") }
func (h home) serverLogPath() string { return filepath.Join(h.dir, "server.log") }

// openHome makes the folder ready, or for root the substitute for a folder its server can't reach.
func openHome(ctx context.Context, cfg EmbeddedConfig, log *slog.Logger) (home, error) {
	dir, err := filepath.Abs(cfg.Dir)
	if err != nil {
		return home{}, fmt.Errorf("data folder: %w", err)
	}
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	h, err := homeIn(ctx, dir)
	if cfg.temporary || !errors.Is(err, errUnreachable) {
		return h, err
	}
	sum := sha256.Sum256([]byte(dir))
	substitute := filepath.Join(cfg.rootHome, filepath.Base(dir)+"-"+hex.EncodeToString(sum[:4]))
	log.Warn("the data folder can't be reached by the user the server must run as; the data live elsewhere",
		"wanted", dir, "used", substitute, "reason", err)
	return homeIn(ctx, substitute)
}

func homeIn(ctx context.Context, dir string) (home, error) {
	h := home{dir: dir}
	if err := h.refuseForeign(); err != nil {
		return home{}, err
	}
	var err error
	if h.owner, err = serverOwner(h.dataDir()); err != nil {
		return home{}, err
	}
	if err := h.owner.prepareHome(ctx, dir); err != nil {
		return home{}, err
	}
	return h, nil
}

// refuseForeign keeps a mistaken setting from closing, or giving away, a folder that holds something else.
func (h home) refuseForeign() error {
	entries, err := os.ReadDir(h.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the data folder (does it belong to another user?): %w", err)
	}
	if _, err := os.Lstat(h.lockFile()); err != nil && len(entries) > 0 {
		return fmt.Errorf("%s holds other files (%s): the server wants a folder of its own", h.dir, entries[0].Name())
	}
	return nil
}

// programs finds those that fit the data, if there are data.
func (h home) programs(ctx context.Context, s Search) (Programs, error) {
	text, err := os.ReadFile(filepath.Join(h.dataDir(), "PG_VERSION"))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return FindPrograms(ctx, s)
	case err != nil:
		return Programs{}, fmt.Errorf("read the data's version (do they belong to another user?): %w", err)
	}
	if s.Major, err = strconv.Atoi(strings.TrimSpace(string(text))); err != nil {
		return Programs{}, fmt.Errorf("the data's version in %s: %w", h.dataDir(), err)
	}
	p, err := FindPrograms(ctx, s)
	if err != nil {
		return Programs{}, fmt.Errorf("%s was made by PostgreSQL %d: install that version, or remove the folder to "+
			"begin anew: %w", h.dataDir(), s.Major, err)
	}
	return p, nil
}

// ensurePassword reads the superuser's password or makes it up. It is written before the data are made, so that
// there are never data without it.
func (h home) ensurePassword() (string, error) {
	text, err := os.ReadFile(h.passwordFile())
	if err == nil {
		return strings.TrimSpace(string(text)), nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("read the password: %w", err)
	}
	if _, err := os.Stat(h.dataDir()); err == nil {
		return "", fmt.Errorf("%s is missing, but %s holds data made with it", h.passwordFile(), h.dataDir())
	}
	password := rand.Text()
	if err := h.writePassword(password); err != nil {
		return "", fmt.Errorf("write the password: %w", err)
	}
	return password, nil
}

// writePassword never leaves half a file. It belongs to the server's user: initdb reads it.
func (h home) writePassword(password string) error {
	draft := h.passwordFile() + ".new"
	if err := os.RemoveAll(draft); err != nil {
		return err
	}
	f, err := os.OpenFile(draft, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(password + "\n")
	if err = errors.Join(err, h.owner.give(draft), f.Close()); err != nil {
		return err
	}
	return os.Rename(draft, h.passwordFile())
}

// ensureData makes the data folder by initdb under another name first: what a killed initdb leaves is never taken
// for data.
func (h home) ensureData(ctx context.Context, p Programs, sync bool) error {
	if _, err := os.Stat(h.dataDir()); err == nil {
		return nil
	}
	draft := h.dataDir() + ".new"
	if err := os.RemoveAll(draft); err != nil {
		return fmt.Errorf("remove a half-made data folder: %w", err)
	}
	args := []string{
		"--pgdata=" + draft, "--username=" + superuser, "--pwfile=" + h.passwordFile(), "--auth=scram-sha-256",
		"--encoding=UTF8", "--no-instructions",
	}
	if !sync {
		args = append(args, "--no-sync")
	}
	var err error
	for _, locale := range localeArgs(p) {
		if err = h.initdb(ctx, p, append(slices.Clone(args), locale...)); err == nil {
			err = os.Rename(draft, h.dataDir())
			break
		}
		if ctx.Err() != nil {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("make the data folder: %w", err)
	}
	return nil
}

func (h home) initdb(ctx context.Context, p Programs, args []string) error {
	var out bytes.Buffer
	cmd := h.owner.command(context.WithoutCancel(ctx), p.Initdb(), args...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = h.dir, serverEnv(), &out, &out
	initdb, err := startTied(cmd)
	if err != nil {
		return err
	}
	select {
	case <-initdb.exited:
	case <-ctx.Done():
		initdb.signal(syscall.SIGINT) // it removes what it has made
		<-initdb.exited
		return ctx.Err()
	}
	if initdb.err != nil {
		return fmt.Errorf("initdb: %w:\n%s", initdb.err, tail(out.Bytes()))
	}
	return nil
}

// localeArgs are the locales to try: text is compared byte by byte, which is fast and the same on every machine, but
// upper and lower case are Unicode's where the platform has such a locale.
func localeArgs(p Programs) [][]string {
	plain := []string{"--locale=C"}
	switch {
	case p.Major >= 17:
		return [][]string{{"--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"}, plain}
	case runtime.GOOS == "darwin":
		return [][]string{{"--locale=C", "--lc-ctype=UTF-8"}, plain}
	}
	return [][]string{{"--locale=C", "--lc-ctype=C.UTF-8"}, plain}
}

// serverEnv keeps the surroundings (PGDATA, PGPORT, LC_ALL, LD_PRELOAD ...) out of the server.
func serverEnv() []string {
	return []string{"PATH=/usr/bin:/bin", "LC_ALL=C", "TZ=UTC"}
}

// serverCommand is the server in the foreground. staleProcess is the number in a left-over pid file, or 0: a living
// process may have got it since, for which the server would take its own predecessor. Named as its "grandparent" it
// is known to be none, while the check of the predecessor's shared memory stays.
func (h home) serverCommand(
	ctx context.Context, p Programs, settings map[string]string, staleProcess int, logFile *os.File,
) *exec.Cmd {
	args := []string{"-D", h.dataDir(), "-p", socketPort}
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		args = append(args, "-c", name+"="+settings[name])
	}
	cmd := h.owner.command(context.WithoutCancel(ctx), p.Postgres(), args...) // ended by Stop, not by a context
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = h.dir, serverEnv(), logFile, logFile
	if staleProcess != 0 {
		cmd.Env = append(cmd.Env, "PG_GRANDPARENT_PID="+strconv.Itoa(staleProcess))
	}
	return cmd
}

// settlePrevious waits for the server of the program that had the folder before: after a kill it is still shutting
// down. One that does not end by itself was not told (there is no death signal on its platform) and is told now.
// The result is the process number in the pid file that is left, or 0.
func (h home) settlePrevious(ctx context.Context, log *slog.Logger) (stale int, err error) {
	signals := []syscall.Signal{0, syscall.SIGINT, syscall.SIGQUIT}
	deadline := time.Now()
	for {
		pid := h.pidInFile()
		if pid == 0 || !worksIn(pid, h.dataDir()) {
			return pid, nil
		}
		if time.Now().After(deadline) {
			if len(signals) == 0 {
				return 0, fmt.Errorf("a server (process %d) still runs on %s and does not end", pid, h.dataDir())
			}
			if signals[0] != 0 {
				log.Warn("stopping the server that the last run left behind", "process", pid)
				_ = syscall.Kill(pid, signals[0])
			}
			signals, deadline = signals[1:], time.Now().Add(10*time.Second)
		}
		if err := pause(ctx, 20*time.Millisecond); err != nil {
			return 0, fmt.Errorf("wait for the last run's server (process %d) to end: %w", pid, err)
		}
	}
}

// pidInFile is the process number in PostgreSQL's pid file, 0 if there is none to be read.
func (h home) pidInFile() int {
	text, err := os.ReadFile(filepath.Join(h.dataDir(), "postmaster.pid"))
	if err != nil {
		return 0
	}
	pid, _ := strconv.Atoi(firstLine(text))
	return max(pid, 0)
}
