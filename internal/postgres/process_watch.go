//go:build unix

package postgres

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"syscall"
)

// watchScript waits until nobody holds the other end of its standard input, then ends the server in an orderly way.
const watchScript = `cat >/dev/null; kill -INT "$1"`

// startWatched starts cmd and beside it a shell that holds one end of a pipe whose other end only this program has.
// When the program dies the pipe ends, and the shell, which runs as the same user, stops the child. Used where
// there is no death signal.
func startWatched(cmd *exec.Cmd) (release func(), err error) {
	read, write, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("make the watcher's pipe: %w", err)
	}
	defer read.Close()
	if err := cmd.Start(); err != nil {
		write.Close()
		return nil, err
	}
	watcher := exec.Command("/bin/sh", "-c", watchScript, "sh", strconv.Itoa(cmd.Process.Pid))
	watcher.Dir = "/"
	watcher.Stdin = read
	watcher.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: cmd.SysProcAttr.Credential}
	if err := watcher.Start(); err != nil {
		write.Close()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		return nil, fmt.Errorf("start the watcher: %w", err)
	}
	return func() {
		// The child is gone and its number may be given to another process: the watcher must not wake to signal it.
		_ = watcher.Process.Kill()
		_ = watcher.Wait()
		write.Close()
	}, nil
}
