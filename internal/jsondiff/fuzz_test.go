package jsondiff

import (
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

// Of any two texts: either one is no JSON, or the places are JSON pointers that one of the two has, at most
// MaxDifferences; there are none exactly if the canonical texts are equal; and it does not matter which comes first.
func FuzzDifferences(f *testing.F) {
	for _, pair := range [][2]string{
		{`{}`, `{}`}, {`{"a":[1,{"b":null}]}`, `{"a":[1,{}]}`}, {`[]`, `{}`}, {`{"":{"":1}}`, `{"":{"":2}}`}, {`{"a/b":1,"c~d":[2]}`, `{"a/b":"1"}`}, {`1`, `x`}, {``, `{}`},
	} {
		f.Add([]byte(pair[0]), []byte(pair[1]))
	}
	f.Fuzz(func(t *testing.T, a, b []byte) {
		first, second := jsontext.Value(a).Clone(), jsontext.Value(b).Clone()
		if first.Canonicalize() != nil || second.Canonicalize() != nil {
			_, _ = Differences(a, b) // may fail, must not panic
			return
		}
		got, err := Differences(first, second)
		if err != nil {
			t.Fatalf("%s and %s: %v", first, second, err)
		}
		if (len(got) == 0) != (string(first) == string(second)) || len(got) > MaxDifferences {
			t.Fatalf("%s and %s differ at %q", first, second, got)
		}
		for _, place := range got {
			if !jsontext.Pointer(place).IsValid() {
				t.Fatalf("%q is no pointer", place)
			}
		}
		back, err := Differences(second, first)
		if err != nil || len(back) != len(got) {
			t.Fatalf("%s and %s: %q one way, %q the other (%v)", first, second, got, back, err)
		}
	})
}
