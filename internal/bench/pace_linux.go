package bench

import (
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// pace waits for points in time. The runtime's own timers are late by up to a millisecond where nothing else happens, which
// would be half of what is measured; a thread of its own that sleeps in the kernel is not.
type pace struct{}

func newPace() pace {
	runtime.LockOSThread()
	return pace{}
}

func (pace) end() { runtime.UnlockOSThread() }

// until returns at the point in time, which is a moment away at the most: it can't be interrupted.
func (pace) until(at time.Time) {
	for left := time.Until(at); left > 0; left = time.Until(at) {
		wait := unix.NsecToTimespec(int64(left))
		_ = unix.Nanosleep(&wait, nil) // woken early, it is called again
	}
}
