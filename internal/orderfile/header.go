package orderfile

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// place says what one field of each row is: a known column, a metadata member or all of them, or nothing of an order's.
type place struct {
	column   column
	metadata string // the key; "" where it is a column
	object   bool   // all metadata members, as JSON
	ofOther  string // the name of a column that is read over
}

// layout is what the header says: what each field is, and what is the same in every row.
type layout struct {
	places    []place
	constants []constant
}

type constant struct {
	place
	cell string
}

// readHeader understands the header or refuses the file: a column that is silently left out is a value that is
// silently missing from an invoice.
func readHeader(record []string, line int, o CSVOptions) (*layout, error) {
	if err := looksWrong(record, line, o.Delimiter); err != nil {
		return nil, err
	}
	l := &layout{}
	var faults []string
	seen := map[place]bool{}
	for _, cell := range record {
		p, err := findPlace(trim(cell), o.Rename)
		switch {
		case err != nil:
			faults = append(faults, err.Error())
		case seen[p]:
			faults = append(faults, fmt.Sprintf("the column %q stands twice", trim(cell)))
		}
		seen[p] = err == nil || seen[p]
		l.places = append(l.places, p)
	}
	for _, name := range slices.Sorted(maps.Keys(o.Constants)) {
		p, err := findPlace(name, nil)
		if err != nil {
			return nil, fmt.Errorf("constant: %w", err)
		}
		if !seen[p] { // the file's own column wins
			seen[p] = true
			l.constants = append(l.constants, constant{place: p, cell: o.Constants[name]})
		}
	}
	for c, spec := range columnSpecs {
		if spec.required && !seen[place{column: column(c)}] {
			faults = append(faults, fmt.Sprintf("the column %q is missing", spec.name))
		}
	}
	if len(faults) > 0 {
		return nil, refuseFile(line, "the header does not fit: %s. Known columns: %s",
			strings.Join(faults, "; "), strings.Join(Columns(), ", "))
	}
	return l, nil
}

func findPlace(name string, rename map[string]string) (place, error) {
	known := name
	if to, ok := rename[name]; ok {
		known = to
	}
	if c, ok := columnByName(known); ok {
		return place{column: c}, nil
	}
	if key, ok := metadataKey(known); ok {
		return place{column: columnCount, metadata: key}, nil
	}
	if known == metadataColumn {
		return place{column: columnCount, object: true}, nil
	}
	if member, ok := strings.CutPrefix(known, invoicePrefix); ok && member != "" {
		return place{column: columnCount, ofOther: member}, nil
	}
	if c, ok := columnByName(strings.ToLower(known)); ok {
		return place{}, fmt.Errorf("unknown column %q (did you mean %q?)", name, c)
	}
	return place{}, fmt.Errorf("unknown column %q", name)
}

// looksWrong recognises the usual mistakes of a whole file by its header.
func looksWrong(record []string, line int, delimiter rune) error {
	if len(record) == 0 || strings.TrimFunc(strings.Join(record, ""), isBlank) == "" {
		return refuseFile(line, "the header is blank")
	}
	if slices.ContainsFunc(record, func(cell string) bool { return strings.Contains(cell, "\r") }) {
		return refuseFile(line, "the lines end with a bare CR; save the file with LF or CR LF as line ends")
	}
	if len(record) > 1 {
		return nil
	}
	for _, other := range []rune{';', ',', '\t', '|'} {
		if other != delimiter && strings.ContainsRune(record[0], other) {
			return refuseFile(line, "the header is one column %q: looks like --delimiter %s", record[0], flagText(other))
		}
	}
	return nil
}
