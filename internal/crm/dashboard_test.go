package crm

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"invoicebridge/internal/problem"
)

func (s *submitSetup) time(sql string) (at time.Time) {
	s.t.Helper()
	if err := s.pool.QueryRow(s.t.Context(), sql).Scan(&at); err != nil {
		s.t.Fatal(err)
	}
	return at
}

// anotherTenants has an operation of each kind that the dashboard counts, and must not count.
func (s *submitSetup) anotherTenants() {
	s.t.Helper()
	s.exec("INSERT INTO tenants (id, name) VALUES ('other', 'Other')")
	if _, err := s.Submit(s.t.Context(), "other", ChannelAPI, manyOrders(4), SubmitOptions{}); err != nil {
		s.t.Fatal(err)
	}
	s.exec("UPDATE operations SET created_at = now() - interval '1 year' WHERE tenant_id = 'other'")
	s.exec("UPDATE operations SET flagged_at = now() WHERE tenant_id = 'other' AND order_id = 'SO-00000'")
}

func TestDashboardCountsStatesAndWhatNeedsSomebody(t *testing.T) {
	s, c := searched(t)
	done := s.takes(anOrder("done", "10.00"), OutcomeCreated).Operations[0].Key
	send(t, s.pool, done)
	s.succeed(done)
	send(t, s.pool, s.takes(anOrder("at work", "10.00"), OutcomeCreated).Operations[0].Key)
	s.exec("UPDATE operations SET created_at = now() - interval '2 days' WHERE order_id = 'failed'")
	s.anotherTenants()
	d, err := c.Dashboard(t.Context(), testTenant)
	if err != nil {
		t.Fatal(err)
	}
	oldest := func(order string) *time.Time {
		at := s.time("SELECT created_at FROM operations WHERE order_id = '" + order + "'")
		return &at
	}
	count := func(n int64) BoundedCount { return BoundedCount{Count: n} }
	want := []StateCount{
		{StatusPending, count(6), oldest("old")}, {StatusProcessing, count(1), oldest("at work")},
		{StatusUnknown, count(2), oldest("unknown")}, {StatusSucceeded, count(1), nil},
		{StatusFailed, count(2), oldest("failed")}, {StatusCancelled, count(0), nil},
	}
	if diff := cmp.Diff(want, d.States); diff != "" {
		t.Error(diff)
	}
	const twoDays = 48 * 3600
	if d.Attention.BoundedCount != count(3) || d.Attention.OldestSeconds < twoDays || d.Attention.OldestSeconds > twoDays+3600 {
		t.Errorf("attention: %+v", d.Attention)
	}
	if d.Due != count(6) {
		t.Errorf("due: %+v", d.Due)
	}
}

func TestDashboardOfATenantThatHasNothingIsAllZero(t *testing.T) {
	s, c := setupConsole(t)
	s.anotherTenants()
	d, err := c.Dashboard(t.Context(), testTenant)
	if err != nil {
		t.Fatal(err)
	}
	for _, state := range d.States {
		if state.Count != 0 || state.More || state.OldestAt != nil {
			t.Errorf("%+v", state)
		}
	}
	if len(d.States) != len(OperationStatuses()) || len(d.Activity) != 24 || d.Attention != (AttentionCount{}) || d.Due != (BoundedCount{}) ||
		d.ReconciledAt != nil || d.RefusedIntake != 0 || len(d.Divergences) != 0 {
		t.Errorf("%+v", d)
	}
}

