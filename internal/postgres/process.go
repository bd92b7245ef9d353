package postgres

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
)

// process is a child that does not outlive this program, however the program ends.
type process struct {
	cmd    *exec.Cmd
	exited chan struct{} // closed once the child is gone and reaped
	err    error         // how it ended; to be read after exited
}

// startTied starts cmd so that it gets a signal when this program dies, also by kill -9.
//
// On Linux the kernel sends it when the *thread* that started the child ends, so that thread is kept for the child
// alone: the goroutine is locked to it and waits there until the child is gone. The child leads a process group of
// its own: Ctrl-C in a terminal is for the program, which stops the child after its own work has ended.
func startTied(cmd *exec.Cmd) (*process, error) {
	p := &process{cmd: cmd, exited: make(chan struct{})}
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		cmd.SysProcAttr.Setpgid = true
		release, err := tieAndStart(cmd)
		started <- err
		if err != nil {
			return
		}
		p.err = cmd.Wait()
		release()
		close(p.exited)
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", cmd.Path, err)
	}
	return p, nil
}

// signal does nothing once the process is gone.
func (p *process) signal(sig os.Signal) { _ = p.cmd.Process.Signal(sig) }
