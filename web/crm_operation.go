package web

// CRMOperation shows one operation with everything that is known of it.
type CRMOperation struct {
	Layout Layout
	Source string
	Order  string
	Role   string
	Key    string
	State  State
	Marks  []State
	// Standing says in a sentence where it stands and what comes next.
	Standing string
	Live     bool
	Facts    []Fact
	Moments  []NamedTime
	Invoice  string
	OrderRef Link
	Related  []Link // what it supersedes, what it is superseded by
	Pause    *PausedSource
	Actions  []Action // none for who may not

	Proposal *ResolutionView

	// Attempts are the tries, Waits those that the ERP told to come back later, which use up none.
	Attempts []AttemptLine
	Waits    []AttemptLine
	Purged   string // told when attempts are no longer kept

	// Silent says why the ERP's view is not there.
	Silent   string
	Views    Compare
	Verdict  string // what the comparison comes to, in a sentence
	Differs  bool
	Asked    Time
	Findings []DivergenceLine
	Audit    []AuditLine
	Versions []VersionLine

	Request     string
	RequestHash string
	Minimised   Time
}

// NamedTime is a time with its heading.
type NamedTime struct {
	Heading string
	At      Time
}

// AttemptLine is one try at delivering an operation.
type AttemptLine struct {
	Number   int
	Started  Time
	Outcome  State
	Status   string // of HTTP
	Problem  string
	Duration string
	Detail   string
	Worker   string
}

// ResolutionView is what somebody says became of an operation, and what the viewer can do about it.
type ResolutionView struct {
	Href      string // of the operation
	Key       string
	State     State
	Verdict   string
	Invoice   string
	Evidence  string
	Reason    string
	By        string
	At        Time
	Decided   string // who decided, and why
	DecidedAt Time
	ERPSaid   string
	Actions   []Action
}

// Template names the page's template.
func (CRMOperation) Template() string { return "crm_operation" }

// CRMResolutions lists what people said became of operations that are unknown.
type CRMResolutions struct {
	Layout Layout
	Filter Filter
	List   []ResolutionView
	Pager  Pager
	Empty  *Empty
}

// Template names the page's template.
func (CRMResolutions) Template() string { return "crm_resolutions" }
