package postgres

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"syscall"
)

// tieAndStart asks the kernel for SIGINT, PostgreSQL's fast shutdown, at the death of the calling thread. The kernel
// forgets such a wish when a process changes its user; package syscall states it after the change.
func tieAndStart(cmd *exec.Cmd) (release func(), err error) {
	cmd.SysProcAttr.Pdeathsig = syscall.SIGINT
	return func() {}, cmd.Start()
}

// worksIn reports whether a process is alive and has dir as its working folder, as a server has its data folder.
func worksIn(pid int, dir string) bool {
	there, err := os.Stat(fmt.Sprintf("/proc/%s/cwd", strconv.Itoa(pid)))
	if err != nil {
		return false
	}
	here, err := os.Stat(dir)
	return err == nil && os.SameFile(here, there)
}
