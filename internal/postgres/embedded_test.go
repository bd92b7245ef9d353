package postgres

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"
)

func startEmbedded(t *testing.T, cfg EmbeddedConfig) *Embedded {
	t.Helper()
	cfg.Search.Offline = true
	e, err := StartEmbedded(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return e
}

func stop(t *testing.T, e *Embedded) {
	t.Helper()
	if err := e.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// query runs SQL and returns the first column of the first row as text, "" if there is no row.
func query(t *testing.T, dsn, sql string) string {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	results, err := conn.PgConn().Exec(t.Context(), sql).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	if last := results[len(results)-1]; len(last.Rows) > 0 {
		return string(last.Rows[0][0])
	}
	return ""
}

func TestEmbeddedKeepsItsDataBetweenRuns(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(openDir(t), "deep", "er")
	e := startEmbedded(t, EmbeddedConfig{Dir: dir})
	for range 2 {
		if err := e.CreateDatabase(t.Context(), "Quoted name"); err != nil {
			t.Fatal(err)
		}
	}
	query(t, e.DSN("Quoted name"), "CREATE TABLE kept AS SELECT 'Ä' AS word")
	stop(t, e)

	e = startEmbedded(t, EmbeddedConfig{Dir: dir})
	if got := query(t, e.DSN("Quoted name"), "SELECT lower(word) FROM kept"); got != "ä" {
		t.Errorf("after a restart the table says %q", got)
	}
	if e.Dir() != dir {
		t.Errorf("the server lives in %s, not in %s", e.Dir(), dir)
	}
}

func TestEmbeddedLetsNobodyInWithoutItsPassword(t *testing.T) {
	t.Parallel()
	e := startEmbedded(t, EmbeddedConfig{Dir: filepath.Join(openDir(t), "pg")})
	_, err := pgx.Connect(t.Context(), strings.Replace(e.DSN("postgres"), e.password, "guessed", 1))
	if !hasCode(err, "28P01") {
		t.Errorf("a wrong password is answered with %v", err)
	}
	if got := query(t, e.DSN("postgres"), "SHOW listen_addresses"); got != "" {
		t.Errorf("the server listens on the network: %s", got)
	}
	for path, want := range map[string]os.FileMode{
		e.Dir(): 0o700 | os.ModeDir, e.home.passwordFile(): 0o600, e.home.dataDir(): 0o700 | os.ModeDir,
	} {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode() != want {
			t.Errorf("%s has mode %s, want %s", path, info.Mode(), want)
		}
	}
}

func TestEmbeddedEndsWithItsKilledProgramAndRecovers(t *testing.T) {
	t.Parallel()
	users := map[string]func(*testing.T) owner{
		"as the user of the tests": func(*testing.T) owner { return owner{} },
		"as an ordinary user":      ordinary,
	}
	for name, user := range users {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			user, parent := user(t), openDir(t)
			if err := user.give(parent); err != nil {
				t.Fatal(err)
			}
			dir := filepath.Join(parent, "pg")
			program := startProgram(t, "owner of an embedded server", dir, user)
			query(t, program.said, "CREATE TABLE kept AS SELECT 'committed' AS word")
			server := home{dir: dir}.pidInFile()
			if server == 0 || !worksIn(server, filepath.Join(dir, "data")) {
				t.Fatalf("no server runs as process %d", server)
			}

			program.kill(t)
			eventually(t, "the server ends", func() bool { return !worksIn(server, filepath.Join(dir, "data")) })

			again := startProgram(t, "owner of an embedded server", dir, user)
			if got := query(t, again.said, "SELECT word FROM kept"); got != "committed" {
				t.Errorf("after the kill the table says %q", got)
			}
			again.end()
		})
	}
}

func TestEmbeddedIsStartedAtOnceAfterItsProgramWasKilled(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(openDir(t), "pg")
	startProgram(t, "owner of an embedded server", dir, owner{}).kill(t)
	startEmbedded(t, EmbeddedConfig{Dir: dir}) // the old server may still be shutting down
}

