package jobs

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivershared/baseservice"
	"github.com/riverqueue/river/rivershared/riverpilot"
	"github.com/riverqueue/river/rivertype"
)

// scheduleAhead is River's interval between two looks for jobs that become due. It makes them available that long before:
// no client takes one before it is due by the database's clock, and none waits for the next look.
const scheduleAhead = 5 * time.Second

// insertTopic is where River's workers listen for jobs, within the schema.
const insertTopic = "river_insert"

// driver is River's driver, with two differences: what is due, stuck or to be repeated is judged by the database's clock,
// however wrong this machine's is; and jobs of kinds that this client does not know are left alone (see pilot).
//
// River has seams for that, but not stable ones. Should a version of it drop them, its default behaviour comes back and
// TestUnknownKindsAreKept and those of clock_test.go fail.
type driver struct {
	*riverpgxv5.Driver
	pilot *pilot
}

var _ riverdriver.Driver[pgx.Tx] = (*driver)(nil)

func newDriver(pool *pgxpool.Pool, p *pilot) *driver {
	return &driver{Driver: riverpgxv5.New(pool), pilot: p}
}

// PluginInit implements River's driverPlugin.
func (*driver) PluginInit(*baseservice.Archetype) {}

// PluginPilot implements River's driverPlugin.
func (d *driver) PluginPilot() riverpilot.Pilot { return d.pilot }

// GetExecutor implements riverdriver.Driver.
func (d *driver) GetExecutor() riverdriver.Executor { return executor{d.Driver.GetExecutor()} }

// UnwrapExecutor implements riverdriver.Driver.
func (d *driver) UnwrapExecutor(tx pgx.Tx) riverdriver.ExecutorTx {
	return executorTx{d.Driver.UnwrapExecutor(tx)}
}

// UnwrapTx implements riverdriver.Driver. River's own knows only its own transactions.
func (d *driver) UnwrapTx(tx riverdriver.ExecutorTx) pgx.Tx {
	if ours, ok := tx.(executorTx); ok {
		tx = ours.ExecutorTx
	}
	return d.Driver.UnwrapTx(tx)
}

type executor struct{ riverdriver.Executor }

// Begin implements riverdriver.Executor.
func (e executor) Begin(ctx context.Context) (riverdriver.ExecutorTx, error) {
	tx, err := e.Executor.Begin(ctx)
	if err != nil {
		return nil, err
	}
	return executorTx{tx}, nil
}

type executorTx struct{ riverdriver.ExecutorTx }

// JobSchedule makes jobs available that are due, or will be before the next look. River's own takes the leader's clock
// for that: one that is slow would keep all other clients' jobs waiting for as long.
func (e executorTx) JobSchedule(ctx context.Context, params *riverdriver.JobScheduleParams) ([]*riverdriver.JobScheduleResult, error) {
	now, err := databaseNow(ctx, e.ExecutorTx)
	if err != nil {
		return nil, err
	}
	judged, until := *params, now.Add(scheduleAhead)
	judged.Now = &until
	return e.ExecutorTx.JobSchedule(ctx, &judged)
}

// insertingDriver is the driver of clients that insert. River's client would have the commit notify the workers, but no more often
// than once within its cooldown: what another transaction inserts meanwhile would lie until their next poll, and so would it if the
// one that notified is rolled back. And a commit that notifies holds a lock of PostgreSQL's while it is written to disk, so that such
// commits of a whole server go one after another. So whoever inserts into the default queue has a waker tell of it after the commit.
// The other queues get a job now and then, each with a notification of its own.
//
// Should a version of River insert by another method, TestJobsOfOtherQueuesWakeTheirWorkersByTheirCommit fails.
type insertingDriver struct{ *driver }

// SupportsListenNotify implements riverdriver.Driver: the client is to notify nobody.
func (insertingDriver) SupportsListenNotify() bool { return false }

// UnwrapExecutor implements riverdriver.Driver.
func (d insertingDriver) UnwrapExecutor(tx pgx.Tx) riverdriver.ExecutorTx {
	return insertingTx{executorTx{d.Driver.UnwrapExecutor(tx)}}
}

type insertingTx struct{ executorTx }

// JobInsertFastManyNoReturning inserts jobs. Workers of other queues than the default know of theirs when they are committed.
func (tx insertingTx) JobInsertFastManyNoReturning(ctx context.Context, params *riverdriver.JobInsertFastManyParams) (int, error) {
	inserted, err := tx.executorTx.JobInsertFastManyNoReturning(ctx, params)
	if err != nil {
		return 0, err
	}
	var queues []string
	for _, job := range params.Jobs {
		if job.State == rivertype.JobStateAvailable && job.Queue != river.QueueDefault && !slices.Contains(queues, job.Queue) {
			queues = append(queues, job.Queue)
		}
	}
	return inserted, notifyOf(ctx, tx, params.Schema, queues...)
}

// notifyOf tells the workers of queues that there are jobs; in a transaction, at its commit.
func notifyOf(ctx context.Context, exec riverdriver.Executor, schema string, queues ...string) error {
	if len(queues) == 0 {
		return nil
	}
	payloads := make([]string, len(queues))
	for i, queue := range queues {
		payloads[i] = fmt.Sprintf(`{"queue": %q}`, queue) // in River's form
	}
	if err := exec.NotifyMany(ctx, &riverdriver.NotifyManyParams{Topic: insertTopic, Schema: schema, Payload: payloads}); err != nil {
		return fmt.Errorf("notify of jobs in %q: %w", queues, err)
	}
	return nil
}

func databaseNow(ctx context.Context, exec riverdriver.Executor) (now time.Time, err error) {
	if err := exec.QueryRow(ctx, "SELECT now()").Scan(&now); err != nil {
		return time.Time{}, fmt.Errorf("read the database's clock: %w", err)
	}
	return now, nil
}
