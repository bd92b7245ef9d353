package crm_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"invoicebridge/internal/crm"
	"invoicebridge/internal/erpapi"
	"invoicebridge/internal/problem"
)

var invoiceID = uuid.MustParse("018f0000-0000-7000-8000-000000000001")

func askedBase() crm.Asked {
	return crm.Asked{Key: "k-1", Source: "crm-1", Order: "SO-1001", Role: erpapi.RoleFinal, Sequence: 1}
}

func invoiceBase(change ...func(*erpapi.Invoice)) *erpapi.Invoice {
	inv := &erpapi.Invoice{
		ID: invoiceID.String(), Number: "INV-2026-000001", OperationKey: "k-1",
		Source: "crm-1", Order: "SO-1001", Role: erpapi.RoleFinal, Sequence: 1,
	}
	for _, f := range change {
		f(inv)
	}
	return inv
}

// answered is an exchange that came to an answer.
func answered(status int, change ...func(*erpapi.Exchange)) erpapi.Exchange {
	x := erpapi.Exchange{SendingBegan: true, Status: status, Header: http.Header{}, Complete: true}
	for _, f := range change {
		f(&x)
	}
	return x
}

func withInvoice(inv *erpapi.Invoice) func(*erpapi.Exchange) {
	return func(x *erpapi.Exchange) { x.Invoice = inv }
}

func withProblem(p *problem.Problem) func(*erpapi.Exchange) {
	return func(x *erpapi.Exchange) { x.Problem = p }
}

func withHeader(name, value string) func(*erpapi.Exchange) {
	return func(x *erpapi.Exchange) { x.Header.Set(name, value) }
}

func cut(x *erpapi.Exchange) { x.Complete, x.Err = false, io.ErrUnexpectedEOF }

// verdict is a Decision without its words.
type verdict struct {
	Outcome crm.AttemptOutcome
	Status  crm.OperationStatus
	Step    crm.Step
	Reason  crm.Reason
}

