package target

import (
	"errors"
	"fmt"
	"time"
)

// Capabilities are what a target promises. What it does not promise is never assumed.
type Capabilities struct {
	// Keyed: the same request under the same key has one effect, for KeyWindow from the first one's arrival.
	Keyed     bool
	KeyWindow time.Duration
	// Locatable: it can be asked by our external reference.
	Locatable bool
	// AbsenceAuthoritative: its "absent" proves that nothing landed and nothing will, once SettleTime has passed since the
	// last request may have been sent. SettleTime covers the request that was still running when our patience ended,
	// the commit that comes late, and the time until what is committed is visible.
	AbsenceAuthoritative bool
	SettleTime           time.Duration
}

// Check says what is wrong with c, all of it, each by the setting's name. longestRequest is the longest time from
// sending a request to giving it up. A contradiction here would show as a duplicate later, so nothing is made good
// silently.
func (c Capabilities) Check(longestRequest time.Duration) error {
	var problems []error
	refuse := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	if longestRequest <= 0 {
		refuse("the time limit of a request must be positive, not %v", longestRequest)
	}
	switch {
	case c.Keyed && c.KeyWindow <= 0:
		refuse("keyed: a target that honours keys needs key_window, the time for which it does")
	case c.Keyed && c.KeyWindow <= longestRequest:
		refuse("key_window (%v) must be longer than the longest request (%v), or a key has expired before its first request has ended",
			c.KeyWindow, longestRequest)
	case !c.Keyed && c.KeyWindow != 0:
		refuse("key_window is set (%v) for a target that is not keyed", c.KeyWindow)
	}
	if c.AbsenceAuthoritative && !c.Locatable {
		refuse("absence_authoritative: a target that is not locatable can't be asked")
	}
	switch {
	case c.AbsenceAuthoritative && c.SettleTime <= longestRequest:
		refuse("settle_time (%v) must be longer than the longest request (%v), or an absence is believed while the request may still be running",
			c.SettleTime, longestRequest)
	case !c.AbsenceAuthoritative && c.SettleTime != 0:
		refuse("settle_time is set (%v), but absence_authoritative is not: without it an absence is never believed", c.SettleTime)
	}
	return errors.Join(problems...)
}
