package invoice

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"invoicebridge/internal/audit"
	"invoicebridge/internal/erpapi"
	"invoicebridge/internal/problem"
)

// together runs n functions at once, as nearly as can be.
func together(n int, do func(i int)) {
	start := make(chan struct{})
	var wait sync.WaitGroup
	for i := range n {
		wait.Go(func() {
			<-start
			do(i)
		})
	}
	close(start)
	wait.Wait()
}

func TestFiftyEqualRequestsAtOnceMakeOneInvoice(t *testing.T) {
	t.Parallel()
	e := setup(t)
	replicas := []erp{e, e.replica()}
	const rounds = 20
	for round := range rounds {
		r := orderOf(t, fmt.Sprint("SO-", round))
		cmd := command(t, fmt.Sprint("K", round), r)
		results := make([]Result, 50)
		together(len(results), func(i int) {
			results[i] = replicas[i%2].Issue(context.Background(), []Command{cmd})[0]
		})
		first := 0
		for _, r := range results {
			switch {
			case r.Err == nil && !r.Answer.Replayed:
				first++
			case r.Err != nil && !problem.Is(r.Err, problem.OperationInProgress):
				t.Errorf("round %d: %v", round, r.Err)
			}
		}
		if first != 1 {
			t.Fatalf("round %d: %d first answers", round, first)
		}
		if !e.mustIssue(cmd.Key.String(), r).Replayed {
			t.Errorf("round %d: not a replay afterwards", round)
		}
	}
	e.wantNumbers(tenant, "INV", rounds)
}

func TestTwoContentsUnderOneKeyAtOnceMakeOneInvoiceAndNeverMixAnswers(t *testing.T) {
	t.Parallel()
	e := setup(t)
	replicas := []erp{e, e.replica()}
	for round := range 10 {
		order, key := fmt.Sprint("SO-", round), fmt.Sprint("K", round)
		gross := []string{"23.80", "2142.00"}
		cmds := []Command{
			command(t, key, orderOf(t, order)),
			command(t, key, request(t, "SO-1001", order, "10.00", "900.00")),
		}
		results := make([]Result, 50)
		together(len(results), func(i int) {
			results[i] = replicas[i/2%2].Issue(context.Background(), []Command{cmds[i%2]})[0]
		})
		answered := map[string]bool{}
		for i, r := range results {
			switch {
			case r.Err == nil:
				inv := document(t, r.Answer)
				answered[inv.ID] = true
				if inv.Gross != gross[i%2] {
					t.Errorf("round %d: a request for %s was answered with %s", round, gross[i%2], inv.Gross)
				}
			case !problem.Is(r.Err, problem.OperationInProgress) && !problem.Is(r.Err, problem.IdempotencyKeyReused):
				t.Errorf("round %d: %v", round, r.Err)
			}
		}
		if len(answered) != 1 {
			t.Errorf("round %d: %d invoices answered", round, len(answered))
		}
	}
	if n := e.invoices(); n != 10 {
		t.Errorf("%d invoices", n)
	}
}

// Case H1. Twenty of two hundred fail after their number was taken.
func TestNumbersHaveNoHolesUnderLoadAndAfterRollbacks(t *testing.T) {
	t.Parallel()
	e := setup(t)
	replicas := []erp{e, e.replica(), e.replica()}
	e.exec(`CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$
		BEGIN
			IF NEW.order_id LIKE 'BAD-%' THEN RAISE EXCEPTION 'as told' USING ERRCODE = 'external_routine_exception'; END IF;
			RETURN NEW;
		END $$;
		CREATE TRIGGER fail BEFORE INSERT ON invoices FOR EACH ROW EXECUTE FUNCTION fail()`)
	together(200, func(i int) {
		order := fmt.Sprint("SO-", i)
		if i%10 == 0 {
			order = fmt.Sprint("BAD-", i)
		}
		r := replicas[i%3].Issue(context.Background(), []Command{command(t, fmt.Sprint("K", i), orderOf(t, order))})[0]
		if bad := i%10 == 0; (r.Err != nil) != bad || bad && problem.As(r.Err) != nil {
			t.Errorf("%s: %v", order, r.Err)
		}
	})
	e.wantNumbers(tenant, "INV", 180)
}

