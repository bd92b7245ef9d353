package jobs

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"invoicebridge/internal/crm"
	"invoicebridge/internal/erpapi/erpsim"
	"invoicebridge/internal/target/targetsim"
	"invoicebridge/internal/testdb"
)

// ui is River UI on the bench's database.
func (b *bench) ui() *UI {
	b.t.Helper()
	ui, err := NewUI(b.pool, "/queue", nil)
	if err != nil {
		b.t.Fatal(err)
	}
	return ui
}

// press sends what one of River UI's buttons sends, and wants a status.
func (b *bench) press(ui *UI, want int, method, path string, jobs ...int64) {
	b.t.Helper()
	ids := make([]string, len(jobs))
	for i, id := range jobs {
		ids[i] = fmt.Sprintf("%q", fmt.Sprint(id))
	}
	body := strings.NewReader(`{"ids":[` + strings.Join(ids, ",") + `]}`)
	answer := httptest.NewRecorder()
	ui.ServeHTTP(answer, httptest.NewRequestWithContext(b.t.Context(), method, "/queue/api/"+path, body))
	if answer.Code != want {
		b.t.Errorf("%s %s of jobs %v: %d %s, want %d", method, path, jobs, answer.Code, answer.Body, want)
	}
	if strings.Contains(answer.Body.String(), "SQLSTATE") {
		b.t.Errorf("%s %s tells of SQL: %s", method, path, answer.Body)
	}
}

func (b *bench) job(kind string) (id int64) {
	b.t.Helper()
	b.scan(&id, "SELECT min(id) FROM river_job WHERE kind = $1", kind)
	return id
}

// overdue puts open operations so far back that a sweep takes them up.
func (b *bench) overdue() {
	b.t.Helper()
	b.exec("UPDATE operations SET next_attempt_at = now() - interval '2 minutes' WHERE status IN ('pending', 'unknown')")
}

// waitSettled is waitSucceeded for operations with more than one job: those that found the operation in other hands wait for
// the end of its lease, which the test does not.
func (b *bench) waitSettled(n int) {
	b.t.Helper()
	testdb.Await(b.t, fmt.Sprintf("%d operations succeeded", n), func() bool { return b.count("operations WHERE status = 'succeeded'") == n })
	testdb.Await(b.t, "no job is left", func() bool {
		b.exec("UPDATE river_job SET state = 'available', scheduled_at = now() WHERE state = 'scheduled'")
		return b.count("river_job WHERE kind = $1 AND state NOT IN ('completed', 'discarded', 'cancelled')", DeliverKind) == 0
	})
}

func (b *bench) awaitJob(id int64, state string) {
	b.t.Helper()
	testdb.Await(b.t, "the job is "+state, func() bool {
		return b.count("river_job WHERE id = $1 AND state = $2", id, state) == 1
	})
}

func TestAWaitingDeliveryThatRiverUICancelsOrDeletesIsMadeAllTheSame(t *testing.T) {
	for _, button := range []string{"cancel", "delete"} {
		t.Run(button, func(t *testing.T) {
			b := setup(t)
			ui := b.ui()
			b.submit(0, 1)
			job := b.job(DeliverKind)
			b.press(ui, http.StatusOK, http.MethodPost, "jobs/"+button, job)
			var status string
			if b.scan(&status, "SELECT status FROM operations"); status != string(crm.StatusPending) {
				t.Errorf("the operation is %s", status)
			}
			b.overdue()
			if n := b.sweep(10); n != 1 {
				t.Fatalf("the sweep enqueued %d operations", n)
			}
			if button == "cancel" {
				b.press(ui, http.StatusOK, http.MethodPost, "jobs/retry", job) // beside the sweep's
			}
			b.start()
			b.waitSettled(1)
			b.wantOneInvoiceEach(1)
		})
	}
}

func TestRetryOfAFinishedDeliverySendsNothing(t *testing.T) {
	b := setup(t)
	ui := b.ui()
	b.submit(0, 1)
	b.start()
	b.waitSucceeded(1)
	job := b.job(DeliverKind)
	b.awaitJob(job, "completed")
	b.press(ui, http.StatusOK, http.MethodPost, "jobs/retry", job)
	b.press(ui, http.StatusOK, http.MethodPost, "jobs/retry", job)
	b.awaitJob(job, "completed")
	if posts := len(b.erp.Posts()); posts != 1 {
		t.Errorf("%d requests were sent", posts)
	}
	b.wantOneInvoiceEach(1)
}

// held has the ERP do what the first request asks for and keep its answer until released.
func (b *bench) held() (arrived <-chan struct{}, release func()) {
	here, go_ := make(chan struct{}), make(chan struct{})
	b.erp.OnPost(func(c *erpsim.Call) {
		answer := c.Commit()
		if c.N == 1 {
			close(here)
			c.HoldUntil(go_)
		}
		c.Send(answer)
	})
	return here, sync.OnceFunc(func() { close(go_) })
}

