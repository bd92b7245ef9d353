package web

// OperationLine is an operation in a list. Template: {{template "crm-operations" .Lines}} for a table of them.
type OperationLine struct {
	Href   string
	Source string
	Order  string
	Role   string // "final", "partial 2"
	State  State
	// Marks are what else there is to know of its state: "needs a person", "superseded".
	Marks    []State
	Why      string // reason and detail
	Invoice  string
	Attempts int
	Created  Time
	Key      string
}

// DivergenceLine is a difference between the two sides' books. Template: {{template "crm-divergences" .Lines}}.
type DivergenceLine struct {
	ID        string // of the row on its page
	Kind      string
	State     State
	Owner     string // whose books have to be put right
	Subject   string
	Href      string // of what it is about; empty: it leads nowhere
	Ours      string
	Theirs    string
	Told      string // what was done, or has to be
	Decided   string // who accepted or closed it, and why
	FirstSeen Time
	LastSeen  Time
	Resolved  Time
	Actions   []Action
}

// VersionLine is one message that brought an order. Template: {{template "crm-versions" .Lines}}.
type VersionLine struct {
	Received  Time
	Version   string
	Channel   string
	MessageID string
	Outcome   State
	Detail    string
}

// AuditLine is one thing that somebody changed by hand. Template: {{template "crm-audit" .Lines}}.
type AuditLine struct {
	At      Time
	Actor   string
	Action  string
	Subject string
	Href    string // of the subject; empty: it leads nowhere
	Reason  string
	Way     string // "console, 192.0.2.7"
	Request string
}
