package retention

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgconn"
)

// table is rows in memory, numbered from 1, the longest overdue first.
type table struct {
	name string
	rows []int
	held []int          // never in a list
	bad  map[int]string // what the database says when one of these is removed
	cost time.Duration  // of one statement
	c    *clock
}

type clock struct {
	at     time.Time
	pauses []time.Duration
	log    []string
}

func (c *clock) now() time.Time { return c.at }

func (c *clock) pause(ctx context.Context, d time.Duration) error {
	c.pauses = append(c.pauses, d)
	c.at = c.at.Add(d)
	return ctx.Err()
}

func (tb *table) step() Step {
	return NewStep(tb.name,
		func(_ context.Context, after *int, limit int32) (page []int, err error) {
			for _, r := range tb.rows {
				if (after == nil || r > *after) && !slices.Contains(tb.held, r) && len(page) < int(limit) {
					page = append(page, r)
				}
			}
			return page, nil
		},
		func(r int) time.Duration { return time.Duration(100-r) * time.Hour },
		func(ctx context.Context, rows []int) (int64, error) {
			tb.c.at = tb.c.at.Add(tb.cost)
			for _, r := range rows {
				if code := tb.bad[r]; code != "" {
					return 0, &pgconn.PgError{Code: code}
				}
			}
			tb.c.log = append(tb.c.log, tb.name)
			tb.rows = slices.DeleteFunc(tb.rows, func(r int) bool { return slices.Contains(rows, r) })
			return int64(len(rows)), ctx.Err()
		})
}

func numbers(n int) (rows []int) {
	for i := 1; i <= n; i++ {
		rows = append(rows, i)
	}
	return rows
}

func (c *clock) purger(opts Options, tables ...*table) *Purger {
	var steps []Step
	for _, tb := range tables {
		tb.c = c
		steps = append(steps, tb.step())
	}
	opts.Now, opts.Pause = c.now, c.pause
	return NewPurger(steps, opts)
}

func TestThePauseIsAMultipleOfWhatTheBatchTook(t *testing.T) {
	t.Parallel()
	c, tb := &clock{}, &table{name: "a", rows: numbers(5), cost: 20 * time.Millisecond}
	results, err := c.purger(Options{Pace: Pace{Batch: 2, PauseFactor: 3}}, tb).Purge(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]Result{{Table: "a", Rows: 5}}, results); diff != "" {
		t.Error(diff)
	}
	want := []time.Duration{60 * time.Millisecond, 60 * time.Millisecond, 60 * time.Millisecond}
	if diff := cmp.Diff(want, c.pauses); diff != "" {
		t.Error(diff)
	}
}

func TestABacklogOfOneTableStarvesNoOther(t *testing.T) {
	t.Parallel()
	c, long, short := &clock{}, &table{name: "long", rows: numbers(8)}, &table{name: "short", rows: numbers(3)}
	if _, err := c.purger(Options{Pace: Pace{Batch: 2}}, long, short).Purge(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("long short long short long long", strings.Join(c.log, " ")); diff != "" {
		t.Error(diff)
	}
}

func TestARunEndsWithItsTimeAndTheNextGoesOn(t *testing.T) {
	t.Parallel()
	c, tb := &clock{}, &table{name: "a", rows: numbers(10), cost: 200 * time.Millisecond}
	purger := c.purger(Options{Pace: Pace{Batch: 2, PauseFactor: 4}, RunTime: 2 * time.Second}, tb)
	var removed []int64
	var last Result
	for range 4 {
		results, err := purger.Purge(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		last = results[0]
		removed = append(removed, last.Rows)
	}
	if diff := cmp.Diff([]int64{4, 4, 2, 0}, removed); diff != "" || last.More {
		t.Errorf("%s; more: %v", diff, last.More)
	}
}

func TestABadRowIsToldAndKeepsNoOther(t *testing.T) {
	t.Parallel()
	c, seen := &clock{}, &counter{}
	tb := &table{name: "a", rows: numbers(7), held: []int{2}, bad: map[int]string{3: "P0001", 6: "23503"}}
	results, err := c.purger(Options{Pace: Pace{Batch: 3}, Observer: seen}, tb).Purge(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]Result{{Table: "a", Rows: 4, Refused: 2}}, results); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]int{2, 3, 6}, tb.rows); diff != "" {
		t.Error(diff)
	}
	if seen.purged != 4 || seen.refused != 2 {
		t.Errorf("counted %+v", seen)
	}
}

