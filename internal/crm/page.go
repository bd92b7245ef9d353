package crm

import (
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"invoicebridge/internal/problem"
)

// PageQuery says which page of a list is wanted.
type PageQuery struct {
	Limit  int    // 1 to MaxPageLimit; 0 is DefaultPageLimit
	Cursor string // Next or Previous of the page before; "" is the first page
	// OldestFirst turns the order of the whole list round.
	OldestFirst bool
}

// Page is one page of a list, with the cursors of its neighbours: "" where there is none.
type Page[T any] struct {
	Items          []T
	Next, Previous string
}

// place is where a row stands in a list: by time, and where several have the same one (what one call brought has) by id.
type place[ID any] struct {
	at time.Time
	id ID
}

// listed is one direction of a list: the rows behind the position, in order, at most limit; from the end on if it is nil.
type listed[R, ID any] func(beyond *place[ID], limit int32) ([]R, error)

// paging is how one kind of rows is gone through.
type paging[R, ID any] struct {
	newest, oldest listed[R, ID]
	at             func(R) place[ID]
	parse          func(string) (ID, error)
	format         func(ID) string
}

// page reads one page. Both ways through a list show each row that was there from the start once, in the same order,
// whatever comes in meanwhile: a page begins behind a row, not at a number. A wrong query is malformed-request.
func (p paging[R, ID]) page(q PageQuery) (page Page[R], err error) {
	limit, err := pageLimit(q.Limit)
	if err != nil {
		return page, err
	}
	from, back, err := p.parseCursor(q.Cursor)
	if err != nil {
		return page, problem.New(problem.MalformedRequest, "cursor is not one that was given out.")
	}
	list := p.newest
	if q.OldestFirst != back {
		list = p.oldest
	}
	rows, err := list(from, limit+1) // one more tells whether there is another page
	if err != nil {
		return page, err
	}
	if back && len(rows) == 0 { // the way back has come to the beginning
		return p.page(PageQuery{Limit: q.Limit, OldestFirst: q.OldestFirst})
	}
	more := len(rows) > int(limit)
	if more {
		rows = rows[:limit]
	}
	if back {
		slices.Reverse(rows)
	}
	page.Items = rows
	if len(rows) == 0 {
		return page, nil
	}
	if more || back {
		page.Next = p.cursor(rows[len(rows)-1], false)
	}
	if more && back || from != nil && !back {
		page.Previous = p.cursor(rows[0], true)
	}
	return page, nil
}

func pageLimit(limit int) (int32, error) {
	switch {
	case limit < 0 || limit > MaxPageLimit:
		return 0, problem.New(problem.MalformedRequest, "limit must be from 1 to %d.", MaxPageLimit)
	case limit == 0:
		return DefaultPageLimit, nil
	}
	return int32(limit), nil
}

// backMark stands before a cursor that leads back.
const backMark = "back "

func (p paging[R, ID]) cursor(row R, back bool) string { return formatPlace(p.at(row), back, p.format) }

func (p paging[R, ID]) parseCursor(cursor string) (from *place[ID], back bool, err error) {
	if cursor == "" {
		return nil, false, nil
	}
	return parsePlace(cursor, p.parse, p.format)
}

// formatPlace has the time at full precision.
func formatPlace[ID any](at place[ID], back bool, format func(ID) string) string {
	text := at.at.UTC().Format(time.RFC3339Nano) + " " + format(at.id)
	if back {
		text = backMark + text
	}
	return base64.RawURLEncoding.EncodeToString([]byte(text))
}

// parsePlace takes only what formatPlace gives for a row: one place has one text.
func parsePlace[ID any](cursor string, parse func(string) (ID, error), format func(ID) string) (at *place[ID], back bool, err error) {
	raw, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil {
		return nil, false, err
	}
	text, back := strings.CutPrefix(string(raw), backMark)
	atText, idText, _ := strings.Cut(text, " ")
	at = new(place[ID])
	if at.at, err = listTime(atText); err != nil {
		return nil, false, err
	}
	if at.id, err = parse(idText); err != nil {
		return nil, false, err
	}
	at.at = at.at.Truncate(time.Microsecond) // PostgreSQL has no more
	if formatPlace(*at, back, format) != cursor {
		return nil, false, errors.New("the place is written in another way")
	}
	return at, back, nil
}

// listTime reads a time that a row of a list can have. What a time zone carries beyond the year 9999 could not be written as
// a cursor again.
func listTime(text string) (time.Time, error) {
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return time.Time{}, err
	}
	if y := at.UTC().Year(); y < 1 || y > 9999 {
		return time.Time{}, fmt.Errorf("the year %d is in no list", y)
	}
	return at, nil
}

func parseUUID(text string) (uuid.UUID, error) { return uuid.Parse(text) }

func formatUUID(id uuid.UUID) string { return id.String() }

func parseNumber(text string) (int64, error) { return strconv.ParseInt(text, 10, 64) }

func parsePosition(text string) (int32, error) {
	n, err := strconv.ParseInt(text, 10, 32)
	return int32(n), err
}

func formatNumber(id int64) string { return strconv.FormatInt(id, 10) }

// parts gives a position as SQL takes it.
func (p *place[ID]) parts() (at *time.Time, id *ID) {
	if p == nil {
		return nil, nil
	}
	return &p.at, &p.id
}

// pageOf turns the rows of a page into what is told of them.
func pageOf[R, T any](page Page[R], err error, tell func(R) T) (Page[T], error) {
	told := Page[T]{Items: make([]T, len(page.Items)), Next: page.Next, Previous: page.Previous}
	for i, row := range page.Items {
		told.Items[i] = tell(row)
	}
	return told, err
}
