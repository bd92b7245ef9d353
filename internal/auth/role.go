package auth

import "fmt"

// Role is what a token may do. Each role includes those before it.
type Role string

// The roles.
const (
	RoleReader Role = "reader" // sees
	RoleWriter Role = "writer" // sees, submits and issues
	RoleAdmin  Role = "admin"  // all that, and repairs
)

// rank is 0 for what is no role: it allows nothing.
func (r Role) rank() int {
	switch r {
	case RoleReader:
		return 1
	case RoleWriter:
		return 2
	case RoleAdmin:
		return 3
	}
	return 0
}

// Allows says whether a token with role r may do what needs the role wanted. An unknown role allows nothing and is
// allowed to nobody.
func (r Role) Allows(wanted Role) bool {
	return wanted.rank() > 0 && r.rank() >= wanted.rank()
}

// ParseRole reads a role's name.
func ParseRole(text string) (Role, error) {
	if r := Role(text); r.rank() > 0 {
		return r, nil
	}
	return "", fmt.Errorf("%q is not a role: reader, writer or admin", text)
}
