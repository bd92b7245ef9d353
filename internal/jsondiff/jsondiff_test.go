package jsondiff

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestDifferencesGivesThePlacesThatDiffer(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		a, b string
		want []string
	}{
		"equal":                   {`{"a":1}`, `{"a":1}`, []string{}},
		"one value":               {`{"a":"1","b":"2"}`, `{"a":"1","b":"3"}`, []string{"/b"}},
		"missing on either side":  {`{"a":1}`, `{"b":1}`, []string{"/a", "/b"}},
		"deep":                    {`{"a":[{"b":1},{"b":2}]}`, `{"a":[{"b":1},{"b":3}]}`, []string{"/a/1/b"}},
		"one line more":           {`{"a":[1]}`, `{"a":[1,2]}`, []string{"/a/1"}},
		"lines in another order":  {`["x","y"]`, `["y","x"]`, []string{"/0", "/1"}},
		"another kind of value":   {`{"a":[1]}`, `{"a":{"0":1}}`, []string{"/a"}},
		"null is not absent":      {`{"a":null}`, `{}`, []string{"/a"}},
		"the whole text":          {`1`, `2`, []string{""}},
		"names that need escapes": {`{"a/b":1,"c~d":1}`, `{"a/b":2,"c~d":2}`, []string{"/a~1b", "/c~0d"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := Differences([]byte(c.a), []byte(c.b))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestDifferencesIsBounded(t *testing.T) {
	t.Parallel()
	a := "[" + strings.Repeat("1,", 200) + "1]"
	b := "[" + strings.Repeat("2,", 200) + "2]"
	got, err := Differences([]byte(a), []byte(b))
	if err != nil || len(got) != MaxDifferences {
		t.Errorf("%d differences, %v", len(got), err)
	}
}

func TestDifferencesRefusesWhatIsNotJSON(t *testing.T) {
	t.Parallel()
	if _, err := Differences([]byte(`{"a":1}`), []byte(`{"a":`)); err == nil {
		t.Error("half a text was compared")
	}
}

// Values must not show: they may be another caller's.
func TestDifferencesNeverShowsAValue(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.StringMatching(`secret-[a-z]{8}`)
		a := fmt.Sprintf(`{"note":%q,"lines":[{"sku":%q}]}`, value.Draw(t, "a"), value.Draw(t, "b"))
		b := fmt.Sprintf(`{"note":%q,"lines":[{"sku":%q},{"sku":%[1]q}]}`, value.Draw(t, "c"), value.Draw(t, "d"))
		got, err := Differences([]byte(a), []byte(b))
		if err != nil || strings.Contains(fmt.Sprint(got), "secret") {
			t.Fatalf("%v, %v", got, err)
		}
	})
}
