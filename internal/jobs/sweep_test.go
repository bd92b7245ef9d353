package jobs

import (
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/riverqueue/river/rivertype"

	"invoicebridge/internal/crm"
	"invoicebridge/internal/erpapi/erpsim"
	"invoicebridge/internal/problem"
	"invoicebridge/internal/testdb"
)

const testJobTimeout = 90 * time.Second

func (b *bench) sweep(batch int32) int {
	b.t.Helper()
	n, err := crm.NewSweeper(b.pool, b.inserter, crm.SweeperOptions{JobKind: DeliverKind, JobTimeout: testJobTimeout, Batch: batch}).
		Sweep(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	return n
}

// Each case changes one operation that is due and has an available job.
func TestTheSweepFindsWhatNobodyWouldDeliver(t *testing.T) {
	b := setup(t)
	const (
		noJob      = "DELETE FROM river_job"
		due        = "UPDATE operations SET next_attempt_at = now() - interval '2 minutes'"
		sent       = "attempt = 1, first_sent_at = now() - interval '1 hour'"
		processing = "UPDATE operations SET status = 'processing', next_attempt_at = NULL, " + sent + ", lease_until = now() - interval "
		running    = "UPDATE river_job SET state = 'running', attempt = 1, attempted_by = '{w}', attempted_at = now() - interval "
		ended      = "UPDATE river_job SET finalized_at = now(), state = "
	)
	for name, tc := range map[string]struct {
		sql  []string
		want int
	}{
		"due, waiting in the queue":        {[]string{due}, 0},
		"due, no job":                      {[]string{due, noJob}, 1},
		"unknown, due, no job":             {[]string{due, "UPDATE operations SET status = 'unknown', " + sent, noJob}, 1},
		"just due, no job":                 {[]string{noJob}, 0},
		"not due, no job":                  {[]string{"UPDATE operations SET next_attempt_at = now() + interval '1 hour'", noJob}, 0},
		"due, job running":                 {[]string{due, running + "'10 seconds'"}, 0},
		"due, job of a dead client":        {[]string{due, running + "'3 minutes'"}, 1},
		"due, job scheduled":               {[]string{due, "UPDATE river_job SET state = 'scheduled', scheduled_at = now()"}, 0},
		"due, job scheduled and forgotten": {[]string{due, "UPDATE river_job SET state = 'scheduled', scheduled_at = now() - interval '1 hour'"}, 1},
		"due, job completed":               {[]string{due, ended + "'completed'"}, 1},
		"due, job discarded":               {[]string{due, ended + "'discarded'"}, 1},
		"due, job cancelled":               {[]string{due, ended + "'cancelled'"}, 1},
		"due, job of another operation":    {[]string{due, "UPDATE river_job SET args = jsonb_build_object('operation_id', gen_random_uuid())"}, 1},
		"due, job of another kind":         {[]string{due, "UPDATE river_job SET kind = 'other'"}, 1},
		"processing, lease ended long ago": {[]string{processing + "'2 minutes'", noJob}, 1},
		"processing, lease just ended":     {[]string{processing + "'1 second'", noJob}, 0},
		"processing, lease lasts":          {[]string{processing + "'-1 minute'", noJob}, 0},
		"flagged, due, no job":             {[]string{due, "UPDATE operations SET flagged_at = now()", noJob}, 0},
		"cancelled, no job":                {[]string{"UPDATE operations SET status = 'cancelled', next_attempt_at = NULL, finished_at = now()", noJob}, 0},
		"failed, no job":                   {[]string{"UPDATE operations SET status = 'failed', next_attempt_at = NULL, finished_at = now(), " + sent, noJob}, 0},
	} {
		b.exec("TRUNCATE operations, inbox_messages, orders, attempts CASCADE")
		b.exec("DELETE FROM river_job")
		b.submit(0, 1)
		for _, sql := range tc.sql {
			b.exec(sql)
		}
		if got := b.sweep(10); got != tc.want {
			t.Errorf("%s: %d enqueued, want %d", name, got, tc.want)
		}
		if again := b.sweep(10); again != 0 {
			t.Errorf("%s: the next sweep enqueues %d again", name, again)
		}
	}
}

func TestASweepIsBounded(t *testing.T) {
	b := setup(t)
	b.submit(0, 5)
	b.exec("UPDATE operations SET next_attempt_at = now() - interval '1 hour'")
	b.exec("DELETE FROM river_job")
	var got []int
	for range 4 {
		got = append(got, b.sweep(2))
	}
	if diff := cmp.Diff([]int{2, 2, 1, 0}, got); diff != "" {
		t.Error(diff)
	}
	b.start()
	b.waitSucceeded(5)
	b.wantOneInvoiceEach(5)
}

func TestTheClientSweepsByItself(t *testing.T) {
	b := setup(t)
	b.submit(0, 3)
	b.exec("UPDATE operations SET next_attempt_at = now() - interval '1 hour'")
	b.exec("DELETE FROM river_job")
	b.start()
	b.waitSucceeded(3)
	b.wantOneInvoiceEach(3)
	if got := b.scrape()["crm_sweep_enqueued_total"]; got != 3 {
		t.Errorf("%v counted as enqueued again", got)
	}
}

// scrape is what Prometheus would get: each value by its name and label.
func (b *bench) scrape() map[string]float64 {
	b.t.Helper()
	return gather(b.t, b.metrics)
}

func gather(t *testing.T, c prometheus.Collector) map[string]float64 {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	if err := registry.Register(c); err != nil {
		t.Fatal(err)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]float64{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			name := family.GetName()
			for _, label := range metric.GetLabel() {
				name += " " + label.GetValue()
			}
			values[name] = metric.GetCounter().GetValue() + metric.GetGauge().GetValue()
		}
	}
	return values
}

