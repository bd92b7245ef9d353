package app

import (
	"cmp"
	"errors"
	"time"
)

// Defaults of ConnTimes, and limits of its settings.
const (
	defaultReadHeader = 10 * time.Second
	defaultRead       = 30 * time.Second
	defaultWrite      = 15 * time.Second
	defaultIdle       = 2 * time.Minute

	minConnTime = 100 * time.Millisecond // so that a test may lose its patience quickly
	maxConnTime = time.Hour
)

// ConnTimes are the times that a connection of a client has, so that nobody holds one by being slow. Its variables begin with the name of
// the service. What is 0 stands for its default.
type ConnTimes struct {
	ReadHeader time.Duration `name:"read-header-timeout" env:"READ_HEADER_TIMEOUT" default:"10s" help:"Time for a request's header to arrive, and for a TLS handshake."`
	Read       time.Duration `name:"read-timeout" env:"READ_TIMEOUT" default:"30s" help:"Time for a request to arrive, header and body."`
	Write      time.Duration `name:"write-timeout" env:"WRITE_TIMEOUT" default:"15s" help:"Time for an answer to be taken, beyond the time that the request may take to arrive and be worked on."`
	Idle       time.Duration `name:"idle-timeout" env:"IDLE_TIMEOUT" default:"2m" help:"How long a connection is kept open for its next request."`
}

func (c ConnTimes) withDefaults() ConnTimes {
	return ConnTimes{
		ReadHeader: cmp.Or(c.ReadHeader, defaultReadHeader), Read: cmp.Or(c.Read, defaultRead),
		Write: cmp.Or(c.Write, defaultWrite), Idle: cmp.Or(c.Idle, defaultIdle),
	}
}

// check names each mistake with its variable.
func (c ConnTimes) check(prefix string) error {
	var mistakes []error
	full := c.withDefaults()
	for _, s := range []struct {
		variable string
		time     time.Duration
	}{
		{"READ_HEADER_TIMEOUT", full.ReadHeader}, {"READ_TIMEOUT", full.Read}, {"WRITE_TIMEOUT", full.Write}, {"IDLE_TIMEOUT", full.Idle},
	} {
		if s.time < minConnTime || s.time > maxConnTime {
			mistakes = append(mistakes, mistake(prefix+s.variable, "%s is not from %s to %s", s.time, minConnTime, maxConnTime))
		}
	}
	if full.Read < full.ReadHeader && errors.Join(mistakes...) == nil {
		mistakes = append(mistakes, mistake(prefix+"READ_TIMEOUT", "%s is less than %sREAD_HEADER_TIMEOUT=%s, which is a part of it", full.Read, prefix, full.ReadHeader))
	}
	return errors.Join(mistakes...)
}
