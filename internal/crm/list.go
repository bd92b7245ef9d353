package crm

import (
	"encoding/base64"
	"strings"
	"time"

	"github.com/google/uuid"

	"invoicebridge/internal/problem"
)

// PageFilter says which page of a list is wanted.
type PageFilter struct {
	Limit  int    // 1 to MaxPageLimit; 0 is DefaultPageLimit
	Cursor string // of the page before; "" is the first page
}

// mark is where a row stands in a list: by time, and by id where several have the same one.
type mark struct {
	at time.Time
	id uuid.UUID
}

// forward gives one page of a list that is gone through in one direction, and the cursor of the next page; "" after the
// last. list gives at most limit rows, from behind at and id on where they are given.
func forward[R, T any](f PageFilter, list func(at *time.Time, id *uuid.UUID, limit int32) ([]R, error), standing func(R) mark, tell func(R) T) (page []T, next string, err error) {
	limit := f.Limit
	switch {
	case limit < 0 || limit > MaxPageLimit:
		return nil, "", problem.New(problem.MalformedRequest, "limit must be from 1 to %d.", MaxPageLimit)
	case limit == 0:
		limit = DefaultPageLimit
	}
	var at *time.Time
	var id *uuid.UUID
	if f.Cursor != "" {
		m, err := parseMark(f.Cursor)
		if err != nil {
			return nil, "", problem.New(problem.MalformedRequest, "cursor is not one that was given out.")
		}
		at, id = &m.at, &m.id
	}
	rows, err := list(at, id, int32(limit)+1) // one more tells whether there is a next page
	if err != nil {
		return nil, "", err
	}
	if len(rows) > limit {
		rows = rows[:limit]
		next = standing(rows[limit-1]).cursor()
	}
	page = make([]T, len(rows))
	for i, row := range rows {
		page[i] = tell(row)
	}
	return page, next, nil
}

func (m mark) cursor() string {
	return base64.RawURLEncoding.EncodeToString([]byte(m.at.UTC().Format(time.RFC3339Nano) + " " + m.id.String()))
}

func parseMark(cursor string) (m mark, err error) {
	text, err := base64.RawURLEncoding.Strict().DecodeString(cursor)
	if err != nil {
		return m, err
	}
	at, id, _ := strings.Cut(string(text), " ")
	if m.at, err = listTime(at); err != nil {
		return m, err
	}
	m.id, err = uuid.Parse(id)
	return m, err
}
