package retention

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// batchTimeLimit bounds one statement: a batch that takes longer is in somebody's way.
const batchTimeLimit = 30 * time.Second

// Observer counts what a Purger does; it must not block.
type Observer interface {
	RowsPurged(table string, rows int64)
	// RowRefused: the database would not let this row go; it stays and is met again in the next run.
	RowRefused(table string)
}

// Options are a Purger's settings. Zero values are usable.
type Options struct {
	Pace     Pace
	RunTime  time.Duration // 0: until nothing is left
	Logger   *slog.Logger  // nil discards
	Observer Observer      // nil: nobody counts
	Now      func() time.Time
	// Pause waits between two batches, and ends early with the context. nil: by a timer.
	Pause func(ctx context.Context, d time.Duration) error
}

// Purger removes what has been kept long enough. It keeps nothing between runs: each begins with what is longest
// overdue, so a run that was cut off is gone on with by the next. Any number may run at once, here or elsewhere.
type Purger struct {
	steps []Step
	opts  Options
}

// NewPurger makes a Purger of these steps.
func NewPurger(steps []Step, opts Options) *Purger {
	opts.Pace = opts.Pace.withDefaults()
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if opts.Pause == nil {
		opts.Pause = pause
	}
	return &Purger{steps: steps, opts: opts}
}

// Result is what a run did to one table.
type Result struct {
	Table   string
	Rows    int64 // removed or minimised; in a dry run those that would be
	Refused int64 // rows that the database would not let go, each told in the log
	// More: the run ended before the table did.
	More bool
}

// Purge makes one run: a batch of each table in turn, so that the backlog of one does not starve the others, each batch
// a transaction of its own. It ends when nothing is left whose time has come, or when the run's time is over. progress
// (nil: nobody) is told each table's result as it grows.
//
// An error means that the database failed; what the run had done is in the results and stays done.
func (p *Purger) Purge(ctx context.Context, progress func(Result)) ([]Result, error) {
	return p.run(ctx, progress, p.removePage)
}

// DryRun does as Purge does, without removing anything: it counts what would go. It reads at the same pace.
func (p *Purger) DryRun(ctx context.Context, progress func(Result)) ([]Result, error) {
	return p.run(ctx, progress, func(_ context.Context, _ walk, rows int, result *Result) error {
		result.Rows += int64(rows)
		return nil
	})
}

type pageFunc func(ctx context.Context, w walk, rows int, result *Result) error

func (p *Purger) run(ctx context.Context, progress func(Result), page pageFunc) ([]Result, error) {
	results, walks := make([]Result, len(p.steps)), make([]walk, len(p.steps))
	for i, step := range p.steps {
		results[i], walks[i] = Result{Table: step.table, More: true}, step.open()
	}
	begun := p.opts.Now()
	for left := len(walks); left > 0; {
		for i, w := range walks {
			if w == nil {
				continue
			}
			if p.opts.RunTime > 0 && p.opts.Now().Sub(begun) >= p.opts.RunTime {
				return results, nil
			}
			if err := p.batch(ctx, w, &results[i], page); err != nil {
				return results, fmt.Errorf("purge %s: %w", results[i].Table, err)
			}
			if progress != nil {
				progress(results[i])
			}
			if !results[i].More {
				walks[i] = nil
				left--
			}
		}
	}
	return results, nil
}

// batch deals with one page and then pauses, for as long as the pace asks.
func (p *Purger) batch(ctx context.Context, w walk, result *Result, page pageFunc) error {
	begun := p.opts.Now()
	rows, err := p.next(ctx, w)
	if err != nil {
		return err
	}
	result.More = rows == int(p.opts.Pace.Batch)
	if rows == 0 {
		return nil
	}
	if err := page(ctx, w, rows, result); err != nil {
		return err
	}
	took := p.opts.Now().Sub(begun)
	return p.opts.Pause(ctx, time.Duration(p.opts.Pace.PauseFactor*float64(took)))
}

func (p *Purger) next(ctx context.Context, w walk) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, batchTimeLimit)
	defer cancel()
	return w.next(ctx, p.opts.Pace.Batch)
}

// removePage removes a page in one statement; if the database refuses one of its rows, row by row.
func (p *Purger) removePage(ctx context.Context, w walk, rows int, result *Result) error {
	err := p.remove(ctx, w, -1, result)
	if !ofOneRow(err) {
		return err
	}
	for i := range rows {
		err := p.remove(ctx, w, i, result)
		switch {
		case ofOneRow(err):
			result.Refused++
			p.opts.Logger.ErrorContext(ctx, "a row can't be removed and stays", "table", result.Table, "error", err)
			if p.opts.Observer != nil {
				p.opts.Observer.RowRefused(result.Table)
			}
		case err != nil:
			return err
		}
	}
	return nil
}

func (p *Purger) remove(ctx context.Context, w walk, i int, result *Result) error {
	ctx, cancel := context.WithTimeout(ctx, batchTimeLimit)
	defer cancel()
	removed, err := w.remove(ctx, i)
	if err != nil {
		return err
	}
	result.Rows += removed
	if p.opts.Observer != nil && removed > 0 {
		p.opts.Observer.RowsPurged(result.Table, removed)
	}
	return nil
}

// ofOneRow says whether an error may be due to what one row holds, so that the others are worth trying without it. It
// is not if the database as a whole can't work: it goes away, has no room, was told to stop this statement.
func ofOneRow(err error) bool {
	var refused *pgconn.PgError
	if !errors.As(err, &refused) || len(refused.Code) != 5 {
		return false
	}
	switch refused.Code[:2] {
	case "08", "53", "57", "58": // connection, resources, operator intervention, system
		return false
	}
	return true
}

// Overdue is how long the time of a table's oldest row that may go has come.
type Overdue struct {
	Table string
	By    time.Duration // 0: there is none
}

// Overdue reads how far the purge is behind, one index look-up a table.
func (p *Purger) Overdue(ctx context.Context) ([]Overdue, error) {
	overdue := make([]Overdue, len(p.steps))
	for i, step := range p.steps {
		w := step.open()
		if _, err := w.next(ctx, 1); err != nil {
			return nil, fmt.Errorf("oldest row of %s: %w", step.table, err)
		}
		overdue[i] = Overdue{Table: step.table, By: w.overdue()}
	}
	return overdue, nil
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
