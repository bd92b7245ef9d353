package orderfile

import (
	"bufio"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strings"
)

// csvBuffer is more than encoding/csv reads ahead of the row that it returns.
const csvBuffer = 8 << 10

// csvRows gives the rows of a CSV file, each within a bound of bytes.
type csvRows struct {
	csv     *csv.Reader
	budget  *budgetReader
	maxRow  int
	skipped int // lines in front of what csv sees
	next    int // the line after the row returned last
}

func readCSV(text io.Reader, o Options) (*File, error) {
	o.CSV = o.CSV.withDefaults(o.DefaultSource)
	if err := o.CSV.check(); err != nil {
		return nil, err
	}
	rows, err := newCSVRows(text, o)
	if err != nil {
		return nil, err
	}
	record, line, err := rows.read()
	if errors.Is(err, io.EOF) {
		return nil, refuseFile(0, "the file is empty: there is no header")
	} else if err != nil {
		return nil, err
	}
	layout, err := readHeader(record, line, o.CSV)
	if err != nil {
		return nil, err
	}
	return readRows(rows, layout, o)
}

func readRows(rows *csvRows, layout *layout, o Options) (*File, error) {
	file := &File{Format: CSV}
	g := newGrouper(file)
	var wrongCount []string
	for {
		record, line, err := rows.read()
		if errors.Is(err, io.EOF) {
			break
		}
		switch {
		case errors.Is(err, csv.ErrFieldCount):
			wrongCount = append(wrongCount, fmt.Sprintf("line %d has %d", line, len(record)))
		case err != nil:
			return nil, err
		case trim(strings.Join(record, "")) == "":
			file.Blank++
		default:
			g.add(layout.row(record, line, o.CSV.Decimal))
		}
	}
	if len(wrongCount) > 0 {
		return nil, refuseFile(0, "the header has %d fields, but %s. Nobody can say which value belongs where; "+
			"values that hold the delimiter %s must stand in quotes", len(layout.places), manyOf(wrongCount, 20),
			flagText(o.CSV.Delimiter))
	}
	g.finish()
	return file, nil
}

func newCSVRows(text io.Reader, o Options) (*csvRows, error) {
	budget := &budgetReader{src: text, budget: int64(o.MaxRowBytes) + csvBuffer}
	head := bufio.NewReader(budget)
	skipped, err := skipSep(head, o.CSV.Delimiter)
	if err != nil {
		return nil, err
	}
	r := csv.NewReader(head)
	r.Comma = o.CSV.Delimiter
	r.ReuseRecord = true
	return &csvRows{csv: r, budget: budget, maxRow: o.MaxRowBytes, skipped: skipped, next: skipped + 1}, nil
}

// read gives the next row and the line where it begins. io.EOF ends the file; csv.ErrFieldCount comes with the row;
// any other error ends the reading.
func (c *csvRows) read() (record []string, line int, err error) {
	c.budget.budget = c.csv.InputOffset() + int64(c.maxRow) + csvBuffer
	record, err = c.csv.Read()
	if err == nil || errors.Is(err, csv.ErrFieldCount) {
		line, _ = c.csv.FieldPos(0)
		last, _ := c.csv.FieldPos(len(record) - 1)
		c.next = c.skipped + last + strings.Count(record[len(record)-1], "\n") + 1
		return record, c.skipped + line, err
	}
	var at *csv.ParseError
	var refused *FileError
	switch {
	case errors.Is(err, io.EOF):
		return nil, 0, io.EOF
	case errors.Is(err, errRowTooLong):
		return nil, 0, refuseFile(c.next, "the row is longer than %d bytes; a quote may be missing", c.maxRow)
	case errors.As(err, &refused):
		return nil, 0, refused
	case errors.As(err, &at):
		return nil, 0, refuseFile(c.skipped+at.StartLine, "%s", quoteFault(at, c.skipped))
	default:
		return nil, 0, fmt.Errorf("read: %w", err)
	}
}

func quoteFault(at *csv.ParseError, skipped int) string {
	if errors.Is(at.Err, csv.ErrBareQuote) {
		return fmt.Sprintf("a quote stands inside of an unquoted value (column %d); such a value must stand in quotes, its quotes doubled", at.Column)
	}
	return fmt.Sprintf("a quoted value is not ended as it has to be (line %d, column %d); quotes inside of it must be doubled", skipped+at.Line, at.Column)
}

func manyOf(list []string, most int) string {
	if len(list) <= most {
		return strings.Join(list, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(list[:most], ", "), len(list)-most)
}