// decisionTable is the table of the delivery, line by line. "Later" is the verdict where an earlier attempt may have
// arrived, if it differs.
func decisionTable() []struct {
	name  string
	x     erpapi.Exchange
	want  verdict
	later *verdict
} {
	ref := &problem.InvoiceRef{ID: invoiceID.String(), Number: "INV-2026-000007", OperationKey: "other"}
	delivered := verdict{"delivered", "succeeded", "done", ""}
	incomplete := verdict{"lost", "unknown", "back_off", "answer_incomplete"}
	noAnswer := verdict{"lost", "unknown", "back_off", "no_answer"}
	serverError := verdict{"lost", "unknown", "back_off", "server_error"}
	wrong := verdict{"wrong_answer", "failed", "done", "configuration"}
	wrongLater := &verdict{"wrong_answer", "unknown", "attention", "configuration"}
	notSent := verdict{"not_sent", "pending", "back_off", "not_reached"}
	notSentLater := &verdict{"not_sent", "unknown", "back_off", "not_reached"}
	wait := verdict{"wait", "pending", "wait", "waiting"}
	waitLater := &verdict{"wait", "unknown", "wait", "waiting"}
	notAuthorised := verdict{"not_authorised", "pending", "slow", "not_authorised"}
	notAuthorisedLater := &verdict{"not_authorised", "unknown", "slow", "not_authorised"}
	conflict := verdict{"conflict", "failed", "done", "conflict"}
	rejected := verdict{"rejected", "failed", "done", "rejected"}
	rejectedLater := &verdict{"rejected", "unknown", "attention", "rejected"}
	type row = struct {
		name  string
		x     erpapi.Exchange
		want  verdict
		later *verdict
	}
	rows := []row{
		{"201 whole, of this key and claim", answered(201, withInvoice(invoiceBase())), delivered, nil},
		{"201 replayed", answered(201, withInvoice(invoiceBase()), withHeader("Idempotent-Replayed", "true")),
			verdict{"replayed", "succeeded", "done", ""}, nil},
		{"200 whole, of this key and claim", answered(200, withInvoice(invoiceBase())), delivered, nil},
		{"201 cut", answered(201, cut), incomplete, nil},
		{"200 cut", answered(200, cut), incomplete, nil},
		{"201 empty or not JSON", answered(201), incomplete, nil},
		{"200 empty or not JSON", answered(200, withHeader("Content-Type", "text/plain")), incomplete, nil},
		{"201 HTML", answered(201, withHeader("Content-Type", "text/html")), incomplete, nil},
		{"201 without a number", answered(201, withInvoice(invoiceBase(func(i *erpapi.Invoice) { i.Number = " " }))), incomplete, nil},
		{"201 without an id", answered(201, withInvoice(invoiceBase(func(i *erpapi.Invoice) { i.ID = "" }))), incomplete, nil},
		{"201 with an id that is none", answered(201, withInvoice(invoiceBase(func(i *erpapi.Invoice) { i.ID = "7" }))), incomplete, nil},
		{"201 without a key", answered(201, withInvoice(invoiceBase(func(i *erpapi.Invoice) { i.OperationKey = "" }))), incomplete, nil},
		{"201 with an empty object", answered(201, withInvoice(&erpapi.Invoice{})), incomplete, nil},
		{"200 HTML", answered(200, withHeader("Content-Type", "text/html; charset=utf-8")), wrong, wrongLater},
		{"200 HTML cut", answered(200, withHeader("Content-Type", "text/html"), cut), wrong, wrongLater},
		{"200 HTML that calls itself JSON", answered(200, withHeader("Content-Type", "application/json"),
			func(x *erpapi.Exchange) { x.Body = []byte(" <!doctype html>") }), wrong, wrongLater},
		{"201 of another key", answered(201, withInvoice(invoiceBase(func(i *erpapi.Invoice) { i.OperationKey = "k-2" }))), wrong, wrongLater},
		{"201 of another order", answered(201, withInvoice(invoiceBase(func(i *erpapi.Invoice) { i.Order = "SO-1002" }))), wrong, wrongLater},
		{"201 of another source", answered(201, withInvoice(invoiceBase(func(i *erpapi.Invoice) { i.Source = "crm-2" }))), wrong, wrongLater},
		{"201 of another role", answered(201, withInvoice(invoiceBase(func(i *erpapi.Invoice) { i.Role = "advance" }))), wrong, wrongLater},
		{"201 of another sequence", answered(201, withInvoice(invoiceBase(func(i *erpapi.Invoice) { i.Sequence = 2 }))), wrong, wrongLater},
		{"not sent", erpapi.Exchange{Err: errors.New("connection refused")}, notSent, notSentLater},
		{"not sent, interrupted", erpapi.Exchange{Err: context.Canceled},
			verdict{"not_sent", "pending", "soon", "interrupted"}, &verdict{"not_sent", "unknown", "soon", "interrupted"}},
		{"nothing to send", erpapi.Exchange{Err: erpapi.ErrNothingToSend},
			verdict{"not_sent", "pending", "attention", "request_damaged"}, &verdict{"not_sent", "unknown", "attention", "request_damaged"}},
		{"reset or EOF", erpapi.Exchange{SendingBegan: true, Err: io.EOF}, noAnswer, nil},
		{"time-out", erpapi.Exchange{SendingBegan: true, Err: context.DeadlineExceeded}, noAnswer, nil},
		{"interrupted", erpapi.Exchange{SendingBegan: true, Err: context.Canceled}, verdict{"lost", "unknown", "soon", "interrupted"}, nil},
		{"409 in progress", answered(409, withProblem(problem.New(problem.OperationInProgress, ""))), wait, waitLater},
		{"409 already invoiced, same content", answered(409, withProblem(&problem.Problem{Type: problem.AlreadyInvoiced, Invoice: ref, SameContent: true})),
			verdict{"conflict", "succeeded", "done", "already_invoiced"}, nil},
		{"409 already invoiced, other content", answered(409, withProblem(&problem.Problem{Type: problem.AlreadyInvoiced, Invoice: ref})), conflict, nil},
		{"409 already invoiced, without the invoice", answered(409, withProblem(&problem.Problem{Type: problem.AlreadyInvoiced, SameContent: true})), serverError, nil},
		{"409 already invoiced, without its number", answered(409, withProblem(&problem.Problem{
			Type: problem.AlreadyInvoiced, SameContent: true, Invoice: &problem.InvoiceRef{ID: invoiceID.String()}})), serverError, nil},
		{"409 of nobody knows what", answered(409), *wrongLater, nil},
		{"409 cut", answered(409, cut), serverError, nil},
		{"422 key reused", answered(422, withProblem(problem.New(problem.IdempotencyKeyReused, ""))), conflict, nil},
		{"422 invalid invoice", answered(422, withProblem(problem.New(problem.InvalidInvoice, ""))), rejected, nil},
		{"422 cut", answered(422, cut), serverError, nil},
		{"408", answered(408), serverError, nil},
	}
	for _, status := range []int{400, 413, 415} {
		rows = append(rows,
			row{http.StatusText(status), answered(status, withProblem(problem.New(problem.MalformedRequest, ""))), rejected, nil},
			row{http.StatusText(status) + " of nobody knows whom", answered(status), rejected, rejectedLater})
	}
	for _, status := range []int{202, 203, 204, 205, 206, 300, 301, 302, 303, 304, 307, 308, 404, 405, 410} {
		rows = append(rows, row{http.StatusText(status), answered(status), wrong, wrongLater})
	}
	for _, status := range []int{401, 403} {
		rows = append(rows, row{http.StatusText(status), answered(status), notAuthorised, notAuthorisedLater})
	}
	for _, status := range []int{425, 429, 503} {
		rows = append(rows, row{http.StatusText(status), answered(status), wait, waitLater})
	}
	for _, status := range []int{500, 501, 502, 504, 507, 520, 599} {
		rows = append(rows, row{"5xx " + http.StatusText(status), answered(status), serverError, nil})
	}
	return rows
}

