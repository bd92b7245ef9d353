package postgres

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// tieAndStart asks the kernel for SIGINT, PostgreSQL's fast shutdown, at the death of the calling thread. The kernel
// forgets such a wish when a process changes its user; package syscall states it after the change.
func tieAndStart(cmd *exec.Cmd) (release func(), err error) {
	cmd.SysProcAttr.Pdeathsig = syscall.SIGINT
	return func() {}, cmd.Start()
}

// worksIn reports whether a process is alive and has dir as its working folder, as a server has its data folder.
// A zombie has none.
func worksIn(pid int, dir string) bool {
	there, err := os.Stat(fmt.Sprintf("/proc/%d/cwd", pid))
	if err != nil {
		return false
	}
	here, err := os.Stat(dir)
	return err == nil && os.SameFile(here, there)
}

// memoryFolder is a file system in memory, if there is one with room for a run's databases (2 GiB; a container's
// has 64 MB): making a database, some 400 files, takes a tenth of the time there.
func memoryFolder() (dir string, ok bool) {
	const room = 2 << 30
	var stat unix.Statfs_t
	if err := unix.Statfs("/dev/shm", &stat); err != nil || stat.Type != unix.TMPFS_MAGIC {
		return "", false
	}
	return "/dev/shm", stat.Bavail*uint64(stat.Bsize) >= room
}
