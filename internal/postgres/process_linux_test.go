package postgres

import (
	"strconv"
	"testing"
)

// Where there is no death signal the watcher is all there is, so it is tested alone.
func TestWatcherEndsTheServerOfAKilledProgram(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	program := startProgram(t, "owner of a watched process", dir, owner{})
	pid, err := strconv.Atoi(program.said)
	if err != nil {
		t.Fatal(err)
	}
	if !worksIn(pid, dir) {
		t.Fatal("there is no process, so this test proves nothing")
	}
	program.kill(t)
	eventually(t, "the process ends", func() bool { return !worksIn(pid, dir) })
}
