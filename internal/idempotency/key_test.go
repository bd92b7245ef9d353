package idempotency

import (
	"fmt"
	"strings"
	"testing"

	"invoicebridge/internal/problem"
)

func TestParseKeyTakesBothFormsAsTheSameKey(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ bare, quoted, want string }{
		{"K1", `"K1"`, "K1"},
		{" K1\t", "\t\"K1\" ", "K1"},
		{"a b", `"a b"`, "a b"},
		{`a\b`, `"a\\b"`, `a\b`},
		{"k;p=1", `"k;p=1"`, "k;p=1"},
		{"~!@#$%^&*()", `"~!@#$%^&*()"`, "~!@#$%^&*()"},
		{strings.Repeat("k", 255), `"` + strings.Repeat("k", 255) + `"`, strings.Repeat("k", 255)},
	} {
		bare, err := ParseKey([]string{c.bare})
		if err != nil {
			t.Errorf("%q: %v", c.bare, err)
		}
		quoted, err := ParseKey([]string{c.quoted})
		if err != nil {
			t.Errorf("%q: %v", c.quoted, err)
		}
		if bare != quoted || bare.String() != c.want {
			t.Errorf("%q is %q, %q is %q, want %q", c.bare, bare, c.quoted, quoted, c.want)
		}
	}
}

func TestParseKeyKeepsWhatOnlyTheQuotedFormCanHold(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{
		`"a,b"`: "a,b", `"a\"b"`: `a"b`, `" a "`: " a ", `"\\\""`: `\"`,
	} {
		if key, err := ParseKey([]string{value}); err != nil || key.String() != want {
			t.Errorf("%s is %q, %v; want %q", value, key, err, want)
		}
	}
}

func TestParseKeyRefuses(t *testing.T) {
	t.Parallel()
	const missing, invalid = problem.IdempotencyKeyMissing, problem.IdempotencyKeyInvalid
	for name, c := range map[string]struct {
		values []string
		want   problem.Type
	}{
		"no header":              {nil, missing},
		"an empty header":        {[]string{""}, missing},
		"only blanks":            {[]string{" \t "}, missing},
		"two headers":            {[]string{"K1", "K2"}, invalid},
		"the same header twice":  {[]string{"K1", "K1"}, invalid},
		"an empty string":        {[]string{`""`}, invalid},
		"256 characters":         {[]string{strings.Repeat("k", 256)}, invalid},
		"256 quoted characters":  {[]string{`"` + strings.Repeat("k", 256) + `"`}, invalid},
		"a bare list":            {[]string{"K1,K2"}, invalid},
		"a list of strings":      {[]string{`"K1", "K2"`}, invalid},
		"a parameter":            {[]string{`"K1";v=1`}, invalid},
		"a quote inside":         {[]string{`K"1`}, invalid},
		"no closing quote":       {[]string{`"K1`}, invalid},
		"only a quote":           {[]string{`"`}, invalid},
		"an escaped end":         {[]string{`"K1\"`}, invalid},
		"a backslash at the end": {[]string{`"K1\`}, invalid},
		"an unknown escape":      {[]string{`"K\1"`}, invalid},
		"a control character":    {[]string{"K\x011"}, invalid},
		"a line break":           {[]string{"K1\r\nX: y"}, invalid},
		"a tab inside":           {[]string{"K\t1"}, invalid},
		"DEL":                    {[]string{"K\x7f"}, invalid},
		"a letter beyond ASCII":  {[]string{"Kä"}, invalid},
		"a quoted control":       {[]string{"\"K\x00\""}, invalid},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if key, err := ParseKey(c.values); !problem.Is(err, c.want) {
				t.Errorf("got %q, %v; want %s", key, err, c.want)
			}
		})
	}
}

func TestParseKeyNamesTheLimit(t *testing.T) {
	t.Parallel()
	_, err := ParseKey([]string{strings.Repeat("k", 3000)})
	if !strings.Contains(fmt.Sprint(err), "255") {
		t.Errorf("the limit is not named: %v", err)
	}
}

// Whatever the header holds: a key is 1 to 255 printable ASCII characters, or there is none and a problem says why;
// and a key that is sent again in the quoted form is the same key.
func FuzzParseKey(f *testing.F) {
	for _, seed := range []string{
		"K1", `"K1"`, `"a\\\"b"`, `""`, `"`, "a,b", `"a", "b"`, "\"\x80\"", " k ", strings.Repeat("k", 256), `"k";p`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		key, err := ParseKey([]string{value})
		if err != nil {
			if p := problem.As(err); key != (Key{}) || p == nil || p.Detail == "" {
				t.Fatalf("%q: key %q with error %v", value, key, err)
			}
			return
		}
		text := key.String()
		if len(text) < 1 || len(text) > MaxKeyLength || strings.Trim(text, printable()) != "" {
			t.Fatalf("%q gives key %q", value, text)
		}
		quoted := `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text) + `"`
		if again, err := ParseKey([]string{quoted}); err != nil || again != key {
			t.Fatalf("%q: %q, quoted %s, gives %q, %v", value, text, quoted, again, err)
		}
	})
}

func printable() string {
	var all strings.Builder
	for c := byte(0x20); c <= 0x7E; c++ {
		all.WriteByte(c)
	}
	return all.String()
}
