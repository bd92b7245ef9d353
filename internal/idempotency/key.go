// Package idempotency decides whether two requests are the same one. It reads keys, makes fingerprints, tells how
// two requests differ, and reserves keys on the caller's transaction. It knows nothing of invoices or HTTP.
package idempotency

import (
	"strings"

	"invoicebridge/internal/problem"
)

// MaxKeyLength is the greatest length of a key in characters, which are all ASCII and so bytes.
const MaxKeyLength = 255

// Key is an operation key that has passed ParseKey or KeyOf: 1 to MaxKeyLength printable ASCII characters. Keys are equal
// if their characters are, in whatever form they came. The zero Key is none.
type Key struct{ text string }

// String gives the characters of the key, without quotes.
func (k Key) String() string { return k.text }

// ParseKey reads the values of all Idempotency-Key header lines of one request. The quoted form is the string of
// RFC 8941, section 3.3.3, which draft-ietf-httpapi-idempotency-key-header asks for; the bare form is what most
// clients send. `"k"` and `k` are the same key.
//
// It fails with a problem of type idempotency-key-missing or idempotency-key-invalid that says what is wrong. A key
// is never cut, folded or trimmed inside: two different keys never become one.
func ParseKey(headerValues []string) (Key, error) {
	if len(headerValues) > 1 {
		return Key{}, invalidKey("The request carries the header Idempotency-Key more than once.")
	}
	value := ""
	if len(headerValues) == 1 {
		value = strings.Trim(headerValues[0], " \t") // optional white space, RFC 9110, section 5.6.3
	}
	if value == "" {
		return Key{}, problem.New(problem.IdempotencyKeyMissing,
			"The header Idempotency-Key is missing or empty. Send a key made once for this operation, such as a UUID.")
	}
	if value[0] == '"' {
		return quotedKey(value)
	}
	return bareKey(value)
}

// KeyOf makes a key of its characters, as they are: for where it comes as a text and not in a header, so that nothing in it
// quotes. It fails as ParseKey does.
func KeyOf(text string) (Key, error) {
	if text == "" {
		return Key{}, problem.New(problem.IdempotencyKeyMissing,
			"The key is missing or empty. Send a key made once for this operation, such as a UUID.")
	}
	return checkedKey(text)
}

func bareKey(value string) (Key, error) {
	if strings.ContainsAny(value, `",`) {
		return Key{}, invalidKey(`A key without quotes must not contain '"' or ','. One request has one key.`)
	}
	return checkedKey(value)
}

func quotedKey(value string) (Key, error) {
	var text strings.Builder
	for i := 1; i < len(value); i++ {
		switch c := value[i]; c {
		case '"':
			if i != len(value)-1 {
				return Key{}, invalidKey("Nothing may follow the closing quote: no parameters, no second key.")
			}
			return checkedKey(text.String())
		case '\\':
			i++
			if i == len(value) || value[i] != '"' && value[i] != '\\' {
				return Key{}, invalidKey(`In a quoted key a backslash stands only before '"' or '\'.`)
			}
			text.WriteByte(value[i])
		default:
			text.WriteByte(c)
		}
	}
	return Key{}, invalidKey("The closing quote is missing.")
}

func checkedKey(text string) (Key, error) {
	switch {
	case text == "":
		return Key{}, invalidKey("The key is empty.")
	case len(text) > MaxKeyLength:
		return Key{}, invalidKey("The key has %d bytes; at most %d are allowed.", len(text), MaxKeyLength)
	}
	for i := range len(text) {
		if c := text[i]; c < 0x20 || c > 0x7E {
			return Key{}, invalidKey("Byte %d of the key is not a printable ASCII character.", i+1)
		}
	}
	return Key{text}, nil
}

func invalidKey(format string, args ...any) error {
	return problem.New(problem.IdempotencyKeyInvalid, format, args...)
}
