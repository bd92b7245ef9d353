package crm_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"invoicebridge/internal/crm"
	"invoicebridge/internal/problem"
)

// stuck are n operations that wait for an operator.
func (s *bothSides) stuck(prefix string, n int) []string {
	s.t.Helper()
	orders := make([]crm.Order, n)
	for i := range orders {
		orders[i] = plainOrder(fmt.Sprintf("%s-%d", prefix, i))
	}
	keys := s.submitted(orders...)
	s.unsure(keys...)
	s.exec("DELETE FROM river_job")
	return keys
}

func (s *bothSides) starts(f crm.ReplayFilter, expected int64) crm.ReplayRun {
	s.t.Helper()
	run, err := s.service.StartReplays(s.t.Context(), deliverTenant, f, expected, ann)
	if err != nil {
		s.t.Fatal(err)
	}
	return run
}

// works works a run off, to its end.
func (s *bothSides) works(id uuid.UUID) crm.ReplayRun {
	s.t.Helper()
	for range 1000 {
		finished, err := s.service.WorkReplayRun(s.t.Context(), id)
		if err != nil {
			s.t.Fatal(err)
		}
		if finished {
			run, err := s.service.GetReplayRun(s.t.Context(), deliverTenant, id)
			if err != nil {
				s.t.Fatal(err)
			}
			return run
		}
	}
	s.t.Fatal("the run does not come to its end")
	return crm.ReplayRun{}
}

func (s *bothSides) items(id uuid.UUID) (all []crm.ReplayItem) {
	s.t.Helper()
	f := crm.ReplayItemFilter{PageQuery: crm.PageQuery{Limit: 7}}
	for {
		page, err := s.service.ListReplayItems(s.t.Context(), deliverTenant, id, f)
		if err != nil {
			s.t.Fatal(err)
		}
		all = append(all, page.Items...)
		if f.Cursor = page.Next; page.Next == "" {
			return all
		}
	}
}

func TestManyAreReplayedAsOneIs(t *testing.T) {
	s := setupOperator(t)
	keys := s.stuck("SO", 60) // more than a batch
	other := s.submitted(plainOrder("SO-pending"))[0]
	preview, err := s.service.PreviewReplays(t.Context(), deliverTenant, crm.ReplayFilter{})
	if err != nil || preview.Count != 60 || len(preview.Sample) != 20 || preview.Sample[0].Key != keys[0] {
		t.Fatalf("preview is %+v, %v", preview, err)
	}
	run := s.starts(crm.ReplayFilter{}, 60)
	if run.Total != 60 || run.Matched != 60 || run.Waiting() != 60 || run.FinishedAt != nil || run.By.Actor != "ann" {
		t.Errorf("run is %+v", run)
	}
	if n := s.count(s.crm, "river_job WHERE kind = 'replay_operations' AND args->>'run_id' = '"+run.ID.String()+"'"); n != 1 {
		t.Errorf("%d jobs", n)
	}
	s.audited(1, "replay.start", run.ID.String())

	// One is settled before its turn comes, one is replayed by itself.
	s.exec(`UPDATE operations SET status = 'failed', finished_at = now(), next_attempt_at = NULL, flagged_at = NULL WHERE key = $1`, keys[0])
	if _, err := s.service.Replay(t.Context(), deliverTenant, keys[1], ben); err != nil {
		t.Fatal(err)
	}
	run = s.works(run.ID)
	if run.Queued != 58 || run.Refused != 2 || run.Waiting() != 0 || run.FinishedAt == nil {
		t.Errorf("run is %+v", run)
	}
	items := s.items(run.ID)
	if len(items) != 60 || items[0].Result != crm.ReplayRefused || items[0].Detail != "This operation is failed and stays so." ||
		items[1].Detail != "This operation is already queued." {
		t.Fatalf("items are %+v", items)
	}
	for i, item := range items[2:] {
		if item.Key != keys[i+2] || item.Result != crm.ReplayQueued || item.DoneAt == nil {
			t.Errorf("item is %+v", item)
		}
		s.audited(1, "operation.replay", item.Key)
		if n := s.jobsOf(item.Key); n != 1 {
			t.Errorf("%d jobs", n)
		}
		s.deliver(item.Key)
	}
	if n := s.count(s.crm, "operations WHERE status = 'succeeded'"); n != 58 {
		t.Errorf("%d succeeded", n)
	}
	if n := s.count(s.erp, "invoices"); n != 58 {
		t.Errorf("%d invoices", n)
	}
	if op := s.operation(other); op.Attempts != 0 {
		t.Errorf("what did not match was replayed: %+v", op)
	}
}

