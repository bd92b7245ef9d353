package chaos

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
)

// sound is a history with its books in which every rule holds.
func sound() (*History, Books) {
	h := newHistory()
	frozen := digest([]byte("frozen"))
	told := func(by, key, order, content, invoice, answer string) Exchange {
		return Exchange{By: by, Key: key, Order: order, Content: content, Status: 201, Invoice: invoice, Answer: answer}
	}
	for range 2 {
		h.exchange(told(byInvoices, "k1", "D-1", "c1", "i1", "a1"))
	}
	h.exchange(Exchange{By: byInvoices, Key: "k1", Order: "D-1", Content: "c2", Status: 422, Problem: "idempotency-key-reused"})
	h.exchange(Exchange{By: byInvoices, Key: "k9", Order: "D-9", Content: "c9", Err: "cut"})
	h.exchange(Exchange{By: byOrders, Order: "O-1", Content: "o1", Status: 201})
	h.exchange(Exchange{By: byOperators, Key: "k2", Status: 202})
	h.attempt(Exchange{By: byAttempts, Key: "k2", Content: frozen, Err: "no answer"})
	h.attempt(told(byAttempts, "k2", "", frozen, "i2", "a2"))
	h.exchange(Exchange{By: byInvoices, Key: "k8", Order: "D-1", Content: "c1", Status: 409, Problem: "already-invoiced"})
	return h, Books{
		Targets: []string{"ledger"},
		Invoices: []Invoice{
			{ID: "i1", Claim: "D-1 final", Order: "D-1", Key: "k1", Number: "N-1", Series: "N", SeriesNumber: 1, Document: "a1", Content: "c1"},
			{ID: "i2", Claim: "O-1 final", Order: "O-1", Key: "k2", Number: "N-2", Series: "N", SeriesNumber: 2, Document: "a2", Content: frozen},
		},
		Operations:    []Operation{{Key: "k2", Order: "O-1", Status: "succeeded", Invoice: "i2", Request: frozen}},
		Registrations: []Registration{{"i1", "ledger", "succeeded"}, {"i2", "ledger", "succeeded"}},
		Effects:       []Effect{{"ledger", "N-1", 1}, {"ledger", "N-2", 1}},
	}
}

func TestNothingIsFoundWhereEverythingHolds(t *testing.T) {
	t.Parallel()
	if found := Check(sound()); len(found) > 0 {
		t.Errorf("%+v", found)
	}
}

