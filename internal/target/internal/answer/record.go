package answer

import (
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"invoicebridge/internal/target"
)

// Record is one thing at a target, as the target tells it. Unknown members are let be: it is not our contract.
type Record struct {
	ID                string         `json:"id"`
	Reference         string         `json:"reference"`
	ExternalReference string         `json:"external_reference"`
	Number            string         `json:"number"`
	Status            string         `json:"status"`
	Detail            string         `json:"detail"`
	Warnings          jsontext.Value `json:"warnings"`
	Errors            jsontext.Value `json:"errors"`
}

// Refusal is an answer that says no.
type Refusal struct {
	Code   string         `json:"code"`
	Detail string         `json:"detail"`
	Errors jsontext.Value `json:"errors"`
	// Original is what the target has already, where it refuses for that reason.
	Original *Record `json:"original"`
}

// Decode reads an answer's body. What is doubled, cut or not UTF-8 is not read.
func Decode[T any](body []byte) (T, bool) {
	var v T
	if len(body) == 0 || jsontext.Value(body).Kind() != '{' {
		return v, false
	}
	err := json.Unmarshal(body, &v)
	return v, err == nil
}

// Whose says to whom a record belongs, as far as it says so.
type Whose int

// Unsaid is not Ours: a bare reference can be anybody's.
const (
	Unsaid Whose = iota
	Ours
	Foreign
)

// Whose compares what the record says of itself with what was sent or asked for. One member that differs is enough
// to make it another's.
func (r Record) Whose(reference, number string) Whose {
	whose := Unsaid
	for _, pair := range [][2]string{{r.ExternalReference, reference}, {r.Number, number}} {
		switch {
		case pair[0] == "" || pair[1] == "":
		case pair[0] != pair[1]:
			return Foreign
		default:
			whose = Ours
		}
	}
	return whose
}

// Name names the record's invoice, for people.
func (r Record) Name() string {
	switch {
	case r.Number != "":
		return r.Number
	case r.ExternalReference != "":
		return r.ExternalReference
	default:
		return r.ID
	}
}

// Texts reads a list of remarks. Nothing in it is dropped for having another form: what is not text is kept as JSON.
func Texts(list jsontext.Value) []string {
	items := elements(list)
	texts := make([]string, 0, len(items))
	for _, item := range items {
		texts = append(texts, text(item))
	}
	if len(texts) == 0 {
		return nil
	}
	return texts
}

// Reasons reads a list of what was found wrong, as Texts does.
func Reasons(list jsontext.Value) []target.Reason {
	var reasons []target.Reason
	for _, item := range elements(list) {
		var r target.Reason
		if item.Kind() != '{' || json.Unmarshal(item, &r) != nil || r == (target.Reason{}) {
			r = target.Reason{Detail: text(item)}
		}
		reasons = append(reasons, r)
	}
	return reasons
}

func text(item jsontext.Value) string {
	var s string
	if item.Kind() != '"' || json.Unmarshal(item, &s) != nil {
		return string(item)
	}
	return s
}

func elements(list jsontext.Value) []jsontext.Value {
	switch list.Kind() {
	case '[':
		var items []jsontext.Value
		if json.Unmarshal(list, &items) == nil {
			return items
		}
	case 'n', jsontext.KindInvalid:
		return nil
	}
	return []jsontext.Value{list}
}

// Apply puts a refusal's words into s.
func (r Refusal) Apply(s *target.Sent) {
	s.Reasons = Reasons(r.Errors)
	switch {
	case r.Detail != "" && r.Code != "":
		s.Detail = fmt.Sprintf("%s: %s", r.Code, r.Detail)
	case r.Detail != "" || r.Code != "":
		s.Detail = r.Detail + r.Code
	}
}

// Rejected makes s the answer to a refusal of what was sent (Refused).
func Rejected(s target.Sent) target.Sent {
	if refusal, ok := Decode[Refusal](s.Answer); ok {
		refusal.Apply(&s)
	}
	s.Outcome, s.NotApplied = target.Rejected, true
	return s
}

// Duplicate makes s the answer to "I had that before". original is what the target has; without one, or where it does
// not say whose it is, the reference is left out: it is a success only once it is known to be ours.
func Duplicate(s target.Sent, original *Record, sub target.Submission) target.Sent {
	s.Outcome = target.AlreadyRegistered
	if original == nil {
		return s
	}
	switch original.Whose(sub.Reference, sub.Number) {
	case Ours:
		s.ID, s.Reference, s.Warnings = original.ID, original.Reference, Texts(original.Warnings)
	case Foreign:
		s = Another(s, *original)
	case Unsaid:
	}
	return s
}

// Another makes s the answer that is about another invoice.
func Another(s target.Sent, r Record) target.Sent {
	s.Outcome, s.NotApplied, s.ForeignInvoice = target.Foreign, false, r.Name()
	s.Detail = fmt.Sprintf("the target's answer is about another invoice: %.100s", r.Name())
	return s
}
