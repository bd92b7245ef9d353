package invoice

import (
	"encoding/base64"
	"encoding/binary"
	"strings"
	"time"

	"github.com/google/uuid"

	"invoicebridge/internal/problem"
)

// position is a place in the list, newest first.
type position struct {
	createdAt time.Time
	id        uuid.UUID
}

// A cursor is a version, the time in microseconds, which is all the precision that PostgreSQL has, and the id.
const (
	cursorVersion = 1
	cursorLength  = 1 + 8 + 16
)

// cursorEncoding is strict: one position has one cursor.
func cursorEncoding() *base64.Encoding { return base64.RawURLEncoding.Strict() }

func (p position) cursor() string {
	raw := make([]byte, 0, cursorLength)
	raw = append(raw, cursorVersion)
	raw = binary.BigEndian.AppendUint64(raw, uint64(p.createdAt.UnixMicro()))
	raw = append(raw, p.id[:]...)
	return cursorEncoding().EncodeToString(raw)
}

func parseCursor(cursor string) (position, error) {
	raw, err := cursorEncoding().DecodeString(cursor)
	if err != nil || len(raw) != cursorLength || raw[0] != cursorVersion || strings.ContainsAny(cursor, "\r\n") {
		return position{}, badCursor() // the decoder overlooks line ends
	}
	p := position{createdAt: microTime(int64(binary.BigEndian.Uint64(raw[1:9]))), id: uuid.UUID(raw[9:])}
	if p.createdAt.Year() < 1 { // below lie years that timestamptz can't hold; above, microseconds end first
		return position{}, badCursor()
	}
	return p, nil
}

func microTime(micros int64) time.Time { return time.UnixMicro(micros).UTC() }

func badCursor() error {
	return problem.New(problem.MalformedRequest,
		"cursor is not one that this list has given: take next_cursor of the page before, unchanged.")
}
