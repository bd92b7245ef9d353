package orderfile

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"unicode/utf8"
)

// textReader passes on UTF-8 text without its byte order mark and refuses all else, with the line where it stands.
// A text that is only nearly right would be imported with wrong names.
type textReader struct {
	src  io.Reader
	line int
	part []byte // the bytes so far of a character that the next read completes
	err  error
}

// newTextReader looks at the first bytes. It fails with a *FileError if the file is empty or in UTF-16.
func newTextReader(r io.Reader) (*textReader, error) {
	src := bufio.NewReader(r)
	head, err := src.Peek(3)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("read: %w", err)
	}
	switch {
	case len(head) == 0:
		return nil, refuseFile(0, "the file is empty")
	case bytes.HasPrefix(head, []byte{0xFF, 0xFE}), bytes.HasPrefix(head, []byte{0xFE, 0xFF}):
		return nil, refuseFile(0, "the file is in UTF-16; save it as UTF-8 (in spreadsheets: \"CSV UTF-8\")")
	case bytes.Equal(head, []byte{0xEF, 0xBB, 0xBF}):
		if _, err := src.Discard(len(head)); err != nil {
			return nil, fmt.Errorf("read: %w", err)
		}
	}
	return &textReader{src: src, line: 1}, nil
}

func (t *textReader) Read(p []byte) (int, error) {
	if t.err != nil {
		return 0, t.err
	}
	n, err := t.src.Read(p)
	if bad := t.check(p[:n]); bad != nil {
		t.err = bad
		return 0, bad
	}
	if errors.Is(err, io.EOF) && len(t.part) > 0 {
		t.err = refuseFile(t.line, "the file ends in the middle of a character")
		return n, t.err
	}
	return n, err
}

func (t *textReader) check(chunk []byte) error {
	b := chunk
	if len(t.part) > 0 {
		b = slices.Concat(t.part, chunk)
	}
	for len(b) > 0 {
		if !utf8.FullRune(b) {
			break
		}
		r, size := utf8.DecodeRune(b)
		switch {
		case r == utf8.RuneError && size == 1:
			return refuseFile(t.line, "the byte 0x%02X is not UTF-8; save the file as UTF-8 (it may be in Windows-1252 or Latin-1)", b[0])
		case r == 0:
			return refuseFile(t.line, "the character U+0000 does not belong in a file of orders; a file in UTF-16 has to be saved as UTF-8")
		case r == '\n':
			t.line++
		}
		b = b[size:]
	}
	t.part = append(t.part[:0], b...)
	return nil
}

// errRowTooLong ends a read that would take more memory for one row than is allowed.
var errRowTooLong = errors.New("row too long")

// budgetReader gives no more bytes than its budget, which its owner renews for every row.
type budgetReader struct {
	src    io.Reader
	read   int64
	budget int64 // the greatest value that read may reach
}

func (b *budgetReader) Read(p []byte) (int, error) {
	left := b.budget - b.read
	if left <= 0 {
		return 0, errRowTooLong
	}
	n, err := b.src.Read(p[:min(int64(len(p)), left)])
	b.read += int64(n)
	return n, err
}
