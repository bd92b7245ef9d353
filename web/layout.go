package web

// Layout is what stands around every page.
type Layout struct {
	Title   string // of the page, the most telling word first: "ERP-2026-000017" and not "Invoice ERP-2026-000017"
	Service string // whose page it is
	Nav     []Link
	Here    string // the Href of Nav that the page belongs to
	User    *User  // nil when nobody is logged in
	LogIn   string // where to log in, shown when nobody is; empty hides it
	Flash   *Flash // what the last form came to; nil if nothing was sent
}

// Link is an address with its text and what is found there.
type Link struct{ Href, Text, About string }

// User is who is logged in.
type User struct {
	Name        string // log-in name
	DisplayName string
	Tenant      string
	Role        string
}

// FlashKind says how an action ended.
type FlashKind string

const (
	FlashDone    FlashKind = "done"    // it was carried out
	FlashRefused FlashKind = "refused" // it was not, and nothing has changed
	FlashNote    FlashKind = "note"    // something to know, for example that somebody else was quicker
)

// Flash is a message about the last action, shown once.
type Flash struct {
	Kind FlashKind // empty is FlashNote
	Text string
	Link *Link // where to look next; nil if it is here
}

// Role is how a screen reader takes the message: a refusal interrupts, the rest waits its turn.
func (f Flash) Role() string {
	if f.Kind == FlashRefused {
		return "alert"
	}
	return "status"
}

// Class is the message's style.
func (f Flash) Class() string {
	switch f.Kind {
	case FlashDone, FlashRefused:
		return string(f.Kind)
	}
	return string(FlashNote)
}
