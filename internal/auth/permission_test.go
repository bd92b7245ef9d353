package auth_test

import (
	"testing"

	"github.com/google/uuid"

	"invoicebridge/internal/auth"
)

// What each role holds, written down once more, by hand: a letter for each of Permissions, in their order.
func TestRolesHoldWhatTheTableSays(t *testing.T) {
	t.Parallel()
	for role, want := range map[auth.Role]string{
		"": "------", "root": "------", "Admin": "------",
		auth.RoleReader: "r-----", auth.RoleWriter: "rw----", auth.RoleAdmin: "rwoa--", auth.RoleMetrics: "----s-",
		auth.RoleViewer: "r-----", auth.RoleOperator: "rwo---",
	} {
		if got := held(role.May); got != want {
			t.Errorf("%q holds %s, want %s", role, got, want)
		}
	}
}

func held(may func(auth.Permission) bool) string {
	letters := []byte("rwoasq")
	for i, p := range auth.Permissions() {
		if !may(p) {
			letters[i] = '-'
		}
	}
	return string(letters)
}

func TestNobodyHoldsTheEmptyPermissionAndAllOfSeveralIsNeeded(t *testing.T) {
	t.Parallel()
	if auth.RoleAdmin.May(0) || (auth.Identity{Account: uuid.New(), Role: auth.RoleAdmin, Service: true}).May(0) {
		t.Error("a route that forgot to ask for a permission would be open")
	}
	if auth.RoleReader.May(auth.MayRead|auth.MayWrite) || !auth.RoleWriter.May(auth.MayRead|auth.MayWrite) {
		t.Error("one of two permissions is not both")
	}
}

func TestPersonalTokenHasNoMoreThanBothItsRoleAndThePerson(t *testing.T) {
	t.Parallel()
	person := uuid.New()
	for name, c := range map[string]struct {
		who  auth.Identity
		want string
	}{
		"nobody":                     {auth.Identity{}, "------"},
		"nobody with a role":         {auth.Identity{Role: auth.RoleAdmin}, "------"},
		"machine":                    {auth.Identity{TokenID: "t", Role: auth.RoleAdmin}, "rwoa--"},
		"machine for figures":        {auth.Identity{TokenID: "t", Role: auth.RoleMetrics}, "----s-"},
		"operator":                   {auth.Identity{Account: person, Role: auth.RoleOperator}, "rwo---"},
		"viewer of the service":      {auth.Identity{Account: person, Role: auth.RoleViewer, Service: true}, "r---sq"},
		"admin token of an operator": {auth.Identity{TokenID: "t", Account: person, Role: auth.RoleAdmin, PersonRole: auth.RoleOperator}, "rwo---"},
		"reader token of an admin":   {auth.Identity{TokenID: "t", Account: person, Role: auth.RoleReader, PersonRole: auth.RoleAdmin}, "r-----"},
		"token without its person":   {auth.Identity{TokenID: "t", Account: person, Role: auth.RoleAdmin}, "------"},
		"figures without service":    {auth.Identity{TokenID: "t", Account: person, Role: auth.RoleMetrics, PersonRole: auth.RoleAdmin}, "------"},
		"figures with service":       {auth.Identity{TokenID: "t", Account: person, Role: auth.RoleMetrics, PersonRole: auth.RoleViewer, Service: true}, "----s-"},
	} {
		if got := held(c.who.May); got != c.want {
			t.Errorf("%s holds %s, want %s", name, got, c.want)
		}
	}
}

func TestRoleOfATokenIsNoRoleOfAPerson(t *testing.T) {
	t.Parallel()
	for role, want := range map[string][2]bool{
		"reader": {true, false}, "writer": {true, false}, "metrics": {true, false}, "admin": {true, true},
		"viewer": {false, true}, "operator": {false, true}, "": {}, "ADMIN": {}, "root": {},
	} {
		_, token := auth.ParseTokenRole(role)
		_, account := auth.ParseAccountRole(role)
		if got := [2]bool{token == nil, account == nil}; got != want {
			t.Errorf("%q is a role of tokens, of people: %v, want %v", role, got, want)
		}
	}
}
