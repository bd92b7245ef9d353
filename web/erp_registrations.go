package web

// ERPRegistrations lists registrations at targets.
type ERPRegistrations struct {
	Layout Layout
	Tiles  []Tile
	Filter Filter
	Lines  []RegistrationLine
	Pager  Pager
	Empty  *Empty
}

// Template implements Page.
func (ERPRegistrations) Template() string { return "erp_registrations" }

// RegistrationLine is a registration in a list. Template: {{template "erp-registrations" .Lines}} for a table of them.
type RegistrationLine struct {
	Href        string
	InvoiceHref string
	Invoice     string
	Target      string
	State       State
	Flag        *State // a person has to look
	Why         string
	Reference   string
	Attempts    int64
	Next        Time
	Created     Time
}

// ERPRegistration is one registration with its attempts.
type ERPRegistration struct {
	Layout     Layout
	State      State
	Flag       *State
	Invoice    Link
	Target     string
	TargetHref string
	Facts      []Fact
	Times      []TimeFact
	Detail     string // the target's own words
	Warnings   []string
	Actions    []Action
	Attempts   []RegistrationAttemptLine
	NoAttempts *Empty
}

// Template implements Page.
func (ERPRegistration) Template() string { return "erp_registration" }

// TimeFact is a time with its heading.
type TimeFact struct {
	Heading string
	At      Time
}

// RegistrationAttemptLine is one exchange with a target.
type RegistrationAttemptLine struct {
	Number  int64
	What    string // "sent", "asked"
	Started Time
	Took    string
	Outcome State
	Status  string
	Detail  string
	Worker  string
}

// ERPTargets lists the external services.
type ERPTargets struct {
	Layout Layout
	Lines  []TargetLine
	Empty  *Empty
}

// Template implements Page.
func (ERPTargets) Template() string { return "erp_targets" }

// TargetLine is an external service with what is open there.
type TargetLine struct {
	ID         string
	Kind       string
	Address    string
	Credential string
	Can        []string
	State      State
	Pause      *PausedSource
	Pending    int64
	Processing int64
	Unknown    int64
	Flagged    int64
	// Where each number leads.
	PendingHref, ProcessingHref, UnknownHref, FlaggedHref string
	Oldest                                                Time
	Actions                                               []Action
}

// ERPDivergences lists where the books here and at the targets differ, and the comparisons that found it.
type ERPDivergences struct {
	Layout Layout
	Filter Filter
	Lines  []DivergenceLine
	Pager  Pager
	Empty  *Empty
	Run    *Action // nil for who may not
	Runs   []ReconciliationLine
	NoRuns *Empty
}

// Template implements Page.
func (ERPDivergences) Template() string { return "erp_divergences" }
