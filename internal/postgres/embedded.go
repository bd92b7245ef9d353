package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/url"
	"os"
	"runtime"
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	superuser  = "postgres"
	socketPort = "5432" // only part of the socket's name: the server listens on no network address

	startLimit = 60 * time.Second // crash recovery of a large backlog of WAL included
)

// EmbeddedConfig says where the embedded server lives.
type EmbeddedConfig struct {
	Dir      string            // folder that is the server's alone; made if missing, its data continued if not
	Logger   *slog.Logger      // nil is silence
	Settings map[string]string // of the server, over the built-in ones
	Search   Search            // where its programs are looked for

	temporary bool   // the folder goes with the server, and there is no substitute for it
	rootHome  string // "" is rootHome
}

// Embedded is a PostgreSQL server that belongs to this program: it listens on a Unix socket in a folder that only
// its owner can enter, demands a random password, and ends with the program, however the program ends.
type Embedded struct {
	home     home
	programs Programs
	password string
	log      *slog.Logger
	lock     *os.File
	server   *process

	temporary bool
	unwatch   func() // sends the watcher of a temporary server away
	stop      sync.Once
	stopErr   error
}

// StartEmbedded starts a server on the folder and returns when it takes connections. Data, password and log stay in
// the folder between runs; a crash of the last run is recovered from. It fails with ErrInUse if another program
// has the folder, and in any case leaves no process behind.
//
// As root the server runs as the owner of the data, for new data as user postgres or nobody. If that user can't
// reach the folder (root's home is closed), the server lives below /var/lib/invoicebridge instead, which is logged.
func StartEmbedded(ctx context.Context, cfg EmbeddedConfig) (*Embedded, error) {
	cfg.rootHome = cmp.Or(cfg.rootHome, rootHome)
	e := &Embedded{log: logger(cfg.Logger), temporary: cfg.temporary, unwatch: func() {}}
	if err := e.start(ctx, cfg); err != nil {
		e.release()
		return nil, fmt.Errorf("embedded PostgreSQL: %w", err)
	}
	go e.keep()
	return e, nil
}

// keep holds the open files of a server whose caller has forgotten it (as a test process does): collected as
// garbage, the lock would be free and the watcher would take this program for dead.
func (e *Embedded) keep() {
	<-e.server.exited
	runtime.KeepAlive(e)
}

func (e *Embedded) start(ctx context.Context, cfg EmbeddedConfig) (err error) {
	ctx, cancel := context.WithTimeout(ctx, startLimit+npmTimeout)
	defer cancel()
	if e.home, err = openHome(ctx, cfg, e.log); err != nil {
		return err
	}
	if e.lock, err = lockFolder(e.home.lockFile()); err != nil {
		return err
	}
	stale, err := e.home.settlePrevious(ctx, e.log)
	if err != nil {
		return err
	}
	search := cfg.Search
	search.owner, search.Logger = e.home.owner, e.log
	if e.programs, err = e.home.programs(ctx, search); err != nil {
		return err
	}
	if e.password, err = e.home.ensurePassword(); err != nil {
		return err
	}
	settings := defaultSettings()
	maps.Copy(settings, cfg.Settings)
	if err := e.home.ensureData(ctx, e.programs, settings["fsync"] != "off"); err != nil {
		return err
	}
	if err := e.home.chooseSocketDir(); err != nil {
		return err
	}
	settings["unix_socket_directories"] = e.home.socketDir
	started := time.Now()
	if err := e.launch(ctx, settings, stale); err != nil {
		return err
	}
	if e.temporary {
		if e.unwatch, err = watch(ctx, e.server.cmd, e.home.dir); err != nil {
			return errors.Join(err, e.endServer(ctx))
		}
	}
	e.log.Info("embedded PostgreSQL is up", "version", e.programs.Version, "data", e.home.dir,
		"process", e.server.cmd.Process.Pid, "after", time.Since(started).Round(time.Millisecond))
	return nil
}

// DSN is the address of a database of this server, password included: not for logs.
func (e *Embedded) DSN(database string) string {
	dsn := url.URL{
		Scheme:   "postgres",
		User:     url.UserPassword(superuser, e.password),
		Path:     "/" + database,
		RawQuery: url.Values{"host": {e.home.socketDir}, "port": {socketPort}, "sslmode": {"disable"}}.Encode(),
	}
	return dsn.String()
}

