package auth

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"time"
	"unicode/utf8"

	"invoicebridge/internal/audit"
)

// Tenant is a company whose data is kept apart.
type Tenant struct {
	ID        string
	Name      string
	CreatedAt time.Time
}

// AuditEntry says who did what, to what, why and from where.
type AuditEntry struct {
	Tenant, Action, Subject string
	By                      audit.By
}

// What administration can meet.
var (
	ErrTenantUnknown = errors.New("no such tenant")
	ErrTenantExists  = errors.New("tenant exists already")
)

// AdminStore begins transactions on the tables of tenants, tokens and audit entries.
type AdminStore interface {
	// InTx runs do in a transaction: committed if do returns nil, else rolled back.
	InTx(ctx context.Context, do func(AdminTx) error) error
}

// AdminTx is what administration does within a transaction.
type AdminTx interface {
	InsertTenant(ctx context.Context, id, name string) (inserted bool, err error)
	GetTenant(ctx context.Context, id string) (Tenant, error) // ErrTenantUnknown
	ListTenants(ctx context.Context) ([]Tenant, error)
	InsertToken(ctx context.Context, t Token) error
	ListTokens(ctx context.Context, tenant string) ([]Token, error)
	RevokeToken(ctx context.Context, tenant, id string) (revoked bool, err error)
	InsertAuditEntry(ctx context.Context, e AuditEntry) error
	AccountTx
}

// Admin makes and revokes tokens and makes tenants. Each action and its audit entry are one transaction.
type Admin struct{ store AdminStore }

// NewAdmin makes an Admin on a store.
func NewAdmin(store AdminStore) *Admin { return &Admin{store: store} }

var tenantForm = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,62}$`)

// CreateTenant makes a tenant; ErrTenantExists if its id is taken.
func (a *Admin) CreateTenant(ctx context.Context, id, name string, by audit.By) error {
	if !tenantForm.MatchString(id) {
		return fmt.Errorf("tenant %q: an id has 1 to 63 of a-z, 0-9 and -, and does not begin with -", id)
	}
	if err := checkLabel("name", name); err != nil {
		return err
	}
	return a.store.InTx(ctx, func(tx AdminTx) error {
		inserted, err := tx.InsertTenant(ctx, id, name)
		if err != nil {
			return fmt.Errorf("insert tenant: %w", err)
		}
		if !inserted {
			return fmt.Errorf("tenant %q: %w", id, ErrTenantExists)
		}
		return writeAudit(ctx, tx, by, AuditEntry{Tenant: id, Action: "tenant.create", Subject: id})
	})
}

// ListTenants gives all tenants by id.
func (a *Admin) ListTenants(ctx context.Context) (tenants []Tenant, err error) {
	err = a.store.InTx(ctx, func(tx AdminTx) error {
		tenants, err = tx.ListTenants(ctx)
		return err
	})
	return tenants, err
}

// CreateToken makes a machine's token for a tenant and returns its id and its text. The text can't be had again. A token
// with the role metrics reads the figures of the whole service: who offers that must be of the service, not of a tenant.
func (a *Admin) CreateToken(ctx context.Context, tenant string, role Role, label string, by audit.By) (id, text string, err error) {
	if err := checkNewToken(role, label); err != nil {
		return "", "", err
	}
	id, secret := Generate()
	err = a.store.InTx(ctx, func(tx AdminTx) error {
		if _, err := tx.GetTenant(ctx, tenant); err != nil {
			return fmt.Errorf("tenant %q: %w", tenant, err)
		}
		return insertToken(ctx, tx, by, Token{ID: id, Tenant: tenant, Role: role, Label: label, SecretHash: secret.Hash()})
	})
	if err != nil {
		return "", "", err
	}
	return id, Format(id, secret), nil
}

func checkNewToken(role Role, label string) error {
	if _, err := ParseTokenRole(string(role)); err != nil {
		return err
	}
	return checkLabel("label", label)
}

func insertToken(ctx context.Context, tx AdminTx, by audit.By, t Token) error {
	if err := tx.InsertToken(ctx, t); err != nil {
		return fmt.Errorf("insert token: %w", err)
	}
	return writeAudit(ctx, tx, by, AuditEntry{Tenant: t.Tenant, Action: "token.create", Subject: t.ID})
}

// ListTokens gives a tenant's tokens, revoked ones too, oldest first.
func (a *Admin) ListTokens(ctx context.Context, tenant string) (tokens []Token, err error) {
	err = a.store.InTx(ctx, func(tx AdminTx) error {
		if _, err := tx.GetTenant(ctx, tenant); err != nil {
			return fmt.Errorf("tenant %q: %w", tenant, err)
		}
		tokens, err = tx.ListTokens(ctx, tenant)
		return err
	})
	return tokens, err
}

// RevokeToken ends a token for good, from the next request on. A token that is already revoked stays so, without a
// second audit entry; ErrTokenUnknown if the tenant has none of that id.
func (a *Admin) RevokeToken(ctx context.Context, tenant, id string, by audit.By) error {
	return a.store.InTx(ctx, func(tx AdminTx) error {
		revoked, err := tx.RevokeToken(ctx, tenant, id)
		if err != nil {
			return fmt.Errorf("revoke token: %w", err)
		}
		if revoked {
			return writeAudit(ctx, tx, by, AuditEntry{Tenant: tenant, Action: "token.revoke", Subject: id})
		}
		tokens, err := tx.ListTokens(ctx, tenant)
		if err != nil {
			return fmt.Errorf("list tokens: %w", err)
		}
		for _, t := range tokens {
			if t.ID == id {
				return nil
			}
		}
		return fmt.Errorf("token %q of tenant %q: %w", id, tenant, ErrTokenUnknown)
	})
}

func writeAudit(ctx context.Context, tx AdminTx, by audit.By, e AuditEntry) error {
	if by.Actor == "" {
		return errors.New("an actor must be named: who does this?")
	}
	e.By = by
	if err := tx.InsertAuditEntry(ctx, e); err != nil {
		return fmt.Errorf("write audit entry: %w", err)
	}
	return nil
}

func checkLabel(what, text string) error {
	if n := utf8.RuneCountInString(text); n < 1 || n > 200 || !utf8.ValidString(text) {
		return fmt.Errorf("a %s has 1 to 200 characters", what)
	}
	return nil
}
