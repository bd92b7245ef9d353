package invoice

import (
	"testing"

	"invoicebridge/internal/problem"
)

// A cursor that is taken is the only one of its position, and what is none is the caller's mistake.
func FuzzCursor(f *testing.F) {
	f.Add(position{createdAt: microTime(1772442000123456)}.cursor())
	f.Add("AQAAAAAAAAAA")
	f.Add("")
	f.Fuzz(func(t *testing.T, cursor string) {
		p, err := parseCursor(cursor)
		if err != nil {
			if problem.As(err) == nil {
				t.Fatalf("%q: %v", cursor, err)
			}
			return
		}
		if again := p.cursor(); again != cursor {
			t.Fatalf("%q and %q are one position", cursor, again)
		}
		if p.createdAt.Year() < 1 {
			t.Fatalf("%q is in the year %d", cursor, p.createdAt.Year())
		}
	})
}