func TestEachPlantedViolationIsFound(t *testing.T) {
	t.Parallel()
	planted := map[Rule]bool{}
	for _, c := range []struct {
		name  string
		rule  Rule
		plant func(h *History, b *Books)
	}{
		{"a second invoice for a claim", OneInvoicePerClaim, func(_ *History, b *Books) {
			b.Invoices = append(b.Invoices, Invoice{ID: "i3", Claim: "D-1 final", Order: "D-1", Key: "k3", Number: "N-3", Series: "N", SeriesNumber: 3})
		}},
		{"an answer of an invoice that is not there", NoAnswerWithout, func(h *History, _ *Books) {
			h.exchange(Exchange{By: byInvoices, Key: "k4", Status: 201, Invoice: "i4", Answer: "a4"})
		}},
		{"an answer without an invoice in it", NoAnswerWithout, func(h *History, _ *Books) {
			h.exchange(Exchange{By: byInvoices, Key: "k4", Status: 201, Answer: "a4"})
		}},
		{"an attempt's answer without an invoice in it", NoAnswerWithout, func(h *History, _ *Books) {
			h.attempt(Exchange{By: byAttempts, Key: "k2", Content: digest([]byte("frozen")), Status: 201, Answer: "a4"})
		}},
		{"an answer with other bytes than the invoice's", NoAnswerWithout, func(_ *History, b *Books) { b.Invoices[0].Document = "other" }},
		{"the answer of another key's invoice", NoAnswerWithout, func(h *History, _ *Books) {
			h.exchange(Exchange{By: byInvoices, Key: "k5", Content: "c1", Status: 201, Invoice: "i1", Answer: "a1"})
		}},
		{"two answers for a key", SameAnswer, func(h *History, _ *Books) {
			h.exchange(Exchange{By: byInvoices, Key: "k1", Content: "c1", Status: 201, Invoice: "i1", Answer: "again"})
		}},
		{"the stored answer for other content", NobodyElsesAnswer, func(h *History, _ *Books) {
			h.exchange(Exchange{By: byInvoices, Key: "k1", Content: "c2", Status: 201, Invoice: "i1", Answer: "a1"})
		}},
		{"the only answer that came, for other content", NobodyElsesAnswer, func(_ *History, b *Books) { b.Invoices[1].Content = "c2" }},
		{"a refusal of the key's own content", NoRefusalWithout, func(h *History, _ *Books) {
			h.exchange(Exchange{By: byInvoices, Key: "k1", Order: "D-1", Content: "c1", Status: 422, Problem: "idempotency-key-reused"})
		}},
		{"a refusal because of a key that nobody has", NoRefusalWithout, func(h *History, _ *Books) {
			h.exchange(Exchange{By: byInvoices, Key: "k7", Order: "D-7", Content: "c1", Status: 422, Problem: "idempotency-key-reused"})
		}},
		{"a refusal because of an invoice that is not there", NoRefusalWithout, func(h *History, _ *Books) {
			h.exchange(Exchange{By: byInvoices, Key: "k7", Order: "D-7", Content: "c1", Status: 409, Problem: "already-invoiced"})
		}},
		{"a refusal because of the key's own invoice", NoRefusalWithout, func(h *History, _ *Books) {
			h.exchange(Exchange{By: byInvoices, Key: "k1", Order: "D-1", Content: "c1", Status: 409, Problem: "already-invoiced"})
		}},
		{"an order that was taken and is nowhere", NoOrderLost, func(h *History, _ *Books) {
			h.exchange(Exchange{By: byOrders, Order: "O-2", Status: 200})
		}},
		{"an order with two operations", NoOrderLost, func(_ *History, b *Books) {
			b.Operations = append(b.Operations, Operation{Key: "k6", Order: "O-1", Status: "succeeded", Invoice: "i2"})
		}},
		{"an operation that succeeded with another one's invoice", NoOrderLost, func(_ *History, b *Books) { b.Operations[0].Invoice = "i1" }},
		{"an operation that failed for no reason of its order's", NoOrderLost, func(_ *History, b *Books) { b.Operations[0].Status = "failed" }},
		{"a hole in the numbers", NumbersWithoutHoles, func(_ *History, b *Books) { b.Invoices[1].SeriesNumber = 3 }},
		{"a number given twice", NumbersWithoutHoles, func(_ *History, b *Books) { b.Invoices[1].SeriesNumber = 1 }},
		{"two entries at a target", OneEffect, func(_ *History, b *Books) { b.Effects[0].Count = 2 }},
		{"a registration that the target does not have", OneEffect, func(_ *History, b *Books) { b.Effects = b.Effects[1:] }},
		{"an entry at a target that nothing asks for", OneEffect, func(_ *History, b *Books) {
			b.Effects = append(b.Effects, Effect{"ledger", "N-9", 1})
		}},
		{"an invoice without registration", OneEffect, func(_ *History, b *Books) {
			b.Registrations, b.Effects = b.Registrations[1:], b.Effects[1:]
		}},
		{"an invoice with two registrations at a target", OneEffect, func(_ *History, b *Books) {
			b.Registrations = append(b.Registrations, b.Registrations[0])
		}},
		{"an operation left unknown", NothingUnfinished, func(_ *History, b *Books) { b.Operations[0].Status = "unknown" }},
		{"a registration left processing", NothingUnfinished, func(_ *History, b *Books) { b.Registrations[0].Status = "processing" }},
		{"a finished operation that went back", FinishedStays, func(_ *History, b *Books) { b.Reverted = []string{"k2 was succeeded and is unknown"} }},
		{"an operation that nobody cancelled, cancelled", NoOrderLost, func(_ *History, b *Books) { b.Operations[0].Status = "cancelled" }},
		{"a confirmed cancel that did not last", FinishedStays, func(h *History, _ *Books) { h.cancel("k2", true) }},
		{"an invoice of what was cancelled", CancelledHasNone, func(h *History, b *Books) {
			h.cancel("k2", true)
			b.Operations[0].Status = "cancelled"
		}},
		{"an attempt with other bytes", SameBytes, func(h *History, _ *Books) {
			h.attempt(Exchange{By: byAttempts, Key: "k2", Content: "other", Status: 422})
		}},
		{"frozen bytes that changed", SameBytes, func(_ *History, b *Books) { b.Operations[0].Altered = true }},
		{"an attempt under a key that nobody made", SameBytes, func(h *History, _ *Books) { h.attempt(Exchange{By: byAttempts, Key: "k7"}) }},
		{"an internal error", NoFailure, func(h *History, _ *Books) { h.exchange(Exchange{By: byInvoices, Key: "k1", Status: 500}) }},
		{"an internal error that an operator met", NoFailure, func(h *History, _ *Books) {
			h.exchange(Exchange{By: byOperators, Key: "k2", Status: 500})
		}},
		{"a process that ended by itself", NoFailure, func(h *History, _ *Books) { h.fell("ERP 1 ended by itself") }},
	} {
		t.Run(c.name, func(t *testing.T) {
			h, b := sound()
			c.plant(h, &b)
			found := Check(h, b)
			if !slices.ContainsFunc(found, func(v Violation) bool { return v.Rule == c.rule }) {
				t.Errorf("found is %+v, want a breach of %q", found, c.rule)
			}
		})
		planted[c.rule] = true
	}
	for _, rule := range Rules() {
		if !planted[rule] {
			t.Errorf("no breach of %q is planted", rule)
		}
	}
}

