package crm

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"invoicebridge/internal/erpapi"
	"invoicebridge/internal/problem"
)

func setupConsole(t *testing.T) (*submitSetup, *Console) {
	t.Helper()
	s := setupSubmit(t)
	return s, NewConsole(s.pool, ConsoleOptions{})
}

func keysOf(operations []Operation) []string {
	keys := make([]string, len(operations))
	for i, op := range operations {
		keys[i] = op.Key
	}
	return keys
}

// O3: 250 operations of one import share their time. Forward and back show each once, in the same order, while others
// come in.
func TestPagesForwardAndBackShowTheSameWhileOthersComeIn(t *testing.T) {
	for _, oldest := range []bool{false, true} {
		t.Run(fmt.Sprintf("oldest first %v", oldest), func(t *testing.T) {
			s, c := setupConsole(t)
			s.submit(manyOrders(250)...)
			var times int
			if err := s.pool.QueryRow(t.Context(), "SELECT count(DISTINCT created_at) FROM operations").Scan(&times); err != nil || times != 1 {
				t.Fatalf("%d times, %v: the case is about one", times, err)
			}
			arriving := 0
			page := func(cursor string) OperationPage {
				t.Helper()
				found, err := c.SearchOperations(t.Context(), testTenant, OperationSearch{PageQuery: PageQuery{Limit: 100, Cursor: cursor, OldestFirst: oldest}})
				if err != nil {
					t.Fatal(err)
				}
				for range 10 {
					arriving++
					s.takes(anOrder(fmt.Sprintf("new-%d", arriving), "1.00"), OutcomeCreated)
				}
				return found
			}
			old := func(operations []Operation) []string {
				return keysOf(slices.DeleteFunc(slices.Clone(operations), func(op Operation) bool { return strings.HasPrefix(op.Order, "new-") }))
			}
			first := page("")
			second := page(first.Next)
			third := page(second.Next)
			forward := slices.Concat(old(first.Items), old(second.Items), old(third.Items))
			if len(forward) != 250 || len(slices.Compact(slices.Sorted(slices.Values(forward)))) != 250 {
				t.Fatalf("%d of 250 were shown", len(forward))
			}
			backSecond := page(third.Previous)
			backFirst := page(backSecond.Previous)
			if diff := cmp.Diff(keysOf(second.Items), keysOf(backSecond.Items)); diff != "" {
				t.Errorf("the second page, coming back:\n%s", diff)
			}
			if diff := cmp.Diff(keysOf(first.Items), keysOf(backFirst.Items)); diff != "" {
				t.Errorf("the first page, coming back:\n%s", diff)
			}
			if again := page(backFirst.Next); !cmp.Equal(keysOf(again.Items), keysOf(second.Items)) {
				t.Error("forward again from there is another page")
			}
		})
	}
}

func TestWayBackFromTheBeginningShowsTheBeginning(t *testing.T) {
	s, c := setupConsole(t)
	s.submit(manyOrders(3)...)
	first, err := c.SearchOperations(t.Context(), testTenant, OperationSearch{PageQuery: PageQuery{Limit: 2}})
	if err != nil || first.Previous != "" || first.Next == "" {
		t.Fatalf("%+v, %v", first.Page, err)
	}
	second, err := c.SearchOperations(t.Context(), testTenant, OperationSearch{PageQuery: PageQuery{Limit: 2, Cursor: first.Next}})
	if err != nil || second.Next != "" {
		t.Fatalf("%+v, %v", second.Page, err)
	}
	// What stood before the second page is gone meanwhile.
	s.exec("DELETE FROM operations WHERE key <> $1", second.Items[0].Key)
	back, err := c.SearchOperations(t.Context(), testTenant, OperationSearch{PageQuery: PageQuery{Limit: 2, Cursor: second.Previous}})
	if err != nil || len(back.Items) != 1 || back.Previous != "" {
		t.Errorf("%+v, %v", back.Page, err)
	}
}

func TestCursorOfAnotherTenantShowsNothingOfTheirs(t *testing.T) {
	s, c := setupConsole(t)
	s.exec("INSERT INTO tenants (id, name) VALUES ('other', 'Other')")
	s.submit(manyOrders(5)...)
	first, err := c.SearchOperations(t.Context(), testTenant, OperationSearch{PageQuery: PageQuery{Limit: 2}})
	if err != nil {
		t.Fatal(err)
	}
	found, err := c.SearchOperations(t.Context(), "other", OperationSearch{PageQuery: PageQuery{Cursor: first.Next}})
	if err != nil || len(found.Items) != 0 {
		t.Errorf("%+v, %v", found, err)
	}
}

func TestWrongSearchIsRefused(t *testing.T) {
	_, c := setupConsole(t)
	for _, f := range []OperationSearch{
		{Status: "done"}, {Role: "bill"}, {OlderThan: -time.Second}, {Text: "a\x00"}, {Source: "\xff"},
		{PageQuery: PageQuery{Limit: 201}}, {PageQuery: PageQuery{Cursor: "%"}}, {PageQuery: PageQuery{Cursor: "eHg"}},
		{PageQuery: PageQuery{Cursor: "OTk5OTk5LTAxLTAxVDAwOjAwOjAwWiAx"}},
	} {
		if _, err := c.SearchOperations(t.Context(), testTenant, f); !problem.Is(err, problem.MalformedRequest) {
			t.Errorf("%+v: %v", f, err)
		}
	}
}

