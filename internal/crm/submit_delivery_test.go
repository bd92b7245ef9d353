package crm

import (
	"context"
	"testing"

	"invoicebridge/internal/erpapi"
)

func TestChangeBeforeSendingChangesTheRequestUnderItsKey(t *testing.T) {
	s := setupSubmit(t)
	key := s.takes(anOrder("SO-1", "10.00"), OutcomeCreated).Operations[0].Key
	sub := s.takes(anOrder("SO-1", "11.00").at(2), OutcomeChanged)
	if sub.Operations[0].Key != key {
		t.Errorf("key %s became %s", key, sub.Operations[0].Key)
	}
	if got := s.request(key).Lines[0].UnitPrice.String(); got != "11" {
		t.Errorf("price is %s", got)
	}
	if s.count("operations WHERE order_version = 2 AND sha256(request) = request_hash") != 1 {
		t.Error("version or hash do not belong to the request")
	}
	s.counts(1, 1, 1)
}

// C7: each member that reaches the invoice makes another request, and after sending that is reported, never sent.
func TestChangeOfAnyMemberAfterSendingIsReportedAndNotSent(t *testing.T) {
	s := setupSubmit(t)
	key := s.takes(anOrder("SO-1", "10.00").at(1), OutcomeCreated).Operations[0].Key
	send(t, s.pool, key)
	s.succeed(key)
	changes := map[string]func(*Order){
		"currency":         func(o *Order) { o.Currency = "CHF" },
		"issue_date":       func(o *Order) { o.IssueDate = "2026-03-03" },
		"due_date":         func(o *Order) { o.DueDate = "2026-04-02" },
		"customer.name":    func(o *Order) { o.Customer.Name = "B" },
		"customer.country": func(o *Order) { o.Customer.Country = "AT" },
		"customer.vat_id":  func(o *Order) { o.Customer.VATID = "XX000000002" },
		"customer.email":   func(o *Order) { o.Customer.Email = "a@example.test" },
		"customer.address": func(o *Order) { o.Customer.Address = "Street 1" },
		"sku":              func(o *Order) { o.Lines[0].SKU = "P-2" },
		"description":      func(o *Order) { o.Lines[0].Description = "text" },
		"quantity":         func(o *Order) { o.Lines[0].Quantity = dec("3") },
		"unit_price":       func(o *Order) { o.Lines[0].UnitPrice = dec("10.01") },
		"discount":         func(o *Order) { o.Lines[0].Discount = dec("1") },
		"vat_rate":         func(o *Order) { o.Lines[0].VATRate = dec("7") },
		"vat_category":     func(o *Order) { o.Lines[0].VATCategory = "Z" },
		"exemption_reason": func(o *Order) { o.Lines[0].ExemptionReason = "reason" },
		"order of lines":   func(o *Order) { o.Lines = append([]erpapi.Line{aLine("1")}, o.Lines...) },
		"order_total":      func(o *Order) { o.OrderTotal = dec("100") },
		"expected_gross":   func(o *Order) { o.ExpectedGross = dec("23.80") },
		"note":             func(o *Order) { o.Note = "note" },
		"metadata":         func(o *Order) { o.Metadata = map[string]string{"cost_centre": "7"} },
	}
	version := int64(1)
	for name, change := range changes {
		version++
		o := anOrder("SO-1", "10.00").at(version)
		change(&o)
		if sub := s.takes(o, OutcomeChangedAfterDelivery); sub.Detail != "sent before in another form: final 1 (succeeded)" {
			t.Errorf("%s: detail is %q", name, sub.Detail)
		}
		if s.count("operations WHERE changed_after_delivery_version = $1 AND order_version = 1", version) != 1 {
			t.Errorf("%s: the operation is not marked", name)
		}
	}
	if got := s.request(key).Lines[0].UnitPrice.String(); got != "10" {
		t.Errorf("the request became one with the price %s", got)
	}
	s.counts(1, 1, 1)
}

func TestChangeBackToWhatWasSentTakesTheMarkAway(t *testing.T) {
	s := setupSubmit(t)
	send(t, s.pool, s.takes(anOrder("SO-1", "10.00"), OutcomeCreated).Operations[0].Key)
	s.takes(anOrder("SO-1", "11.00"), OutcomeChangedAfterDelivery)
	s.takes(anOrder("SO-1", "10.00"), OutcomeChanged)
	if s.count("operations WHERE changed_after_delivery_version IS NOT NULL") != 0 {
		t.Error("the mark is still there")
	}
}