func TestDashboardCountsAttemptsByTheHourInWhichTheyBegan(t *testing.T) {
	s := setupSubmit(t)
	now := time.Now()
	c := NewConsole(s.pool, ConsoleOptions{Now: func() time.Time { return now }})
	s.anotherTenants()
	s.takes(anOrder("SO-1", "10.00"), OutcomeCreated)
	hour := s.time("SELECT date_trunc('hour', now(), 'UTC')")
	attempt := func(number, hoursAgo int, outcome string) {
		s.exec(`INSERT INTO attempts (operation_id, number, worker, outcome, started_at, finished_at)
			SELECT id, $1, 'w', $2, $3, CASE WHEN $2 <> 'sent' THEN now() END FROM operations WHERE order_id IN ('SO-1', 'SO-00000')`,
			number, outcome, hour.Add(-time.Duration(hoursAgo)*time.Hour))
	}
	for number, a := range []struct {
		hoursAgo int
		outcome  string
	}{
		{24, "delivered"}, {23, "delivered"}, {5, "lost"}, {5, "rejected"}, {5, "delivered"}, {5, "delivered"}, {5, "replayed"},
		{1, "wait"}, {0, "replayed"}, {0, "sent"},
	} {
		attempt(number+1, a.hoursAgo, a.outcome)
	}
	told := func() map[time.Time]HourOfAttempts {
		t.Helper()
		d, err := c.Dashboard(t.Context(), testTenant)
		if err != nil || len(d.Activity) != 24 {
			t.Fatalf("%d hours, %v", len(d.Activity), err)
		}
		busy := map[time.Time]HourOfAttempts{}
		for i, h := range d.Activity {
			if i > 0 && !h.Hour.Equal(d.Activity[i-1].Hour.Add(time.Hour)) {
				t.Errorf("after %s comes %s", d.Activity[i-1].Hour, h.Hour)
			}
			if h.Delivered+h.Replayed+h.Other > 0 {
				busy[h.Hour] = h
			}
		}
		if last := d.Activity[23].Hour; last.After(hour) { // an hour has ended meanwhile
			busy[hour.Add(-23*time.Hour).UTC()] = HourOfAttempts{Hour: hour.Add(-23 * time.Hour).UTC(), Delivered: 1}
		}
		return busy
	}
	want := map[time.Time]HourOfAttempts{}
	for hoursAgo, h := range map[int]HourOfAttempts{23: {Delivered: 1}, 5: {Delivered: 2, Replayed: 1, Other: 2}, 1: {Other: 1}, 0: {Replayed: 1, Other: 1}} {
		h.Hour = hour.UTC().Add(-time.Duration(hoursAgo) * time.Hour)
		want[h.Hour] = h
	}
	if diff := cmp.Diff(want, told()); diff != "" {
		t.Error(diff)
	}
	attempt(100, 7, "delivered")
	if diff := cmp.Diff(want, told()); diff != "" {
		t.Errorf("counted again at once: %s", diff)
	}
	now = now.Add(activityFor)
	if got := slices.Collect(maps.Keys(told())); len(got) != len(want)+1 {
		t.Errorf("later on, the busy hours are %v", got)
	}
}

func TestDashboardTellsOpenDivergencesAndTheLastReconciliation(t *testing.T) {
	s, c := setupConsole(t)
	s.exec(`INSERT INTO divergences (tenant_id, kind, owner, subject, first_seen_at, resolved_at) VALUES
		('acme', 'amount_differs', 'crm', 'a', '2026-03-02', NULL), ('acme', 'amount_differs', 'crm', 'b', '2026-03-01', NULL),
		('acme', 'amount_differs', 'crm', 'c', '2026-02-01', '2026-02-02'), ('acme', 'missing_in_erp', 'crm', 'd', '2026-03-03', NULL),
		('acme', 'missing_in_erp', 'crm', 'e', '2026-03-03', NULL)`)
	s.exec("UPDATE divergences SET accepted_at = now() WHERE subject = 'e'")
	s.exec(`INSERT INTO reconciliation_runs (id, tenant_id, scope, window_from, window_to, phase, started_at, finished_at) VALUES
		(gen_random_uuid(), 'acme', 'orders', '2026-03-01', '2026-03-02', 'done', '2026-03-02', '2026-03-02 01:00Z'),
		(gen_random_uuid(), 'acme', 'orders', '2026-03-02', '2026-03-03', 'done', '2026-03-03', '2026-03-03 01:00Z')`)
	d, err := c.Dashboard(t.Context(), testTenant)
	if err != nil {
		t.Fatal(err)
	}
	want := []DivergenceCount{{Kind: "amount_differs", Count: 2}, {Kind: "missing_in_erp", Count: 1}}
	if diff := cmp.Diff(want, d.Divergences, cmpopts.IgnoreFields(DivergenceCount{}, "OldestAt")); diff != "" {
		t.Error(diff)
	}
	if at := s.time("SELECT first_seen_at FROM divergences WHERE subject = 'b'"); !d.Divergences[0].OldestAt.Equal(at) {
		t.Errorf("the oldest is of %s, want %s", d.Divergences[0].OldestAt, at)
	}
	if at := time.Date(2026, 3, 3, 1, 0, 0, 0, time.UTC); d.ReconciledAt == nil || !d.ReconciledAt.Equal(at) {
		t.Errorf("reconciled at %v, want %s", d.ReconciledAt, at)
	}
}

func TestCountsEndWhereNobodyNeedsThemAndSaySo(t *testing.T) {
	t.Parallel()
	for n, want := range map[int64]BoundedCount{0: {}, DashboardMost: {Count: DashboardMost}, DashboardMost + 1: {Count: DashboardMost, More: true}} {
		if got := bounded(n); got != want {
			t.Errorf("%d: %+v", n, got)
		}
	}
}

func TestQueueThatNobodyKnowsIsToldAsSuch(t *testing.T) {
	t.Parallel()
	if _, err := NewConsole(nil, ConsoleOptions{}).QueueDepth(t.Context()); !problem.Is(err, problem.Unavailable) {
		t.Errorf("error is %v", err)
	}
}
