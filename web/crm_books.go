package web

// CRMDivergences lists differences between the two sides' books.
type CRMDivergences struct {
	Layout Layout
	Filter Filter
	Lines  []DivergenceLine
	Pager  Pager
	Empty  *Empty
}

// Template names the page's template.
func (CRMDivergences) Template() string { return "crm_divergences" }

// CRMReconciliations lists runs of reconciliation.
type CRMReconciliations struct {
	Layout Layout
	Run    *Action // nil for who may not
	Lines  []ReconciliationLine
	Pager  Pager
	Empty  *Empty
}

// ReconciliationLine is one run of reconciliation.
type ReconciliationLine struct {
	State    State
	Phase    string
	By       string
	From, To Time // the window
	Compared int64
	Found    int64
	Repaired int64
	Started  Time
	Finished Time
	Updated  Time
}

// Template names the page's template.
func (CRMReconciliations) Template() string { return "crm_reconciliations" }

// CRMSources lists the sources of orders.
type CRMSources struct {
	Layout Layout
	Lines  []SourceLine
	Empty  *Empty
}

// SourceLine is one source of orders with what of it is open.
type SourceLine struct {
	Source  string
	Href    string
	State   State
	Pending int64
	Working int64
	Unknown int64
	Flagged int64
	// Links lead to the operations that each number counts.
	PendingHref, WorkingHref, UnknownHref, FlaggedHref string
	Pause                                              *PausedSource
	Actions                                            []Action
}

// Template names the page's template.
func (CRMSources) Template() string { return "crm_sources" }

// CRMAudit lists what people changed by hand.
type CRMAudit struct {
	Layout Layout
	Filter Filter
	Lines  []AuditLine
	Pager  Pager
	Empty  *Empty
}

// Template names the page's template.
func (CRMAudit) Template() string { return "crm_audit" }
