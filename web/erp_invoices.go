package web

// ERPInvoices is the list of invoices, with what they come to.
type ERPInvoices struct {
	Layout   Layout
	Filter   Filter
	Sums     []SumLine
	SumsNote string // why there are none, or what stands behind them
	Lines    []InvoiceLine
	Export   string // address of the file with all that fit; empty without any
	Pager    Pager
	Empty    *Empty
}

// Template implements Page.
func (ERPInvoices) Template() string { return "erp_invoices" }

// SumLine is what the invoices, or the credit notes, or both of one currency come to.
type SumLine struct {
	What            string
	Count           int64
	Net, VAT, Gross Money
	Total           bool // the last line of its currency
}

// InvoiceLine is an invoice in a list.
type InvoiceLine struct {
	Href     string
	Number   string
	Role     string
	Source   string
	Order    string
	Customer string
	Issued   string // the day
	Net      Money
	VAT      Money
	Gross    Money
	Created  Time
}

// ERPInvoice is one invoice, as a document and with its story.
type ERPInvoice struct {
	Layout   Layout
	Document InvoiceDocument
	// Related are the invoices that it corrects or that correct it.
	Related       []RelatedInvoice
	Registrations []RegistrationLine
	Facts         []Fact // what is not for the customer: key, reservation
	Search        Link   // the other invoices of its order
	Moments       []Moment
}

// Template implements Page.
func (ERPInvoice) Template() string { return "erp_invoice" }

// InvoiceDocument is what the customer sees of an invoice.
type InvoiceDocument struct {
	Number   string
	Kind     string // "Invoice", "Credit note"
	State    State
	Seller   string
	Customer Party
	Facts    []Fact
	Lines    []DocumentLine
	Groups   []VATLine
	Net      Money
	VAT      Money
	Gross    Money
	Payable  Money
	Note     string
	Metadata []Fact
}

// Party is who is named on an invoice.
type Party struct{ Name, Address, Country, VATID, Email string }

// DocumentLine is a line of an invoice.
type DocumentLine struct {
	Position         int
	SKU, Description string
	Quantity, Rate   string
	// UnitPrice and Discount may have more decimals than the currency, and say it nowhere: the document's sums do.
	UnitPrice, Discount, Net Money
}

// VATLine is the VAT of one category and rate.
type VATLine struct {
	Category, Rate, Reason string
	Net, VAT               Money
}

// RelatedInvoice is an invoice that is tied to another.
type RelatedInvoice struct {
	How   string // "Corrects", "Credited by"
	Href  string
	Text  string
	Gross Money // with At, left out where the other one's page tells it
	At    Time
}
