package web

import (
	"fmt"
	"strings"
	"time"
)

// Fact is one thing to know, with its heading. Template: {{template "facts" .List}}.
type Fact struct{ Heading, Text string }

// Time is a moment. It says UTC; console.js writes it in the viewer's zone. The exact value is on hover.
// Template: {{template "time" .Created}}. The zero Time is shown as a dash.
type Time struct {
	At    time.Time
	Empty string // said instead of a dash when there is no time: "never", "not yet"
}

// At makes a Time.
func At(t time.Time) Time { return Time{At: t} }

// AtPtr makes a Time of one that may be missing.
func AtPtr(t *time.Time) Time {
	if t == nil {
		return Time{}
	}
	return Time{At: *t}
}

// Clock is the time of day in UTC: "14:00".
func (t Time) Clock() string { return t.At.UTC().Format("15:04") }

// Machine is the value for scripts (HTML's datetime).
func (t Time) Machine() string { return t.At.UTC().Format(time.RFC3339Nano) }

// Exact is the value to compare with log lines, to the microsecond that the database keeps.
func (t Time) Exact() string { return t.At.UTC().Format("2006-01-02 15:04:05.999999 UTC") }

// Text is the value for people, without scripts.
func (t Time) Text() string { return t.At.UTC().Format("2 Jan 2006, 15:04:05 UTC") }

// Missing is what stands for no time.
func (t Time) Missing() string {
	if t.Empty != "" {
		return t.Empty
	}
	return "–"
}

// Duration says a duration in two units at most: "350 ms", "4.2 s", "12 min 5 s", "3 h 20 min", "5 d 2 h".
func Duration(d time.Duration) string {
	switch {
	case d < 0:
		return "–" + Duration(-d)
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < 10*time.Second:
		return strings.TrimSuffix(fmt.Sprintf("%.1f", d.Truncate(100*time.Millisecond).Seconds()), ".0") + " s"
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < time.Hour:
		return twoUnits(d, time.Minute, "min", time.Second, "s")
	case d < 24*time.Hour:
		return twoUnits(d, time.Hour, "h", time.Minute, "min")
	}
	return twoUnits(d, 24*time.Hour, "d", time.Hour, "h")
}

func twoUnits(d, large time.Duration, largeName string, small time.Duration, smallName string) string {
	text := fmt.Sprintf("%d %s", d/large, largeName)
	if rest := d % large / small; rest > 0 {
		text += fmt.Sprintf(" %d %s", rest, smallName)
	}
	return text
}

// Money is an amount in a currency, as text with the currency's own decimals: it is never calculated with here.
// Template: {{template "money" .Gross}}, in a cell <td class="num">.
type Money struct{ Amount, Currency string }

// groupFrom is how many digits an amount's whole part has before they are set in groups of three; four are read at a
// glance.
const groupFrom = 5

// Groups are the amount's digits in groups of three. They are set apart by space that is not text: what is copied,
// searched and read by tests is the plain amount.
func (m Money) Groups() []string {
	whole, rest, _ := strings.Cut(m.Amount, ".")
	if rest != "" {
		rest = "." + rest
	}
	if len(strings.TrimLeft(whole, "-")) < groupFrom {
		return []string{m.Amount}
	}
	first := len(whole) % 3
	if first == 0 || whole[:first] == "-" {
		first += 3
	}
	groups := []string{whole[:first]}
	for at := first; at < len(whole); at += 3 {
		groups = append(groups, whole[at:at+3])
	}
	groups[len(groups)-1] += rest
	return groups
}

// Tone is what a state means to whoever has to act on it. It decides colour and shape of a badge; the text is always
// there, too.
type Tone string

const (
	ToneGood    Tone = "good"    // done as it should be
	ToneBusy    Tone = "busy"    // somebody is at it
	ToneWait    Tone = "wait"    // its turn comes
	ToneBad     Tone = "bad"     // it failed, proven
	ToneUnknown Tone = "unknown" // nobody knows: the state that wants a person's eye
	ToneOff     Tone = "off"     // ended without effect, or switched off
)

// State is a badge. Template: {{template "state" .State}}.
type State struct {
	Tone Tone
	Text string
}

// StateOf is the badge of one of the project's own words for states; a word it doesn't know gets a neutral badge.
func StateOf(word string) State {
	switch word {
	case "succeeded", "accepted", "issued", "active", "created", "registered", "landed", "delivered", "resolved", "repaired", "answered", "approved", "already_there":
		return State{ToneGood, words(word)}
	case "processing", "sending", "running":
		return State{ToneBusy, words(word)}
	case "pending", "waiting", "proposed", "available", "scheduled", "retryable", "open", "held", "queued":
		return State{ToneWait, words(word)}
	case "failed", "refused", "rejected", "conflict", "discarded", "differs", "forbidden":
		return State{ToneBad, words(word)}
	case "unknown", "lost", "overtaken", "inconclusive", "timeout":
		return State{ToneUnknown, words(word)}
	}
	return State{ToneOff, words(word)}
}

func words(word string) string { return strings.ReplaceAll(word, "_", " ") }

// Class is the badge's style.
func (s State) Class() string {
	switch s.Tone {
	case ToneGood, ToneBusy, ToneWait, ToneBad, ToneUnknown:
		return string(s.Tone)
	}
	return string(ToneOff)
}

// Empty is shown where a list has nothing: why, and what to do next. Template: {{template "empty" .Empty}}.
type Empty struct {
	Title string
	Text  string
	Links []Link
}

// Tile is a figure on a dashboard that leads to what it counts. Template: {{template "tile" .}} in <ul class="tiles">.
type Tile struct {
	Href  string // empty: it leads nowhere
	Label string // what is counted
	State *State // the state that is counted; nil for anything else
	Value string
	Note  string // "oldest 3 h 20 min"
	At    Time   // stands behind the note: "oldest of", and when that was
}

// Moment is an entry of a timeline. Template: {{template "timeline" .Moments}}.
type Moment struct {
	At    Time
	Title string
	State *State
	Text  string
	Until Time // stands behind the text: "The answer is kept at least until", and when that is
	Link  *Link
}

// Compare puts two views of one thing side by side and marks what differs. Template: {{template "compare" .Compare}}.
type Compare struct {
	Caption     string
	Left, Right string // whose view each side is
	Rows        []CompareRow
}

// CompareRow is one member in both views. Whoever fills it decides whether it differs: "10" and "10.00" don't.
type CompareRow struct {
	Label       string
	Left, Right string // empty: this side has nothing
	Differs     bool
}

// Differences is how many rows differ.
func (c Compare) Differences() (n int) {
	for _, row := range c.Rows {
		if row.Differs {
			n++
		}
	}
	return n
}
