package crm

import (
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"invoicebridge/internal/problem"
)

// bothWays goes through a list of 250 rows to its end and back, while others come in.
func bothWays[T any](t *testing.T, arrive func(), list func(PageQuery) (Page[T], error), name func(T) string) {
	t.Helper()
	for _, oldest := range []bool{false, true} {
		page := func(cursor string) (names []string, p Page[T]) {
			t.Helper()
			p, err := list(PageQuery{Limit: 60, Cursor: cursor, OldestFirst: oldest})
			if err != nil {
				t.Fatal(err)
			}
			for _, item := range p.Items {
				names = append(names, name(item))
			}
			arrive()
			return names, p
		}
		var shown [][]string
		names, p := page("")
		for shown = append(shown, names); p.Next != ""; shown = append(shown, names) {
			names, p = page(p.Next)
		}
		old := slices.DeleteFunc(slices.Concat(shown...), func(name string) bool { return name == "new" })
		if distinct := slices.Compact(slices.Sorted(slices.Values(old))); len(old) != 250 || len(distinct) != 250 {
			t.Fatalf("oldest first %v: %d rows were shown, %d of them different; want each of 250 once", oldest, len(old), len(distinct))
		}
		for i := len(shown) - 2; i >= 0; i-- {
			if p.Previous == "" {
				t.Fatalf("oldest first %v: no way back from page %d", oldest, i+1)
			}
			names, p = page(p.Previous)
			if diff := cmp.Diff(shown[i], names); diff != "" {
				t.Errorf("oldest first %v: page %d, coming back:\n%s", oldest, i, diff)
			}
		}
	}
}

// O3: the rows of one call share their time.
func TestAuditIntakeAndImportsShowTheSameForwardAndBack(t *testing.T) {
	t.Run("audit", func(t *testing.T) {
		s, c := setupConsole(t)
		const insert = "INSERT INTO audit_entries (tenant_id, actor, action, subject) SELECT 'acme', 'ann', 'a', "
		s.exec(insert + "i::text FROM generate_series(1, 250) AS i")
		bothWays(t, func() { s.exec(insert + "'new'") },
			func(q PageQuery) (Page[AuditEntry], error) {
				return c.ListAudit(t.Context(), testTenant, AuditFilter{Actor: "ann", PageQuery: q})
			}, func(e AuditEntry) string { return e.Subject })
	})
	t.Run("intake", func(t *testing.T) {
		s, c := setupConsole(t)
		const insert = "INSERT INTO intake_refusals (tenant_id, channel, problem, order_id) SELECT 'acme', 'api', 'invalid-order', "
		s.exec(insert + "i::text FROM generate_series(1, 250) AS i")
		bothWays(t, func() { s.exec(insert + "'new'") },
			func(q PageQuery) (Page[IntakeRefusal], error) {
				return c.ListRefusals(t.Context(), testTenant, RefusalFilter{Channel: ChannelAPI, PageQuery: q})
			}, func(r IntakeRefusal) string { return r.Order })
	})
	t.Run("imports", func(t *testing.T) {
		s, c := setupConsole(t)
		const insert = "INSERT INTO imports (id, tenant_id, format, keep_good, actor, file_name) SELECT gen_random_uuid(), 'acme', 'csv', false, 'ann', "
		s.exec(insert + "i::text FROM generate_series(1, 250) AS i")
		bothWays(t, func() { s.exec(insert + "'new'") },
			func(q PageQuery) (Page[Import], error) { return c.ListImports(t.Context(), testTenant, q) },
			func(i Import) string { return i.File })
	})
}

