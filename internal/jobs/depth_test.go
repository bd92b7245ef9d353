package jobs

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"invoicebridge/internal/crm"
)

func TestQueueDepthCountsWhatIsNotDoneOverAllQueues(t *testing.T) {
	b := setup(t)
	depth := func() []crm.QueueState {
		t.Helper()
		states, err := NewQueueDepth(b.pool).QueueDepth(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return states
	}
	if got := depth(); len(got) != 0 {
		t.Errorf("an empty queue holds %v", got)
	}
	for _, job := range []struct{ queue, state string }{
		{"default", "available"}, {"default", "available"}, {"retention", "available"}, {"default", "scheduled"}, {"default", "retryable"},
		{"default", "running"}, {"default", "discarded"}, {"default", "completed"}, {"default", "cancelled"},
	} {
		b.exec(`INSERT INTO river_job (kind, queue, state, args, max_attempts, priority, finalized_at)
			VALUES ('test', $1, $2::river_job_state, '{}', 1, 1, CASE WHEN $2 IN ('discarded', 'completed', 'cancelled') THEN now() END)`, job.queue, job.state)
	}
	want := []crm.QueueState{{State: "available", Jobs: 3}, {State: "discarded", Jobs: 1}, {State: "retryable", Jobs: 1}, {State: "running", Jobs: 1}, {State: "scheduled", Jobs: 1}}
	if diff := cmp.Diff(want, depth()); diff != "" {
		t.Error(diff)
	}
}