type counter struct{ purged, refused int64 }

func (c *counter) RowsPurged(_ string, n int64) { c.purged += n }
func (c *counter) RowRefused(string)            { c.refused++ }

func TestAFailingDatabaseEndsTheRun(t *testing.T) {
	t.Parallel()
	for _, code := range []string{"57P01", "53300", "08006", "58030"} {
		c, tb := &clock{}, &table{name: "a", rows: numbers(6), bad: map[int]string{3: code}}
		results, err := c.purger(Options{Pace: Pace{Batch: 2}}, tb).Purge(t.Context(), nil)
		var told *pgconn.PgError
		if !errors.As(err, &told) || results[0].Rows != 2 || !results[0].More {
			t.Errorf("%s: %+v, %v", code, results, err)
		}
	}
}

func TestAnInterruptedRunEndsAtOnce(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	c, tb := &clock{}, &table{name: "a", rows: numbers(6)}
	results, err := c.purger(Options{Pace: Pace{Batch: 2}}, tb).Purge(ctx, func(Result) { cancel() })
	if !errors.Is(err, context.Canceled) || results[0].Rows != 2 {
		t.Errorf("%+v, %v", results, err)
	}
	started := make(chan error)
	go func() { started <- pause(ctx, time.Hour) }()
	if err := <-started; !errors.Is(err, context.Canceled) {
		t.Errorf("the pause ended with %v", err)
	}
}

func TestADryRunReadsAllAndRemovesNothing(t *testing.T) {
	t.Parallel()
	c, tb := &clock{}, &table{name: "a", rows: numbers(5), held: []int{4}}
	purger := c.purger(Options{Pace: Pace{Batch: 2}}, tb)
	results, err := purger.DryRun(t.Context(), nil)
	if err != nil || results[0].Rows != 4 || len(tb.rows) != 5 {
		t.Errorf("%+v, %v, rows left %v", results, err, tb.rows)
	}
	overdue, err := purger.Overdue(t.Context())
	if diff := cmp.Diff([]Overdue{{Table: "a", By: 99 * time.Hour}}, overdue); diff != "" || err != nil {
		t.Error(diff, err)
	}
}

func TestWrongSettingsAreNamed(t *testing.T) {
	t.Parallel()
	err := errors.Join(
		Pace{Batch: -1, PauseFactor: math.NaN()}.Mistakes("X_"), Schedule{Interval: 1, RunTime: 2 * time.Hour}.Mistakes("X_"),
		Pace{}.Mistakes("Y_"), Schedule{}.Mistakes("Y_"))
	for _, variable := range []string{"X_PURGE_BATCH", "X_PURGE_PAUSE_FACTOR", "X_PURGE_INTERVAL", "X_PURGE_RUN_TIME"} {
		if strings.Count(err.Error(), variable+": ") != 1 {
			t.Errorf("%s is not named once:\n%v", variable, err)
		}
	}
	if strings.Contains(err.Error(), "Y_") {
		t.Errorf("zero values stand for defaults:\n%v", err)
	}
}

func TestTheLongestRetryIsTheSumOfItsParts(t *testing.T) {
	t.Parallel()
	got := RetryTimes{Total: time.Hour, Rescue: time.Minute, ReconciliationWindow: 2 * time.Hour, SourceDelay: 24 * time.Hour}.Longest()
	if got != 27*time.Hour+time.Minute {
		t.Errorf("got %s", got)
	}
}