func TestReportOfABreachNamesTheSeedAndTellsWhatHappenedToTheKey(t *testing.T) {
	t.Parallel()
	h, b := sound()
	h.note("ERP 1 is killed")
	h.exchange(Exchange{Sent: h.now(), Ended: h.now(), By: byInvoices, Key: "k1", Order: "D-1", Content: "c1", Status: 201, Invoice: "i1", Answer: "again"})
	var report strings.Builder
	r := Result{Seed: 4711, History: h, Books: b, Violations: Check(h, b)}
	if err := r.Report(&report); !errors.Is(err, ErrViolations) {
		t.Errorf("%v", err)
	}
	for _, part := range []string{"SEED=4711", string(SameAnswer), "key k1", "ERP 1 is killed", "idempotency-key-reused"} {
		if !strings.Contains(report.String(), part) {
			t.Errorf("%q is not in the report:\n%s", part, report.String())
		}
	}
	if strings.Contains(report.String(), "key k2") {
		t.Errorf("the timeline is not of one key:\n%s", report.String())
	}
}

func TestTimelinesAreOfSeveralKeysAndNotesDoNotCutThem(t *testing.T) {
	t.Parallel()
	h, b := sound()
	first := h.Exchanges[0]
	first.Sent, first.Ended = 0, time.Minute
	h.exchange(first)
	for n := range 2 * maxTimeline {
		h.Notes = append(h.Notes, Note{time.Duration(n+1) * time.Millisecond, "something else"})
	}
	h.exchange(Exchange{Sent: time.Minute, Ended: time.Minute, By: byInvoices, Key: "k1", Order: "D-1", Content: "c1", Status: 201, Invoice: "i1", Answer: "again"})
	b.Operations[0].Status = "unknown"
	var report strings.Builder
	r := Result{History: h, Books: b, Violations: Check(h, b)}
	if err := r.Report(&report); !errors.Is(err, ErrViolations) {
		t.Errorf("%v", err)
	}
	for _, part := range []string{"201  i1 again", "what happened to key k1 order D-1", "what happened to key k2 order O-1"} {
		if !strings.Contains(report.String(), part) {
			t.Errorf("%q is not in the report:\n%s", part, report.String())
		}
	}
	if lines := h.about("k1", "D-1", maxTimeline); len(lines) != maxTimeline {
		t.Errorf("%d lines", len(lines))
	}
}

func TestASeedDecidesTheScheduleAndEachKindComes(t *testing.T) {
	t.Parallel()
	const long = time.Minute
	one, again, other := Schedule(1, long), Schedule(1, long), Schedule(2, long)
	if !slices.Equal(one, again) {
		t.Error("the same seed gives two schedules")
	}
	if slices.Equal(one, other) {
		t.Error("two seeds give one schedule")
	}
	for _, d := range disturbances() {
		if !slices.ContainsFunc(one, func(e Event) bool { return e.Kind == d.kind }) {
			t.Errorf("%s does not come within a minute", d.kind)
		}
	}
	for _, e := range one {
		if e.At >= long || e.Slot < 0 || e.Slot >= replicas {
			t.Errorf("%v", e)
		}
	}
}

func TestHistoryIsWrittenLineByLine(t *testing.T) {
	t.Parallel()
	h, _ := sound()
	h.note("ERP 1 is killed")
	var out strings.Builder
	if err := h.write(&out); err != nil {
		t.Fatal(err)
	}
	if lines := strings.Count(out.String(), "\n"); lines != len(h.Exchanges)+len(h.Attempts)+1 || !strings.Contains(out.String(), `"Key":"k1"`) ||
		!strings.Contains(out.String(), `"Note":"ERP 1 is killed"`) {
		t.Errorf("%d lines:\n%s", lines, out.String())
	}
}
