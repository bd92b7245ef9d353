package jobs

import (
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

func TestJobsAreCompletedTogetherWithTheTransaction(t *testing.T) {
	b := setup(t)
	b.submit(0, 4)
	b.exec("UPDATE river_job SET state = 'running', attempt = 1, attempted_at = now(), attempted_by = '{here}'")
	var ids []int64
	b.scan(&ids, "SELECT array_agg(id ORDER BY id) FROM river_job")
	b.exec("UPDATE river_job SET state = 'available' WHERE id = $1", ids[3])
	rollback := errors.New("rolled back")
	complete := func(end error) error {
		return pgx.BeginFunc(t.Context(), b.pool, func(tx pgx.Tx) error {
			return errors.Join(newCompleter(time.Now).CompleteJobs(t.Context(), tx, append([]int64{1 << 40}, ids...)), end)
		})
	}
	if err := complete(rollback); !errors.Is(err, rollback) || b.count("river_job WHERE state = 'running'") != 3 {
		t.Errorf("%v", err)
	}
	if err := complete(nil); err != nil {
		t.Fatal(err)
	}
	if n := b.count("river_job WHERE id = ANY ($1) AND state = 'completed' AND finalized_at IS NOT NULL", ids[:3]); n != 3 {
		t.Errorf("%d of 3 are completed", n)
	}
	if b.count("river_job WHERE id = $1 AND state = 'available'", ids[3]) != 1 {
		t.Error("a job that was not running was completed")
	}
}