// The same in groups: one that fails must not take its neighbours with it.
func TestAGroupWithBadMembersIssuesTheOthers(t *testing.T) {
	t.Parallel()
	e := setup(t)
	e.exec(`CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$
		BEGIN
			IF NEW.order_id LIKE 'BAD-%' THEN RAISE EXCEPTION 'as told'; END IF;
			RETURN NEW;
		END $$;
		CREATE TRIGGER fail BEFORE INSERT ON invoices FOR EACH ROW EXECUTE FUNCTION fail()`)
	e.mustIssue("used", orderOf(t, "SO-used"))
	results := e.Issue(t.Context(), []Command{
		command(t, "K1", orderOf(t, "SO-1")),
		command(t, "K2", orderOf(t, "BAD-2")),
		command(t, "K3", request(t, `"SO-1001"`, `"SO-3"`, `"19"`, `""`)),
		command(t, "used", orderOf(t, "SO-4")),
		command(t, "K5", orderOf(t, "SO-used")),
		command(t, "K6", request(t, `"SO-1001"`, `"SO-6"`, `"role"`, `"order_total":"1","role"`)),
		command(t, "used", orderOf(t, "SO-used")),
		command(t, "K8", orderOf(t, "SO-8")),
	})
	want := []string{"INV-2026-000002", "internal", "invalid-invoice", "idempotency-key-reused", "already-invoiced",
		"invalid-invoice", "replay of INV-2026-000001", "INV-2026-000003"}
	for i, r := range results {
		got := "internal"
		switch p := problem.As(r.Err); {
		case p != nil:
			got = string(p.Type)
		case r.Err == nil && r.Answer.Replayed:
			got = "replay of " + r.Answer.Number
		case r.Err == nil:
			got = r.Answer.Number
		}
		if got != want[i] {
			t.Errorf("%d: got %s, want %s (%v)", i, got, want[i], r.Err)
		}
	}
	e.wantNumbers(tenant, "INV", 3)
}

func TestTenantsDoNotSeeBlockOrNumberEachOther(t *testing.T) {
	t.Parallel()
	e := setup(t, "t2")
	both := []Command{command(t, "order-1001", request(t)), command(t, "order-1001", request(t, "10.00", "900.00"))}
	both[1].Tenant = "t2"
	replicas := []erp{e, e.replica()}
	together(50, func(i int) {
		for n := range both {
			r := replicas[i%2].Issue(context.Background(), []Command{both[(n+i)%2]})[0]
			if r.Err != nil && !problem.Is(r.Err, problem.OperationInProgress) {
				t.Errorf("%s: %v", both[(n+i)%2].Tenant, r.Err)
			}
		}
	})
	var ids []erpapi.Invoice
	for _, cmd := range both {
		r := e.Issue(t.Context(), []Command{cmd})[0]
		if r.Err != nil || r.Answer.Number != "INV-2026-000001" {
			t.Fatalf("%s: %+v", cmd.Tenant, r)
		}
		ids = append(ids, document(t, r.Answer))
	}
	if ids[0].ID == ids[1].ID || ids[0].Gross != "23.80" || ids[1].Gross != "2142.00" || e.invoices() != 2 {
		t.Errorf("%+v", ids)
	}
}

func TestATenantThatIsBusyDoesNotBlockAnother(t *testing.T) {
	t.Parallel()
	e := setup(t, "t2")
	tx, err := e.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.Background()) }()
	// A transaction of t1 that has everything locked that one can lock.
	if _, err := tx.Exec(t.Context(), `
		INSERT INTO idempotency_records VALUES ('t1', 'issue_invoice', 'K1', 1, sha256(''), 'processing', NULL, NULL,
			now(), NULL, now() + interval '1 day');
		INSERT INTO order_balances VALUES ('t1', 'crm-1', 'SO-1001', 'EUR', 0, 0);
		INSERT INTO invoice_counters VALUES ('t1', 'INV', 2026, 1)`); err != nil {
		t.Fatal(err)
	}
	cmd := command(t, "K1", request(t))
	cmd.Tenant = "t2"
	if r := e.Issue(t.Context(), []Command{cmd})[0]; r.Err != nil {
		t.Error(r.Err)
	}
}

