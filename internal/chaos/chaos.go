package chaos

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"invoicebridge/internal/fleet"
	"invoicebridge/internal/wire"
)

// Options are a run's settings.
type Options struct {
	Programs fleet.Programs
	// Other is another build of the same programs, for rolling restarts. Skewed is one whose clock is wrong; without it
	// no process has a wrong clock.
	Other, Skewed fleet.Programs
	Duration      time.Duration // of load and disturbances; what was begun is then brought to its end
	Seed          uint64
	HistoryFile   string       // where the exchanges, and what else happened, are written; "": nowhere
	Progress      func(string) // may be nil
}

// quietLimit is how long everything may take to be finished once nothing disturbs any more: the leases of killed processes
// have to end, and reconciliation has to come round.
const quietLimit = 10 * time.Minute

// patience is how long what is left may wait in quiet for its own time.
const patience = 30 * time.Second

const lookPause = time.Second

// Result is what a run gave.
type Result struct {
	Seed       uint64
	History    *History
	Books      Books
	Violations []Violation
	Quiet      time.Duration // how long everything took to be finished
	Network    wire.Stats    // what became of connections by HTTP
	Database   wire.Stats    // and of those to PostgreSQL
}

// Run disturbs, waits for quiet, and checks. An error means that the run could not be made; what it finds is in the
// result.
func Run(ctx context.Context, o Options) (r Result, err error) {
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	for _, p := range []fleet.Programs{o.Programs, o.Other} {
		if err := p.Check(); err != nil {
			return r, err
		}
	}
	r = Result{Seed: o.Seed, History: newHistory()}
	defer func() { // also of a run that could not be made to its end
		switch failed := r.writeHistory(o.HistoryFile); {
		case failed != nil:
			err = errors.Join(err, fmt.Errorf("write the history: %w", failed))
		case o.HistoryFile != "":
			o.Progress("every request and answer is in " + o.HistoryFile)
		}
	}()
	o.Progress("starting PostgreSQL, targets, two ERPs and two workers")
	w, err := newWorld(ctx, o, r.History)
	defer w.close()
	if err != nil {
		return r, err
	}
	r.History.start = time.Now()
	if err := w.run(ctx, &r); err != nil {
		return r, err
	}
	r.Network, r.Database = network(w.wires), network(w.toDatabase)
	if r.Books, err = w.books(ctx); err != nil {
		return r, err
	}
	r.Violations = Check(r.History, r.Books)
	return r, nil
}

func (w *world) run(ctx context.Context, r *Result) error {
	watching, endWatch := context.WithCancel(ctx)
	defer endWatch()
	var beside sync.WaitGroup
	defer beside.Wait()
	defer endWatch()
	for _, s := range w.slots {
		beside.Go(func() { s.watch(watching, w.programs) })
	}
	w.weather.calm.Store(false)
	begin, end := context.WithTimeout(ctx, w.options.Duration)
	defer end()
	beside.Go(func() { w.tell(begin) })
	knowing, giveUp := context.WithTimeout(ctx, w.options.Duration+quietLimit)
	defer giveUp()
	var clients sync.WaitGroup
	clients.Go(func() { w.load.run(knowing, begin) })
	w.disturb(begin, Schedule(w.options.Seed, w.options.Duration))
	<-begin.Done()
	if err := ctx.Err(); err != nil {
		return err
	}
	w.quiet(knowing, r, &clients)
	return nil
}

// tell says now and then how far the run is.
func (w *world) tell(ctx context.Context) {
	const every = 10 * time.Second
	for pause(ctx, every) {
		w.history.mu.Lock()
		exchanges, attempts, events := len(w.history.Exchanges), len(w.history.Attempts), 0
		for _, n := range w.history.Counts {
			events += n
		}
		w.history.mu.Unlock()
		w.options.Progress(fmt.Sprintf("%3.0f s: %d requests, %d attempts of workers, %d disturbances", w.history.now().Seconds(), exchanges, attempts, events))
	}
}

// quiet waits until nothing is left to do. What is still open at the limit is for the rules to say.
func (w *world) quiet(ctx context.Context, r *Result, clients *sync.WaitGroup) {
	w.options.Progress("nothing disturbs any more; waiting until everything is finished")
	w.weather.calm.Store(true)
	w.history.note("nothing disturbs any more")
	began := time.Now()
	clients.Wait()
	for {
		open, err := w.open(ctx)
		if err == nil && open == 0 || ctx.Err() != nil {
			break
		}
		if time.Since(began) > patience {
			w.letBackOffsEnd(ctx)
		}
		w.pressWhatIsLeft(ctx)
		pause(ctx, lookPause)
	}
	r.Quiet = time.Since(began)
}

