package web

// publicPages are those that both services have.
func publicPages() []Page {
	return []Page{Home{}, ProblemIndex{}, Problem{}, Reference{}, Login{}, Fault{}}
}

// Home says what the service is.
type Home struct {
	Layout Layout
	Lead   string
	Facts  []Fact
	Links  []Link
}

// Template implements Page.
func (Home) Template() string { return "home" }

// ProblemIndex lists all problem types.
type ProblemIndex struct {
	Layout   Layout
	Problems []ProblemLine
}

// Template implements Page.
func (ProblemIndex) Template() string { return "problems" }

// ProblemLine is one problem type in the index.
type ProblemLine struct {
	Href, Slug, Title string
	Status            int
	SameKey           string
}

// Problem explains one problem type to whoever met it.
type Problem struct {
	Layout  Layout
	Slug    string
	Title   string
	Status  int
	Means   string
	When    []string
	SameKey string
	Next    []string
	Members []Fact // extension members of the document
	Example string
}

// Template implements Page.
func (Problem) Template() string { return "problem" }

// Reference is the page that shows the contract. Its scripts are served beside it, and the last one starts them.
type Reference struct {
	Layout  Layout
	Scripts []string
	Styles  []string
}

// Template implements Page.
func (Reference) Template() string { return "reference" }

// Login is the log-in page.
type Login struct {
	Layout     Layout
	Name       string // what was typed the last time
	Next       string // a local path to go to after the log-in, checked by whoever fills it
	Error      string // why the last try failed; empty at the first
	RetryAfter string // how long to wait after too many tries, as a person says it ("2 minutes"); empty if not at all
	Password   bool   // whether people log in by name and password
	OIDC       *Link  // the button that leads to the identity provider; nil without one
}

// Template implements Page.
func (Login) Template() string { return "login" }

// Fault is the page that a person gets instead of what was asked for.
type Fault struct {
	Layout     Layout // its Title is what happened, in a few words
	Status     int
	Happened   string   // what happened, one or two sentences
	Next       []string // what to do next
	Links      []Link   // where to go from here
	Problem    *Link    // the page of the problem's type, for whoever wants to know more
	RequestID  string   // what to tell whoever looks into it
	RetryAfter string   // how long to wait, as a person says it; empty if waiting does not help
}

// Template implements Page.
func (Fault) Template() string { return "fault" }
