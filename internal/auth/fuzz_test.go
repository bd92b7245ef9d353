package auth

import "testing"

// A text that is taken is a token's own and only text; one that is refused leaves nothing of itself behind.
func FuzzParseToken(f *testing.F) {
	id, secret := Generate()
	for _, seed := range []string{Format(id, secret), Format(id, secret) + "\n", "ibt__", "ibt_" + id + "_", " " + Format(id, secret), "IBT_" + id + "_" + string(secret)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		id, secret, err := Parse(text)
		if err != nil {
			if id != "" || secret != "" {
				t.Fatalf("%q is refused and gives %q", text, id)
			}
			return
		}
		if Format(id, secret) != text || len(id) != idLength || len(secret) != 2*secretBytes {
			t.Fatalf("%q is read as %q", text, Format(id, secret))
		}
	})
}

// The same for a session's cookie: one value has one text.
func FuzzParseSession(f *testing.F) {
	value := newSessionValue()
	for _, seed := range []string{value, value + "=", value + "\n", value[:42], "", " " + value} {
		f.Add(seed, value)
	}
	f.Fuzz(func(t *testing.T, one, other string) {
		hashOne, isOne := parseSessionValue(one)
		hashOther, isOther := parseSessionValue(other)
		if isOne && isOther && string(hashOne) == string(hashOther) && one != other {
			t.Fatalf("%q and %q are one session", one, other)
		}
		if isOne && len(one) != len(newSessionValue()) {
			t.Fatalf("%q is taken", one)
		}
	})
}
