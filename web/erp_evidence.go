package web

// ERPConflicts lists requests that came with a used key and other content.
type ERPConflicts struct {
	Layout Layout
	Filter Filter
	Lines  []ConflictLine
	Pager  Pager
	Empty  *Empty
}

// Template implements Page.
func (ERPConflicts) Template() string { return "erp_conflicts" }

// ConflictLine is one such request.
type ConflictLine struct {
	At          Time
	Key         string
	Caller      string // what the token is called
	Token       string // its id
	Differences []string
	Invoice     Link // the one that has the key; empty if there is none
}

// ERPAudit lists what people did.
type ERPAudit struct {
	Layout Layout
	Filter Filter
	Lines  []AuditLine
	Pager  Pager
	Empty  *Empty
}

// Template implements Page.
func (ERPAudit) Template() string { return "erp_audit" }

// ERPTokens lists who may call the API.
type ERPTokens struct {
	Layout Layout
	New    *NewToken
	Make   Action
	Lines  []TokenLine
	Empty  *Empty
}

// Template implements Page.
func (ERPTokens) Template() string { return "erp_tokens" }

// NewToken is a token that was just made. Its text is shown this once.
type NewToken struct{ ID, Label, Text string }

// TokenLine is one token.
type TokenLine struct {
	ID      string
	Label   string
	Role    string
	Owner   string
	State   State
	Created Time
	Revoked Time
	Actions []Action
}
