package chaos

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
)

// Exchange is one request and what came back, as its sender saw it.
type Exchange struct {
	Sent, Ended time.Duration `json:"-"` // since the beginning
	// By is who sent it: a client of the ERP, a client of the CRM side, an operator, or (Attempt) a worker as the ERP saw it.
	By      string
	Key     string `json:",omitzero"`
	Order   string `json:",omitzero"`
	Content string `json:",omitzero"` // digest of what was sent
	Status  int    `json:",omitzero"` // 0: no answer
	Problem string `json:",omitzero"`
	Answer  string `json:",omitzero"` // digest of the answer's body
	Invoice string `json:",omitzero"` // id in the answer
	Err     string `json:",omitzero"`
}

func (x Exchange) String() string {
	came := x.Err
	if x.Status != 0 {
		came = strings.TrimSpace(fmt.Sprintf("%d %s %s %s", x.Status, x.Problem, x.Invoice, x.Answer))
	}
	return fmt.Sprintf("%8.3fs %8.3fs %-9s key %s order %s content %s: %s", x.Sent.Seconds(), x.Ended.Seconds(), x.By, x.Key, x.Order, x.Content, came)
}

// Note is something else that happened: a disturbance's begin or end, a change of status.
type Note struct {
	At   time.Duration
	Text string
}

// History is everything that was seen. It is safe for concurrent use.
type History struct {
	start time.Time
	mu    sync.Mutex

	Exchanges []Exchange
	Attempts  []Exchange // what reached the ERP from workers
	Notes     []Note
	Counts    map[Kind]int
	// Undone says how often a kind was tried and did not come to its end: the database was away, or what it was done to was.
	Undone map[Kind]int
	// Removed is what purges have removed or minimised, by what it was.
	Removed map[string]int
	// Fell are processes that ended by themselves.
	Fell []string

	// cancels are the operations for which cancel was pressed; true: and it was confirmed.
	cancels map[string]bool
}

func newHistory() *History {
	return &History{start: time.Now(), Counts: map[Kind]int{}, Undone: map[Kind]int{}, Removed: map[string]int{}, cancels: map[string]bool{}}
}

func (h *History) now() time.Duration { return time.Since(h.start) }

func (h *History) exchange(x Exchange) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.Exchanges = append(h.Exchanges, x)
}

func (h *History) attempt(x Exchange) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.Attempts = append(h.Attempts, x)
}

func (h *History) note(format string, args ...any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.Notes = append(h.Notes, Note{h.now(), fmt.Sprintf(format, args...)})
}

func (h *History) count(k Kind) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.Counts[k]++
}

func (h *History) undone(k Kind) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.Undone[k]++
}

// removed takes note of how much is gone by now.
func (h *History) removed(what string, n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.Removed[what] = max(h.Removed[what], n)
}

func (h *History) fell(what string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.Fell = append(h.Fell, what)
}

// cancel takes note of what a press of cancel came to.
func (h *History) cancel(key string, confirmed bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.cancels[key] = h.cancels[key] || confirmed
}

// about is what the history has on a key or an order, with what was going on at that time, in the order of time.
// All of its own lines are there; of what else was going on, what is nearest to them, as far as limit has room.
func (h *History) about(key, order string, limit int) []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	type line struct {
		at   time.Duration
		text string
	}
	var lines []line
	from, to := time.Duration(1<<62), time.Duration(0)
	for _, x := range slices.Concat(h.Exchanges, h.Attempts) {
		if key != "" && x.Key == key || order != "" && x.Order == order {
			lines = append(lines, line{x.Sent, x.String()})
			from, to = min(from, x.Sent), max(to, x.Ended)
		}
	}
	var notes []line
	for _, n := range h.Notes {
		if n.At >= from-time.Second && n.At <= to+time.Second {
			notes = append(notes, line{n.At, fmt.Sprintf("%8.3fs ----- %s", n.At.Seconds(), n.Text)})
		}
	}
	if room := max(limit-len(lines), 0); len(notes) > room {
		distance := func(n line) time.Duration {
			nearest := time.Duration(1 << 62)
			for _, l := range lines {
				nearest = min(nearest, (n.at - l.at).Abs())
			}
			return nearest
		}
		slices.SortStableFunc(notes, func(a, b line) int { return cmp.Compare(distance(a), distance(b)) })
		notes = notes[:room]
	}
	lines = append(lines, notes...)
	slices.SortStableFunc(lines, func(a, b line) int { return int(a.at - b.at) })
	texts := make([]string, len(lines))
	for i, l := range lines {
		texts[i] = l.text
	}
	return texts
}

// write writes the exchanges as lines of JSON, and then what else happened.
func (h *History) write(w io.Writer) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	type timed struct {
		Sent, Ended float64 // seconds
		Exchange    `json:",inline"`
	}
	for _, x := range slices.Concat(h.Exchanges, h.Attempts) {
		line, err := json.Marshal(timed{x.Sent.Seconds(), x.Ended.Seconds(), x})
		if err != nil {
			return err
		}
		if _, err := w.Write(append(line, '\n')); err != nil {
			return err
		}
	}
	for _, n := range h.Notes {
		line, err := json.Marshal(struct {
			At   float64 // seconds
			Note string
		}{n.At.Seconds(), n.Text})
		if err != nil {
			return err
		}
		if _, err := w.Write(append(line, '\n')); err != nil {
			return err
		}
	}
	return nil
}
