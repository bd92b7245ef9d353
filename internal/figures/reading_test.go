package figures

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// counting reads 1, 2, 3 ..., each after a pause.
type counting struct {
	reads atomic.Int64
	pause time.Duration
	fail  atomic.Bool
}

func (c *counting) read(ctx context.Context) (int64, error) {
	n := c.reads.Add(1)
	select {
	case <-time.After(c.pause):
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	if c.fail.Load() {
		return 0, errors.New("away")
	}
	return n, nil
}

func TestAYoungValueIsNotReadAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &counting{}
		r := New("test", c.read, Options{Every: time.Minute})
		begun := time.Now()
		for range 3 {
			if got := r.Get(); got.Value != 1 || !got.Known || !got.At.Equal(begun) {
				t.Fatalf("got %+v, want the value read at %v", got, begun)
			}
			time.Sleep(20 * time.Second) //nolint:forbidigo // the bubble's own clock
		}
		if got := r.Get(); got.Value != 2 {
			t.Errorf("after a minute the value is %d, want it read again", got.Value)
		}
	})
}

func TestManyWhoAskShareOneReading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &counting{pause: 500 * time.Millisecond}
		r := New("test", c.read, Options{})
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() {
				if got := r.Get(); got.Value != 1 {
					t.Errorf("got %+v, want the one reading's value", got)
				}
			})
		}
		all.Wait()
		if n := c.reads.Load(); n != 1 {
			t.Errorf("read %d times", n)
		}
	})
}

func TestASlowReadingHoldsNobodyUpAndTheLastValueStands(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &counting{}
		r := New("test", c.read, Options{Every: time.Minute, Wait: time.Second, Limit: time.Hour})
		first := r.Get()
		time.Sleep(2 * time.Minute) //nolint:forbidigo // the bubble's own clock
		c.pause = 10 * time.Second
		asked := time.Now()
		if got := r.Get(); got.Value != 1 || !got.At.Equal(first.At) {
			t.Errorf("got %+v, want the last value and its time", got)
		}
		if waited := time.Since(asked); waited != time.Second {
			t.Errorf("waited %v", waited)
		}
		time.Sleep(10 * time.Second) //nolint:forbidigo // the bubble's own clock
		if got := r.Get(); got.Value != 2 || !got.At.Equal(asked) {
			t.Errorf("got %+v, want what was read meanwhile, as of %v", got, asked)
		}
	})
}

func TestASlowQueryIsAskedLessOften(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &counting{pause: 30 * time.Second}
		r := New("test", c.read, Options{Every: time.Second, Limit: time.Hour})
		for begun := time.Now(); time.Since(begun) < time.Hour; {
			r.Get()
			time.Sleep(time.Second) //nolint:forbidigo // the bubble's own clock
		}
		if n := c.reads.Load(); n < 8 || n > 12 { // an hour holds 120 of 30 s; one part in eleven is about 11
			t.Errorf("a query of 30 s was asked %d times in an hour", n)
		}
		synctest.Wait()
		time.Sleep(time.Minute) //nolint:forbidigo // the last reading ends within the bubble
	})
}

func TestAFailedReadingIsCountedAndLeavesTheLastValue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &counting{}
		c.fail.Store(true)
		r := New("test", c.read, Options{Every: time.Second})
		if got := r.Get(); got.Known || got.Failures != 1 {
			t.Errorf("got %+v, want nothing known and one failure", got)
		}
		c.fail.Store(false)
		time.Sleep(time.Second) //nolint:forbidigo // the bubble's own clock
		good := r.Get()
		c.fail.Store(true)
		time.Sleep(time.Second) //nolint:forbidigo // the bubble's own clock
		if got := r.Get(); got.Value != good.Value || !got.At.Equal(good.At) || got.Failures != 2 {
			t.Errorf("got %+v after a failure, want %+v and two failures", got, good)
		}
	})
}

func TestAReadingThatNeverEndsIsEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := New("test", func(ctx context.Context) (int, error) { <-ctx.Done(); return 0, ctx.Err() }, Options{Limit: 5 * time.Second})
		r.Get()
		time.Sleep(10 * time.Second) //nolint:forbidigo // the bubble's own clock
		synctest.Wait()
		if got := r.current.Failures; got != 1 {
			t.Errorf("%d readings have failed, want the one that never ended by itself", got)
		}
	})
}

func TestAPanicInAReadingIsAFailure(t *testing.T) {
	t.Parallel()
	r := New("test", func(context.Context) (int, error) { panic("broken") }, Options{})
	if got := r.Get(); got.Known || got.Failures != 1 {
		t.Errorf("got %+v, want a failure", got)
	}
}
