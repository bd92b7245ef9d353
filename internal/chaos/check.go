package chaos

import (
	"fmt"
	"maps"
	"slices"
)

// Rule is something that has to be true whatever happened.
type Rule string

// The rules.
const (
	OneInvoicePerClaim  Rule = "one invoice per business claim"
	NoAnswerWithout     Rule = "no answer 201 without its invoice"
	SameAnswer          Rule = "all answers for a key are identical"
	NobodyElsesAnswer   Rule = "no answer for other content than the invoice's"
	NoRefusalWithout    Rule = "no refusal without what it names"
	NoOrderLost         Rule = "no order is lost"
	NumbersWithoutHoles Rule = "numbers without holes and doubles"
	OneEffect           Rule = "one effect per registration"
	NothingUnfinished   Rule = "nothing is left unfinished after quiet time"
	FinishedStays       Rule = "what is finished stays so"
	CancelledHasNone    Rule = "what was cancelled has no invoice"
	SameBytes           Rule = "all attempts carry the same bytes"
	NoFailure           Rule = "no internal error, no process that ends by itself"
)

// Rules are all of them.
func Rules() []Rule {
	return []Rule{
		OneInvoicePerClaim, NoAnswerWithout, SameAnswer, NobodyElsesAnswer, NoRefusalWithout, NoOrderLost, NumbersWithoutHoles, OneEffect,
		NothingUnfinished, FinishedStays, CancelledHasNone, SameBytes, NoFailure,
	}
}

// Violation is one breach of a rule.
type Violation struct {
	Rule Rule
	// Key and Order, as far as known, are what it is about.
	Key, Order string
	Text       string
}

// Invoice is one in the ERP's books.
type Invoice struct {
	ID, Claim, Order, Key, Number, Series string
	SeriesNumber                          int64
	Document                              string // digest of its bytes
	Content                               string // digest of the request that it was made from

	document []byte
}

// Operation is one in the CRM side's books.
type Operation struct {
	Key, Order, Status, Invoice string
	Request                     string // digest of its frozen bytes, as it was when they were frozen
	Altered                     bool   // they are others now
}

// Registration is one in the ERP's books.
type Registration struct{ Invoice, Target, Status string }

// Effect is how often a target has something of one invoice.
type Effect struct {
	Target, Reference string
	Count             int
}

// Books are what both databases and the targets have at the end.
type Books struct {
	Targets       []string // those with which each invoice is to be registered
	Invoices      []Invoice
	Operations    []Operation
	Registrations []Registration
	Effects       []Effect
	// Reverted is what was final and then otherwise, or gone, as the databases took note of it.
	Reverted []string
}

const (
	statusSucceeded = "succeeded"
	statusCancelled = "cancelled"

	keyReused       = "idempotency-key-reused"
	alreadyInvoiced = "already-invoiced"
)

// Check holds history and books to the rules. It gives every breach, in the order of the rules.
func Check(h *History, b Books) []Violation {
	c := checker{history: h, books: b, invoices: map[string]Invoice{}, keys: map[string]Invoice{}, operations: map[string][]Operation{}}
	for _, i := range b.Invoices {
		c.invoices[i.ID] = i
		c.keys[i.Key] = i
	}
	for _, o := range b.Operations {
		c.operations[o.Order] = append(c.operations[o.Order], o)
	}
	c.claims()
	c.answers()
	c.orders()
	c.numbers()
	c.effects()
	c.unfinished()
	c.bytes()
	c.failures()
	return c.found
}

type checker struct {
	history    *History
	books      Books
	invoices   map[string]Invoice     // by id
	keys       map[string]Invoice     // by key
	operations map[string][]Operation // by order
	found      []Violation
}

func (c *checker) violated(rule Rule, key, order, format string, args ...any) {
	c.found = append(c.found, Violation{rule, key, order, fmt.Sprintf(format, args...)})
}

func (c *checker) claims() {
	first := map[string]Invoice{}
	for _, i := range c.books.Invoices {
		if other, there := first[i.Claim]; there {
			c.violated(OneInvoicePerClaim, i.Key, i.Order, "%s has invoices %s and %s", i.Claim, other.Number, i.Number)
		}
		first[i.Claim] = i
	}
}

