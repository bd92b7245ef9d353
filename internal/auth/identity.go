package auth

import "github.com/google/uuid"

// Identity is who calls: a machine with a token, a person with a token of their own, or a person after log-in.
type Identity struct {
	Tenant string
	// TokenID is the token that the request was made with; empty after log-in.
	TokenID string
	// Role is the token's, or the person's after log-in.
	Role Role
	// Account is the person's account; nil for a machine.
	Account uuid.UUID
	// Name is the person's log-in name, DisplayName what they are called.
	Name, DisplayName string
	// PersonRole is the role of the person whose own the token is. Such a token may do what both may.
	PersonRole Role
	// Service: the person also has what concerns all tenants at once, MayScrape and MayQueue.
	Service bool
}

// May says whether the caller holds a permission. A token of a person's own never has more than the person.
func (i Identity) May(p Permission) bool {
	switch {
	case i.TokenID == "":
		return i.Account != uuid.Nil && p.in(i.Role.holds()|i.serviceHolds())
	case i.Account == uuid.Nil:
		return i.Role.May(p)
	}
	return i.Role.May(p) && p.in(i.PersonRole.holds()|i.serviceHolds())
}

func (i Identity) serviceHolds() Permission {
	if i.Service {
		return ofService
	}
	return 0
}

// Actor names the caller for the audit: a person by their log-in name, a machine by its token's id.
func (i Identity) Actor() string {
	if i.Account != uuid.Nil {
		return i.Name
	}
	return i.TokenID
}

// Zero says that nobody is known.
func (i Identity) Zero() bool { return i == Identity{} }
