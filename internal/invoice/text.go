package invoice

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/language"
	"golang.org/x/text/unicode/norm"
)

// reservedRegions are two-letter codes that x/text knows as countries but ISO 3166-1 does not assign: withdrawn ones
// and those reserved for other uses. XK is left in: it is user-assigned, and what the EU writes for Kosovo.
const reservedRegions = "AC AN CP CQ CS DG EA EU EZ FQ IC NT PC SU TA UN YU"

// isCountry says whether code is an ISO 3166-1 alpha-2 code, in capitals.
func isCountry(code string) bool {
	region, err := language.ParseRegion(code)
	return err == nil && len(code) == 2 && region.IsCountry() &&
		region.String() == code && region.Canonicalize() == region && // DD is an old name of DE, de is none
		!strings.Contains(reservedRegions, code)
}

// identity is a text in the one form in which identities are compared and stored: Unicode NFC, as in the canonical
// form of a request. Two spellings of one letter never make two orders. Case and zeros count: a-1, A-1 and a-01 are three.
func identity(s string) string { return norm.NFC.String(s) }

func tooLong(s string, limit int) bool {
	return len(s) > limit && utf8.RuneCountInString(s) > limit
}

func hasOuterBlank(s string) bool { return strings.TrimFunc(s, unicode.IsSpace) != s }

// isIdentifier allows what a person can see and tell apart: no control or format characters, no blank but the space.
func isIdentifier(s string) bool {
	return !hasOuterBlank(s) && strings.IndexFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) < 0
}

func hasControl(s string, allowed string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return unicode.IsControl(r) && !strings.ContainsRune(allowed, r) }) >= 0
}

// isStorable says whether PostgreSQL can hold s as text. What is not can't be found either.
func isStorable(s string) bool { return utf8.ValidString(s) && !strings.ContainsRune(s, 0) }