func TestDecisionTable(t *testing.T) {
	t.Parallel()
	for _, row := range decisionTable() {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			asked := askedBase()
			check := func(want verdict) {
				t.Helper()
				d := crm.Decide(asked, &row.x)
				if diff := cmp.Diff(want, verdict{d.Outcome, d.Status, d.Step, d.Reason}); diff != "" {
					t.Errorf("asked %+v: %s", asked, diff)
				}
				if (d.Status == crm.StatusSucceeded) != (d.Invoice != nil) {
					t.Errorf("%s with invoice %v", d.Status, d.Invoice)
				}
				if d.Status != crm.StatusSucceeded && d.Detail == "" {
					t.Error("no word on why")
				}
			}
			check(row.want)
			asked.MayHaveArrived = true
			if row.later != nil {
				check(*row.later)
				return
			}
			check(row.want)
		})
	}
}

func TestADecisionTakesTheInvoiceThatTheAnswerNames(t *testing.T) {
	t.Parallel()
	created := answered(201, withInvoice(invoiceBase()))
	want := &crm.IssuedInvoice{ID: invoiceID, Number: "INV-2026-000001"}
	if diff := cmp.Diff(want, crm.Decide(askedBase(), &created).Invoice); diff != "" {
		t.Error(diff)
	}
	taken := answered(409, withProblem(&problem.Problem{Type: problem.AlreadyInvoiced, SameContent: true,
		Invoice: &problem.InvoiceRef{ID: invoiceID.String(), Number: "INV-2026-000007", OperationKey: "other"}}))
	want.Number = "INV-2026-000007"
	if diff := cmp.Diff(want, crm.Decide(askedBase(), &taken).Invoice); diff != "" {
		t.Error(diff)
	}
}

func TestARefusalKeepsTheWordsOfTheERP(t *testing.T) {
	t.Parallel()
	x := answered(422, withProblem(&problem.Problem{Type: problem.InvalidInvoice, Detail: "The invoice is not valid.",
		Errors: []problem.FieldError{{Pointer: "/lines/0/vat_rate", Detail: "must not be negative"}}}))
	got := crm.Decide(askedBase(), &x).Detail
	for _, want := range []string{"The invoice is not valid.", "/lines/0/vat_rate", "must not be negative"} {
		if !strings.Contains(got, want) {
			t.Errorf("detail %q lacks %q", got, want)
		}
	}
}

func TestOnlyAYesSettlesAnOperation(t *testing.T) {
	t.Parallel()
	link := &erpapi.InvoiceLink{ID: invoiceID.String(), Number: "INV-2026-000001"}
	operation := func(status int, op *erpapi.Operation) erpapi.Exchange {
		return answered(status, func(x *erpapi.Exchange) { x.Operation = op })
	}
	yes := operation(200, &erpapi.Operation{Key: "k-1", Status: "succeeded", Invoice: link})
	d, settled := crm.DecideSettled(askedBase(), &yes)
	if !settled || d.Status != crm.StatusSucceeded || d.Invoice.Number != link.Number {
		t.Errorf("yes is read as %+v", d)
	}
	for name, x := range map[string]erpapi.Exchange{
		"not found":      operation(404, nil),
		"of another key": operation(200, &erpapi.Operation{Key: "k-2", Status: "succeeded", Invoice: link}),
		"in progress":    operation(200, &erpapi.Operation{Key: "k-1", Status: "processing", Invoice: link}),
		"no invoice":     operation(200, &erpapi.Operation{Key: "k-1", Status: "succeeded"}),
		"no number":      operation(200, &erpapi.Operation{Key: "k-1", Status: "succeeded", Invoice: &erpapi.InvoiceLink{ID: link.ID}}),
		"no answer":      {SendingBegan: true, Err: io.EOF},
	} {
		if d, settled := crm.DecideSettled(askedBase(), &x); settled {
			t.Errorf("%s settles it as %+v", name, d)
		}
	}
}
