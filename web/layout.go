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

// Flash is a message about the last action, shown once.
type Flash struct {
	Text    string
	Refused bool  // it was not carried out, and nothing has changed
	Link    *Link // where to look next; nil if it is here
}

// Role is how a screen reader takes the message: a refusal interrupts, the rest waits its turn.
func (f Flash) Role() string {
	if f.Refused {
		return "alert"
	}
	return "status"
}
