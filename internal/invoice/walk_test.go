package invoice

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"invoicebridge/internal/problem"
)

// walkBothWays goes through a list to its end and back to its beginning, in pages of two, and gives what was met.
func walkBothWays(t *testing.T, meanwhile func(), page func(w Walk) (names []string, next, previous string)) (forth, back []string) {
	t.Helper()
	names, next, previous := page(Walk{Limit: 2})
	if previous != "" {
		t.Error("there is a page before the first")
	}
	forth = names
	for next != "" && len(forth) < 20 {
		names, next, previous = page(Walk{Limit: 2, After: next})
		forth = append(forth, names...)
	}
	meanwhile()
	back = names
	for previous != "" && len(back) < 20 {
		names, next, previous = page(Walk{Limit: 2, Before: previous})
		back = append(slices.Clone(names), back...)
		if next == "" {
			t.Errorf("there is no way on from %v", names)
		}
	}
	return forth, back
}

func namesOf[T any](page Walked[T], err error, name func(T) string) func(t *testing.T) (names []string, next, previous string) {
	return func(t *testing.T) (names []string, next, previous string) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		for _, item := range page.Items {
			names = append(names, name(item))
		}
		return names, page.Next, page.Previous
	}
}

// O3, for what the ERP's books list besides invoices: rows of one time, and others that come while somebody pages.
func TestConflictsAuditAndDivergencesArePagedBothWays(t *testing.T) {
	t.Parallel()
	e := setup(t)
	insert := func(names ...string) {
		for _, name := range names {
			e.exec("INSERT INTO key_conflicts (tenant_id, operation, key, caller, differences) VALUES ('t1', 'issue_invoice', $1, 'c', '{}')", name)
			e.exec("INSERT INTO audit_entries (tenant_id, actor, action, subject) VALUES ('t1', 'anna', 'look', $1)", name)
			e.exec(`INSERT INTO divergences (tenant_id, kind, owner, subject, first_seen_at)
				VALUES ('t1', 'held_too_long', 'target', $1, CASE WHEN $1 < 'L' THEN timestamptz '2026-03-01' ELSE now() END)`, name)
		}
	}
	var first []string
	for i := range 5 {
		first = append(first, fmt.Sprint("K", i))
	}
	insert(first...)
	want := []string{"K4", "K3", "K2", "K1", "K0"}
	come := 0
	meanwhile := func() {
		come++
		insert(fmt.Sprint("NEW", come))
	}
	for name, page := range map[string]func(w Walk) ([]string, string, string){
		"conflicts": func(w Walk) ([]string, string, string) {
			page, err := e.ListConflicts(t.Context(), tenant, "", w)
			return namesOf(page, err, func(c Conflict) string { return c.Key })(t)
		},
		"audit": func(w Walk) ([]string, string, string) {
			page, err := e.ListAudit(t.Context(), tenant, AuditFilter{Actor: "anna"}, w)
			return namesOf(page, err, func(a AuditEntry) string { return a.Subject })(t)
		},
		"divergences": func(w Walk) ([]string, string, string) {
			page, err := e.SearchDivergences(t.Context(), tenant, DivergenceFilter{State: DivergenceOpen}, w)
			return namesOf(page, err, func(d DivergenceView) string { return d.Subject })(t)
		},
	} {
		before := come
		forth, back := walkBothWays(t, meanwhile, page)
		if diff := cmp.Diff(want, forth[before:]); diff != "" {
			t.Errorf("%s, forth (-want +got)\n%s", name, diff)
		}
		if diff := cmp.Diff(append([]string{fmt.Sprint("NEW", come)}, forth...), back); diff != "" {
			t.Errorf("%s, back (-want +got)\n%s", name, diff)
		}
	}
}

func TestAPlaceInTheERPsBooksThatThereIsNotIsRefused(t *testing.T) {
	t.Parallel()
	e := setup(t)
	for _, w := range []Walk{
		{Limit: -1}, {Limit: MaxPage + 1}, {After: "1", Before: "1"}, {After: "x"}, {After: "0"}, {Before: "-1"}, {After: "01"},
		{Before: "9999999999999999999999"},
	} {
		if _, err := e.ListAudit(t.Context(), tenant, AuditFilter{}, w); !problem.Is(err, problem.MalformedRequest) {
			t.Errorf("audit, %+v: %v", w, err)
		}
		if _, err := e.ListConflicts(t.Context(), tenant, "", w); !problem.Is(err, problem.MalformedRequest) {
			t.Errorf("conflicts, %+v: %v", w, err)
		}
		if _, err := e.SearchDivergences(t.Context(), tenant, DivergenceFilter{}, w); !problem.Is(err, problem.MalformedRequest) {
			t.Errorf("divergences, %+v: %v", w, err)
		}
	}
	e.exec("INSERT INTO audit_entries (tenant_id, actor, action, subject) VALUES ('t1', 'anna', 'look', 'K')")
	page, err := e.ListAudit(t.Context(), tenant, AuditFilter{}, Walk{Before: "99"})
	if err != nil || len(page.Items) != 1 || page.Previous != "" {
		t.Errorf("the way back has come to the beginning, which is %+v, %v", page, err)
	}
}
