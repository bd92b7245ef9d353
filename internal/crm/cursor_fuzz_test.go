package crm

import (
	"encoding/base64"
	"testing"
	"time"

	"github.com/google/uuid"
)

// A cursor that is taken names a place that PostgreSQL can hold, and is the place's only one, whatever its rows are known by.
func FuzzCursor(f *testing.F) {
	at := time.Date(2026, 3, 2, 9, 0, 0, 123456000, time.UTC)
	for _, back := range []bool{false, true} {
		f.Add(formatPlace(place[uuid.UUID]{at, uuid.Max}, back, formatUUID))
		f.Add(formatPlace(place[int64]{at, 12}, back, formatNumber))
	}
	for _, otherwise := range otherCursors() {
		f.Add(otherwise)
	}
	f.Add("MDAwMC0wMS0wMVQwMDowMDowMFogMA") // the year 0
	f.Add("OTk5OS0xMi0zMVQyMzo1OTo1OS0yMzo1OSAwMTk4ZDAwMC0wMDAwLTcwMDAtODAwMC0wMDAwMDAwMDAwMDA")
	f.Fuzz(func(t *testing.T, cursor string) {
		checkCursor(t, cursor, parseUUID, formatUUID)
		checkCursor(t, cursor, parseNumber, formatNumber)
	})
}

func checkCursor[ID comparable](t *testing.T, cursor string, parse func(string) (ID, error), format func(ID) string) {
	t.Helper()
	p := paging[place[ID], ID]{at: func(at place[ID]) place[ID] { return at }, parse: parse, format: format}
	from, back, err := p.parseCursor(cursor)
	if err != nil || from == nil {
		return
	}
	checkTime(t, cursor, from.at)
	if own := p.cursor(*from, back); own != cursor {
		t.Fatalf("%q leads to %+v, whose cursor is %q", cursor, from, own)
	}
}

// otherCursors lead to the place of 2026-03-02T09:00:00.5Z and 12, in other texts than the list's own.
func otherCursors() map[string]string {
	encode := base64.RawURLEncoding.EncodeToString
	own := encode([]byte("2026-03-02T09:00:00.5Z 12"))
	return map[string]string{
		"another zone": encode([]byte("2026-03-02T10:00:00.5+01:00 12")), "a zero more": encode([]byte("2026-03-02T09:00:00.50Z 12")),
		"a comma": encode([]byte("2026-03-02T09:00:00,5Z 12")), "nanoseconds": encode([]byte("2026-03-02T09:00:00.500000001Z 12")),
		"a sign": encode([]byte("2026-03-02T09:00:00.5Z +12")), "a zero in front": encode([]byte("2026-03-02T09:00:00.5Z 012")),
		"a line end": own[:4] + "\n" + own[4:], "bits behind the end": own[:len(own)-1] + "j",
	}
}

func TestACursorIsTakenInNoOtherTextThanItsOwn(t *testing.T) {
	t.Parallel()
	at := place[int64]{time.Date(2026, 3, 2, 9, 0, 0, 5e8, time.UTC), 12}
	if from, _, err := parsePlace(formatPlace(at, false, formatNumber), parseNumber, formatNumber); err != nil || *from != at {
		t.Fatalf("its own leads to %+v (%v)", from, err)
	}
	for what, cursor := range otherCursors() {
		if from, _, err := parsePlace(cursor, parseNumber, formatNumber); err == nil {
			t.Errorf("%s: %q leads to %+v", what, cursor, from)
		}
	}
}

func checkTime(t *testing.T, cursor string, at time.Time) {
	t.Helper()
	if y := at.UTC().Year(); y < 1 || y > 9999 {
		t.Fatalf("%q is in the year %d", cursor, y)
	}
}
