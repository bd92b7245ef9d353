package auth

import "fmt"

// Role is what a token or a person may do.
type Role string

// The roles of tokens.
const (
	RoleReader  Role = "reader"  // sees
	RoleWriter  Role = "writer"  // sees, submits and issues
	RoleMetrics Role = "metrics" // sees the figures of the service and nothing else
)

// The roles of people.
const (
	RoleViewer   Role = "viewer"   // sees
	RoleOperator Role = "operator" // sees, submits, issues and repairs
)

// RoleAdmin is a role of tokens and of people: all that belongs to the tenant.
const RoleAdmin Role = "admin"

// holds are the permissions of a role; a role that is not known has none.
func (r Role) holds() Permission {
	switch r {
	case RoleReader, RoleViewer:
		return MayRead
	case RoleWriter:
		return MayRead | MayWrite
	case RoleOperator:
		return MayRead | MayWrite | MayOperate
	case RoleAdmin:
		return MayRead | MayWrite | MayOperate | MayAdminister
	case RoleMetrics:
		return MayScrape
	}
	return 0
}

// May says whether the role holds a permission.
func (r Role) May(p Permission) bool { return p.in(r.holds()) }

// ParseTokenRole reads the name of a token's role.
func ParseTokenRole(text string) (Role, error) {
	switch r := Role(text); r {
	case RoleReader, RoleWriter, RoleAdmin, RoleMetrics:
		return r, nil
	}
	return "", fmt.Errorf("%q is no role of a token: reader, writer, admin or metrics", text)
}

// ParseAccountRole reads the name of a person's role.
func ParseAccountRole(text string) (Role, error) {
	switch r := Role(text); r {
	case RoleViewer, RoleOperator, RoleAdmin:
		return r, nil
	}
	return "", fmt.Errorf("%q is no role of a person: viewer, operator or admin", text)
}
