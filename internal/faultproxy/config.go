// Package faultproxy stands between a client and the ERP and does to POST /v1/invoices what networks do: it loses
// answers after the work was done, holds them, cuts them, says 502 instead, sends a request twice, delays it, or
// refuses it. Which request meets which fault depends on the seed and the order of the requests alone.
//
// Everything else, and everything while no fault strikes, passes unchanged (less the hop-by-hop fields, RFC 9110
// section 7.6.1).
package faultproxy

import (
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"time"
)

// Fault is one thing that can happen to a request.
type Fault string

// The faults. Reset, Hold, Cut and BadGateway strike only after the upstream's whole 2xx answer has been read: the
// work is done and the client is not told. An answer that is no success passes instead.
const (
	None       Fault = ""
	Reset      Fault = "reset"       // the client's connection is reset instead of the answer
	Hold       Fault = "hold"        // the answer is held for Config.Hold, longer than the client waits
	Cut        Fault = "cut"         // the connection ends in the middle of the answer's body
	BadGateway Fault = "bad-gateway" // the proxy answers 502 itself
	Duplicate  Fault = "duplicate"   // the request goes out twice at once; the first answer is passed on
	Delay      Fault = "delay"       // the request goes out after Config.Delay, even if the client has left by then
	Refuse     Fault = "refuse"      // the client's connection is reset; nothing goes out
)

// Rates are the shares of requests, 0 to 1, that meet each fault. A request meets at most one, so the sum is at
// most 1.
type Rates struct {
	Reset, Hold, Cut, BadGateway, Duplicate, Delay, Refuse float64
}

// Config says what a Proxy does. The zero values of the limits are their defaults.
type Config struct {
	Upstream *url.URL // scheme and host of the ERP
	Seed     uint64
	Rates    Rates
	Disabled bool // no request meets a fault, whatever the rates say

	Hold  time.Duration // default 1 minute
	Delay time.Duration // default 300 ms

	// UpstreamTimeout bounds a request that goes on after its client has left; default 30 s.
	UpstreamTimeout time.Duration
	// MaxRequest and MaxAnswer bound what is kept of a body, in bytes; defaults 1 MiB and 4 MiB. A longer body
	// is streamed through, and its request meets no fault.
	MaxRequest, MaxAnswer int64

	Logger *slog.Logger // nil is silence
}

// Validate returns all mistakes in the rates as one error.
func (r Rates) Validate() error {
	var errs []error
	sum := 0.0
	for _, share := range r.shares() {
		if !(share.rate >= 0 && share.rate <= 1) { // in this form it also refuses NaN
			errs = append(errs, fmt.Errorf("rate of %s is %v: it must be between 0 and 1", share.fault, share.rate))
		}
		sum += share.rate
	}
	if len(errs) == 0 && sum > 1+1e-9 { // ten times 0.1 is a little more than 1
		errs = append(errs, fmt.Errorf("the rates add up to %v: a request meets at most one fault, so 1 is the most", sum))
	}
	return errors.Join(errs...)
}

type share struct {
	fault Fault
	rate  float64
}

// shares has a fixed order: with it, seed and sequence decide.
func (r Rates) shares() []share {
	return []share{
		{Reset, r.Reset}, {Hold, r.Hold}, {Cut, r.Cut}, {BadGateway, r.BadGateway},
		{Duplicate, r.Duplicate}, {Delay, r.Delay}, {Refuse, r.Refuse},
	}
}

func (c Config) withDefaults() (Config, error) {
	if c.Upstream == nil || c.Upstream.Host == "" {
		return c, errors.New("fault proxy: no upstream given")
	}
	if err := c.Rates.Validate(); err != nil {
		return c, fmt.Errorf("fault proxy: %w", err)
	}
	if c.Hold < 0 || c.Delay < 0 || c.UpstreamTimeout < 0 || c.MaxRequest < 0 || c.MaxAnswer < 0 {
		return c, errors.New("fault proxy: times and limits can't be negative")
	}
	c.Hold = orDefault(c.Hold, time.Minute)
	c.Delay = orDefault(c.Delay, 300*time.Millisecond)
	c.UpstreamTimeout = orDefault(c.UpstreamTimeout, 30*time.Second)
	c.MaxRequest = orDefault(c.MaxRequest, 1<<20)
	c.MaxAnswer = orDefault(c.MaxAnswer, 4<<20)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c, nil
}

func orDefault[T comparable](value, fallback T) T {
	var zero T
	if value == zero {
		return fallback
	}
	return value
}
