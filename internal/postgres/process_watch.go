//go:build unix

package postgres

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"syscall"
)

// watchScript waits until nobody holds the other end of its standard input, then ends the server ($1) and removes
// its folder ($2), if it is one to remove. A server that is still shutting down may write into the folder meanwhile.
const watchScript = `cat >/dev/null
kill -INT "$1" 2>/dev/null
[ -n "$2" ] || exit 0
for try in 1 2 3 4 5 6 7 8 9 10; do rm -rf -- "$2" && exit 0; sleep 1; done`

// watch starts a shell, as the server's user, that holds one end of a pipe whose other end only this program has.
// When the program dies, however it dies, the pipe ends and the shell does its work. release sends it away.
func watch(ctx context.Context, server *exec.Cmd, remove string) (release func(), err error) {
	read, write, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("make the watcher's pipe: %w", err)
	}
	defer func() { _ = read.Close() }()
	watcher := exec.CommandContext(context.WithoutCancel(ctx), "/bin/sh", "-c", watchScript, "sh", strconv.Itoa(server.Process.Pid), remove)
	watcher.Dir = "/"
	watcher.Stdin = read
	watcher.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: server.SysProcAttr.Credential}
	if err := watcher.Start(); err != nil {
		_ = write.Close()
		return nil, fmt.Errorf("start the watcher: %w", err)
	}
	return func() {
		// The pipe is closed last: the watcher must not wake up, the server's number may be another process's.
		_ = watcher.Process.Kill()
		_ = watcher.Wait()
		_ = write.Close()
	}, nil
}
