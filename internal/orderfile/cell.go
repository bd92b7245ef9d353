package orderfile

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"
	"unicode"

	"invoicebridge/internal/erpapi"
)

// trim takes blanks off both ends: all of Unicode's (U+00A0 and its kin come with copying from pages and
// spreadsheets), and those that are invisible without being blanks. crm.Submit trims the same.
func trim(s string) string { return strings.TrimFunc(s, isBlank) }

func isBlank(r rune) bool {
	return unicode.IsSpace(r) || r == '\uFEFF' || r == '\u200B' || r == '\u2060'
}

// read gives the one text of a cell of this kind, or why it cannot be taken. An empty cell is an absent value.
func (k kind) read(cell string, decimal rune) (string, error) {
	if k == kindText {
		return withoutGuard(cell), nil
	}
	s := trim(cell)
	if s == "" {
		return "", nil
	}
	switch k {
	case kindID:
		if bare := withoutIDGuard(s); bare != s {
			return bare, nil // somebody took care to write it as text
		}
		return readID(s)
	case kindCode:
		return withoutGuard(s), nil
	case kindInteger:
		return s, checkForm(s, integerForm, "a whole number from 1 such as 2")
	case kindDecimal:
		return readDecimal(s, decimal)
	case kindDate:
		if _, err := time.Parse(time.DateOnly, s); err != nil {
			return s, fmt.Errorf("%q is not a date of the form 2026-03-31", s)
		}
	}
	return s, nil
}

var (
	integerForm = regexp.MustCompile(`^[1-9][0-9]{0,17}$`)
	// Spreadsheets write the sign of the exponent. Without it (12E4) the text may well be somebody's id.
	spreadsheetExponent = regexp.MustCompile(`^[+-]?[0-9]+([.,][0-9]+)?[eE][+-][0-9]+$`)
	spreadsheetError    = regexp.MustCompile(`^#(REF!|N/A|VALUE!|NAME\?|NUM!|NULL!|DIV/0!|#+)`)
)

func checkForm(s string, form *regexp.Regexp, want string) error {
	if form.MatchString(s) {
		return nil
	}
	return fmt.Errorf("%q is not %s", s, want)
}

// readID takes an id as text and refuses what it can only be after a spreadsheet had it.
func readID(s string) (string, error) {
	switch {
	case spreadsheetExponent.MatchString(s):
		return s, fmt.Errorf("%q is what a spreadsheet makes of a long number; export the column as text again", s)
	case strings.HasPrefix(s, "="):
		return s, fmt.Errorf("%q is a spreadsheet's formula; export the bare id", s)
	case spreadsheetError.MatchString(s):
		return s, fmt.Errorf("%q is a spreadsheet's error mark", s)
	case strings.Trim(s, "-–—") == "":
		return s, fmt.Errorf("%q stands for no id; leave the cell empty where there is none", s)
	}
	return s, nil
}

var errThousands = errors.New("thousands separators are not taken")

// readDecimal gives the decimal as the contract writes it: with a point.
func readDecimal(s string, mark rune) (string, error) {
	other := '.'
	if mark == '.' {
		other = ','
	}
	if strings.ContainsRune(s, other) {
		if strings.ContainsRune(s, mark) {
			return s, fmt.Errorf("%q: %w", s, errThousands)
		}
		return s, fmt.Errorf("%q has a %q, but the decimal mark is %q (--decimal)", s, other, mark)
	}
	d, err := erpapi.ParseDecimal(strings.Replace(s, string(mark), ".", 1))
	if err != nil {
		return s, fmt.Errorf("%q is not a plain decimal number such as 12%c50", s, mark)
	}
	return d.String(), nil
}

// guarded are the characters with which a spreadsheet begins a formula, or skips to one.
const guarded = "=+-@\t\r"

// withGuard makes a text harmless that a spreadsheet would run as a formula: with an apostrophe in front, as
// spreadsheets themselves write it. withoutGuard undoes just that, whatever the text was.
func withGuard(s string) string {
	if startsFormula(s) {
		return "'" + s
	}
	return s
}

func withoutGuard(s string) string {
	if strings.HasPrefix(s, "'") && startsFormula(s) {
		return s[1:]
	}
	return s
}

// withIDGuard also guards what reading would refuse as a spreadsheet's doing: an id that is "1E+05" was that before.
func withIDGuard(s string) string {
	if needsIDGuard(s) {
		return "'" + s
	}
	return s
}

func withoutIDGuard(s string) string {
	if strings.HasPrefix(s, "'") && needsIDGuard(s) {
		return s[1:]
	}
	return s
}

func needsIDGuard(s string) bool {
	bare := strings.TrimLeft(s, "'")
	if bare == "" {
		return false
	}
	_, err := readID(bare)
	return err != nil || startsFormula(bare)
}

// startsFormula says whether s, apostrophes aside, begins as a formula does.
func startsFormula(s string) bool {
	s = strings.TrimLeft(s, "'")
	return s != "" && strings.IndexByte(guarded, s[0]) >= 0
}
