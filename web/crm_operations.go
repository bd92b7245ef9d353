package web

// CRMOperations lists operations.
type CRMOperations struct {
	Layout Layout
	Filter Filter
	Lines  []OperationLine
	Pager  Pager
	Cut    string // told when not all that match could be searched
	Live   bool   // the list is refreshed by itself
	Empty  *Empty
	// Replay leads to the preview of replaying all that match; ReplayNot is the disabled button with the reason. Both are nil
	// for who may not.
	Replay    *Link
	ReplayNot *Action
}

// Template names the page's template.
func (CRMOperations) Template() string { return "crm_operations" }

// CRMReplayPreview shows what a replay of many would take up, before it begins.
type CRMReplayPreview struct {
	Layout  Layout
	Matches string // what is matched, in words
	Count   string
	Lines   []OperationLine // some of them
	Start   Action
	Back    string // the list with the same filter
	Empty   *Empty // there is nothing to replay
}

// Template names the page's template.
func (CRMReplayPreview) Template() string { return "crm_replay_preview" }

// CRMReplays lists replays of many operations.
type CRMReplays struct {
	Layout Layout
	Lines  []ReplayLine
	Pager  Pager
	Empty  *Empty
}

// ReplayLine is one replay of many operations.
type ReplayLine struct {
	Href     string
	Matches  string
	State    State
	Total    string
	Queued   int
	Refused  int
	Stopped  int
	Waiting  int
	By       string
	Reason   string
	Started  Time
	Finished Time
}

// Template names the page's template.
func (CRMReplays) Template() string { return "crm_replays" }

// CRMReplay shows one replay of many operations while it goes on, and afterwards.
type CRMReplay struct {
	Layout Layout
	Replay ReplayLine
	Left   string // how many matched and were left out; empty for none
	Stop   *Action
	Items  []ReplayItemLine
	Pager  Pager
}

// ReplayItemLine is what became of one operation of a replay.
type ReplayItemLine struct {
	Position int
	Href     string
	Key      string
	Result   State
	State    State // of the operation now
	Detail   string
	Done     Time
}

// Template names the page's template.
func (CRMReplay) Template() string { return "crm_replay" }
