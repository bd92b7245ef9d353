package erpapi

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json/jsontext"

	"invoicebridge/internal/problem"
)

// BatchItem is one request of POST /v1/invoices/batch, cut out of the body and not decoded.
type BatchItem struct {
	Key     *string // idempotency_key as sent; nil where there is none, or it is null
	Invoice []byte  // what stands under invoice, byte for byte: a part of the body; nil where nothing does
	Err     error   // malformed-request: the item is not of the documented form, and has neither key nor invoice
}

// CutBatch cuts the body of POST /v1/invoices/batch into its items, which share its memory. What is wrong inside an item
// is that item's own matter. It fails with malformed-request if the body is no JSON, is of another form or has no item,
// and with content-too-large if it has more than most of them; what is behind those is not looked at.
func CutBatch(body []byte, most int) (items []BatchItem, err error) {
	c := newCutter(body)
	err = c.members(func(name string) error {
		if name != "invoices" {
			return fmt.Errorf("unknown member %s", name)
		}
		return c.elements(func(item []byte) error {
			if len(items) == most {
				return problem.New(problem.ContentTooLarge, "A batch may have at most %d invoices.", most)
			}
			items = append(items, cutItem(item))
			return nil
		})
	})
	if err == nil {
		err = c.end()
	}
	switch {
	case problem.As(err) != nil:
		return nil, err
	case err != nil:
		return nil, malformed(body, err)
	case len(items) == 0:
		return nil, problem.New(problem.MalformedRequest, "A batch has at least one item in invoices.")
	}
	return items, nil
}

func cutItem(text []byte) (item BatchItem) {
	c := newCutter(text)
	err := c.members(func(name string) error {
		value, err := c.value()
		if err != nil {
			return err
		}
		switch name {
		case "idempotency_key":
			item.Key, err = textOrNull(value)
		case "invoice":
			item.Invoice = value
		default:
			err = fmt.Errorf("unknown member %s", name)
		}
		return err
	})
	if err != nil {
		return BatchItem{Err: problem.New(problem.MalformedRequest,
			"The item is not one JSON object with idempotency_key and invoice: %s.", plainCause(err))}
	}
	return item
}

func textOrNull(value jsontext.Value) (*string, error) {
	switch value.Kind() {
	case 'n':
		return nil, nil
	case '"':
		text, err := jsontext.AppendUnquote(nil, value)
		if err != nil {
			return nil, fmt.Errorf("idempotency_key: %w", err)
		}
		s := string(text)
		return &s, nil
	}
	return nil, errors.New("idempotency_key must be a JSON string")
}

// cutter takes a JSON text apart and judges nothing inside the values that it passes over but their grammar.
type cutter struct {
	text []byte
	dec  *jsontext.Decoder
}

func newCutter(text []byte) cutter {
	return cutter{text, jsontext.NewDecoder(bytes.NewBuffer(text), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))}
}

// members has each member of the object that comes next read by read. None may stand twice.
func (c cutter) members(read func(name string) error) error {
	seen := map[string]bool{}
	return c.inside('{', "an object", func() error {
		name, err := c.dec.ReadToken()
		if err != nil {
			return err
		}
		text := name.String()
		if seen[text] {
			return fmt.Errorf("member %s stands twice", text)
		}
		seen[text] = true
		return read(text)
	})
}

// elements hands over each element of the array that comes next.
func (c cutter) elements(take func(element []byte) error) error {
	return c.inside('[', "an array", func() error {
		element, err := c.value()
		if err != nil {
			return err
		}
		return take(element)
	})
}

func (c cutter) inside(kind jsontext.Kind, called string, each func() error) error {
	begin, err := c.dec.ReadToken()
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	} else if err != nil {
		return err
	}
	if begin.Kind() != kind {
		return fmt.Errorf("a JSON %v where %s belongs", begin.Kind(), called)
	}
	for {
		switch c.dec.PeekKind() {
		case '}', ']':
			_, err := c.dec.ReadToken()
			return err
		}
		if err := each(); err != nil {
			return err
		}
	}
}

// value is the part of the text that the next value is.
func (c cutter) value() ([]byte, error) {
	value, err := c.dec.ReadValue()
	if err != nil {
		return nil, err
	}
	end := int(c.dec.InputOffset())
	return c.text[end-len(value) : end : end], nil
}

// end fails if anything follows.
func (c cutter) end() error {
	if _, err := c.dec.ReadToken(); err == nil {
		return errors.New("something follows its end")
	} else if !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}
