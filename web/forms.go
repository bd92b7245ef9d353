package web

// FieldType is the kind of a form's field.
type FieldType string

const (
	FieldText     FieldType = "text"
	FieldSearch   FieldType = "search"
	FieldDate     FieldType = "date"
	FieldDateTime FieldType = "datetime-local"
	FieldNumber   FieldType = "number"
	FieldSelect   FieldType = "select"
	FieldArea     FieldType = "textarea"
	FieldCheck    FieldType = "checkbox"
)

// Field is a field of a form with its label, what was typed before, and what is wrong with it.
// Template: {{template "field" .}}. Its id is made of the form's id and its name.
type Field struct {
	Form     string // id of the form; tells two forms of one page apart
	Name     string
	Label    string
	Type     FieldType // empty is text
	Value    string
	Help     string
	Error    string
	Options  []Option // of a select
	Required bool
	Wide     bool   // takes a whole row
	Hint     string // placeholder, an example
	List     string // id of a <datalist> on the page; empty for none
}

// ID is the field's id on the page.
func (f Field) ID() string { return f.Form + "-" + f.Name }

// Input is the type of an <input>.
func (f Field) Input() string {
	if f.Type == "" {
		return string(FieldText)
	}
	return string(f.Type)
}

// IsSelect says that the field has a list to choose from.
func (f Field) IsSelect() bool { return f.Type == FieldSelect }

// IsArea says that the field has several lines.
func (f Field) IsArea() bool { return f.Type == FieldArea }

// IsCheck says that the field is ticked or not. It is when Value is not empty.
func (f Field) IsCheck() bool { return f.Type == FieldCheck }

// Described is whether there is something to read about the field.
func (f Field) Described() bool { return f.Help != "" || f.Error != "" }

// Option is a choice of a select.
type Option struct{ Value, Text string }

// Options makes choices whose text is the value, after one for "any".
func Options(anyText string, values ...string) []Option {
	options := []Option{{"", anyText}}
	for _, v := range values {
		options = append(options, Option{v, words(v)})
	}
	return options
}

// Hidden is a value that a form sends without showing it.
type Hidden struct{ Name, Value string }

// Filter is a plain GET form over a list. Template: {{template "filter" .Filter}}.
type Filter struct {
	ID     string // of the form; its fields' Form
	Path   string
	Label  string // "Find invoices", for those who don't see the form
	Fields []Field
	More   []Field // behind "More filters"; opened when one has a value
	Hidden []Hidden
	Button string // empty is "Find"
	Clear  string // where the list without filters is; empty when none is set
}

// MoreOpen is whether one of the further fields is in use.
func (f Filter) MoreOpen() bool {
	for _, field := range f.More {
		if field.Value != "" || field.Error != "" {
			return true
		}
	}
	return false
}

// Pager leads through a list that is paged by keys. Template: {{template "pager" .Pager}}. Without any address it
// shows nothing but what is shown.
type Pager struct {
	First, Previous, Next string // addresses; empty: not there from here
	Shown                 string // "50 invoices, newest first"
}

// Action is a button that changes something: a POST form to a path of its own that is answered with 303 to a page, or
// with this page and the reason it was refused. Template: {{template "action" .}}.
type Action struct {
	ID        string // of the form, unique on its page; its fields' Form
	Path      string
	Button    string // a verb: "Replay"
	About     string // what it does and what it never does, one sentence
	WhyNot    string // why it is not available now; the button is disabled and says so
	AskReason bool   // asks for a reason, sent as "reason"
	Reason    string // what was typed before
	Fields    []Field
	Hidden    []Hidden
	Confirm   string // more than a button press: text of a box that has to be ticked, sent as "confirm"
	Grave     bool   // can't be taken back
	Error     string // why the last press was refused
	Open      bool   // shown opened, though it asks for something
}

// Asks is whether there is something to fill in before the button.
func (a Action) Asks() bool { return a.AskReason || len(a.Fields) > 0 || a.Confirm != "" }

// IsOpen is whether the form is shown without asking for it.
func (a Action) IsOpen() bool { return a.Open || a.Error != "" }

// ReasonField is the field for the reason.
func (a Action) ReasonField() Field {
	return Field{
		Form: a.ID, Name: "reason", Label: "Reason", Value: a.Reason, Required: true, Wide: true,
		Help: "Is written down with your name and the time, and can't be changed.",
	}
}
