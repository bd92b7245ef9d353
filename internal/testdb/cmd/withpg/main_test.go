package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"

	"invoicebridge/internal/testdb"
)

// This test binary also plays withpg itself, and the command that withpg runs.
func TestMain(m *testing.M) {
	switch os.Getenv("WITHPG_TEST_ROLE") {
	case "withpg":
		_ = os.Setenv("WITHPG_TEST_ROLE", "command")
		main()
	case "command":
		if err := command(); err != nil {
			fmt.Println("failed:", err)
			os.Exit(1)
		}
		if os.Args[1] == "wait" {
			_, _ = os.Stdin.Read(make([]byte, 1)) // until a signal
		}
		os.Exit(7)
	}
	os.Exit(m.Run())
}

// command says what it finds under the address it is given.
func command() error {
	ctx := context.Background()
	dsn := os.Getenv(testdb.ServerVariable)
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	var fsync string
	if err := conn.QueryRow(ctx, "SHOW fsync").Scan(&fsync); err != nil {
		return err
	}
	fmt.Println(fsync, dsn)
	return nil
}

func withpg(t *testing.T, mode string, env ...string) *exec.Cmd {
	t.Helper()
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), binary, binary, mode)
	cmd.Env = append(os.Environ(), "WITHPG_TEST_ROLE=withpg", testdb.ServerVariable+"=")
	cmd.Env = append(cmd.Env, env...)
	return cmd
}

func exitOf(t *testing.T, err error) int {
	t.Helper()
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		t.Fatalf("no exit code: %v", err)
	}
	return exit.ExitCode()
}

func mustBeGone(t *testing.T, dsn string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err == nil {
		_ = conn.Close(context.Background())
		t.Error("the server is still there")
	}
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(config.Host); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the server's folder is still there: %v", err)
	}
}

func TestCommandRunsWithAServerThatIsGoneAfterwards(t *testing.T) {
	t.Parallel()
	cmd := withpg(t, "end")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, os.Stderr
	if got := exitOf(t, cmd.Run()); got != 7 {
		t.Errorf("exit code %d, the command's was 7", got)
	}
	dsn, ok := strings.CutPrefix(strings.TrimSpace(out.String()), "off ")
	if !ok {
		t.Fatalf("the command said %q", out.String())
	}
	mustBeGone(t, dsn)
}

func TestSignalReachesTheCommandAndTheServerGoesWithIt(t *testing.T) {
	t.Parallel()
	cmd := withpg(t, "wait")
	if _, err := cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if got, want := exitOf(t, cmd.Wait()), 128+int(syscall.SIGTERM); got != want {
		t.Errorf("exit code %d, want %d", got, want)
	}
	mustBeGone(t, strings.TrimPrefix(strings.TrimSpace(line), "off "))
}

func TestServerThatIsGivenIsUsed(t *testing.T) {
	t.Parallel()
	given := testdb.Empty(t)
	cmd := withpg(t, "end", testdb.ServerVariable+"="+given)
	out, err := cmd.Output()
	if got := exitOf(t, err); got != 7 {
		t.Errorf("exit code %d, the command's was 7", got)
	}
	if _, dsn, _ := strings.Cut(strings.TrimSpace(string(out)), " "); dsn != given {
		t.Errorf("the command was given %q", out)
	}
}

func TestCommandThatIsNotThereIsOurFailure(t *testing.T) {
	t.Parallel()
	cmd := withpg(t, "end", testdb.ServerVariable+"="+testdb.Empty(t))
	cmd.Args[1] = "/nowhere/command"
	if got := exitOf(t, cmd.Run()); got != exitOurs {
		t.Errorf("exit code %d, want %d", got, exitOurs)
	}
}