// searched has one operation of each kind that a filter tells apart; their orders are named for it.
func searched(t *testing.T) (*submitSetup, *Console) {
	s, c := setupConsole(t)
	for _, order := range []string{"pending", "failed", "unknown", "flagged", "changed", "superseded", "old", "50%_off", "50x"} {
		s.takes(anOrder(order, "10.00"), OutcomeCreated)
	}
	other := anOrder("elsewhere", "10.00")
	other.Source, other.Role, other.Corrects = "crm-2", erpapi.RoleCreditNote, "INV-1"
	s.takes(other, OutcomeCreated)
	fail := func(order, reason string) {
		s.exec("UPDATE operations SET status = 'failed', finished_at = now(), next_attempt_at = NULL, reason = $2 WHERE order_id = $1", order, reason)
	}
	fail("failed", "rejected")
	fail("superseded", "rejected")
	s.exec("UPDATE operations SET superseded_at = now() WHERE order_id = 'superseded'")
	s.exec("UPDATE operations SET status = 'unknown', reason = 'no_answer', next_attempt_at = now() + interval '1 hour' WHERE order_id IN ('unknown', 'flagged')")
	s.exec("UPDATE operations SET flagged_at = now() WHERE order_id = 'flagged'")
	s.exec("UPDATE operations SET changed_after_delivery_version = 2 WHERE order_id = 'changed'")
	s.exec("UPDATE operations SET created_at = now() - interval '3 days' WHERE order_id = 'old'")
	return s, c
}

func TestFiltersFindWhatTheySay(t *testing.T) {
	s, c := searched(t)
	var oldKey string
	if err := s.pool.QueryRow(t.Context(), "SELECT key FROM operations WHERE order_id = 'old'").Scan(&oldKey); err != nil {
		t.Fatal(err)
	}
	yes := true
	for _, test := range []struct {
		name string
		f    OperationSearch
		want []string
	}{
		{"status", OperationSearch{Status: StatusFailed}, []string{"failed", "superseded"}},
		{"attention", OperationSearch{Attention: true}, []string{"changed", "failed", "flagged"}},
		{"reason", OperationSearch{Reason: ReasonNoAnswer}, []string{"flagged", "unknown"}},
		{"source", OperationSearch{Source: "crm-2"}, []string{"elsewhere"}},
		{"role", OperationSearch{Role: erpapi.RoleCreditNote}, []string{"elsewhere"}},
		{"flagged", OperationSearch{Flagged: &yes}, []string{"flagged"}},
		{"due", OperationSearch{Due: true, Source: "crm-1"}, []string{"50%_off", "50x", "changed", "old", "pending"}},
		{"order", OperationSearch{Order: " failed "}, []string{"failed"}},
		{"order is whole", OperationSearch{Order: "fail"}, nil},
		{"key", OperationSearch{Key: oldKey}, []string{"old"}},
		{"key and another status", OperationSearch{Key: oldKey, Status: StatusFailed}, nil},
		{"text is a key", OperationSearch{Text: oldKey}, []string{"old"}},
		{"text begins an order", OperationSearch{Text: "f"}, []string{"failed", "flagged"}},
		{"text and status", OperationSearch{Text: "f", Status: StatusUnknown}, []string{"flagged"}},
		{"text finds what is superseded", OperationSearch{Text: "super"}, []string{"superseded"}},
		{"text has no patterns", OperationSearch{Text: "50%_"}, []string{"50%_off"}},
		{"text finds nothing", OperationSearch{Text: "nothing"}, nil},
		{"older", OperationSearch{OlderThan: 24 * time.Hour}, []string{"old"}},
		{"until", OperationSearch{CreatedTo: time.Now().Add(-24 * time.Hour)}, []string{"old"}},
		{"from", OperationSearch{CreatedFrom: time.Now().Add(-24 * time.Hour), Status: StatusUnknown}, []string{"flagged", "unknown"}},
		{"another tenant's", OperationSearch{Source: "crm-3"}, nil},
	} {
		found, err := c.SearchOperations(t.Context(), testTenant, test.f)
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		var got []string
		for _, op := range found.Items {
			got = append(got, op.Order)
		}
		slices.Sort(got)
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s:\n%s", test.name, diff)
		}
	}
	sources, err := c.ListSources(t.Context(), testTenant)
	if diff := cmp.Diff([]string{"crm-1", "crm-2"}, sources); err != nil || diff != "" {
		t.Errorf("sources: %v\n%s", err, diff)
	}
}

func TestSearchOfVeryManyOrdersSaysThatItIsCut(t *testing.T) {
	s, c := setupConsole(t)
	s.submit(manyOrders(maxFoundOrders + 1)...)
	found, err := c.SearchOperations(t.Context(), testTenant, OperationSearch{Text: "SO-"})
	if err != nil || !found.Cut {
		t.Errorf("not cut: %v", err)
	}
	found, err = c.SearchOperations(t.Context(), testTenant, OperationSearch{Text: "SO-0000"})
	if err != nil || found.Cut || len(found.Items) != 10 {
		t.Errorf("%d items, cut %v, %v", len(found.Items), found.Cut, err)
	}
}