// answers looks at what clients and workers were told.
func (c *checker) answers() {
	claimed := map[string]bool{} // orders
	for _, i := range c.books.Invoices {
		claimed[i.Order] = true
	}
	first := map[string]Exchange{} // by key
	for _, x := range slices.Concat(c.history.Exchanges, c.history.Attempts) {
		switch {
		case x.By != byInvoices && x.By != byAttempts:
		case x.Status == 201:
			c.answered(x)
			if before, known := first[x.Key]; known && before.Answer != x.Answer {
				c.violated(SameAnswer, x.Key, x.Order, "answered %s and %s", before.Answer, x.Answer)
			} else if !known {
				first[x.Key] = x
			}
		case x.Problem == keyReused && c.keys[x.Key].Content == x.Content:
			c.violated(NoRefusalWithout, x.Key, x.Order, "content %s was refused as another than the key's, which it is", x.Content)
		case x.Problem == keyReused && c.keys[x.Key].ID == "":
			c.violated(NoRefusalWithout, x.Key, x.Order, "content %s was refused as another than the key's, which has no invoice", x.Content)
		case x.Problem == alreadyInvoiced && x.Order != "" && !claimed[x.Order]:
			c.violated(NoRefusalWithout, x.Key, x.Order, "it was refused as invoiced, and is not")
		case x.Problem == alreadyInvoiced && c.keys[x.Key].ID != "":
			c.violated(NoRefusalWithout, x.Key, x.Order, "it was refused as invoiced under another key, and is invoice %s under its own", c.keys[x.Key].Number)
		}
	}
}

// answered holds one answer 201 to the invoice that it tells of.
func (c *checker) answered(x Exchange) {
	invoice, there := c.invoices[x.Invoice]
	switch {
	case x.Invoice == "":
		c.violated(NoAnswerWithout, x.Key, x.Order, "the answer names no invoice")
	case !there:
		c.violated(NoAnswerWithout, x.Key, x.Order, "invoice %s was told of and is not there", x.Invoice)
	case invoice.Document != x.Answer || invoice.Key != x.Key:
		c.violated(NoAnswerWithout, x.Key, x.Order, "invoice %s is of key %s with the bytes %s, told were %s", x.Invoice, invoice.Key, invoice.Document, x.Answer)
	case invoice.Content != x.Content:
		c.violated(NobodyElsesAnswer, x.Key, x.Order, "invoice %s was made from content %s, and told for content %s", invoice.Number, invoice.Content, x.Content)
	}
}

// orders looks for every order that was taken: whoever was told so relies on it.
func (c *checker) orders() {
	taken := map[string]bool{}
	for _, x := range c.history.Exchanges {
		if x.By == byOrders && x.Status/100 == 2 {
			taken[x.Order] = true
		}
	}
	byKey := map[string]int{}
	for _, i := range c.books.Invoices {
		byKey[i.Key]++
	}
	for _, order := range slices.Sorted(maps.Keys(taken)) {
		operations := c.operations[order]
		if len(operations) != 1 {
			c.violated(NoOrderLost, "", order, "the order was taken and has %d operations", len(operations))
			continue
		}
		o := operations[0]
		if o.Status == statusSucceeded && (byKey[o.Key] != 1 || c.invoices[o.Invoice].Key != o.Key) {
			c.violated(NoOrderLost, o.Key, order, "the operation succeeded with invoice %q, the ERP has %d under its key", o.Invoice, byKey[o.Key])
		}
		if _, pressed := c.history.cancels[o.Key]; o.Status == "failed" || o.Status == statusCancelled && !pressed {
			c.violated(NoOrderLost, o.Key, order, "the operation is %s", o.Status)
		}
	}
}

func (c *checker) numbers() {
	type series struct {
		numbers map[int64]bool
		most    int64
	}
	all := map[string]*series{}
	for _, i := range c.books.Invoices {
		s := all[i.Series]
		if s == nil {
			s = &series{numbers: map[int64]bool{}}
			all[i.Series] = s
		}
		if s.numbers[i.SeriesNumber] {
			c.violated(NumbersWithoutHoles, i.Key, i.Order, "number %s was given twice", i.Number)
		}
		s.numbers[i.SeriesNumber] = true
		s.most = max(s.most, i.SeriesNumber)
	}
	for name, s := range all {
		if holes := s.most - int64(len(s.numbers)); holes != 0 {
			c.violated(NumbersWithoutHoles, "", "", "series %s has %d holes", name, holes)
		}
	}
}