func TestEmbeddedRecoversFromACrashOfTheServer(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(openDir(t), "pg")
	e := startEmbedded(t, EmbeddedConfig{Dir: dir})
	query(t, e.DSN("postgres"), "CREATE TABLE kept AS SELECT 'committed' AS word")
	e.server.signal(syscall.SIGKILL)
	<-e.Exited()
	stop(t, e)
	if (home{dir: dir}).pidInFile() == 0 {
		t.Fatal("the crash left no pid file, so this test proves nothing")
	}

	e = startEmbedded(t, EmbeddedConfig{Dir: dir})
	if got := query(t, e.DSN("postgres"), "SELECT word FROM kept"); got != "committed" {
		t.Errorf("after the crash the table says %q", got)
	}
}

func TestEmbeddedIgnoresAPidFileWhoseNumberIsAnotherProcessNow(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(openDir(t), "pg")
	e := startEmbedded(t, EmbeddedConfig{Dir: dir})
	e.server.signal(syscall.SIGKILL)
	<-e.Exited()
	stop(t, e)
	stranger := e.home.owner.command(t.Context(), "/bin/sleep", "600")
	stranger.Dir = "/"
	if err := stranger.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = stranger.Process.Kill()
		_ = stranger.Wait()
	}()
	for _, file := range []string{filepath.Join(dir, "data", "postmaster.pid"), filepath.Join(dir, ".s.PGSQL.5432.lock")} {
		replaceFirstLine(t, file, strconv.Itoa(stranger.Process.Pid))
	}

	startEmbedded(t, EmbeddedConfig{Dir: dir})
	if err := stranger.Process.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("the other process was ended: %v", err)
	}
}