// letBackOffsEnd has what waits for its next attempt be due, as it would be some minutes later. The time since it was last sent,
// against which a target's "absent" is measured, stays.
func (w *world) letBackOffsEnd(ctx context.Context) {
	_, err := w.pools["erp"].Exec(ctx, `UPDATE registrations SET next_attempt_at = now()
		WHERE status IN ('pending', 'unknown') AND next_attempt_at > now() + $1::interval`, targetSettle)
	if err != nil && ctx.Err() == nil {
		w.history.note("the end of back-offs could not be brought forward: %v", err)
	}
}

// pressWhatIsLeft: what is left to people stays open until they press. One by one, too, since a replay of many whose worker
// was killed keeps others waiting until its job is taken up.
func (w *world) pressWhatIsLeft(ctx context.Context) {
	if n, err := w.leftToPeople(ctx); err != nil || n == 0 {
		return
	}
	if err := errors.Join(w.replayMany(ctx), w.replay(ctx)); err != nil && ctx.Err() == nil {
		w.history.note("what is left to people could not be replayed: %v", err)
	}
}

func (r Result) writeHistory(file string) (err error) {
	if file == "" {
		return nil
	}
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return r.History.write(f)
}

// ErrViolations is what Report returns if a rule was broken.
var ErrViolations = errors.New("rules were broken")

const (
	maxViolations = 20
	maxTimeline   = 60 // lines, unless there are more of the key itself
	maxTimelines  = 3
)

// Report says what happened how often, and which rules were broken, with the timelines of the first keys concerned.
func (r Result) Report(w io.Writer) error {
	h := r.History
	lost := 0
	for _, x := range h.Exchanges {
		if x.Status == 0 {
			lost++
		}
	}
	fmt.Fprintf(w, "seed %d: %d requests of clients and operators (%d without an answer), %d attempts of workers, %d invoices, %d operations, %d registrations; finished after %.0f s of quiet\n\n",
		r.Seed, len(h.Exchanges), lost, len(h.Attempts), len(r.Books.Invoices), len(r.Books.Operations), len(r.Books.Registrations), r.Quiet.Seconds())
	table := tabwriter.NewWriter(w, 0, 0, 1, ' ', tabwriter.Debug) // as Markdown has it
	row := func(left string, right any) { fmt.Fprintf(table, "| %s\t %v\t\n", left, right) }
	row3 := func(left string, middle, right any) { fmt.Fprintf(table, "| %s\t %v\t %v\t\n", left, middle, right) }
	row3("disturbance", "times", "could not be done")
	row3("---", "---", "---")
	for _, d := range disturbances() {
		row3(string(d.kind), h.Counts[d.kind], h.Undone[d.kind])
	}
	fmt.Fprintln(table)
	row("beside them", "times")
	row("---", "---")
	for _, what := range slices.Sorted(maps.Keys(h.Removed)) {
		row(what, h.Removed[what])
	}
	for _, n := range []struct {
		what string
		wire.Stats
	}{{"HTTP", r.Network}, {"PostgreSQL", r.Database}} {
		row("connections to "+n.what, n.Connections)
		row("of them cut, held, silenced, duplicated", fmt.Sprintf("%d, %d, %d, %d", n.Cut, n.Held, n.Dropped, n.Duplicated))
	}
	broken := map[Rule]int{}
	for _, v := range r.Violations {
		broken[v.Rule]++
	}
	fmt.Fprintln(table)
	row("rule", "broken")
	row("---", "---")
	for _, rule := range Rules() {
		row(string(rule), broken[rule])
	}
	if err := table.Flush(); err != nil || len(r.Violations) == 0 {
		return err
	}
	for n, v := range r.Violations {
		if n == maxViolations {
			fmt.Fprintf(w, "and %d more\n", len(r.Violations)-n)
			break
		}
		fmt.Fprintf(w, "%s: key %s order %s: %s\n", v.Rule, v.Key, v.Order, v.Text)
	}
	told := map[string]bool{}
	for _, v := range r.Violations {
		about := v.Key + " order " + v.Order
		if v.Key == "" && v.Order == "" || told[about] || len(told) == maxTimelines {
			continue
		}
		told[about] = true
		fmt.Fprintf(w, "\nwhat happened to key %s:\n%s\n", about, strings.Join(h.about(v.Key, v.Order, maxTimeline), "\n"))
	}
	fmt.Fprintf(w, "\nagain: make chaos SEED=%d\n", r.Seed)
	return ErrViolations
}
