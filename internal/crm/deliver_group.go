package crm

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"invoicebridge/internal/crmdb"
	"invoicebridge/internal/tracectx"
)

// beginning is an attempt that is to begin. row is nil until that is committed.
type beginning struct {
	id     uuid.UUID
	trace  string
	row    *crmdb.DeliveryBeginRow
	shared string
}

// beginTogether commits the attempts of a group. Whoever has no row afterwards has not begun here: it is not due, its row is
// locked, or something failed.
func (d *Deliverer) beginTogether(ctx context.Context, group []*beginning) {
	traces := make([]string, len(group))
	waiting := make(map[uuid.UUID]*beginning, len(group)) // of two that want one operation, one begins
	ids := make([]uuid.UUID, 0, len(group))
	for i, b := range group {
		traces[i] = b.trace
		if waiting[b.id] == nil {
			waiting[b.id] = b
			ids = append(ids, b.id)
		}
	}
	ctx, shared, end := d.shared(ctx, "begin attempts together", traces)
	defer end()
	rows, err := d.beginAll(ctx, d.pool, ids)
	if err != nil {
		d.opts.Logger.WarnContext(ctx, "beginning attempts failed, trying again one by one", "attempts", len(group), "error", err)
		return
	}
	for _, row := range rows {
		b := waiting[row.ID]
		b.row, b.shared = &row, shared
	}
	d.committed(GroupBegin, len(rows))
}

func (d *Deliverer) beginAll(ctx context.Context, db crmdb.DBTX, ids []uuid.UUID) ([]crmdb.DeliveryBeginRow, error) {
	return crmdb.New(db).DeliveryBegin(ctx, crmdb.DeliveryBeginParams{
		Ids: ids, Members: int32(len(ids)), LeaseSeconds: d.Lease().Seconds(), Worker: d.opts.Worker,
	})
}

// beginAlone waits for the operation's row. It gives pgx.ErrNoRows if somebody else has the turn.
func (d *Deliverer) beginAlone(ctx context.Context, id uuid.UUID) (row crmdb.DeliveryBeginRow, err error) {
	err = d.locked(ctx, id, func(tx pgx.Tx) error {
		rows, err := d.beginAll(ctx, tx, []uuid.UUID{id})
		if err == nil && len(rows) == 0 {
			err = pgx.ErrNoRows
		}
		if err == nil {
			row = rows[0]
		}
		return err
	})
	if err == nil {
		d.committed(GroupBegin, 1)
	}
	return row, err
}

// locked is a transaction that holds the operation's row.
func (d *Deliverer) locked(ctx context.Context, id uuid.UUID, do func(tx pgx.Tx) error) error {
	return pgx.BeginFunc(ctx, d.pool, func(tx pgx.Tx) error {
		if err := crmdb.New(tx).DeliveryLock(ctx, id); err != nil {
			return err
		}
		return do(tx)
	})
}

// ending is an outcome that is to be written. row is nil until that is committed.
type ending struct {
	a      *attempt
	job    *Job
	trace  string
	row    *crmdb.DeliveryEndRow
	shared string
}

// endTogether writes the outcomes of a group, and completes the jobs of those whose operation has come to its end, in one
// transaction. Whoever has no row afterwards was overtaken, its row is locked, or something failed.
func (d *Deliverer) endTogether(ctx context.Context, group []*ending) {
	traces := make([]string, len(group))
	for i, e := range group {
		traces[i] = e.trace
	}
	ctx, shared, end := d.shared(ctx, "end attempts together", traces)
	defer end()
	rows, err := d.endAll(ctx, group)
	if err != nil {
		d.opts.Logger.WarnContext(ctx, "writing outcomes failed, trying again one by one", "attempts", len(group), "error", err)
		return
	}
	for _, e := range group {
		if row, ended := rows[e.a.id()]; ended {
			e.row, e.shared = &row, shared
		}
	}
	d.committed(GroupEnd, len(rows))
}

// attemptID tells the attempts of a group apart: two of them may be at one operation, of which one was overtaken.
type attemptID struct {
	operation uuid.UUID
	number    int32
}

func (a *attempt) id() attemptID { return attemptID{a.row.ID, a.row.Attempt} }

// endAll is one transaction; where there is no job to complete, one statement.
func (d *Deliverer) endAll(ctx context.Context, group []*ending) (rows map[attemptID]crmdb.DeliveryEndRow, err error) {
	if !anyJobEnds(group) {
		return d.writeEnds(ctx, d.pool, group)
	}
	err = pgx.BeginFunc(ctx, d.pool, func(tx pgx.Tx) error {
		if rows, err = d.writeEnds(ctx, tx, group); err != nil {
			return err
		}
		return completeJobs(ctx, tx, group, rows)
	})
	return rows, err
}

// endAlone waits for the operation's row. It gives pgx.ErrNoRows if the attempt was overtaken.
func (d *Deliverer) endAlone(ctx context.Context, e *ending) (row crmdb.DeliveryEndRow, err error) {
	group := []*ending{e}
	err = d.locked(ctx, e.a.row.ID, func(tx pgx.Tx) error {
		rows, err := d.writeEnds(ctx, tx, group)
		if err != nil {
			return err
		}
		var ended bool
		if row, ended = rows[e.a.id()]; !ended {
			return pgx.ErrNoRows
		}
		return completeJobs(ctx, tx, group, rows)
	})
	if err == nil {
		d.committed(GroupEnd, 1)
	}
	return row, err
}

func (d *Deliverer) writeEnds(ctx context.Context, db crmdb.DBTX, group []*ending) (map[attemptID]crmdb.DeliveryEndRow, error) {
	written, err := crmdb.New(db).DeliveryEnd(ctx, d.endParams(group))
	if err != nil {
		return nil, err
	}
	rows := make(map[attemptID]crmdb.DeliveryEndRow, len(written))
	for _, row := range written {
		rows[attemptID{row.ID, row.Attempt}] = row
	}
	return rows, nil
}

// endsJob says whether a job goes with the outcome: others wait for the next attempt.
func (e *ending) endsJob() bool { return e.job != nil && e.a.decision.Status.Final() }

func anyJobEnds(group []*ending) bool {
	for _, e := range group {
		if e.endsJob() {
			return true
		}
	}
	return false
}

// completeJobs completes, of the outcomes that were written, the jobs that end.
func completeJobs(ctx context.Context, tx pgx.Tx, group []*ending, written map[attemptID]crmdb.DeliveryEndRow) error {
	ended := map[JobCompleter][]int64{}
	for _, e := range group {
		if _, ok := written[e.a.id()]; ok && e.endsJob() {
			ended[e.job.Completer] = append(ended[e.job.Completer], e.job.ID)
		}
	}
	for completer, ids := range ended {
		if err := completer.CompleteJobs(ctx, tx, ids); err != nil {
			return fmt.Errorf("complete %d jobs: %w", len(ids), err)
		}
	}
	return nil
}

// committed tells how many went together; a transaction that found nobody's turn has brought nothing about.
func (d *Deliverer) committed(step GroupStep, operations int) {
	if operations > 0 {
		d.opts.Observer.Committed(step, operations)
	}
}

// shared traces what several have in common; one alone has it in its own trace.
func (d *Deliverer) shared(ctx context.Context, name string, traces []string) (_ context.Context, shared string, end func()) {
	if len(traces) == 1 {
		return ctx, "", func() {}
	}
	return tracectx.Together(ctx, name, traces)
}
