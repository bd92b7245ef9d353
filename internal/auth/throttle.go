package auth

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"invoicebridge/internal/problem"
)

// How guessing is slowed down, without a way to lock somebody out of their own account.
//
// Tries are counted for three subjects: an address, a name, and the pair of both. The pair and the address make wait, each
// longer with every failure beyond a few free ones. A name alone never does: whoever fails on purpose under somebody
// else's name makes their own address wait, and the owner still gets in from theirs. What many failures under one name do,
// from wherever, is shorten the patience with each address under that name to a single free try.
const (
	freeOfPair      = 5  // typing errors
	freeOfAddress   = 30 // an office behind one address
	suspiciousName  = 20 // failures of a name after which ...
	freeOfSuspected = 1  // ... each address has only this many
	waitFirst       = time.Second
	waitMost        = 15 * time.Minute
)

// ForgetAfter is how long after the last failed log-in a subject is as new. It is longer than any wait.
const ForgetAfter = time.Hour

// Failures are a subject's failed log-ins of late.
type Failures struct {
	Subject string
	Count   int
	Age     time.Duration // of the last
}

// try is one log-in under way, by what it counts against.
type try struct{ name, address, pair string }

// newTry: what was typed as a name may be a password, so only a hash of it is kept.
func newTry(name, address string) try {
	address = network(address)
	return try{name: "name " + digest(name), address: "address " + address, pair: "pair " + digest(name) + " " + address}
}

func (t try) subjects() []string { return []string{t.address, t.name, t.pair} }

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:16])
}

// network is an address or, in IPv6, the /64 that one customer has.
func network(address string) string {
	ip, err := netip.ParseAddr(address)
	if err != nil {
		return "unknown"
	}
	if ip = ip.Unmap(); ip.Is4() {
		return ip.String()
	}
	prefix, _ := ip.WithZone("").Prefix(64) // 64 is a length of every IPv6 address
	return prefix.String()
}

// wait is how long a try has to wait, given what has failed before it.
func (t try) wait(failed []Failures) time.Duration {
	count := map[string]Failures{}
	for _, f := range failed {
		count[f.Subject] = f
	}
	free := freeOfPair
	if count[t.name].Count >= suspiciousName {
		free = freeOfSuspected
	}
	return max(delay(count[t.pair], free), delay(count[t.address], freeOfAddress))
}

// delay doubles with each failure from the last free one on.
func delay(f Failures, free int) time.Duration {
	if f.Count < free {
		return 0
	}
	pause := waitMost
	if doublings := f.Count - free; doublings < 10 {
		pause = min(waitMost, waitFirst<<doublings)
	}
	return max(0, pause-f.Age)
}

// admit counts a try, or says how long it has to wait.
func (s *Sessions) admit(ctx context.Context, t try) error {
	wait, err := s.store.CountTry(ctx, t.subjects(), ForgetAfter, t.wait)
	if err != nil {
		return fmt.Errorf("count a log-in: %w", err)
	}
	if wait <= 0 {
		return nil
	}
	wait = wait.Truncate(time.Second) + time.Second
	s.log.WarnContext(ctx, "log-in has to wait after too many failures", "subject", t.address, "wait", wait)
	return &problem.Problem{
		Type: problem.TooManyRequests, RetryAfter: wait,
		Detail: "Log-in failed too often from here. Wait a little before the next try; a right password does not help sooner.",
	}
}

// loginName is a name as it is kept: what people type has capitals and spaces around it.
func loginName(typed string) string { return strings.ToLower(strings.TrimSpace(typed)) }

// shortened cuts text from outside to what is worth keeping, and to what the database takes.
func shortened(text string, most int) string {
	text = strings.ToValidUTF8(strings.ReplaceAll(text, "\x00", ""), "")
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "")
	}
	return text
}
