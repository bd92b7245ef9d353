package web

// CRMDashboard shows at a glance whether anything on the CRM side needs a person.
type CRMDashboard struct {
	Layout   Layout
	At       Time
	Attend   []Tile // what wants a person
	States   []Tile
	Work     []Tile // what is moving
	Activity Plot
	// Paused are the sources whose deliveries are held back.
	Paused []PausedSource
	Empty  *Empty // shown instead of the plot while nothing has come in yet
}

// PausedSource is a source whose deliveries are held back.
type PausedSource struct {
	Source string
	Href   string
	By     string
	Reason string
	Since  Time
}

// Template names the page's template.
func (CRMDashboard) Template() string { return "crm_dashboard" }