func TestMetricsTellOutcomesFlagsAndAges(t *testing.T) {
	b := setup(t)
	b.erp.OnPost(func(c *erpsim.Call) {
		if c.N == 1 {
			c.Refuse(http.StatusServiceUnavailable, problem.Unavailable, "Retry-After", "3600")
			return
		}
		c.Send(c.Commit())
	})
	b.start()
	b.submit(0, 1)
	testdb.Await(b.t, "the pause", func() bool { return b.count("operations WHERE waits = 1 AND status = 'pending'") == 1 })
	b.exec("UPDATE operations SET created_at = now() - interval '2 hours', first_sent_at = now() - interval '2 hours'")
	b.submit(1, 1)
	testdb.Await(b.t, "the other operation", func() bool { return b.count("operations WHERE status = 'succeeded'") == 1 })
	b.metrics.OperationFlagged(crm.ReasonNoAnswer)
	testdb.Await(b.t, "the count", func() bool { return b.scrape()["crm_delivery_attempts_total delivered"] == 1 })
	got := b.scrape()
	for name, want := range map[string]float64{
		"crm_delivery_attempts_total wait": 1, "crm_operations_flagged_total no_answer": 1, "crm_sweep_enqueued_total": 0,
	} {
		if value, there := got[name]; !there || value != want {
			t.Errorf("%s is %v, want %v", name, value, want)
		}
	}
	if age := got["crm_oldest_open_operation_seconds"]; age < 7200 || age > 7300 {
		t.Errorf("the oldest open operation is %v s old", age)
	}
	if _, there := got["crm_oldest_running_job_seconds"]; !there {
		t.Error("no gauge of the oldest running job")
	}
}

func TestRetriesOfFailedRunsAreSpacedAndCapped(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	policy := &retryPolicy{now: func() time.Time { return now }, jitter: func() float64 { return 0 }}
	for attempt, want := range map[int]time.Duration{0: time.Second, 1: time.Second, 3: 4 * time.Second, 100: time.Minute, maxAttempts: time.Minute} {
		if got := policy.NextRetry(&rivertype.JobRow{Attempt: attempt}).Sub(now); got != want {
			t.Errorf("after run %d the pause is %v, want %v", attempt, got, want)
		}
	}
}