func TestAuditFiltersFindWhatTheySay(t *testing.T) {
	s, c := setupConsole(t)
	s.exec("INSERT INTO tenants (id, name) VALUES ('other', 'Other')")
	s.exec(`INSERT INTO audit_entries (tenant_id, occurred_at, actor, action, subject, reason, via, address, request_id) VALUES
		('acme', '2026-03-01T10:00:00Z', 'ann', 'operation.replay', 'k-1', 'why', 'console', '192.0.2.1', 'r-1'),
		('acme', '2026-03-02T10:00:00Z', 'ann', 'operation.cancel', 'k-2', '', 'api', '', ''),
		('acme', '2026-03-03T10:00:00Z', 'ben', 'operation.replay', 'k-2', '', 'cli', '', ''),
		('other', '2026-03-02T10:00:00Z', 'ann', 'operation.replay', 'k-1', '', 'cli', '', '')`)
	at := func(day int) time.Time { return time.Date(2026, 3, day, 10, 0, 0, 0, time.UTC) }
	for _, test := range []struct {
		name string
		f    AuditFilter
		want []int // days
	}{
		{"nothing", AuditFilter{}, []int{3, 2, 1}},
		{"oldest first", AuditFilter{PageQuery: PageQuery{OldestFirst: true}}, []int{1, 2, 3}},
		{"who", AuditFilter{Actor: "ann"}, []int{2, 1}},
		{"who is whole", AuditFilter{Actor: "an"}, nil},
		{"what", AuditFilter{Action: "operation.replay"}, []int{3, 1}},
		{"on what", AuditFilter{Subject: "k-2"}, []int{3, 2}},
		{"all three", AuditFilter{Actor: "ann", Action: "operation.cancel", Subject: "k-2"}, []int{2}},
		{"all three, oldest first", AuditFilter{Actor: "ann", Action: "operation.cancel", Subject: "k-2", PageQuery: PageQuery{OldestFirst: true}}, []int{2}},
		{"none has all", AuditFilter{Actor: "ben", Subject: "k-1"}, nil},
		{"from, inclusive", AuditFilter{From: at(2)}, []int{3, 2}},
		{"to, exclusive", AuditFilter{To: at(2)}, []int{1}},
		{"from and to", AuditFilter{From: at(2), To: at(3), PageQuery: PageQuery{OldestFirst: true}}, []int{2}},
	} {
		found, err := c.ListAudit(t.Context(), testTenant, test.f)
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		var days []int
		for _, e := range found.Items {
			days = append(days, e.OccurredAt.UTC().Day())
		}
		if diff := cmp.Diff(test.want, days); diff != "" {
			t.Errorf("%s:\n%s", test.name, diff)
		}
	}
	found, err := c.ListAudit(t.Context(), testTenant, AuditFilter{Subject: "k-1"})
	if err != nil || len(found.Items) != 1 {
		t.Fatalf("%+v, %v", found, err)
	}
	want := AuditEntry{
		ID: found.Items[0].ID, OccurredAt: at(1), Actor: "ann", Action: "operation.replay", Subject: "k-1", Reason: "why", Via: "console",
		Address: "192.0.2.1", RequestID: "r-1",
	}
	if diff := cmp.Diff(want, found.Items[0]); diff != "" {
		t.Error(diff)
	}
	for _, f := range []AuditFilter{
		{Actor: "a\x00"}, {Subject: "\xff"}, {PageQuery: PageQuery{Limit: MaxPageLimit + 1}}, {PageQuery: PageQuery{Cursor: "%"}},
	} {
		if _, err := c.ListAudit(t.Context(), testTenant, f); !problem.Is(err, problem.MalformedRequest) {
			t.Errorf("%+v: %v", f, err)
		}
	}
}

func TestIntakeFiltersFindWhatTheySay(t *testing.T) {
	s, c := setupConsole(t)
	s.exec("INSERT INTO tenants (id, name) VALUES ('other', 'Other')")
	s.exec(`INSERT INTO intake_refusals (tenant_id, received_at, channel, source, order_id, problem) VALUES
		('acme', '2026-03-01T10:00:00Z', 'api', 'crm-1', 'SO-1', 'invalid-order'),
		('acme', '2026-03-02T10:00:00Z', 'import', 'crm-1', 'SO-2', 'invalid-order'),
		('acme', '2026-03-03T10:00:00Z', 'api', '', '', 'malformed-request'),
		('other', '2026-03-02T10:00:00Z', 'api', 'crm-1', 'SO-1', 'invalid-order')`)
	at := func(day int) time.Time { return time.Date(2026, 3, day, 10, 0, 0, 0, time.UTC) }
	for _, test := range []struct {
		name string
		f    RefusalFilter
		want []int
	}{
		{"nothing", RefusalFilter{}, []int{3, 2, 1}},
		{"problem", RefusalFilter{Problem: problem.InvalidOrder}, []int{2, 1}},
		{"channel", RefusalFilter{Channel: ChannelImport}, []int{2}},
		{"source", RefusalFilter{Source: " crm-1 "}, []int{2, 1}},
		{"order, oldest first", RefusalFilter{Order: "SO-1", PageQuery: PageQuery{OldestFirst: true}}, []int{1}},
		{"order is whole", RefusalFilter{Order: "SO"}, nil},
		{"from, inclusive", RefusalFilter{From: at(2)}, []int{3, 2}},
		{"to, exclusive", RefusalFilter{To: at(2)}, []int{1}},
		{"all", RefusalFilter{Problem: problem.InvalidOrder, Channel: ChannelAPI, Source: "crm-1", Order: "SO-1", From: at(1), To: at(2)}, []int{1}},
	} {
		found, err := c.ListRefusals(t.Context(), testTenant, test.f)
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		var days []int
		for _, r := range found.Items {
			days = append(days, r.ReceivedAt.UTC().Day())
		}
		if diff := cmp.Diff(test.want, days); diff != "" {
			t.Errorf("%s:\n%s", test.name, diff)
		}
	}
	found, err := c.ListRefusals(t.Context(), "other", RefusalFilter{})
	if err != nil || len(found.Items) != 1 {
		t.Fatalf("%+v, %v", found, err)
	}
	if _, err := c.GetRefusal(t.Context(), testTenant, found.Items[0].ID); !problem.Is(err, problem.NotFound) {
		t.Errorf("another tenant's: %v", err)
	}
	if _, err := c.ListRefusals(t.Context(), testTenant, RefusalFilter{Order: "a\x00"}); !problem.Is(err, problem.MalformedRequest) {
		t.Errorf("a text that nothing can have: %v", err)
	}
}

