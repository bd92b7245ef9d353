// Command withpg runs a command with a temporary PostgreSQL server, whose address is in TEST_DATABASE_URL:
//
//	withpg go test ./...
//
// so that all test processes of a run share one server. It ends as the command does, passes SIGINT and SIGTERM on
// to it, and leaves nothing behind. If TEST_DATABASE_URL is set already, that server is used and none is started.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"invoicebridge/internal/postgres"
	"invoicebridge/internal/testdb"
)

const (
	exitUsage = 2
	exitOurs  = 125 // as env and timeout do: it was not the command that failed
	stopLimit = 15 * time.Second
)

func main() {
	code, err := run(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "withpg:", err)
	}
	os.Exit(code)
}

func run(args []string) (code int, err error) {
	if len(args) == 0 {
		return exitUsage, errors.New("usage: withpg COMMAND [ARGUMENT ...]")
	}
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	defer signal.Stop(signals)
	env := os.Environ()
	if os.Getenv(testdb.ServerVariable) == "" {
		server, err := start(signals)
		if err != nil {
			return exitOurs, err
		}
		defer func() {
			ctx, cancel := context.WithTimeout(context.Background(), stopLimit)
			defer cancel()
			err = errors.Join(err, server.Stop(ctx))
		}()
		env = append(env, testdb.ServerVariable+"="+server.DSN("postgres"))
	}
	return runCommand(args, env, signals)
}

// start gives up at the first signal.
func start(signals <-chan os.Signal) (*postgres.Embedded, error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	started := make(chan struct{})
	defer close(started)
	go func() {
		select {
		case <-signals:
			cancel()
		case <-started:
		}
	}()
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelInfo}))
	return postgres.StartTemporary(ctx, postgres.EmbeddedConfig{Logger: log})
}

// runCommand returns the command's exit code, or 128 and the signal's number as a shell does. The command is in our
// process group, so a signal from the terminal reaches it twice; go test and the shell take that as one.
func runCommand(args, env []string, signals <-chan os.Signal) (int, error) {
	cmd := exec.CommandContext(context.Background(), args[0], args[1:]...) // ended by signals
	cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = env, os.Stdin, os.Stdout, os.Stderr
	if err := cmd.Start(); err != nil {
		return exitOurs, err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for {
		select {
		case s := <-signals:
			_ = cmd.Process.Signal(s) // it may just have ended
		case err := <-ended:
			return exitCode(cmd, err)
		}
	}
}

func exitCode(cmd *exec.Cmd, err error) (int, error) {
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return exitOurs, err
	}
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal()), nil
	}
	return cmd.ProcessState.ExitCode(), nil
}
