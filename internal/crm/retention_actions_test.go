package crm_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"invoicebridge/internal/crm"
	"invoicebridge/internal/retention"
)

// purged is what a run of the purge removes, by table, of what people did.
func (s *bothSides) purged() map[string]int64 {
	s.t.Helper()
	results, err := retention.NewPurger(crm.RetentionSteps(s.crm, crm.Keep{}), retention.Options{
		Pace: retention.Pace{Batch: 2}, Pause: func(ctx context.Context, _ time.Duration) error { return ctx.Err() },
	}).Purge(s.t.Context(), nil)
	if err != nil {
		s.t.Fatal(err)
	}
	removed := map[string]int64{}
	for _, r := range results {
		switch r.Table {
		case "replay_items", "replay_runs", "resolutions":
			if r.Rows > 0 {
				removed[r.Table] = r.Rows
			}
		}
	}
	return removed
}

// ageActions lets days pass for what people did, and for nothing else.
func (s *bothSides) ageActions(days int) {
	s.t.Helper()
	s.exec("UPDATE replay_runs SET started_at = started_at - d, updated_at = updated_at - d, finished_at = finished_at - d FROM (SELECT $1 * interval '1 day' AS d) AS age", days)
	s.exec("UPDATE replay_items SET done_at = done_at - d FROM (SELECT $1 * interval '1 day' AS d) AS age", days)
	s.exec("UPDATE resolutions SET proposed_at = proposed_at - d, decided_at = decided_at - d FROM (SELECT $1 * interval '1 day' AS d) AS age", days)
}

// ends gives operations their end.
func (s *bothSides) ends(keys ...string) {
	s.t.Helper()
	s.exec(`UPDATE operations SET status = 'failed', reason = 'rejected', finished_at = now(), next_attempt_at = NULL, flagged_at = NULL
		WHERE key = ANY ($1) AND finished_at IS NULL`, keys)
}

func TestReplaysOfManyAndResolutionsGoWhenTheirTimeIsOver(t *testing.T) {
	s := setupOperator(t)
	keys := s.stuck("SO", 5)
	old := s.works(s.starts(crm.ReplayFilter{}, 5).ID)
	resolved := s.stuck("SO-resolved", 1)[0]
	declined := s.proposes(resolved, notApplied(), ann)
	if _, err := s.service.DeclineResolution(t.Context(), deliverTenant, declined.ID, ben); err != nil {
		t.Fatal(err)
	}
	s.approves(s.proposes(resolved, notApplied(), ann), ben)
	s.ends(keys...)
	s.ageActions(364)
	if got := s.purged(); len(got) > 0 {
		t.Errorf("purged before their time: %v", got)
	}
	s.stuck("SO-young", 1)
	young := s.works(s.starts(crm.ReplayFilter{}, 1).ID)
	s.ends(s.items(young.ID)[0].Key)
	audit := s.count(s.crm, "audit_entries")
	s.ageActions(2)
	s.exec("UPDATE replay_runs SET finished_at = now() WHERE id = $1", young.ID)
	if diff := cmp.Diff(map[string]int64{"replay_items": 5, "resolutions": 2}, s.purged()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]int64{"replay_runs": 1}, s.purged()); diff != "" {
		t.Errorf("once none of its operations is left: %s", diff)
	}
	if _, err := s.service.GetReplayRun(t.Context(), deliverTenant, old.ID); err == nil {
		t.Error("the old run is still there")
	}
	if items := s.items(young.ID); len(items) != 1 {
		t.Errorf("the young run has %d operations left, want 1", len(items))
	}
	if n := s.count(s.crm, "audit_entries"); n != audit {
		t.Errorf("%d audit entries are left of %d", n, audit)
	}
	if again := s.purged(); len(again) > 0 {
		t.Errorf("the next run does %v again", again)
	}
}

func TestNothingUnfinishedOfWhatPeopleDidIsPurgedHoweverOld(t *testing.T) {
	s := setupOperator(t)
	keys := s.stuck("SO", 3)
	finished := s.works(s.starts(crm.ReplayFilter{}, 3).ID)
	waiting := s.stuck("SO-waiting", 2)
	open := s.starts(crm.ReplayFilter{}, 2)
	undecided := s.stuck("SO-undecided", 1)[0]
	pending := s.proposes(undecided, notApplied(), ann)
	unknown := s.stuck("SO-unknown", 1)[0]
	declined := s.proposes(unknown, notApplied(), ann)
	if _, err := s.service.DeclineResolution(t.Context(), deliverTenant, declined.ID, ben); err != nil {
		t.Fatal(err)
	}
	s.ageActions(3650)
	if got := s.purged(); len(got) > 0 {
		t.Fatalf("purged %v", got)
	}
	// The run stays for as long as one of its operations is open.
	s.ends(keys[0], keys[1])
	if diff := cmp.Diff(map[string]int64{"replay_items": 2}, s.purged()); diff != "" {
		t.Error(diff)
	}
	if items := s.items(finished.ID); len(items) != 1 || items[0].Key != keys[2] {
		t.Errorf("left are %+v", items)
	}
	// A flag keeps what has come to its end, too; a run that goes on keeps its operations, and a proposal that waits itself.
	s.ends(append(waiting, keys[2], undecided, unknown)...)
	s.exec("ALTER TABLE operations DISABLE TRIGGER USER")
	s.exec("UPDATE operations SET flagged_at = now() WHERE key = ANY ($1)", []string{keys[2], unknown})
	if got := s.purged(); len(got) > 0 {
		t.Errorf("purged %v", got)
	}
	if items := s.items(open.ID); len(items) != 2 {
		t.Errorf("the open run has %d operations, want 2", len(items))
	}
	if r, err := s.service.GetResolution(t.Context(), deliverTenant, pending.ID); err != nil || r.Status != crm.ResolutionOpen {
		t.Errorf("the proposal that waits is %+v, %v", r, err)
	}
	s.exec("UPDATE operations SET flagged_at = NULL")
	if diff := cmp.Diff(map[string]int64{"replay_items": 1, "replay_runs": 1, "resolutions": 1}, s.purged()); diff != "" {
		t.Error(diff)
	}
}