func TestAnotherTenantsImportIsNotFoundAndNotFinished(t *testing.T) {
	s, c := setupConsole(t)
	s.exec("INSERT INTO tenants (id, name) VALUES ('other', 'Other')")
	id, err := c.BeginImport(t.Context(), testTenant, Import{File: "a\x00.csv", Format: "csv", Actor: "ann"})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.FinishImport(t.Context(), "other", Import{ID: id}); err == nil {
		t.Error("another tenant's import can be finished")
	}
	if _, err := c.GetImport(t.Context(), "other", id); !problem.Is(err, problem.NotFound) {
		t.Errorf("another tenant's: %v", err)
	}
	many := Import{ID: id, Rows: 300}
	for i := range 300 {
		many.Refused = append(many.Refused, ImportRow{int64(i + 2), "SO-" + strconv.Itoa(i), "refused", "NUL \x00"})
	}
	if err := c.FinishImport(t.Context(), testTenant, many); err != nil {
		t.Fatal(err)
	}
	got, err := c.GetImport(t.Context(), testTenant, id)
	if err != nil || got.FinishedAt == nil || len(got.Refused) != MaxImportRefusals || got.Refused[199].Line != 201 {
		t.Errorf("%v, %v", got, err)
	}
	if err := c.FinishImport(t.Context(), testTenant, Import{ID: id, Rows: 1}); err == nil {
		t.Error("an import can be finished twice")
	}
	if again, err := c.GetImport(t.Context(), testTenant, id); err != nil || again.Rows != 300 {
		t.Errorf("finished twice: %s, %v", fmt.Sprint(again.Rows), err)
	}
}

// O3: what one transaction has written shares its time.
func TestReconciliationsReplaysTheirItemsAndResolutionsShowTheSameForwardAndBack(t *testing.T) {
	t.Run("reconciliations", func(t *testing.T) {
		s := setupSubmit(t)
		const insert = `INSERT INTO reconciliation_runs (id, tenant_id, scope, window_from, window_to, phase, finished_at, requested_by)
			SELECT gen_random_uuid(), 'acme', $1, now() - interval '1 hour', now(), 'done', now(), `
		s.exec(insert+"i::text FROM generate_series(1, 250) AS i", ReconcileScope)
		bothWays(t, func() { s.exec(insert+"'new'", ReconcileScope) },
			func(q PageQuery) (Page[ReconciliationRun], error) {
				return s.ListReconciliations(t.Context(), testTenant, q)
			}, func(r ReconciliationRun) string { return r.RequestedBy })
	})
	t.Run("replays", func(t *testing.T) {
		s := setupSubmit(t)
		const insert = `INSERT INTO replay_runs (id, tenant_id, status, reason, source, min_age_seconds, matched, total, started_because,
			started_via, started_address, started_request, finished_at, started_by)
			SELECT gen_random_uuid(), 'acme', '', '', '', 0, 0, 0, '', 'cli', '', '', now(), `
		s.exec(insert + "i::text FROM generate_series(1, 250) AS i")
		bothWays(t, func() { s.exec(insert + "'new'") },
			func(q PageQuery) (Page[ReplayRun], error) { return s.ListReplayRuns(t.Context(), testTenant, q) },
			func(r ReplayRun) string { return r.By.Actor })
	})
	t.Run("the operations of a replay", func(t *testing.T) {
		s := setupSubmit(t)
		s.submit(manyOrders(250)...)
		run := uuid.Must(uuid.NewV7())
		s.exec(`INSERT INTO replay_runs (id, tenant_id, status, reason, source, min_age_seconds, matched, total, started_because,
			started_via, started_address, started_request, started_by) VALUES ($1, 'acme', '', '', '', 0, 250, 250, '', 'cli', '', '', '')`, run)
		s.exec(`INSERT INTO replay_items (run_id, position, operation_id)
			SELECT $1, row_number() OVER (ORDER BY id), id FROM operations`, run)
		bothWays(t, func() {}, func(q PageQuery) (Page[ReplayItem], error) {
			return s.ListReplayItems(t.Context(), testTenant, run, ReplayItemFilter{Result: ReplayWaiting, PageQuery: q})
		}, func(i ReplayItem) string { return i.Key })
	})
	t.Run("resolutions", func(t *testing.T) {
		s := setupSubmit(t)
		s.submit(manyOrders(1)...)
		const insert = `INSERT INTO resolutions (id, tenant_id, operation_id, attempt, verdict, evidence, status, proposed_by, decided_at,
			decided_by, decision_reason, reason) SELECT gen_random_uuid(), 'acme', o.id, 1, 'not_applied', 'seen', 'withdrawn', 'ann', now(),
			'ann', '', `
		s.exec(insert + "i::text FROM operations AS o, generate_series(1, 250) AS i")
		bothWays(t, func() { s.exec(insert + "'new' FROM operations AS o") },
			func(q PageQuery) (Page[Resolution], error) {
				return s.ListResolutions(t.Context(), testTenant, ResolutionFilter{Status: ResolutionWithdrawn, PageQuery: q})
			}, func(r Resolution) string { return r.Reason })
	})
}
