package web

// CRMIntake lists what came in and was turned away.
type CRMIntake struct {
	Layout Layout
	Filter Filter
	// Full are the hours in which more was refused than is kept.
	Full  []FullHour
	Lines []RefusalLine
	Pager Pager
	Empty *Empty
}

// FullHour is an hour in which more was refused than is kept.
type FullHour struct {
	From Time
	Text string
}

// RefusalLine is one call that was turned away.
type RefusalLine struct {
	Href     string
	Received Time
	Channel  string
	Source   string
	Order    string
	Problem  Link
	Detail   string
	Errors   int
}

// Template names the page's template.
func (CRMIntake) Template() string { return "crm_intake" }

// CRMRefusal shows one call that was turned away, with the beginning of what came.
type CRMRefusal struct {
	Layout   Layout
	Received Time
	Channel  string
	Source   string
	Order    string
	OrderRef string // the page of the order, if one of that name could be there
	Problem  Link
	Detail   string
	Errors   []Fact
	Body     string
	BodyNote string // how much of it is shown
	Facts    []Fact
	Import   *Link
}

// Template names the page's template.
func (CRMRefusal) Template() string { return "crm_refusal" }

// CRMImports lists imported files.
type CRMImports struct {
	Layout Layout
	Lines  []ImportLine
	Pager  Pager
	Empty  *Empty
}

// ImportLine is one imported file.
type ImportLine struct {
	Href     string
	File     string
	State    State
	Rows     int
	Orders   int
	NotTaken int64
	Actor    string
	Started  Time
	Finished Time
}

// Template names the page's template.
func (CRMImports) Template() string { return "crm_imports" }

// CRMImport shows one imported file with its report.
type CRMImport struct {
	Layout  Layout
	Import  ImportLine
	Facts   []Fact
	Counts  []OutcomeCount
	Wrong   string // why the file was refused as a whole, or could not be taken to its end
	Rows    []ImportRowLine
	RowNote string // how many more there are
	Removed Time   // when what the rows said was removed
	Live    bool
}

// OutcomeCount is how many rows had one outcome.
type OutcomeCount struct {
	Outcome State
	Rows    int64
}

// ImportRowLine is a row that was not taken.
type ImportRowLine struct {
	Line    int64
	Order   string
	Outcome State
	Reason  string
}

// Template names the page's template.
func (CRMImport) Template() string { return "crm_import" }
