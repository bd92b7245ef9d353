package orderfile

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"invoicebridge/internal/crm"
	"invoicebridge/internal/erpapi"
	"invoicebridge/internal/problem"
)

// readJSONLines reads one order per line. A bad line is refused and the next one read: unlike in CSV, lines cannot
// run into each other.
func readJSONLines(text io.Reader, o Options) (*File, error) {
	file := &File{Format: JSONLines}
	lines := bufio.NewReaderSize(text, 64<<10)
	var buf []byte
	for number := 1; ; number++ {
		line, tooLong, err := readLine(lines, buf[:0], o.MaxRowBytes)
		if err != nil && !errors.Is(err, io.EOF) {
			var refused *FileError
			if errors.As(err, &refused) {
				return nil, refused
			}
			return nil, fmt.Errorf("read: %w", err)
		}
		ended := err != nil
		switch {
		case tooLong:
			file.refuseRow(Row{Line: number}, fmt.Sprintf("the line is longer than %d bytes", o.MaxRowBytes))
		case len(bytes.TrimSpace(line)) > 0:
			file.addJSON(line, number, o.DefaultSource)
		case !ended:
			file.Blank++
		}
		if ended {
			break
		}
		buf = line
	}
	if len(file.Rows) == 0 {
		return nil, refuseFile(0, "the file is empty: there is no order in it")
	}
	return file, nil
}

// readLine reads to the end of the line. Of a line over the bound it keeps nothing but reads on to its end.
func readLine(r *bufio.Reader, line []byte, bound int) (_ []byte, tooLong bool, err error) {
	for {
		part, err := r.ReadSlice('\n')
		if len(line)+len(part) > bound {
			tooLong = true
		}
		if !tooLong {
			line = append(line, part...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, tooLong, err
		}
	}
}

func (f *File) refuseRow(r Row, reason string) {
	r.Outcome, r.Reason = Refused, reason
	f.Rows = append(f.Rows, r)
}

func (f *File) addJSON(line []byte, number int, defaultSource string) {
	var order crm.Order
	if err := erpapi.DecodeStrict(line, &order); err != nil {
		f.refuseRow(Row{Line: number}, reasonOf(err))
		return
	}
	if order.Source == "" {
		order.Source = defaultSource
	}
	index := len(f.Rows)
	f.Rows = append(f.Rows, Row{Line: number, Source: order.Source, Order: order.Order})
	f.Entries = append(f.Entries, Entry{Order: order, Rows: []int{index}})
}

// reasonOf tells a problem in one line.
func reasonOf(err error) string {
	p := problem.As(err)
	if p == nil {
		return err.Error()
	}
	if len(p.Errors) > 0 {
		return fieldErrors(p.Errors)
	}
	return p.Detail
}

func fieldErrors(errs []problem.FieldError) string {
	texts := make([]string, len(errs))
	for i, e := range errs {
		texts[i] = e.Detail
		if e.Pointer != "" {
			texts[i] = e.Pointer + ": " + e.Detail
		}
	}
	return strings.Join(texts, "; ")
}
