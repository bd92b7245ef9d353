package orderfile

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"maps"
	"strings"
	"unicode/utf8"
)

// ParseDialect reads a delimiter and a decimal mark as people write them in flags and settings: one character each, and
// "tab" for a tab.
func ParseDialect(delimiter, decimal string) (CSVOptions, error) {
	if delimiter == "tab" || delimiter == `\t` {
		delimiter = "\t"
	}
	d, size := utf8.DecodeRuneInString(delimiter)
	if size == 0 || size != len(delimiter) || d == utf8.RuneError {
		return CSVOptions{}, fmt.Errorf("the delimiter is one character or tab, not %q", delimiter)
	}
	if decimal != "." && decimal != "," {
		return CSVOptions{}, fmt.Errorf("the decimal mark is '.' or ',', not %q", decimal)
	}
	o := CSVOptions{Delimiter: d, Decimal: rune(decimal[0])}
	return o, o.check()
}

func (o CSVOptions) withDefaults(source string) CSVOptions {
	if o.Delimiter == 0 {
		o.Delimiter = ','
	}
	if o.Decimal == 0 {
		o.Decimal = '.'
	}
	constants := map[string]string{}
	if source != "" {
		constants[colSource.String()] = source
	}
	maps.Copy(constants, o.Constants)
	o.Constants = constants
	return o
}

func (o CSVOptions) check() error {
	if o.Decimal != '.' && o.Decimal != ',' {
		return fmt.Errorf("the decimal mark is '.' or ',', not %q", o.Decimal)
	}
	if strings.ContainsRune("\"\r\n'=+-", o.Delimiter) {
		return fmt.Errorf("%q cannot be a delimiter", o.Delimiter)
	}
	for from, to := range o.Rename {
		if _, err := findPlace(to, nil); err != nil {
			return fmt.Errorf("the name for column %q: %w", from, err)
		}
	}
	return nil
}

// flagText is how a delimiter is given on the command line.
func flagText(delimiter rune) string {
	if delimiter == '\t' {
		return "tab"
	}
	return "'" + string(delimiter) + "'"
}

// skipSep takes the line "sep=;" off, by which some programs tell spreadsheets the delimiter. It never decides: it
// has to agree with what was declared.
func skipSep(head *bufio.Reader, delimiter rune) (lines int, err error) {
	const longest = len("\"sep=\u20AC\"\r\n")
	start, err := head.Peek(longest)
	if err != nil && !errors.Is(err, io.EOF) {
		return 0, fmt.Errorf("read: %w", err)
	}
	first, _, whole := strings.Cut(string(start), "\n")
	said, is := strings.CutPrefix(strings.ToLower(strings.Trim(first, "\"\r")), "sep=")
	if !is || !whole {
		return 0, nil
	}
	if said != string(delimiter) {
		return 0, refuseFile(1, "the file says its delimiter is %q, but %s was declared: looks like --delimiter %s",
			said, flagText(delimiter), flagText(firstRune(said)))
	}
	_, err = head.Discard(len(first) + 1)
	return 1, err
}

func firstRune(s string) rune {
	for _, r := range s {
		return r
	}
	return ','
}
