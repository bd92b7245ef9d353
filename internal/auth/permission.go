package auth

import "strings"

// Permission is something that one may or may not do. Every route asks for one; roles hold some of them.
type Permission uint8

// The permissions. None includes another: what a role holds is written down in full.
const (
	// MayRead: see what belongs to the tenant.
	MayRead Permission = 1 << iota
	// MayWrite: submit orders, issue invoices, also by hand.
	MayWrite
	// MayOperate: replay, cancel, revise, resolve, pause, reconcile, close divergences.
	MayOperate
	// MayAdminister: see and revoke tokens.
	MayAdminister
	// MayScrape: read the figures of the whole service, across tenants.
	MayScrape
	// MayQueue: see and work the queue of the whole service, across tenants.
	MayQueue
)

// ofService are the permissions that concern all tenants at once. No role of people holds them; an account with
// service access does, whatever its role.
const ofService = MayScrape | MayQueue

// Permissions are all permissions, in their order.
func Permissions() []Permission {
	return []Permission{MayRead, MayWrite, MayOperate, MayAdminister, MayScrape, MayQueue}
}

// String says what a permission is for, as the end of "the permission to".
func (p Permission) String() string {
	var names []string
	for i, name := range []string{"read", "write", "operate", "administer", "read the figures of the service", "work the queue"} {
		if p&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return strings.Join(names, " and ")
}

// in says whether the whole of p is among the permissions held. The empty permission is held by nobody: a route that
// forgot to ask for one is open to no one.
func (p Permission) in(held Permission) bool { return p != 0 && p&held == p }
