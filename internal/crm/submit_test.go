package crm

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"invoicebridge/internal/erpapi"
	"invoicebridge/internal/problem"
)

func TestNewOrderMakesOneOperationWithAFrozenRequestAndOneJob(t *testing.T) {
	s := setupSubmit(t)
	sub := s.takes(anOrder("SO-1", "10.00"), OutcomeCreated)
	s.counts(1, 1, 1)
	want := []OperationLink{{Key: sub.Operations[0].Key, Role: erpapi.RoleFinal, Sequence: 1, Status: StatusPending}}
	if diff := cmp.Diff(want, sub.Operations); diff != "" {
		t.Error(diff)
	}
	if s.count("operations o JOIN test_jobs j ON j.operation_id = o.id WHERE sha256(o.request) = o.request_hash AND o.key = o.id::text") != 1 {
		t.Error("the job is not the operation's, or the request's hash is not that of its bytes")
	}
	if got := s.request(sub.Operations[0].Key); got.Order != "SO-1" || got.Lines[0].UnitPrice.String() != "10" {
		t.Errorf("request is %+v", got)
	}
}

func TestRepeatChangesNothing(t *testing.T) {
	s := setupSubmit(t)
	key := s.takes(anOrder("SO-1", "10.00"), OutcomeCreated).Operations[0].Key
	for _, repeat := range []Order{
		anOrder("SO-1", "10.00"), anOrder("SO-1", "10.0").at(1), anOrder("SO-1", "10").as("m-1"), anOrder("SO-1", "10").as("m-1"),
	} {
		if sub := s.takes(repeat, OutcomeAlreadyThere); sub.Operations[0].Key != key || sub.Version != 1 {
			t.Errorf("repeat is told %+v", sub)
		}
	}
	s.counts(1, 1, 1)
}

func TestOneInvoiceInEitherFormIsTheSameOrder(t *testing.T) {
	s := setupSubmit(t)
	s.takes(anOrder("SO-1", "10.00"), OutcomeCreated)
	listed := anOrder("SO-1", "10.00")
	listed.Invoices, listed.Lines = []OrderInvoice{{Lines: listed.Lines}}, nil
	s.takes(listed, OutcomeAlreadyThere)
	s.counts(1, 1, 1)
}

func TestIDsAreComparedWithoutTheirOuterBlanks(t *testing.T) {
	s := setupSubmit(t)
	s.takes(anOrder("A-1", "10.00"), OutcomeCreated)
	for _, id := range []string{" A-1", "A-1\u00a0", "\u2003A-1\t", "\ufeffA-1", "A-1\u200b"} {
		o := anOrder(id, "10.00")
		o.Source = "crm-1\u00a0"
		if sub := s.takes(o, OutcomeAlreadyThere); sub.Order != "A-1" || sub.Source != "crm-1" {
			t.Errorf("%q is told as %q of %q", id, sub.Order, sub.Source)
		}
	}
	s.counts(1, 1, 1)
	for _, other := range []string{"a-1", "A- 1", "00123", "123", "12345678901234567890"} {
		s.takes(anOrder(other, "10.00"), OutcomeCreated)
	}
	s.counts(6, 6, 6)
	// One letter in two spellings looks the same, and is one order for the ERP, too.
	s.takes(anOrder("caf\u00e9", "10.00"), OutcomeCreated)
	s.takes(anOrder("cafe\u0301", "10.00"), OutcomeAlreadyThere)
}

func TestMessageIDDoesNotSwallowAnotherOrder(t *testing.T) {
	s := setupSubmit(t)
	s.takes(anOrder("SO-1", "10.00").as("m-1"), OutcomeCreated)
	s.takes(anOrder("SO-2", "10.00").as("m-1"), OutcomeCreated)
	s.takes(anOrder("SO-1", "11.00").as("m-1"), OutcomeChanged)
	s.counts(2, 2, 2)
}

