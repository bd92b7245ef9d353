// Package kept makes text that came from outside fit to be kept.
package kept

import (
	"strings"
	"unicode/utf8"
)

// Text makes text fit for a column and a log line: at most limit bytes (and a mark where it was cut), valid UTF-8, without
// NUL, which PostgreSQL can't hold, and without the secret, should somebody have echoed it ("": there is none).
func Text(text, secret string, limit int) string {
	if secret != "" {
		text = strings.ReplaceAll(text, secret, "[token]")
	}
	text = strings.ReplaceAll(strings.ToValidUTF8(text, "\ufffd"), "\x00", "\ufffd")
	if len(text) <= limit {
		return text
	}
	cut := limit
	for !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + "…"
}
