package auth

import (
	"errors"
	"fmt"
	"regexp"
	"time"

	"github.com/google/uuid"
)

// Account is a person as kept.
type Account struct {
	ID     uuid.UUID
	Tenant string
	// Name is what the person logs in with, unique in the whole service.
	Name        string
	DisplayName string
	Role        Role
	// Service: the person also has what concerns all tenants at once, the queue and the figures.
	Service bool
	// PasswordHash is argon2id in PHC string form; empty: logs in by OIDC only.
	PasswordHash string
	// Issuer and Subject are who this is at the OIDC provider; empty until the first log-in by it.
	Issuer, Subject string
	CreatedAt       time.Time
	DisabledAt      *time.Time
}

// Identity is the person after log-in.
func (a Account) Identity() Identity {
	return Identity{
		Tenant: a.Tenant, Role: a.Role, Account: a.ID, Name: a.Name, DisplayName: a.DisplayName, Service: a.Service,
	}
}

// What accounts can meet.
var (
	ErrAccountUnknown  = errors.New("no such account")
	ErrAccountExists   = errors.New("account exists already")
	ErrAccountDisabled = errors.New("account is disabled")
)

var accountForm = regexp.MustCompile(`^[a-z0-9][a-z0-9._+@-]{0,253}$`)

// check says what is wrong with an account that is to be made.
func (a Account) check() error {
	if !accountForm.MatchString(a.Name) {
		return fmt.Errorf("account %q: a log-in name has 1 to 254 of a-z, 0-9, . _ + @ and -, and begins with a letter or a digit", a.Name)
	}
	if _, err := ParseAccountRole(string(a.Role)); err != nil {
		return err
	}
	return checkLabel("display name", a.DisplayName)
}