func TestMessageThatCameBeforeHasNoEffectOnAnOrderThatMovedOn(t *testing.T) {
	s := setupSubmit(t)
	s.takes(anOrder("SO-1", "10.00").as("m-1"), OutcomeCreated)
	s.takes(anOrder("SO-1", "11.00").as("m-2"), OutcomeChanged)
	sub := s.takes(anOrder("SO-1", "10.00").as("m-1"), OutcomeAlreadyThere)
	if sub.Version != 2 || s.request(sub.Operations[0].Key).Lines[0].UnitPrice.String() != "11" {
		t.Errorf("an old message changed the order: %+v", sub)
	}
	// Without a message id nobody can tell it from a change back.
	s.takes(anOrder("SO-1", "10.00"), OutcomeChanged)
}

func TestVersions(t *testing.T) {
	s := setupSubmit(t)
	s.takes(anOrder("SO-1", "10.00").at(5), OutcomeCreated)
	s.takes(anOrder("SO-1", "10.00").at(5), OutcomeAlreadyThere)
	if sub := s.takes(anOrder("SO-1", "9.00").at(4), OutcomeStale); sub.Version != 4 {
		t.Errorf("stale version is told as %d", sub.Version)
	}
	if sub := s.takes(anOrder("SO-1", "11.00").at(7), OutcomeChanged); sub.Version != 7 {
		t.Errorf("version is %d", sub.Version)
	}
	sub, err := s.refuses(anOrder("SO-1", "12.00").at(7))
	if !problem.Is(err, problem.VersionConflict) || !strings.Contains(sub.Detail, "version 7") {
		t.Errorf("version conflict is told as %v, %+v", err, sub)
	}
	if sub := s.takes(anOrder("SO-1", "12.00"), OutcomeChanged); sub.Version != 8 {
		t.Errorf("without a version the next one is %d", sub.Version)
	}
	if sub := s.takes(anOrder("SO-1", "12.00").at(9), OutcomeChanged); sub.Version != 9 {
		t.Errorf("same content under a newer version is version %d", sub.Version)
	}
	s.counts(1, 1, 1)
	if s.count("inbox_messages WHERE outcome = 'stale' AND version = 4") != 1 {
		t.Error("the stale message is not in the inbox")
	}
	if n := s.count("operations WHERE order_version = 8"); n != 1 {
		t.Error("the operation's request is not told to be of version 8, the last that changed it")
	}
}

func TestOneCallTakesOneOrderSeveralTimesInTheOrderGiven(t *testing.T) {
	s := setupSubmit(t)
	subs := s.submit(anOrder("SO-1", "10.00"), anOrder("SO-2", "1.00"), anOrder("SO-1", "11.00"), anOrder("SO-1", "11.00"),
		anOrder("SO-1", "9.00").at(1), anOrder("SO-2", "1.00").cancelled())
	var outcomes []Outcome
	for _, sub := range subs {
		outcomes = append(outcomes, sub.Outcome)
	}
	want := []Outcome{OutcomeCreated, OutcomeCreated, OutcomeChanged, OutcomeAlreadyThere, OutcomeStale, OutcomeCancelled}
	if diff := cmp.Diff(want, outcomes); diff != "" {
		t.Error(diff)
	}
	s.counts(2, 1, 1) // the operation that the call itself took back was never there
	if got := s.request(subs[0].Operations[0].Key).Lines[0].UnitPrice.String(); got != "11" {
		t.Errorf("price is %s", got)
	}
}

func TestAdvancesAndPartsAreOneOperationEach(t *testing.T) {
	s := setupSubmit(t)
	sub := s.takes(anOrder("SO-1", "10.00").inParts(2), OutcomeCreated)
	s.counts(1, 3, 3)
	// One part less, and a final invoice: the others keep their keys.
	next := anOrder("SO-1", "10.00").inParts(1)
	next.Invoices = append(next.Invoices, OrderInvoice{Lines: []erpapi.Line{aLine("3.00")}})
	changed := s.takes(next, OutcomeChanged)
	var claims []string
	for _, op := range changed.Operations {
		claims = append(claims, fmt.Sprint(op.Role, op.Sequence))
	}
	if diff := cmp.Diff([]string{"advance1", "partial1", "final1"}, claims); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(sub.Operations[:2], changed.Operations[:2]); diff != "" {
		t.Error(diff)
	}
	s.counts(1, 3, 4)
	s.takes(anOrder("SO-1", "10.00").inParts(2), OutcomeChanged) // wanted again: a new operation
	s.counts(1, 3, 5)
}