func TestAReplayOfManyTakesWhatItsFilterSays(t *testing.T) {
	s := setupOperator(t)
	keys := s.stuck("SO", 4)
	s.exec("UPDATE operations SET status = 'pending', attempt = 0, first_sent_at = NULL WHERE key = $1", keys[0])
	s.exec("UPDATE operations SET reason = 'configuration' WHERE key = $1", keys[1])
	s.exec("UPDATE operations SET created_at = now() - interval '2 hours' WHERE key = $1", keys[2])
	for _, c := range []struct {
		f    crm.ReplayFilter
		want int64
	}{
		{crm.ReplayFilter{}, 4}, {crm.ReplayFilter{Status: crm.StatusPending}, 1}, {crm.ReplayFilter{Status: crm.StatusUnknown}, 3},
		{crm.ReplayFilter{Reason: crm.ReasonConfiguration}, 1}, {crm.ReplayFilter{Source: "crm-1"}, 4}, {crm.ReplayFilter{Source: "crm-2"}, 0},
		{crm.ReplayFilter{MinAge: time.Hour}, 1}, {crm.ReplayFilter{MinAge: 3 * time.Hour}, 0},
		{crm.ReplayFilter{Status: crm.StatusUnknown, Reason: crm.ReasonNoAnswer, MinAge: time.Hour}, 1},
	} {
		preview, err := s.service.PreviewReplays(t.Context(), deliverTenant, c.f)
		if err != nil || preview.Count != c.want || len(preview.Sample) != int(c.want) {
			t.Errorf("%+v: %d, %v", c.f, preview.Count, err)
		}
		if foreign, err := s.service.PreviewReplays(t.Context(), "other", c.f); err != nil || foreign.Count != 0 {
			t.Errorf("another tenant sees %+v, %v", foreign, err)
		}
	}
	_, err := s.service.PreviewReplays(t.Context(), deliverTenant, crm.ReplayFilter{Status: crm.StatusFailed})
	refused(t, err, problem.MalformedRequest, "status")
	run := s.starts(crm.ReplayFilter{Reason: crm.ReasonConfiguration}, 1)
	if items := s.items(run.ID); len(items) != 1 || items[0].Key != keys[1] {
		t.Errorf("items are %+v", items)
	}
}

func TestAReplayOfManyIsRefusedIfMoreMatchThanWereShown(t *testing.T) {
	s := setupOperator(t)
	_, err := s.service.StartReplays(t.Context(), deliverTenant, crm.ReplayFilter{}, 10, ann)
	refused(t, err, problem.WrongState, "Nothing")
	s.stuck("SO", 3)
	_, err = s.service.StartReplays(t.Context(), deliverTenant, crm.ReplayFilter{}, 2, ann)
	refused(t, err, problem.WrongState, "3 operations match by now, more than the 2")
	if runs, jobs := s.count(s.crm, "replay_runs"), s.count(s.crm, "river_job"); runs != 0 || jobs != 0 {
		t.Errorf("%d runs, %d jobs", runs, jobs)
	}
	if run := s.starts(crm.ReplayFilter{}, 5); run.Total != 3 { // fewer than shown is all right
		t.Errorf("run is %+v", run)
	}
}

func TestOfTwoPressesOneStartsAReplayOfMany(t *testing.T) {
	s := setupOperator(t)
	s.stuck("SO", 5)
	errs := make([]error, 5)
	var all sync.WaitGroup
	for i := range errs {
		all.Go(func() { _, errs[i] = s.service.StartReplays(t.Context(), deliverTenant, crm.ReplayFilter{}, 5, ann) })
	}
	all.Wait()
	started := 0
	for _, err := range errs {
		if err == nil {
			started++
			continue
		}
		refused(t, err, problem.WrongState, "running")
	}
	if runs, jobs := s.count(s.crm, "replay_runs"), s.count(s.crm, "river_job"); started != 1 || runs != 1 || jobs != 1 {
		t.Errorf("%d started, %d runs, %d jobs", started, runs, jobs)
	}
}

// Jobs are killed, come twice, or are worked by several processes: each operation has one result and one job.
func TestManyWorkersOnOneReplayDoNotDoubleIt(t *testing.T) {
	s := setupOperator(t)
	keys := s.stuck("SO", 230)
	run := s.starts(crm.ReplayFilter{}, 230)
	s.exec("DELETE FROM river_job")
	var all sync.WaitGroup
	for range 5 {
		service := s.newService()
		all.Go(func() {
			for {
				finished, err := service.WorkReplayRun(t.Context(), run.ID)
				if err != nil {
					t.Error(err)
				}
				if finished || err != nil {
					return
				}
			}
		})
	}
	all.Wait()
	run = s.works(run.ID)
	if run.Queued != 230 || run.Refused != 0 {
		t.Errorf("run is %+v", run)
	}
	if n := s.count(s.crm, "river_job"); n != len(keys) {
		t.Errorf("%d jobs", n)
	}
	if n := s.count(s.crm, "audit_entries WHERE action = 'operation.replay'"); n != len(keys) {
		t.Errorf("%d audit entries", n)
	}
}

