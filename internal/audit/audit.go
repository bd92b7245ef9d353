// Package audit says who changes something by hand. What was done is written, in the transaction that does it, to the
// table audit_entries, which nothing updates or deletes.
package audit

import "github.com/google/uuid"

// Via is the way by which somebody acts.
type Via string

// The ways.
const (
	ViaCLI     Via = "cli"     // a command on a machine that has the database's address
	ViaAPI     Via = "api"     // a request with a bearer token
	ViaConsole Via = "console" // a page, after log-in
)

// By is who acts, why, and from where.
type By struct {
	// Actor is a person's log-in name, or else a token's id, or the user of the command line.
	Actor  string
	Reason string
	// Via is ViaCLI where it is left empty.
	Via Via
	// Address is the caller's network address and RequestID the request's id, where there is a request.
	Address, RequestID string
	// Account is the account of the person who acts: in a console, or with a token that is a person's own. Nil: no
	// person is known, which is not enough for what needs a second one.
	Account uuid.UUID
}

// Way is Via, or ViaCLI if that is empty.
func (b By) Way() string {
	if b.Via == "" {
		return string(ViaCLI)
	}
	return string(b.Via)
}

// AccountID is Account, or nil if no person is known.
func (b By) AccountID() *uuid.UUID {
	if b.Account == uuid.Nil {
		return nil
	}
	return &b.Account
}