func TestChangeSentInPartsChangesWhatWasNotSentAndReportsTheRest(t *testing.T) {
	s := setupSubmit(t)
	sub := s.takes(anOrder("SO-1", "10.00").inParts(2), OutcomeCreated)
	send(t, s.pool, sub.Operations[0].Key)
	s.takes(anOrder("SO-1", "11.00").inParts(1), OutcomeChangedAfterDelivery)
	for i, want := range []string{"10", "11"} {
		if got := s.request(sub.Operations[i].Key).Lines[0].UnitPrice.String(); got != want {
			t.Errorf("price of operation %d is %s, want %s", i, got, want)
		}
	}
	if s.count("operations WHERE status = 'cancelled' AND key = $1", sub.Operations[2].Key) != 1 {
		t.Error("the part that is not wanted any more is not cancelled")
	}
}

func TestCancelledOrderCancelsWhatWasNotSent(t *testing.T) {
	s := setupSubmit(t)
	s.takes(anOrder("SO-1", "10.00").inParts(1), OutcomeCreated)
	if sub := s.takes(anOrder("SO-1", "10.00").cancelled(), OutcomeCancelled); len(sub.Operations) != 0 {
		t.Errorf("operations are %+v", sub.Operations)
	}
	s.takes(Order{Source: "crm-1", Order: "SO-1", Status: OrderCancelled}, OutcomeAlreadyThere)
	s.counts(1, 0, 2)
	s.takes(anOrder("SO-1", "10.00"), OutcomeChanged) // confirmed again: new intentions under new keys
	s.counts(1, 1, 3)
}

// tried lets an attempt begin and end without having reached the ERP, or with another outcome.
func (s *submitSetup) tried(key, outcome string) {
	s.t.Helper()
	send(s.t, s.pool, key)
	s.exec(`INSERT INTO attempts (operation_id, number, worker, outcome, finished_at)
		SELECT id, attempt, 'test', $2, now() FROM operations WHERE key = $1`, key, outcome)
	s.exec("UPDATE operations SET status = 'pending', lease_until = NULL, next_attempt_at = now() WHERE key = $1", key)
}

// I3: the ERP could not be reached, so nothing has left, however often it was tried.
func TestCancelledOrderCancelsWhatNeverReachedTheERP(t *testing.T) {
	s := setupSubmit(t)
	key := s.takes(anOrder("SO-1", "10.00"), OutcomeCreated).Operations[0].Key
	s.tried(key, "not_sent")
	s.tried(key, "not_sent")
	s.takes(anOrder("SO-1", "10.00").cancelled(), OutcomeCancelled)
	if s.count("operations WHERE status = 'cancelled' AND key = $1", key) != 1 {
		t.Error("the operation goes on")
	}
	s.counts(1, 0, 1)
}

func TestChangeOfWhatNeverReachedTheERPIsANewOperation(t *testing.T) {
	s := setupSubmit(t)
	key := s.takes(anOrder("SO-1", "10.00"), OutcomeCreated).Operations[0].Key
	s.tried(key, "not_sent")
	sub := s.takes(anOrder("SO-1", "11.00"), OutcomeChanged)
	if len(sub.Operations) != 1 || sub.Operations[0].Key == key {
		t.Fatalf("operations are %+v", sub.Operations)
	}
	if got := s.request(sub.Operations[0].Key).Lines[0].UnitPrice.String(); got != "11" {
		t.Errorf("price is %s", got)
	}
	if got := s.request(key).Lines[0].UnitPrice.String(); got != "10" {
		t.Errorf("what was tried became a request with the price %s", got)
	}
	s.counts(1, 1, 2)
}

// What was told to wait has reached somebody, and a trigger holds everybody to that.
func TestWhatMayHaveLeftIsNotCancelled(t *testing.T) {
	for _, outcome := range []string{"wait", "not_authorised", "lost"} {
		t.Run(outcome, func(t *testing.T) {
			s := setupSubmit(t)
			key := s.takes(anOrder("SO-1", "10.00"), OutcomeCreated).Operations[0].Key
			s.tried(key, "not_sent")
			s.tried(key, outcome)
			s.takes(anOrder("SO-1", "10.00").cancelled(), OutcomeChangedAfterDelivery)
			_, err := s.pool.Exec(t.Context(), `UPDATE operations SET status = 'cancelled', finished_at = now(),
				next_attempt_at = NULL WHERE key = $1`, key)
			if err == nil {
				t.Error("the database lets it be cancelled")
			}
			s.counts(1, 1, 1)
		})
	}
}

func TestCancelledOrderReportsWhatWasSent(t *testing.T) {
	s := setupSubmit(t)
	sub := s.takes(anOrder("SO-1", "10.00").inParts(1), OutcomeCreated)
	send(t, s.pool, sub.Operations[0].Key)
	got := s.takes(anOrder("SO-1", "10.00").cancelled(), OutcomeChangedAfterDelivery)
	if len(got.Operations) != 1 || got.Operations[0].Key != sub.Operations[0].Key {
		t.Errorf("operations are %+v", got.Operations)
	}
	if s.count("operations WHERE changed_after_delivery_version = 2") != 1 {
		t.Error("the sent operation is not marked")
	}
}