// effects holds what the targets have to what is registered, and that to what there is to register.
func (c *checker) effects() {
	type place struct{ target, number string }
	due := map[place]int{} // registrations, by where an invoice has to be
	for _, i := range c.books.Invoices {
		for _, target := range c.books.Targets {
			due[place{target, i.Number}] = 0
		}
	}
	succeeded := map[place]bool{}
	for _, r := range c.books.Registrations {
		i := c.invoices[r.Invoice]
		at := place{r.Target, i.Number}
		due[at]++
		succeeded[at] = r.Status == statusSucceeded
		if due[at] > 1 {
			c.violated(OneEffect, i.Key, i.Order, "%s has %d registrations at %s", i.Number, due[at], r.Target)
		}
	}
	count := map[place]int{}
	for _, e := range c.books.Effects {
		at := place{e.Target, e.Reference}
		count[at] += e.Count
		if e.Count > 1 {
			c.violated(OneEffect, "", "", "%s has %d of %s", e.Target, e.Count, e.Reference)
		}
		if due[at] == 0 {
			c.violated(OneEffect, "", "", "%s has %s, which no registration asks for", e.Target, e.Reference)
		}
	}
	for _, i := range c.books.Invoices {
		for _, target := range c.books.Targets {
			switch at := (place{target, i.Number}); {
			case due[at] == 0:
				c.violated(OneEffect, i.Key, i.Order, "%s has no registration at %s", i.Number, target)
			case succeeded[at] && count[at] != 1:
				c.violated(OneEffect, i.Key, i.Order, "%s is registered at %s by the books; %s has %d", i.Number, target, target, count[at])
			}
		}
	}
}

func (c *checker) unfinished() {
	for _, o := range c.books.Operations {
		if o.Status != statusSucceeded && o.Status != "failed" && o.Status != "cancelled" {
			c.violated(NothingUnfinished, o.Key, o.Order, "the operation is %s", o.Status)
		}
	}
	for _, r := range c.books.Registrations {
		if r.Status != statusSucceeded {
			i := c.invoices[r.Invoice]
			c.violated(NothingUnfinished, i.Key, i.Order, "the registration of %s at %s is %s", i.Number, r.Target, r.Status)
		}
	}
	for _, x := range c.books.Reverted {
		c.violated(FinishedStays, "", "", "%s", x)
	}
	c.cancelled()
}

// cancelled holds what people have taken back to that: it stays so, and there is no invoice of it.
func (c *checker) cancelled() {
	invoiced := map[string]string{}
	for _, i := range c.books.Invoices {
		invoiced[i.Key] = i.Number
	}
	for _, o := range c.books.Operations {
		if c.history.cancels[o.Key] && o.Status != statusCancelled {
			c.violated(FinishedStays, o.Key, o.Order, "it was cancelled, as was confirmed, and is %s", o.Status)
		}
		if number := invoiced[o.Key]; number != "" && o.Status == statusCancelled {
			c.violated(CancelledHasNone, o.Key, o.Order, "it is cancelled, and is invoice %s", number)
		}
	}
}

// bytes holds what reached the ERP to what was frozen.
func (c *checker) bytes() {
	frozen := map[string]Operation{}
	for _, o := range c.books.Operations {
		frozen[o.Key] = o
	}
	for _, o := range c.books.Operations {
		if o.Altered {
			c.violated(SameBytes, o.Key, o.Order, "frozen was %s, and it is other bytes now", o.Request)
		}
	}
	for _, x := range c.history.Attempts {
		if o, known := frozen[x.Key]; !known || o.Request != x.Content {
			c.violated(SameBytes, x.Key, o.Order, "sent was %s, frozen is %q", x.Content, o.Request)
		}
	}
}

func (c *checker) failures() {
	for _, x := range slices.Concat(c.history.Exchanges, c.history.Attempts) {
		if x.Status == 500 {
			c.violated(NoFailure, x.Key, x.Order, "answered 500")
		}
	}
	for _, what := range c.history.Fell {
		c.violated(NoFailure, "", "", "%s", what)
	}
}