// Dir is the folder the server really lives in.
func (e *Embedded) Dir() string { return e.home.dir }

// Version is the server's version, for example "18.4".
func (e *Embedded) Version() string { return e.programs.Version }

// ProgramsDir is the folder of the server's programs.
func (e *Embedded) ProgramsDir() string { return e.programs.Dir }

// Exited is closed when the server has ended, by Stop or by itself. A program that finds it closed without having
// called Stop has lost its database and should end.
func (e *Embedded) Exited() <-chan struct{} { return e.server.exited }

// CreateDatabase makes a database; one that is there is left alone.
func (e *Embedded) CreateDatabase(ctx context.Context, name string) error {
	conn, err := pgx.Connect(ctx, e.DSN("postgres"))
	if err != nil {
		return fmt.Errorf("create database %s: %w", name, err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	_, err = conn.Exec(ctx, "CREATE DATABASE "+pgx.Identifier{name}.Sanitize())
	if err != nil && !hasCode(err, "42P04") { // duplicate_database
		return fmt.Errorf("create database %s: %w", name, err)
	}
	return nil
}

// Stop ends the server in an orderly way (open connections are cut, everything committed is on disk) and waits for
// it. When ctx ends first, it is ended at once and recovers on its next start; the error then is ctx's. Further
// calls return the first one's result.
func (e *Embedded) Stop(ctx context.Context) error {
	e.stop.Do(func() {
		e.stopErr = e.endServer(ctx)
		e.release()
	})
	return e.stopErr
}

func (e *Embedded) endServer(ctx context.Context) error {
	e.server.signal(syscall.SIGINT)
	select {
	case <-e.server.exited:
		return nil
	case <-ctx.Done():
	}
	e.server.signal(syscall.SIGQUIT)
	select {
	case <-e.server.exited:
	case <-time.After(10 * time.Second): // the server itself kills its children after 5 s
		e.server.signal(syscall.SIGKILL)
		<-e.server.exited
	}
	return fmt.Errorf("stop embedded PostgreSQL in an orderly way: %w", ctx.Err())
}

// release gives back what is not the server itself.
func (e *Embedded) release() {
	e.unwatch()
	if e.home.socketDir != "" && e.home.socketDir != e.home.dir {
		_ = os.Remove(e.home.socketDir)
	}
	if e.temporary {
		_ = os.RemoveAll(e.home.dir) // what stays is removed by the next temporary server
	}
	if e.lock != nil {
		_ = e.lock.Close()
		e.lock = nil
	}
}

// launch starts the server and waits until it takes connections. If the last server was killed, its children may
// hold its shared memory for another moment; then the start is tried again.
func (e *Embedded) launch(ctx context.Context, settings map[string]string, stale int) error {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	for attempt := 0; ; attempt++ {
		err := e.launchOnce(ctx, settings, stale)
		if err == nil || stale == 0 || attempt == 20 || !errors.Is(err, errServerEnded) {
			return err
		}
		if err := pause(ctx, 250*time.Millisecond); err != nil {
			return err
		}
	}
}

func (e *Embedded) launchOnce(ctx context.Context, settings map[string]string, stale int) error {
	logFile, err := e.home.openServerLog()
	if err != nil {
		return err
	}
	defer func() { _ = logFile.Close() }()
	e.server, err = startTied(e.home.serverCommand(ctx, e.programs, settings, stale, logFile))
	if err != nil {
		return err
	}
	if err := e.untilReady(ctx); err != nil {
		e.server.signal(syscall.SIGQUIT)
		select {
		case <-e.server.exited:
		case <-time.After(10 * time.Second):
			e.server.signal(syscall.SIGKILL)
			<-e.server.exited
		}
		return fmt.Errorf("%w; the end of %s:\n%s", err, logFile.Name(), e.home.serverLogTail())
	}
	return nil
}

var errServerEnded = errors.New("the server ended while starting")

func (e *Embedded) untilReady(ctx context.Context) error {
	for {
		conn, err := pgx.Connect(ctx, e.DSN("postgres"))
		if err == nil {
			return conn.Close(ctx)
		}
		if hasCode(err, "28P01") { // invalid_password
			return fmt.Errorf("the password in %s does not fit the data: %w", e.home.passwordFile(), err)
		}
		select {
		case <-e.server.exited:
			return errServerEnded
		case <-ctx.Done():
			return fmt.Errorf("the server takes no connections: %w: %w", ctx.Err(), err)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