func TestADeliveryThatRiverUICancelsWhileItRunsIsSettledUnderTheSameKey(t *testing.T) {
	b := setup(t)
	ui := b.ui()
	arrived, release := b.held()
	t.Cleanup(release)
	b.submit(0, 1)
	b.start()
	<-arrived
	job := b.job(DeliverKind)
	b.press(ui, http.StatusBadRequest, http.MethodPost, "jobs/delete", job) // not while it runs
	b.press(ui, http.StatusOK, http.MethodPost, "jobs/retry", job)          // changes nothing
	b.press(ui, http.StatusOK, http.MethodPost, "jobs/cancel", job)
	b.press(ui, http.StatusOK, http.MethodPost, "jobs/cancel", job)
	b.awaitJob(job, "cancelled")
	var status string
	if b.scan(&status, "SELECT status FROM operations"); status != string(crm.StatusUnknown) {
		t.Errorf("the interrupted operation is %s", status)
	}
	b.overdue()
	if n := b.sweep(10); n != 1 {
		t.Fatalf("the sweep enqueued %d operations", n)
	}
	b.waitSucceeded(1)
	b.wantOneInvoiceEach(1)
	if posts := len(b.erp.Posts()); posts != 2 {
		t.Errorf("%d requests were sent", posts)
	}
}

// J3 of the cases: the queue gave the job up, its worker did not.
func TestRetryOfADiscardedDeliveryThatStillRunsMakesOneInvoice(t *testing.T) {
	b := setup(t)
	ui := b.ui()
	arrived, release := b.held()
	t.Cleanup(release)
	b.submit(0, 1)
	b.start()
	<-arrived
	job := b.job(DeliverKind)
	b.exec("UPDATE river_job SET state = 'discarded', finalized_at = now() WHERE id = $1", job)
	var wg sync.WaitGroup
	for range 4 { // pressed twice by two persons
		wg.Go(func() { b.press(ui, http.StatusOK, http.MethodPost, "jobs/retry", job) })
	}
	wg.Wait()
	b.awaitJob(job, "scheduled") // the second run found the operation in other hands
	release()
	b.waitSettled(1)
	b.wantOneInvoiceEach(1)
	if posts := len(b.erp.Posts()); posts != 1 {
		t.Errorf("%d requests were sent", posts)
	}
}

func TestAQueueThatRiverUIPausesLosesNothing(t *testing.T) {
	b := setup(t)
	ui := b.ui()
	b.start()
	testdb.Await(t, "the queue is known", func() bool { return b.count("river_queue WHERE name = 'default'") == 1 })
	b.press(ui, http.StatusOK, http.MethodPut, "queues/default/pause")
	b.submit(0, 3)
	b.press(ui, http.StatusOK, http.MethodPut, "queues/default/resume")
	b.waitSucceeded(3)
	b.wantOneInvoiceEach(3)
	b.press(ui, http.StatusNotFound, http.MethodPut, "queues/nonsense/pause")
	b.press(ui, http.StatusNotFound, http.MethodPost, "jobs/cancel", 1<<40)
}

func TestARegistrationWhoseJobRiverUIDeletesOrRepeatsIsMadeOnce(t *testing.T) {
	b := setupERP(t, map[targetsim.Fault]float64{})
	ui := b.ui()
	b.issue(1)
	first := b.job(RegisterKind)
	b.press(ui, http.StatusOK, http.MethodPost, "jobs/delete", first)
	b.press(ui, http.StatusNotFound, http.MethodPost, "jobs/delete", first)
	b.press(ui, http.StatusOK, http.MethodPost, "jobs/cancel", b.job(RegisterKind))
	b.exec("UPDATE registrations SET next_attempt_at = now() - interval '1 hour'")
	b.cfg.SweepInterval = 0 // as by default: one at the start
	b.startERP()
	b.waitRegistered(2)
	job := b.job(RegisterKind)
	b.press(ui, http.StatusOK, http.MethodPost, "jobs/retry", job)
	b.awaitJob(job, "completed")
	if n := b.count("registration_attempts"); n != 2 {
		t.Errorf("%d attempts for 2 registrations", n)
	}
}

func TestRiverUISaysWhatAJobIsAbout(t *testing.T) {
	b := setup(t)
	ui := b.ui()
	b.submit(0, 1)
	job := b.job(DeliverKind)
	var operation string
	b.scan(&operation, "SELECT id::text FROM operations")
	about, err := ui.Describe(t.Context(), []int64{job, 1 << 40})
	if err != nil {
		t.Fatal(err)
	}
	want := map[int64]string{job: DeliverKind + ` {"operation_id": "` + operation + `"}`}
	if diff := cmp.Diff(want, about); diff != "" {
		t.Error(diff)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := ui.Describe(ctx, []int64{job}); err == nil {
		t.Error("no error from a database that does not answer")
	}
}