func replaceFirstLine(t *testing.T, path, line string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "\n")
	if err := os.WriteFile(path, []byte(line+"\n"+rest), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestEmbeddedTellsTheSecondProgramWhoHasTheFolder(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(openDir(t), "pg")
	first := startProgram(t, "owner of an embedded server", dir, owner{})
	_, err := StartEmbedded(t.Context(), EmbeddedConfig{Dir: dir})
	if !errors.Is(err, ErrInUse) || !strings.Contains(err.Error(), fmt.Sprintf("process %d", first.cmd.Process.Pid)) {
		t.Errorf("the second program is told: %v", err)
	}
	if got := query(t, first.said, "SELECT 'up'"); got != "up" {
		t.Error("the second program has disturbed the first one's server")
	}
	first.end()
}

func TestEmbeddedManagesAPathTooLongForASocket(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(openDir(t), strings.Repeat("long", 30), "pg")
	e := startEmbedded(t, EmbeddedConfig{Dir: dir})
	if got := query(t, e.DSN("postgres"), "SELECT 'up'"); got != "up" {
		t.Error("no answer")
	}
	socketDir := e.home.socketDir
	if info, err := os.Stat(socketDir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the socket's folder is not private: %v, %v", info, err)
	}
	stop(t, e)
	if _, err := os.Stat(socketDir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket's folder stays behind: %v", err)
	}
}

func TestEmbeddedRefusesASocketFolderPreparedBySomebodyElse(t *testing.T) {
	t.Parallel()
	h := home{dir: filepath.Join(openDir(t), strings.Repeat("long", 30))}
	if err := h.chooseSocketDir(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = os.Remove(h.socketDir) }()
	if err := os.Chmod(h.socketDir, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := h.chooseSocketDir(); err == nil {
		t.Error("a folder open to everybody is taken")
	}
}

func TestEmbeddedLeavesAFolderWithOtherFilesAlone(t *testing.T) {
	t.Parallel()
	dir := openDir(t)
	if err := os.WriteFile(filepath.Join(dir, "thesis.txt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := StartEmbedded(t.Context(), EmbeddedConfig{Dir: dir})
	if err == nil || !strings.Contains(err.Error(), "thesis.txt") {
		t.Errorf("got %v", err)
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("the folder was changed: %v, %v", info.Mode(), err)
	}
}

func TestEmbeddedNamesBothVersionsWhenTheDataAreAnothers(t *testing.T) {
	t.Parallel()
	dir := openDir(t)
	for path, text := range map[string]string{"lock": "", "data/PG_VERSION": "99\n"} {
		path = filepath.Join(dir, path)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	_, err := StartEmbedded(t.Context(), EmbeddedConfig{Dir: dir, Search: Search{Offline: true}})
	if err == nil || !strings.Contains(err.Error(), "made by PostgreSQL 99") || !strings.Contains(err.Error(), "is version 1") {
		t.Errorf("got %v", err)
	}
}

func TestEmbeddedShowsWhatTheServerSaidWhenItDoesNotStart(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(openDir(t), "pg")
	settings := map[string]string{"shared_buffers": "nonsense"}
	_, err := StartEmbedded(t.Context(), EmbeddedConfig{Dir: dir, Settings: settings, Search: Search{Offline: true}})
	if !errors.Is(err, errServerEnded) || !strings.Contains(err.Error(), `invalid value for parameter "shared_buffers"`) {
		t.Errorf("got %v", err)
	}
	startEmbedded(t, EmbeddedConfig{Dir: dir}) // the folder is free again, and sound
}

func TestEmbeddedBeginsAnewAfterAHalfMadeDataFolder(t *testing.T) {
	t.Parallel()
	dir := openDir(t)
	half := filepath.Join(dir, "data.new", "base")
	if err := errors.Join(os.MkdirAll(half, 0o755), os.WriteFile(filepath.Join(dir, "lock"), nil, 0o644)); err != nil {
		t.Fatal(err)
	}
	startEmbedded(t, EmbeddedConfig{Dir: dir})
	if _, err := os.Stat(filepath.Dir(half)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the half-made folder stays: %v", err)
	}
}

func TestEmbeddedStopsWithoutOrderWhenTimeIsOver(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(openDir(t), "pg")
	e, err := StartEmbedded(t.Context(), EmbeddedConfig{Dir: dir, Search: Search{Offline: true}})
	if err != nil {
		t.Fatal(err)
	}
	query(t, e.DSN("postgres"), "CREATE TABLE kept AS SELECT 'committed' AS word")
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if err := e.Stop(over); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	select {
	case <-e.Exited():
	default:
		t.Error("Stop returned before the server had ended")
	}
	e = startEmbedded(t, EmbeddedConfig{Dir: dir})
	if got := query(t, e.DSN("postgres"), "SELECT word FROM kept"); got != "committed" {
		t.Errorf("afterwards the table says %q", got)
	}
}

func TestEmbeddedGivesUpWhenItsContextEnds(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	dir := filepath.Join(openDir(t), "pg")
	if _, err := StartEmbedded(ctx, EmbeddedConfig{Dir: dir, Search: Search{Offline: true}}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	startEmbedded(t, EmbeddedConfig{Dir: dir}) // nothing holds the folder
}

func TestEmbeddedOfRootLivesElsewhereWhenItsFolderIsClosed(t *testing.T) {
	t.Parallel()
	ordinary(t)
	closed, elsewhere := openDir(t), openDir(t)
	if err := os.Chmod(closed, 0o700); err != nil {
		t.Fatal(err)
	}
	var said strings.Builder
	e := startEmbedded(t, EmbeddedConfig{
		Dir: filepath.Join(closed, "pg"), rootHome: elsewhere, Logger: slog.New(slog.NewTextHandler(&said, nil)),
	})
	if !strings.HasPrefix(e.Dir(), elsewhere) {
		t.Errorf("the server lives in %s", e.Dir())
	}
	if !strings.Contains(said.String(), e.Dir()) {
		t.Errorf("the log does not say where the data live: %s", said.String())
	}
}

func TestEmbeddedOfRootLeavesAnOrdinaryUsersDataTheirs(t *testing.T) {
	t.Parallel()
	user, parent := ordinary(t), openDir(t)
	if err := user.give(parent); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(parent, "pg")
	startProgram(t, "owner of an embedded server", dir, user).end()
	stop(t, startEmbedded(t, EmbeddedConfig{Dir: dir}))
	startProgram(t, "owner of an embedded server", dir, user).end()
}

func TestEmbeddedStaysUpThoughItsCallerForgetsIt(t *testing.T) {
	t.Parallel()
	e, err := StartTemporary(t.Context(), EmbeddedConfig{Search: Search{Offline: true}})
	if err != nil {
		t.Fatal(err)
	}
	dsn, server, folder := e.DSN("postgres"), e.server, e.Dir()
	for range 5 { // e is used no more
		runtime.GC()
	}
	if _, err := lockFolder(filepath.Join(folder, "lock")); !errors.Is(err, ErrInUse) {
		t.Errorf("the folder's lock was collected: %v", err)
	}
	if got := query(t, dsn, "SELECT 'up'"); got != "up" {
		t.Error("no answer")
	}
	server.signal(syscall.SIGINT)
	<-server.exited
	if err := os.RemoveAll(folder); err != nil {
		t.Error(err)
	}
}
