package orderfile

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"invoicebridge/internal/crm"
)

// Format is how a file is written.
type Format string

// The formats.
const (
	CSV       Format = "csv"
	JSONLines Format = "jsonl"
)

// FormatOf tells the format by the extension of a file's name.
func FormatOf(name string) (Format, error) {
	switch ext := strings.ToLower(filepath.Ext(name)); ext {
	case ".csv", ".tsv", ".txt":
		return CSV, nil
	case ".jsonl", ".ndjson":
		return JSONLines, nil
	case ".json":
		return "", fmt.Errorf("%s: .json may be one document; files of orders are JSON Lines, one order a line (.jsonl, or say --format jsonl)", name)
	default:
		return "", fmt.Errorf("%s: the extension %q tells no format; say --format csv or --format jsonl", name, ext)
	}
}

// DefaultMaxRowBytes bounds one row where Options do not: as much as one request to the ERP may have.
const DefaultMaxRowBytes = 1 << 20

// Options say how a file is to be read.
type Options struct {
	Format Format
	CSV    CSVOptions
	// DefaultSource is the source of orders that name none: CSV files without that column, lines of JSON without
	// that member. Empty: none.
	DefaultSource string
	// MaxRowBytes bounds the memory for one row. 0: DefaultMaxRowBytes.
	MaxRowBytes int
}

// CSVOptions declare the dialect of a CSV file.
type CSVOptions struct {
	Delimiter rune // 0: a comma
	Decimal   rune // '.' or ','; 0: a point
	// Rename maps names in the file's header to names of Columns.
	Rename map[string]string
	// Constants give a value to columns that the file does not have.
	Constants map[string]string
}

// Outcome is what became of a row.
type Outcome string

// Outcomes of rows beside those of crm.Submit (created, already_there, changed, changed_after_delivery, cancelled,
// stale, refused).
const (
	Refused      Outcome = "refused"
	AlreadyThere Outcome = "already_there"
	// NotStored: the row is good, but other rows of the file were refused and nothing was to be taken from it then;
	// or storing failed before this row.
	NotStored Outcome = "not_stored"
	// Unknown: storing the row failed, perhaps only after it was done. Importing the file again tells and mends it.
	Unknown Outcome = "unknown"
	// Checked: the row is good and was only to be checked.
	Checked Outcome = "checked"
)

// Row is one row of a file and what became of it. Outcome is empty until that is known.
type Row struct {
	Line    int     `json:"line"` // where the row begins, counted from 1
	Source  string  `json:"source,omitzero"`
	Order   string  `json:"order,omitzero"`
	Outcome Outcome `json:"outcome"`
	Reason  string  `json:"reason,omitzero"`
}

// Entry is one order of a file.
type Entry struct {
	Order crm.Order
	Rows  []int // its rows: indexes of File.Rows, in the order of the file
	// Copies are those of Rows that only repeat another one.
	Copies []int
	// lines has the rows of each line of each invoice, so that a fault found later finds its row.
	lines [][]int
}

// File is what was read. Every row is in exactly one entry or refused.
type File struct {
	Format  Format
	Rows    []Row
	Entries []Entry
	Blank   int // rows and lines without any value
}

// FileError refuses a file as a whole: nothing of it can be taken.
type FileError struct {
	Line   int // 0: the whole file
	Reason string
}

// Error implements error.
func (e *FileError) Error() string {
	if e.Line == 0 {
		return e.Reason
	}
	return fmt.Sprintf("line %d: %s", e.Line, e.Reason)
}

func refuseFile(line int, format string, args ...any) *FileError {
	return &FileError{Line: line, Reason: fmt.Sprintf(format, args...)}
}

// Read reads a whole file. The error is a *FileError where the file itself is at fault. One row is held as text at a
// time, within Options.MaxRowBytes; the orders are held all.
func Read(r io.Reader, o Options) (*File, error) {
	if o.MaxRowBytes <= 0 {
		o.MaxRowBytes = DefaultMaxRowBytes
	}
	text, err := newTextReader(r)
	if err != nil {
		return nil, err
	}
	switch o.Format {
	case CSV:
		return readCSV(text, o)
	case JSONLines:
		return readJSONLines(text, o)
	default:
		return nil, fmt.Errorf("unknown format %q: csv and jsonl are known", o.Format)
	}
}
