package invoice

import (
	"strings"
	"testing"

	"invoicebridge/internal/problem"
)

// A cursor that is taken is the only one of its position, in each of the three forms, and what is none is the caller's mistake.
func FuzzCursor(f *testing.F) {
	at := microTime(1772442000123456)
	f.Add(position{createdAt: at}.cursor())
	for _, id := range []int64{0, 1, -1, 1<<63 - 1} {
		f.Add(serialPlace{at, id}.cursor())
		f.Add(serial(id))
	}
	for _, text := range []string{"AQAAAAAAAAAA", "", "01", "+1", " 1", "１", "9223372036854775808", "1_0", strings.Repeat("A", 32), strings.Repeat("_", 32)} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, cursor string) {
		if p, err := parseCursor(cursor); taken(t, cursor, err) {
			onlyOne(t, cursor, p.cursor())
			if p.createdAt.Year() < 1 {
				t.Fatalf("%q is in the year %d", cursor, p.createdAt.Year())
			}
		}
		if id, err := parseSerial(cursor); taken(t, cursor, err) {
			onlyOne(t, cursor, serial(id))
			if id < 1 {
				t.Fatalf("%q is the id %d", cursor, id)
			}
		}
		if p, err := parseSerialPlace(cursor); taken(t, cursor, err) {
			onlyOne(t, cursor, p.cursor())
			if p.at.Year() < 1 || p.id < 0 {
				t.Fatalf("%q is %d in the year %d", cursor, p.id, p.at.Year())
			}
		}
	})
}

func taken(t *testing.T, cursor string, err error) bool {
	t.Helper()
	if err != nil && !problem.Is(err, problem.MalformedRequest) {
		t.Fatalf("%q: %v", cursor, err)
	}
	return err == nil
}

func onlyOne(t *testing.T, cursor, own string) {
	t.Helper()
	if own != cursor {
		t.Fatalf("%q and %q are one position", own, cursor)
	}
}
