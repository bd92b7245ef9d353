package crm

import (
	"strings"
	"testing"
	"unicode/utf8"

	"invoicebridge/internal/problem"
)

// An operator who looks for an order finds what was refused of it, however its sender wrote the id.
func TestWhatIsKeptOfARefusalFitsAndIsLookedForByTheSameText(t *testing.T) {
	t.Parallel()
	for _, id := range []string{
		"SO-1", "", " SO-1\u00a0", "e\u0301", "\x00", "\xff", "e\xff\u0301", "\ufeffx", strings.Repeat("é", 300), strings.Repeat("e\u0301", 300), strings.Repeat("\u0958", 200),
		strings.Repeat("x", maxSourceLength-1) + " x", strings.Repeat("x", maxOrderLength-1) + " x",
	} {
		p := Refusal{Source: id, Order: id, Problem: &problem.Problem{
			Type: problem.InvalidOrder, Detail: id, Errors: []problem.FieldError{{Pointer: id, Detail: id}},
		}}.params()
		for _, text := range []string{p.Source, p.OrderID, p.Detail, p.Pointers[0], p.Reasons[0]} {
			if !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
				t.Errorf("%q is kept as %q", id, text)
			}
		}
		for kept, most := range map[string]int{p.Source: maxSourceLength, p.OrderID: maxOrderLength} {
			if utf8.RuneCountInString(kept) > most || normaliseID(kept) != kept {
				t.Errorf("%q is kept as %q, looked for as %q", id, kept, normaliseID(kept))
			}
		}
	}
}