// A batch that dies before its commit has done nothing, and the next worker does it.
func TestABatchOfReplaysThatDiesLeavesNothingBehind(t *testing.T) {
	s := setupOperator(t)
	s.stuck("SO", 3)
	run := s.starts(crm.ReplayFilter{}, 3)
	s.exec(`CREATE FUNCTION die() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'killed'; END $$`)
	s.exec("CREATE TRIGGER die BEFORE UPDATE ON replay_items FOR EACH ROW EXECUTE FUNCTION die()")
	if _, err := s.service.WorkReplayRun(t.Context(), run.ID); err == nil {
		t.Fatal("it did not die")
	}
	if n := s.count(s.crm, "operations WHERE flagged_at IS NULL"); n != 0 {
		t.Errorf("%d were replayed", n)
	}
	s.exec("DROP TRIGGER die ON replay_items")
	if run = s.works(run.ID); run.Queued != 3 {
		t.Errorf("run is %+v", run)
	}
}

func TestAReplayOfManyIsStoppedAndLeavesTheRestAsItIs(t *testing.T) {
	s := setupOperator(t)
	s.stuck("SO", 60)
	run := s.starts(crm.ReplayFilter{}, 60)
	if finished, err := s.service.WorkReplayRun(t.Context(), run.ID); err != nil || finished {
		t.Fatalf("%v, %v", finished, err)
	}
	_, err := s.service.StopReplayRun(t.Context(), "other", run.ID, ben)
	refused(t, err, problem.NotFound, "")
	run, err = s.service.StopReplayRun(t.Context(), deliverTenant, run.ID, ben)
	if err != nil || run.Queued != 50 || run.Stopped != 10 || run.Waiting() != 0 || run.StoppedBy != "ben" {
		t.Fatalf("run is %+v, %v", run, err)
	}
	if finished, err := s.service.WorkReplayRun(t.Context(), run.ID); err != nil || !finished {
		t.Errorf("a late job: %v, %v", finished, err)
	}
	_, err = s.service.StopReplayRun(t.Context(), deliverTenant, run.ID, ben)
	refused(t, err, problem.WrongState, "come to its end")
	if n := s.count(s.crm, "operations WHERE flagged_at IS NOT NULL"); n != 10 {
		t.Errorf("%d are left to an operator", n)
	}
	s.audited(1, "replay.stop", run.ID.String())
	if again := s.starts(crm.ReplayFilter{}, 10); again.Total != 10 {
		t.Errorf("run is %+v", again)
	}
	page, err := s.service.ListReplayRuns(t.Context(), deliverTenant, crm.PageQuery{Limit: 1})
	if err != nil || len(page.Items) != 1 || page.Next == "" {
		t.Fatalf("%+v, %v", page, err)
	}
	page, err = s.service.ListReplayRuns(t.Context(), deliverTenant, crm.PageQuery{Limit: 1, Cursor: page.Next})
	if err != nil || len(page.Items) != 1 || page.Items[0].ID != run.ID || page.Next != "" {
		t.Errorf("%+v, %v", page, err)
	}
}

func TestAReplayThatLostItsJobIsFound(t *testing.T) {
	s := setupOperator(t)
	s.stuck("SO", 1)
	run := s.starts(crm.ReplayFilter{}, 1)
	opt := crm.RequeueOptions{JobKind: "replay_operations", JobTimeout: time.Minute, Margin: time.Nanosecond}
	requeues := func(want int) {
		t.Helper()
		if n, err := s.service.RequeueReplayRuns(t.Context(), opt); err != nil || n != want {
			t.Errorf("%d enqueued, %v", n, err)
		}
	}
	requeues(0)
	s.exec("DELETE FROM river_job")
	requeues(1)
	requeues(0)
	s.works(run.ID)
	s.exec("DELETE FROM river_job")
	requeues(0)
}

// J3: the attempt whose job was given up is still at the ERP when replay is pressed, alone and in bulk.
func TestAReplayBesideAnAttemptStillAtTheERPEndsInOneInvoice(t *testing.T) {
	s := setupOperator(t)
	key := s.stuck("SO", 1)[0]
	run := s.starts(crm.ReplayFilter{}, 1)
	var all sync.WaitGroup
	results := make([]error, 4)
	for i := range results {
		all.Go(func() { _, results[i] = s.service.Replay(t.Context(), deliverTenant, key, ben) })
	}
	for range 2 {
		all.Go(func() {
			if _, err := s.service.WorkReplayRun(t.Context(), run.ID); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	run = s.works(run.ID)
	replayed := run.Queued
	for _, err := range results {
		if err == nil {
			replayed++
			continue
		}
		refused(t, err, problem.WrongState, "already queued")
	}
	if n := s.jobsOf(key); replayed != 1 || n != 1 {
		t.Errorf("%d replays, %d jobs", replayed, n)
	}
	s.audited(1, "operation.replay", key)
	for range 5 {
		all.Go(func() {
			if _, err := s.deliverer.Deliver(t.Context(), s.id(key), nil); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if n := s.count(s.erp, "invoices"); n != 1 || s.operation(key).Status != crm.StatusSucceeded {
		t.Errorf("%d invoices, operation is %+v", n, s.operation(key))
	}
	_, err := s.service.Replay(t.Context(), deliverTenant, key, ben)
	refused(t, err, problem.WrongState, "succeeded and stays so")
}