// I3: what the ERP refused does not block the corrected order.
func TestNewVersionAfterARejectionIsANewOperationThatNamesTheOldOne(t *testing.T) {
	s := setupSubmit(t)
	first := s.takes(anOrder("SO-1", "10.00"), OutcomeCreated).Operations[0].Key
	send(t, s.pool, first)
	s.fail(first, ReasonRejected)
	s.takes(anOrder("SO-1", "10.00"), OutcomeAlreadyThere)
	second := s.takes(anOrder("SO-1", "11.00"), OutcomeChanged).Operations[0].Key
	if second == first {
		t.Error("the corrected request goes under the key of the refused one")
	}
	if s.count(`operations n JOIN operations o ON n.supersedes_id = o.id
		WHERE n.key = $1 AND o.key = $2 AND o.superseded_at IS NOT NULL AND o.status = 'failed'`, second, first) != 1 {
		t.Error("the new operation does not name the old one")
	}
	s.counts(1, 1, 2)
}

func TestRevisionTakenBackInTheSameCallLeavesTheRejectionAsItWas(t *testing.T) {
	s := setupSubmit(t)
	key := s.takes(anOrder("SO-1", "10.00"), OutcomeCreated).Operations[0].Key
	send(t, s.pool, key)
	s.fail(key, ReasonRejected)
	s.submit(anOrder("SO-1", "11.00"), anOrder("SO-1", "11.00").cancelled())
	s.counts(1, 1, 1)
}

func TestNewVersionAfterAConflictIsReported(t *testing.T) {
	s := setupSubmit(t)
	key := s.takes(anOrder("SO-1", "10.00"), OutcomeCreated).Operations[0].Key
	send(t, s.pool, key)
	s.fail(key, ReasonConflict)
	s.takes(anOrder("SO-1", "11.00"), OutcomeChangedAfterDelivery)
	s.counts(1, 1, 1)
}

// A3 (b): a second event of one order, with its own message id and the same content, is stored and leads nowhere.
func TestSecondEventOfAnInvoicedOrderLeadsToNoSecondDelivery(t *testing.T) {
	s := setupSubmit(t)
	key := s.takes(anOrder("SO-1", "10.00").as("confirmed"), OutcomeCreated).Operations[0].Key
	send(t, s.pool, key)
	s.succeed(key)
	if sub := s.takes(anOrder("SO-1", "10.00").as("shipped"), OutcomeAlreadyThere); sub.Operations[0].Status != StatusSucceeded {
		t.Errorf("operation is told to be %s", sub.Operations[0].Status)
	}
	if s.count("inbox_messages WHERE message_id = 'shipped'") != 1 {
		t.Error("the second event is not stored")
	}
	s.counts(1, 1, 1)
}

func TestChangeThatMeetsAnAttemptJustBeginningWaitsAndIsReported(t *testing.T) {
	s := setupSubmit(t)
	key := s.takes(anOrder("SO-1", "10.00"), OutcomeCreated).Operations[0].Key
	deliverer, err := s.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	send(t, deliverer, key)
	done := make(chan Submission, 1)
	go func() { done <- s.takesOrReports(anOrder("SO-1", "11.00")) }()
	s.untilSomebodyWaitsForALock()
	if err := deliverer.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if sub := <-done; sub.Outcome != OutcomeChangedAfterDelivery {
		t.Errorf("outcome is %s", sub.Outcome)
	}
	if got := s.request(key).Lines[0].UnitPrice.String(); got != "10" {
		t.Errorf("the request that was sent became one with the price %s", got)
	}
}

func TestChangeThatMeetsAnAttemptTakenBackGoesThrough(t *testing.T) {
	s := setupSubmit(t)
	key := s.takes(anOrder("SO-1", "10.00"), OutcomeCreated).Operations[0].Key
	deliverer, err := s.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	send(t, deliverer, key)
	done := make(chan Submission, 1)
	go func() { done <- s.takesOrReports(anOrder("SO-1", "11.00")) }()
	s.untilSomebodyWaitsForALock()
	if err := deliverer.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if sub := <-done; sub.Outcome != OutcomeChanged {
		t.Errorf("outcome is %s", sub.Outcome)
	}
	if got := s.request(key).Lines[0].UnitPrice.String(); got != "11" {
		t.Errorf("price is %s", got)
	}
}

// takesOrReports is submit for goroutines other than the test's own.
func (s *submitSetup) takesOrReports(o Order) Submission {
	subs, err := s.Submit(context.Background(), testTenant, ChannelAPI, []Order{o}, SubmitOptions{})
	if err != nil {
		s.t.Errorf("submit: %v", err)
		return Submission{}
	}
	return subs[0]
}