func TestRefusedOrderRefusesTheWholeCall(t *testing.T) {
	s := setupSubmit(t)
	bad := anOrder("SO-3", "10.00")
	bad.Lines[0].Quantity = nil
	orders := []Order{anOrder("SO-1", "10.00"), anOrder("SO-2", "10.00"), bad}
	subs, err := s.Submit(t.Context(), testTenant, ChannelImport, orders, SubmitOptions{})
	if p := problem.As(err); p == nil || p.Type != problem.InvalidOrder || len(p.Errors) != 1 || p.Errors[0].Pointer != "/2/lines/0/quantity" {
		t.Errorf("error is %+v", p)
	}
	if subs[0].Outcome != OutcomeNone || subs[2].Outcome != OutcomeRefused || subs[2].Errors[0].Pointer != "/lines/0/quantity" {
		t.Errorf("submissions are %+v", subs)
	}
	s.counts(0, 0, 0)
	if s.count("inbox_messages") != 0 {
		t.Error("a message of a refused call was stored")
	}
}

func TestKeepGoodStoresTheGoodOrders(t *testing.T) {
	s := setupSubmit(t)
	bad := anOrder("SO-3", "10.00").as("m-3")
	bad.Lines[0].Quantity = nil
	s.takes(anOrder("SO-4", "10.00").at(1), OutcomeCreated)
	orders := []Order{anOrder("SO-1", "10.00"), bad, anOrder("SO-4", "11.00").at(1), anOrder("SO-2", "10.00")}
	subs, err := s.Submit(t.Context(), testTenant, ChannelImport, orders, SubmitOptions{KeepGood: true})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []Outcome{OutcomeCreated, OutcomeRefused, OutcomeRefused, OutcomeCreated} {
		if subs[i].Outcome != want {
			t.Errorf("order %d is %s, want %s", i, subs[i].Outcome, want)
		}
	}
	s.counts(3, 3, 3)
	if s.count("inbox_messages WHERE outcome = 'refused'") != 2 {
		t.Error("the refused messages are not in the inbox")
	}
	// The corrected order may come under the same message id.
	s.takes(anOrder("SO-3", "10.00").as("m-3"), OutcomeCreated)
}

func TestKeepGoodStoresTextThatNoColumnCanHold(t *testing.T) {
	s := setupSubmit(t)
	subs, err := s.Submit(t.Context(), testTenant, ChannelImport, []Order{anOrder("a\x00\xff"+strings.Repeat("x", 5000), "1.00")}, SubmitOptions{KeepGood: true})
	if err != nil || subs[0].Outcome != OutcomeRefused {
		t.Fatalf("%v, %+v", err, subs)
	}
}

func TestRolledBackCallLeavesNoOrderNoOperationNoJob(t *testing.T) {
	s := setupSubmit(t)
	s.jobs.fail = errors.New("queue is down")
	if _, err := s.Submit(t.Context(), testTenant, ChannelAPI, []Order{anOrder("SO-1", "10.00")}, SubmitOptions{}); !errors.Is(err, s.jobs.fail) {
		t.Fatalf("error is %v", err)
	}
	s.counts(0, 0, 0)
	s.jobs.fail = nil
	s.takes(anOrder("SO-1", "10.00"), OutcomeCreated)
	s.counts(1, 1, 1)
}

func TestUnknownTenantIsNotFound(t *testing.T) {
	s := setupSubmit(t)
	_, err := s.Submit(t.Context(), "nobody", ChannelAPI, []Order{anOrder("SO-1", "10.00")}, SubmitOptions{})
	if !problem.Is(err, problem.NotFound) {
		t.Errorf("error is %v", err)
	}
}

func TestNothingSubmittedIsNothingStored(t *testing.T) {
	s := setupSubmit(t)
	if subs := s.submit(); len(subs) != 0 {
		t.Errorf("submissions are %+v", subs)
	}
}