func TestSeriesOfTwoTenantsAndRolesCountApart(t *testing.T) {
	t.Parallel()
	e := setup(t, "t2")
	if err := e.SetSeries(t.Context(), "t2", "final", "RE", 4, audit.By{Actor: "anna", Reason: "as in the old system"}); err != nil {
		t.Fatal(err)
	}
	if err := e.SetSeries(t.Context(), "t2", "partial", "AB", 1, audit.By{Actor: "anna", Reason: "as in the old system"}); err != nil {
		t.Fatal(err)
	}
	together(60, func(i int) {
		r := orderOf(t, fmt.Sprint("SO-", i))
		if i%3 == 2 {
			r.Role = erpapi.RolePartial
		}
		cmd := command(t, fmt.Sprint("K", i), r)
		if i%3 > 0 {
			cmd.Tenant = "t2"
		}
		if got := e.Issue(context.Background(), []Command{cmd})[0]; got.Err != nil {
			t.Error(got.Err)
		}
	})
	e.wantNumbers("t1", "INV", 20)
	for form, want := range map[string]int{"^INV-2026-[0-9]{6}$": 20, "^RE-2026-[0-9]{4}$": 20, "^AB-2026-[0-9]{1,2}$": 20} {
		if n := e.count("SELECT count(DISTINCT series_number) FROM invoices WHERE number ~ $1 AND series_number <= 20", form); n != want {
			t.Errorf("%d numbers %s", n, form)
		}
	}
}

func TestNumbersAreOfTheYearOfTheIssueDate(t *testing.T) {
	t.Parallel()
	e := setup(t)
	results := e.Issue(t.Context(), []Command{
		command(t, "K1", request(t, "2026-03-02", "2025-12-31", "SO-1001", "SO-1")),
		command(t, "K2", request(t, "2026-03-02", "2026-01-01", "SO-1001", "SO-2")),
		command(t, "K3", request(t, "2026-03-02", "2025-01-01", "SO-1001", "SO-3")),
	})
	for i, want := range []string{"INV-2025-000001", "INV-2026-000001", "INV-2025-000002"} {
		if results[i].Err != nil || results[i].Answer.Number != want {
			t.Errorf("%d: %+v, want %s", i, results[i], want)
		}
	}
}

func TestSetSeriesRefusesWhatTheNumbersCantHold(t *testing.T) {
	t.Parallel()
	e := setup(t)
	for name, c := range map[string]struct {
		role, prefix  string
		digits        int
		actor, reason string
		want          string
	}{
		"role":   {"invoice", "INV", 6, "a", "r", "/role"},
		"hyphen": {"final", "INV-A", 6, "a", "r", "/prefix"},
		"length": {"final", strings.Repeat("A", 17), 6, "a", "r", "/prefix"},
		"digits": {"final", "INV", 0, "a", "r", "/digits"},
		"many":   {"final", "INV", 13, "a", "r", "/digits"},
		"actor":  {"final", "INV", 6, "", "r", "/actor"},
		"reason": {"final", "INV", 6, "a", " ", "/reason"},
	} {
		p := problem.As(e.SetSeries(t.Context(), tenant, c.role, c.prefix, c.digits, audit.By{Actor: c.actor, Reason: c.reason}))
		if p == nil || p.Type != problem.MalformedRequest || p.Errors[0].Pointer != c.want {
			t.Errorf("%s: %v", name, p)
		}
	}
	if err := e.SetSeries(t.Context(), "nobody", "final", "INV", 6, audit.By{Actor: "a", Reason: "r"}); !problem.Is(err, problem.NotFound) {
		t.Errorf("unknown tenant: %v", err)
	}
	if n := e.count("SELECT count(*) FROM invoice_series") + e.count("SELECT count(*) FROM audit_entries"); n != 0 {
		t.Errorf("%d rows", n)
	}
	if err := e.SetSeries(t.Context(), tenant, "final", "RE", 4, audit.By{Actor: "anna", Reason: "moved"}); err != nil {
		t.Fatal(err)
	}
	if n := e.count("SELECT count(*) FROM audit_entries WHERE actor = 'anna' AND reason = 'moved'"); n != 1 {
		t.Error("not written down")
	}
}
