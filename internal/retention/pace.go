package retention

import (
	"errors"
	"fmt"
	"time"
)

// How fast a Purger works, unless Pace says otherwise.
const (
	DefaultBatch       = 500
	DefaultPauseFactor = 4.0
	DefaultRunTime     = time.Minute
	DefaultInterval    = 10 * time.Minute
)

// Pace says how fast a Purger works. Zero values take the defaults.
type Pace struct {
	// Batch is the most rows that one statement removes.
	Batch int32 `name:"batch" env:"PURGE_BATCH" default:"500" help:"Rows that one statement of the purge removes at most."`
	// PauseFactor makes the pause after a batch a multiple of the time that the batch took. The database is so never
	// busy with the purge for more than one part in 1 + PauseFactor, and less when it is slow because others use it.
	PauseFactor float64 `name:"pause-factor" env:"PURGE_PAUSE_FACTOR" default:"4" help:"The purge pauses after each batch for this many times as long as the batch took."`
}

// Schedule says when and for how long the periodic purge works. Zero values take the defaults.
type Schedule struct {
	Interval time.Duration `name:"interval" env:"PURGE_INTERVAL" default:"10m" help:"How often the purge runs."`
	// RunTime bounds a run; what is left then is the next one's.
	RunTime time.Duration `name:"run-time" env:"PURGE_RUN_TIME" default:"1m" help:"How long one run of the purge works at most; the next goes on."`
}

// Limits of the settings.
const (
	maxBatch       = 10_000
	maxPauseFactor = 1_000
	maxRunTime     = time.Hour
)

// Mistakes gives what is wrong with the setting; prefix stands before the names of the variables.
func (p Pace) Mistakes(prefix string) error {
	var mistakes []error
	if p.Batch < 0 || p.Batch > maxBatch {
		mistakes = append(mistakes, fmt.Errorf("%sPURGE_BATCH: %d is not from 1 to %d", prefix, p.Batch, maxBatch))
	}
	if !(p.PauseFactor >= 0 && p.PauseFactor <= maxPauseFactor) { // also refuses NaN
		mistakes = append(mistakes, fmt.Errorf("%sPURGE_PAUSE_FACTOR: %v is not from 0 to %d", prefix, p.PauseFactor, maxPauseFactor))
	}
	return errors.Join(mistakes...)
}

// Mistakes gives what is wrong with the setting; prefix stands before the names of the variables.
func (s Schedule) Mistakes(prefix string) error {
	s = s.WithDefaults()
	var mistakes []error
	if s.Interval < time.Second {
		mistakes = append(mistakes, fmt.Errorf("%sPURGE_INTERVAL: %s is less than a second", prefix, s.Interval))
	}
	if s.RunTime < time.Second || s.RunTime > maxRunTime {
		mistakes = append(mistakes, fmt.Errorf("%sPURGE_RUN_TIME: %s is not from 1s to %s", prefix, s.RunTime, maxRunTime))
	}
	return errors.Join(mistakes...)
}

func (p Pace) withDefaults() Pace {
	if p.Batch <= 0 {
		p.Batch = DefaultBatch
	}
	if p.PauseFactor <= 0 {
		p.PauseFactor = DefaultPauseFactor
	}
	return p
}

// WithDefaults fills in what is not set.
func (s Schedule) WithDefaults() Schedule {
	if s.Interval == 0 {
		s.Interval = DefaultInterval
	}
	if s.RunTime == 0 {
		s.RunTime = DefaultRunTime
	}
	return s
}
