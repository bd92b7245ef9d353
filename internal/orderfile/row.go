package orderfile

import (
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"

	"invoicebridge/internal/erpapi"
)

// row is one row of a CSV file, each cell read by its kind. "" is an absent value.
type row struct {
	line     int
	values   [columnCount]string
	metadata map[string]string
	faults   []string
}

// row reads the cells of a record. Faulty cells keep their text, so that the row still tells which order it is of.
// What is kept is copied, lest one short id keep the text of its whole row in memory.
func (l *layout) row(record []string, line int, decimal rune) row {
	r := row{line: line}
	for i, p := range l.places {
		r.set(p, record[i], decimal)
	}
	for _, c := range l.constants {
		r.set(c.place, c.cell, decimal)
	}
	for _, c := range []column{colSource, colOrder} {
		if r.values[c] == "" {
			r.faults = append(r.faults, fmt.Sprintf("%s is empty", c))
		}
	}
	return r
}

func (r *row) set(p place, cell string, decimal rune) {
	switch {
	case p.ofOther != "":
		return
	case p.object:
		r.setMetadata(cell)
		return
	case p.metadata != "":
		if v := withoutGuard(cell); v != "" {
			r.setMember(p.metadata, v)
		}
		return
	}
	v, err := columnSpecs[p.column].kind.read(cell, decimal)
	if err != nil {
		r.faults = append(r.faults, fmt.Sprintf("%s: %v", p.column, err))
	}
	r.values[p.column] = strings.Clone(v)
}

func (r *row) setMember(key, value string) {
	if r.metadata == nil {
		r.metadata = map[string]string{}
	}
	r.metadata[strings.Clone(key)] = strings.Clone(value)
}

// setMetadata takes a JSON object of strings. Unlike columns of single members it can hold empty ones.
func (r *row) setMetadata(cell string) {
	text := trim(cell)
	if text == "" {
		return
	}
	var members map[string]string
	if err := json.Unmarshal([]byte(text), &members); err != nil {
		r.faults = append(r.faults, fmt.Sprintf("%s: it must be a JSON object of texts such as {\"cost_centre\":\"7\"}", metadataColumn))
		return
	}
	for key, value := range members {
		r.setMember(key, value)
	}
}

// hasLine says whether the row holds anything of a line.
func (r *row) hasLine() bool {
	for c, spec := range columnSpecs {
		if spec.scope == ofLine && r.values[c] != "" {
			return true
		}
	}
	return r.values[colLine] != ""
}

// sameLine says whether two rows say the same of a line.
func (r *row) sameLine(other *row) bool {
	for c, spec := range columnSpecs {
		if spec.scope == ofLine && r.values[c] != other.values[c] {
			return false
		}
	}
	return true
}

func (r *row) orderLine() erpapi.Line {
	return erpapi.Line{
		SKU: r.values[colSKU], Description: r.values[colDescription], Quantity: decimalOf(r.values[colQuantity]),
		UnitPrice: decimalOf(r.values[colUnitPrice]), Discount: decimalOf(r.values[colDiscount]),
		VATRate: decimalOf(r.values[colVATRate]), VATCategory: r.values[colVATCategory],
		ExemptionReason: r.values[colExemptionReason],
	}
}

// decimalOf reads what readDecimal wrote; nil where there is nothing.
func decimalOf(text string) *erpapi.Decimal {
	if text == "" {
		return nil
	}
	d, err := erpapi.ParseDecimal(text)
	if err != nil { // a faulty cell; its order is refused
		return nil
	}
	return &d
}
