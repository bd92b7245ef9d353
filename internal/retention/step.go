// Package retention removes what has been kept long enough: rows with an end, in paced batches, so that a backlog of
// millions does not slow the work of the day. What may go is decided by the queries of whoever owns the rows; this
// package decides how fast, how much at once, and that one bad row does not keep the others.
package retention

import (
	"context"
	"time"
)

// Step is one kind of rows with an end.
type Step struct {
	table string
	open  func() walk
}

// walk goes once through the rows whose time has come, the longest overdue first.
type walk interface {
	// next reads the next page and says how many rows it has. Fewer than limit: it is the last.
	next(ctx context.Context, limit int32) (rows int, err error)
	// overdue is how long ago the time of the page's first row came.
	overdue() time.Duration
	// remove removes the page's row i, or all of them if i is negative, in one statement, and says how many went. Rows
	// that others have locked, or that must stay after all, are left.
	remove(ctx context.Context, i int) (int64, error)
}

// NewStep makes the step of one table. list gives, in a fixed order with the longest overdue first, up to limit of the
// rows that may go and come after the row after (nil: from the first on). remove removes those of them that still may
// go, without waiting for anybody's lock. overdue says how long ago a row's time came.
func NewStep[R any](
	table string,
	list func(ctx context.Context, after *R, limit int32) ([]R, error),
	overdue func(R) time.Duration,
	remove func(ctx context.Context, rows []R) (int64, error),
) Step {
	return Step{table: table, open: func() walk { return &walkOf[R]{list: list, due: overdue, del: remove} }}
}

// Table names the step's table, as in Report and metrics.
func (s Step) Table() string { return s.table }

type walkOf[R any] struct {
	list func(ctx context.Context, after *R, limit int32) ([]R, error)
	due  func(R) time.Duration
	del  func(ctx context.Context, rows []R) (int64, error)

	page []R
	last *R
}

func (w *walkOf[R]) next(ctx context.Context, limit int32) (int, error) {
	page, err := w.list(ctx, w.last, limit)
	if err != nil {
		return 0, err
	}
	w.page = page
	if len(page) > 0 {
		last := page[len(page)-1]
		w.last = &last
	}
	return len(page), nil
}

func (w *walkOf[R]) overdue() time.Duration {
	if len(w.page) == 0 {
		return 0
	}
	return max(0, w.due(w.page[0]))
}

func (w *walkOf[R]) remove(ctx context.Context, i int) (int64, error) {
	if i < 0 {
		return w.del(ctx, w.page)
	}
	return w.del(ctx, w.page[i:i+1])
}
