package crm

import (
	"testing"
	"time"

	"github.com/google/uuid"
)

// A cursor that is taken names a place that PostgreSQL can hold, and the place's own cursor leads to the same place.
func FuzzCursor(f *testing.F) {
	at := time.Date(2026, 3, 2, 9, 0, 0, 123456000, time.UTC)
	p := paging[time.Time, uuid.UUID]{
		at: func(at time.Time) place[uuid.UUID] { return place[uuid.UUID]{at, uuid.Nil} }, parse: parseUUID, format: formatUUID,
	}
	f.Add(p.cursor(at, false))
	f.Add(p.cursor(at, true))
	f.Add("MDAwMC0wMS0wMVQwMDowMDowMFogMA") // the year 0
	f.Add("OTk5OS0xMi0zMVQyMzo1OTo1OS0yMzo1OSAwMTk4ZDAwMC0wMDAwLTcwMDAtODAwMC0wMDAwMDAwMDAwMDA")
	f.Fuzz(func(t *testing.T, cursor string) {
		if from, back, err := p.parseCursor(cursor); err == nil && from != nil {
			checkTime(t, cursor, from.at)
			p.at = func(time.Time) place[uuid.UUID] { return *from }
			again, direction, err := p.parseCursor(p.cursor(from.at, back))
			if err != nil || !again.at.Equal(from.at) || again.id != from.id || direction != back {
				t.Fatalf("%q leads to %+v, whose cursor leads to %+v (%v)", cursor, from, again, err)
			}
		}
	})
}

func checkTime(t *testing.T, cursor string, at time.Time) {
	t.Helper()
	if y := at.UTC().Year(); y < 1 || y > 9999 {
		t.Fatalf("%q is in the year %d", cursor, y)
	}
}
