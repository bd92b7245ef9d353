package crm_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"invoicebridge/internal/crm"
	"invoicebridge/internal/erpapi"
	"invoicebridge/internal/invoice"
	"invoicebridge/internal/retention"
	"invoicebridge/internal/testdb"
)

// passDays lets days pass on both sides, and then both purge to the end.
func (s *bothSides) passDays(days int) {
	s.t.Helper()
	for pool, statements := range map[*pgxpool.Pool][]string{
		s.crm: {
			"UPDATE operations SET finished_at = finished_at - d, first_sent_at = first_sent_at - d, created_at = created_at - d, next_attempt_at = next_attempt_at - d",
			"UPDATE orders SET updated_at = updated_at - d",
			"UPDATE attempts SET started_at = started_at - d, finished_at = finished_at - d",
			"UPDATE inbox_messages SET received_at = received_at - d",
		},
		s.erp: {"UPDATE idempotency_records SET first_seen_at = first_seen_at - d, expires_at = expires_at - d"},
	} {
		for _, sql := range statements {
			if _, err := pool.Exec(context.Background(), sql+" FROM (SELECT $1 * interval '1 day' AS d) AS age", days); err != nil {
				s.t.Fatalf("%s: %v", sql, err)
			}
		}
	}
	s.purge(crm.RetentionSteps(s.crm, crm.Keep{}))
	s.purge(invoice.RetentionSteps(s.erp, invoice.Keep{}))
}

func (s *bothSides) purge(steps []retention.Step) {
	s.t.Helper()
	opts := retention.Options{Pause: func(ctx context.Context, _ time.Duration) error { return ctx.Err() }}
	if _, err := retention.NewPurger(steps, opts).Purge(s.t.Context(), nil); err != nil {
		s.t.Fatal(err)
	}
}

func (s *bothSides) rows(pool *pgxpool.Pool, from string) (n int) {
	s.t.Helper()
	if err := pool.QueryRow(context.Background(), "SELECT count(*) FROM "+from).Scan(&n); err != nil {
		s.t.Fatal(err)
	}
	return n
}

// CASES F1 (a): the answer was lost, and the key is sent again when its reservation is long gone.
func TestAnOperationLeftUnknownUntilItsKeyExpiredEndsWithTheOldInvoice(t *testing.T) {
	s := setupBothSides(t)
	key := s.invoiced("SO-1010")[0]
	number := s.operation(key).Invoice.Number
	s.unlearn(key)
	s.passDays(400)
	if n := s.rows(s.erp, "idempotency_records"); n != 0 {
		t.Fatal("the reservation is not gone")
	}
	if op := s.operation(key); op.Status != crm.StatusUnknown || len(op.History) != 1 {
		t.Fatalf("the purge touched an unknown operation: %+v", op)
	}
	s.deliver(key)
	if op := s.operation(key); op.Status != crm.StatusSucceeded || op.Invoice.Number != number || op.History[1].Outcome != crm.OutcomeReplayed {
		t.Errorf("operation is %+v", op)
	}
	if n := s.rows(s.erp, "invoices"); n != 1 {
		t.Errorf("%d invoices", n)
	}
}

// CASES F1 (b): an operation that was minimised is delivered by nobody any more.
func TestAMinimisedOperationIsNeverSent(t *testing.T) {
	s := setupBothSides(t)
	key := s.invoiced("SO-1010")[0]
	before := s.operation(key)
	s.passDays(400)
	if n := s.rows(s.crm, "operations WHERE minimised_at IS NOT NULL"); n != 1 {
		t.Fatal("the operation is not minimised")
	}
	s.server.Close() // whoever sends something now fails
	next, err := s.deliverer.Deliver(t.Context(), s.id(key), nil)
	if err != nil || !next.Done {
		t.Errorf("%+v, %v", next, err)
	}
	if op := s.operation(key); op.Status != crm.StatusSucceeded || *op.Invoice != *before.Invoice || op.Attempts != before.Attempts {
		t.Errorf("operation was %+v, is %+v", before, op)
	}
}

// CASES F1 (c): a CRM side that lost its own books sends the order anew, so under another key.
func TestAnOrderSentAnewUnderAnotherKeyAfterThePurgeMakesNoSecondInvoice(t *testing.T) {
	s := setupBothSides(t)
	number := s.operation(s.invoiced("SO-1010")[0]).Invoice.Number
	s.passDays(400)
	for _, restored := range []struct {
		price  string
		status crm.OperationStatus
		reason crm.Reason
	}{
		{"10", crm.StatusSucceeded, crm.ReasonAlreadyInvoiced},
		{"12", crm.StatusFailed, crm.ReasonConflict},
	} {
		other := s.withNewBooks()
		order := plainOrder("SO-1010")
		price := erpapi.MustDecimal(restored.price)
		order.Lines[0].UnitPrice = &price
		key := other.submitted(order)[0]
		other.deliver(key)
		op := other.operation(key)
		if op.Status != restored.status || op.Reason != restored.reason {
			t.Errorf("at %s: operation is %+v", restored.price, op)
		}
		if op.Status == crm.StatusSucceeded && op.Invoice.Number != number {
			t.Errorf("it took over %s, not %s", op.Invoice.Number, number)
		}
	}
	if n := s.rows(s.erp, "invoices"); n != 1 {
		t.Errorf("%d invoices", n)
	}
}

// withNewBooks is the same company's CRM side with an empty database.
func (s *bothSides) withNewBooks() *bothSides {
	s.t.Helper()
	other := *s
	other.crm = testdb.CRM(s.t)
	other.startCRM()
	return &other
}

func TestReconciliationFindsNothingWrongWithWhatIsMinimised(t *testing.T) {
	s := setupBothSides(t)
	s.invoiced("SO-1", "SO-2")
	s.passDays(400)
	if got := s.reconciles(); got.Found != 0 || got.Compared < 2 {
		t.Errorf("reconciliation: %+v", got)
	}
}
