//go:build !linux

package bench

import "time"

// pace waits for points in time, as exactly as the runtime's timers are.
type pace struct{}

func newPace() pace { return pace{} }

func (pace) end() {}

func (pace) until(at time.Time) { <-time.After(time.Until(at)) }
