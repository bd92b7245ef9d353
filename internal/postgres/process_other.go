//go:build unix && !linux

package postgres

import (
	"context"
	"os/exec"
	"strconv"
	"strings"
)

// tieAndStart has a watcher do what only Linux's kernel does.
func tieAndStart(cmd *exec.Cmd) (release func(), err error) {
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	release, err = watch(context.Background(), cmd, "")
	if err != nil {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		return nil, err
	}
	return release, nil
}

// worksIn reports whether a process is alive and a server: a data folder's pid file names no other for long.
func worksIn(pid int, _ string) bool {
	out, err := exec.CommandContext(context.Background(), "ps", "-p", strconv.Itoa(pid), "-o", "comm=").Output()
	return err == nil && strings.HasSuffix(strings.TrimSpace(string(out)), "postgres")
}

// memoryFolder is Linux's.
func memoryFolder() (dir string, ok bool) { return "", false }
