package outbound

import (
	"net/http"
	"strings"
	"time"
)

// The bounds of a pause that a server states. A server that says "now" must not start a tight loop, and one that says
// "in a million years" must not park an operation longer than an operator would notice.
const (
	MinRetryAfter = time.Second
	MaxRetryAfter = time.Hour
)

// RetryAfter is the pause stated in h (RFC 9110, 10.2.3: seconds, or a date in one of HTTP's three forms), kept between
// MinRetryAfter and MaxRetryAfter. It is 0 where none is stated or what is stated makes no sense (negative, a fraction,
// two headers ...): then the caller's own back-off applies. A date is compared with the answer's own Date, so that
// the two clocks need not agree, and with now only where the answer has none.
func RetryAfter(h http.Header, now time.Time) time.Duration {
	values := h.Values("Retry-After")
	if len(values) != 1 {
		return 0
	}
	value := strings.Trim(values[0], " \t")
	if seconds, ok := wholeSeconds(value); ok {
		return boundPause(seconds)
	}
	until, err := http.ParseTime(value)
	if err != nil {
		return 0
	}
	if sent, err := http.ParseTime(h.Get("Date")); err == nil {
		now = sent
	}
	return boundPause(until.Sub(now))
}

// wholeSeconds reads 1*DIGIT. A number of any length is a number: what is too large for the cap is the cap.
func wholeSeconds(s string) (time.Duration, bool) {
	if s == "" || strings.Trim(s, "0123456789") != "" {
		return 0, false
	}
	var d time.Duration
	for i := range len(s) {
		d = min(d*10+time.Duration(s[i]-'0')*time.Second, MaxRetryAfter)
	}
	return d, true
}

func boundPause(d time.Duration) time.Duration {
	return min(max(d, MinRetryAfter), MaxRetryAfter)
}
