package orderfile

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"invoicebridge/internal/erpapi"
)

// exported are the columns of an order that an invoice can tell.
func exported() []column {
	return []column{
		colSource, colOrder, colCurrency, colCustomerName, colCustomerCountry, colCustomerVATID, colCustomerEmail, colCustomerAddress,
		colOrderTotal, colRole, colSequence, colIssueDate, colDueDate, colExpectedGross, colCorrects, colNote, colLine, colSKU,
		colDescription, colQuantity, colUnitPrice, colDiscount, colVATRate, colVATCategory, colExemptionReason,
	}
}

// invoiceMembers are the columns that tell of the invoice itself, less their prefix.
func invoiceMembers() []string {
	return []string{"number", "id", "status", "operation_key", "created_at", "line_net", "net", "vat", "gross", "payable"}
}

// InvoiceWriter writes invoices as CSV, a row for each line, as they come: it holds none of them. Read takes the file for one of
// the orders behind the invoices, so importing it again changes nothing where all invoices of an order are in it.
//
// The delimiter is a comma, the decimal mark a point, lines end with CR LF (RFC 4180), and all columns are always there. Texts
// that a spreadsheet would run as a formula have an apostrophe in front; numbers never have. Totals stand in the
// first row of each invoice only, so that a column's sum is the sum of the invoices.
type InvoiceWriter struct {
	out *bufio.Writer
	row []byte
}

// NewInvoiceWriter writes the header.
func NewInvoiceWriter(w io.Writer) (*InvoiceWriter, error) {
	iw := &InvoiceWriter{out: bufio.NewWriter(w)}
	var names []string
	for _, c := range exported() {
		names = append(names, c.String())
	}
	names = append(names, metadataColumn)
	for _, member := range invoiceMembers() {
		names = append(names, invoicePrefix+member)
	}
	return iw, iw.write(names)
}

// Write writes the rows of one invoice. After an error the file is cut short, and no more may be written.
func (w *InvoiceWriter) Write(inv *erpapi.Invoice) error {
	metadata := ""
	if len(inv.Metadata) > 0 {
		text, err := json.Marshal(inv.Metadata, json.Deterministic(true))
		if err != nil {
			return fmt.Errorf("write the metadata of %s: %w", inv.Number, err)
		}
		metadata = string(text)
	}
	for i := range inv.Lines {
		cells := append(orderCells(inv, i), metadata)
		if err := w.write(append(cells, memberCells(inv, i)...)); err != nil {
			return err
		}
	}
	return nil
}

// Flush writes what is held back.
func (w *InvoiceWriter) Flush() error { return w.out.Flush() }

func orderCells(inv *erpapi.Invoice, line int) (cells []string) {
	r := row{}
	v := &r.values
	v[colSource], v[colOrder], v[colCurrency] = inv.Source, inv.Order, inv.Currency
	v[colCustomerName], v[colCustomerCountry], v[colCustomerVATID] = inv.Customer.Name, inv.Customer.Country, inv.Customer.VATID
	v[colCustomerEmail], v[colCustomerAddress] = inv.Customer.Email, inv.Customer.Address
	v[colOrderTotal], v[colExpectedGross] = decimalText(inv.OrderTotal), decimalText(inv.ExpectedGross)
	v[colRole], v[colSequence] = string(inv.Role), strconv.FormatInt(inv.Sequence, 10)
	v[colIssueDate], v[colDueDate], v[colCorrects], v[colNote] = inv.IssueDate, given(inv.DueDate), given(inv.Corrects), inv.Note
	v[colLine] = strconv.Itoa(line + 1)
	r.setLine(&inv.Lines[line].Line)
	for _, c := range exported() {
		cells = append(cells, place{column: c}.cell(&r, '.'))
	}
	return cells
}

func memberCells(inv *erpapi.Invoice, line int) []string {
	cells := []string{
		withGuard(inv.Number), inv.ID, inv.Status, withGuard(inv.OperationKey), inv.CreatedAt.UTC().Format(time.RFC3339Nano), inv.Lines[line].Net,
	}
	if line > 0 {
		return append(cells, "", "", "", "")
	}
	return append(cells, inv.Net, inv.VAT, inv.Gross, inv.Payable)
}

func given(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}

// write writes one row. encoding/csv would change the line ends inside of a cell with those of the rows.
func (w *InvoiceWriter) write(cells []string) error {
	w.row = w.row[:0]
	for i, cell := range cells {
		if i > 0 {
			w.row = append(w.row, ',')
		}
		if !strings.ContainsAny(cell, ",;\"\t\r\n") && !strings.HasPrefix(cell, " ") && !strings.HasSuffix(cell, " ") {
			w.row = append(w.row, cell...)
			continue
		}
		w.row = append(w.row, '"')
		w.row = append(w.row, strings.ReplaceAll(cell, `"`, `""`)...)
		w.row = append(w.row, '"')
	}
	if _, err := w.out.Write(append(w.row, '\r', '\n')); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	return nil
}
