package invoice

import (
	"slices"
	"strconv"

	"invoicebridge/internal/problem"
)

// Walked is a page of a list, newest first, with the cursors of its neighbours as in Found.
type Walked[T any] struct {
	Items          []T
	Next, Previous string
}

// listed reads at most limit rows that lie behind a place, or from the beginning.
type listed[R, P any] func(behind *P, limit int32) ([]R, error)

// walking is how a list is read both ways. A page begins behind a row and not at a number, so what comes meanwhile shifts
// nothing, and each row that was there from the start is met once.
type walking[R, P, T any] struct {
	older, newer listed[R, P] // newest first, and oldest first
	parse        func(cursor string) (P, error)
	cursor       func(R) string
	item         func(R) T
}

// page reads one page. It fails with problem malformed-request for a limit out of range or a cursor that no list gave.
func (l walking[R, P, T]) page(w Walk) (page Walked[T], err error) {
	page.Items = []T{}
	behind, back, err := l.behind(w)
	if err != nil {
		return page, err
	}
	list := l.older
	if back {
		list = l.newer
	}
	rows, err := list(behind, int32(w.limit())+1) // the one more says whether there is a further page
	if err != nil {
		return page, err
	}
	if back && len(rows) == 0 { // the way back has come to the beginning
		return l.page(Walk{Limit: w.Limit})
	}
	more := len(rows) > w.limit()
	rows = rows[:min(len(rows), w.limit())]
	hasNext, hasPrevious := more, behind != nil
	if back {
		slices.Reverse(rows)
		hasNext, hasPrevious = true, more
	}
	for _, row := range rows {
		page.Items = append(page.Items, l.item(row))
	}
	if hasNext && len(rows) > 0 {
		page.Next = l.cursor(rows[len(rows)-1])
	}
	if hasPrevious && len(rows) > 0 {
		page.Previous = l.cursor(rows[0])
	}
	return page, nil
}

// behind is the place that a walk begins behind, nil at the start, and whether it leads back.
func (l walking[R, P, T]) behind(w Walk) (place *P, back bool, err error) {
	cursor, back, err := w.cursor()
	if err != nil || cursor == "" {
		return nil, false, err
	}
	p, err := l.parse(cursor)
	return &p, back, err
}

// parseSerial reads the cursor of a list whose ids rise with time: the id alone.
func parseSerial(cursor string) (int64, error) {
	id, err := strconv.ParseInt(cursor, 10, 64)
	if err != nil || id < 1 || serial(id) != cursor {
		return 0, badCursor()
	}
	return id, nil
}

func serial(id int64) string { return strconv.FormatInt(id, 10) }

// cursor is the one that is given, and whether the page before it is wanted.
func (w Walk) cursor() (cursor string, newer bool, err error) {
	switch {
	case w.Limit < 0 || w.Limit > MaxPage:
		return "", false, problem.New(problem.MalformedRequest, "limit must be from 1 to %d.", MaxPage)
	case w.After != "" && w.Before != "":
		return "", false, problem.New(problem.MalformedRequest, "after and before can't be given both.")
	case w.Before != "":
		return w.Before, true, nil
	}
	return w.After, false, nil
}
