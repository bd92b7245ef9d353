package orderfile

import "strings"

// column is one of the known columns, metadata.<key> aside.
type column int

const (
	colSource column = iota
	colOrder
	colVersion
	colStatus
	colMessageID
	colCurrency
	colCustomerName
	colCustomerCountry
	colCustomerVATID
	colCustomerEmail
	colCustomerAddress
	colOrderTotal
	colRole
	colSequence
	colIssueDate
	colDueDate
	colExpectedGross
	colCorrects
	colNote
	colLine
	colSKU
	colDescription
	colQuantity
	colUnitPrice
	colDiscount
	colVATRate
	colVATCategory
	colExemptionReason
	columnCount
)

const (
	// metadataPrefix begins the name of a column that holds one metadata member.
	metadataPrefix = "metadata."
	// metadataColumn holds all of them, as a JSON object of strings.
	metadataColumn = "metadata"
	// invoicePrefix begins the names of columns that tell of the invoice an order was given: what InvoiceWriter adds. They
	// are known, and no part of an order.
	invoicePrefix = "invoice."
)

// kind says how the text of a cell is read.
type kind int

const (
	kindText    kind = iota // as it is
	kindCode                // trimmed
	kindID                  // trimmed, and never what a spreadsheet makes of an id
	kindInteger             // digits
	kindDecimal             // with the declared decimal mark
	kindDate                // YYYY-MM-DD
)

// scope says what a cell belongs to.
type scope int

const (
	ofOrder   scope = iota // must agree between all rows of an order
	ofInvoice              // must agree between the rows of one invoice
	ofKey                  // tells orders and invoices apart
	ofLine
)

type columnSpec struct {
	name     string
	kind     kind
	scope    scope
	required bool
}

// columnSpecs is indexed by column. Required means that the header has to name it; what a cell must hold is for the
// order's own rules to say.
var columnSpecs = [columnCount]columnSpec{
	colSource:          {"source", kindID, ofKey, true},
	colOrder:           {"order", kindID, ofKey, true},
	colVersion:         {"version", kindInteger, ofOrder, false},
	colStatus:          {"status", kindCode, ofOrder, false},
	colMessageID:       {"message_id", kindID, ofOrder, false},
	colCurrency:        {"currency", kindCode, ofOrder, true},
	colCustomerName:    {"customer_name", kindText, ofOrder, true},
	colCustomerCountry: {"customer_country", kindCode, ofOrder, true},
	colCustomerVATID:   {"customer_vat_id", kindID, ofOrder, false},
	colCustomerEmail:   {"customer_email", kindCode, ofOrder, false},
	colCustomerAddress: {"customer_address", kindText, ofOrder, false},
	colOrderTotal:      {"order_total", kindDecimal, ofOrder, false},
	colRole:            {"role", kindCode, ofKey, false},
	colSequence:        {"sequence", kindInteger, ofKey, false},
	colIssueDate:       {"issue_date", kindDate, ofInvoice, true},
	colDueDate:         {"due_date", kindDate, ofInvoice, false},
	colExpectedGross:   {"expected_gross", kindDecimal, ofInvoice, false},
	colCorrects:        {"corrects", kindID, ofInvoice, false},
	colNote:            {"note", kindText, ofInvoice, false},
	colLine:            {"line", kindInteger, ofKey, false},
	colSKU:             {"sku", kindID, ofLine, false},
	colDescription:     {"description", kindText, ofLine, false},
	colQuantity:        {"quantity", kindDecimal, ofLine, true},
	colUnitPrice:       {"unit_price", kindDecimal, ofLine, true},
	colDiscount:        {"discount", kindDecimal, ofLine, false},
	colVATRate:         {"vat_rate", kindDecimal, ofLine, false},
	colVATCategory:     {"vat_category", kindCode, ofLine, true},
	colExemptionReason: {"exemption_reason", kindText, ofLine, false},
}

// Columns are the names of all columns that a CSV file may have; "metadata.<key>" stands for any number of them, and
// "invoice.<member>" for those that are read over.
func Columns() []string {
	names := make([]string, 0, columnCount+3)
	for _, spec := range columnSpecs {
		names = append(names, spec.name)
	}
	return append(names, metadataPrefix+"<key>", metadataColumn, invoicePrefix+"<member>")
}

func (c column) String() string { return columnSpecs[c].name }

func columnByName(name string) (column, bool) {
	for c, spec := range columnSpecs {
		if spec.name == name {
			return column(c), true
		}
	}
	return 0, false
}

// metadataKey is the key that a column of metadata is about.
func metadataKey(name string) (string, bool) {
	key, found := strings.CutPrefix(name, metadataPrefix)
	return key, found && key != ""
}
