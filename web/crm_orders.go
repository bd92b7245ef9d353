package web

// CRMOrder shows one order with its versions and operations.
type CRMOrder struct {
	Layout     Layout
	Source     string
	Order      string
	State      State
	Version    string
	Created    Time
	Updated    Time
	Minimised  Time
	Lines      []OperationLine
	Versions   []VersionLine
	Findings   []DivergenceLine
	Content    string
	ByHand     *Link // write a newer version by hand; nil for who may not
	NoneWanted string
}

// Template names the page's template.
func (CRMOrder) Template() string { return "crm_order" }

// CRMNewOrder is the form for an invoice by hand.
type CRMNewOrder struct {
	Layout Layout
	// Wrong are the mistakes that belong to no field.
	Wrong  []string
	Fields []Field
	Lines  []LineFields
	Totals []Field
	Reason Field
	// Expert is the form's text area for an order as JSON; nil for the plain form.
	Expert *Field
	Other  Link // to the other of the two forms
}

// LineFields are the fields of one line.
type LineFields struct {
	Number int
	Fields []Field
}

// Template names the page's template.
func (CRMNewOrder) Template() string { return "crm_new_order" }
