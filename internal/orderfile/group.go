package orderfile

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"golang.org/x/text/unicode/norm"
)

// grouper joins the rows of a file into orders.
type grouper struct {
	file   *File
	orders map[orderKey]*orderRows
	order  []*orderRows // in the order of their first rows
	last   *orderRows
}

type orderKey struct{ source, id string }

// orderRows are the rows of one order.
type orderRows struct {
	key      orderKey // as first written
	rows     []int    // indexes of File.Rows
	copies   []int
	faults   map[int][]string // by index of the row that is at fault
	members  merged           // what belongs to the order
	invoices []*invoiceRows
	roleLine int // the first row's line, and whether that row names a role
	hasRole  bool
}

// invoiceRows are the rows of one role and sequence of an order.
type invoiceRows struct {
	role, sequence string // the sequence with its default, for comparing
	members        merged
	lines          []lineRow
	numbered       map[string]int // line number to index of lines
	rows, bare     int            // all rows; those without a line
}

type lineRow struct {
	row
	index int // of File.Rows
}

func newGrouper(file *File) *grouper {
	return &grouper{file: file, orders: map[orderKey]*orderRows{}}
}

// add takes a row to its order. A faulty row still names its order where it can: the order is refused with it, since
// an order without one of its lines is another order.
func (g *grouper) add(r row) {
	index := len(g.file.Rows)
	g.file.Rows = append(g.file.Rows, Row{Line: r.line, Source: r.values[colSource], Order: r.values[colOrder]})
	if r.values[colSource] == "" || r.values[colOrder] == "" {
		g.refuseNameless(index, r)
		return
	}
	key := orderKey{norm.NFC.String(r.values[colSource]), norm.NFC.String(r.values[colOrder])}
	o := g.orders[key]
	if o == nil {
		o = &orderRows{
			key: orderKey{r.values[colSource], r.values[colOrder]}, members: merged{}, faults: map[int][]string{},
			roleLine: r.line, hasRole: r.values[colRole] != "",
		}
		g.orders[key] = o
		g.order = append(g.order, o)
	}
	g.last = o
	o.rows = append(o.rows, index)
	o.fault(index, r.faults...)
	o.add(r, index)
}

// refuseNameless refuses a row that names no order, and the order of the row before: files that leave the id out of
// later rows mean that one.
func (g *grouper) refuseNameless(index int, r row) {
	g.file.Rows[index].Outcome = Refused
	g.file.Rows[index].Reason = strings.Join(r.faults, "; ")
	if g.last != nil {
		g.last.fault(g.last.rows[len(g.last.rows)-1],
			fmt.Sprintf("the next row (line %d) names no order and may be a line of this one", r.line))
	}
}

func (o *orderRows) fault(index int, reasons ...string) {
	if len(reasons) > 0 {
		o.faults[index] = append(o.faults[index], reasons...)
	}
}

func (o *orderRows) add(r row, index int) {
	if named := r.values[colRole] != ""; named != o.hasRole {
		o.fault(index, fmt.Sprintf("either all rows of an order name a role or none does, and line %d is otherwise", o.roleLine))
	}
	o.fault(index, o.members.take(&r, ofOrder)...)
	o.fault(index, o.members.takeMetadata(&r)...)
	inv := o.invoice(&r)
	o.fault(index, inv.members.take(&r, ofInvoice)...)
	o.addLine(inv, r, index)
}

func (o *orderRows) invoice(r *row) *invoiceRows {
	role, sequence := r.values[colRole], r.values[colSequence]
	if sequence == "" {
		sequence = "1"
	}
	for _, inv := range o.invoices {
		if inv.role == role && inv.sequence == sequence {
			return inv
		}
	}
	inv := &invoiceRows{role: role, sequence: sequence, members: merged{}, numbered: map[string]int{}}
	inv.members.set(colRole, role, r.line)
	inv.members.set(colSequence, r.values[colSequence], r.line)
	o.invoices = append(o.invoices, inv)
	return inv
}

// addLine adds the row's line to its invoice. Without line numbers every row is a line of its own, equal ones too:
// two equal lines are an honest thing to sell. With numbers a row can be told from a copy of it.
func (o *orderRows) addLine(inv *invoiceRows, r row, index int) {
	inv.rows++
	if !r.hasLine() {
		inv.bare++
	}
	if inv.bare > 0 && inv.rows > 1 {
		o.fault(index, "of several rows of an invoice each must hold a line (quantity, unit_price ...)")
	}
	if !r.hasLine() {
		return
	}
	number := r.values[colLine]
	if len(inv.lines) > 0 && (number == "") != (inv.lines[0].values[colLine] == "") {
		o.fault(index, fmt.Sprintf("either all rows of an invoice number their line or none does, and line %d of the file is otherwise", inv.lines[0].line))
		return
	}
	if i, known := inv.numbered[number]; known && number != "" {
		if earlier := &inv.lines[i]; earlier.sameLine(&r) {
			o.copies = append(o.copies, index)
		} else {
			o.fault(index, fmt.Sprintf("line number %s of this invoice stands in line %d of the file with other content", number, earlier.line))
		}
		return
	}
	inv.numbered[number] = len(inv.lines)
	r.metadata, r.faults = nil, nil // told already
	inv.lines = append(inv.lines, lineRow{row: r, index: index})
}

// merged are values on which several rows have to agree, each with the line that first told it.
type merged map[place]told

type told struct {
	value string
	line  int
}

func (m merged) set(c column, value string, line int) {
	if value != "" {
		m[place{column: c}] = told{value, line}
	}
}

func (m merged) value(c column) string { return m[place{column: c}].value }

// take adds the row's values of a scope and says which of them contradict an earlier row.
func (m merged) take(r *row, s scope) (faults []string) {
	for c, spec := range columnSpecs {
		if spec.scope == s {
			faults = m.agree(faults, place{column: column(c)}, spec.name, r.values[c], r.line)
		}
	}
	return faults
}

func (m merged) takeMetadata(r *row) (faults []string) {
	for _, key := range slices.Sorted(maps.Keys(r.metadata)) {
		p := place{column: columnCount, metadata: key}
		if _, known := m[p]; !known {
			m[p] = told{r.metadata[key], r.line} // an empty one, too: it was given
		}
		faults = m.agree(faults, p, metadataPrefix+key, r.metadata[key], r.line)
	}
	return faults
}

func (m merged) agree(faults []string, p place, name, value string, line int) []string {
	earlier, known := m[p]
	switch {
	case value == "":
	case !known:
		m[p] = told{value, line}
	case earlier.value != value:
		return append(faults, fmt.Sprintf("%s is not the same as in line %d, and belongs to the order or invoice as a whole", name, earlier.line))
	}
	return faults
}
