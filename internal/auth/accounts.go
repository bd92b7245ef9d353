package auth

import (
	"context"
	"fmt"
	"strings"

	"github.com/google/uuid"

	"invoicebridge/internal/audit"
)

// AccountTx is what administration of accounts does within a transaction.
type AccountTx interface {
	InsertAccount(ctx context.Context, a Account) (inserted bool, err error)
	GetAccount(ctx context.Context, name string) (Account, error)                  // ErrAccountUnknown
	GetAccountByOIDC(ctx context.Context, issuer, subject string) (Account, error) // ErrAccountUnknown
	// BindOIDC ties an account to who it is at the provider; false if it is tied already, or disabled.
	BindOIDC(ctx context.Context, account uuid.UUID, issuer, subject string) (bound bool, err error)
	ListAccounts(ctx context.Context, tenant string) ([]Account, error)            // "" is all tenants
	SetPassword(ctx context.Context, account uuid.UUID, hash string) error         // the account is there
	SetRole(ctx context.Context, account uuid.UUID, role Role, service bool) error // ErrAccountDisabled
	DisableAccount(ctx context.Context, account uuid.UUID) (disabled bool, err error)
	EndSessionsOf(ctx context.Context, account uuid.UUID) (ended int64, err error)
}

// CreateAccount makes an account, whose id is made here. PasswordHash is Hasher.Hash's, or empty for somebody who logs in
// by OIDC only. ErrAccountExists if the name is taken, ErrTenantUnknown if there is no such tenant.
func (a *Admin) CreateAccount(ctx context.Context, account Account, by audit.By) (Account, error) {
	if err := account.check(); err != nil {
		return Account{}, err
	}
	id, err := uuid.NewV7()
	if err != nil {
		return Account{}, err
	}
	account.ID = id
	err = a.store.InTx(ctx, func(tx AdminTx) error {
		if _, err := tx.GetTenant(ctx, account.Tenant); err != nil {
			return fmt.Errorf("tenant %q: %w", account.Tenant, err)
		}
		inserted, err := tx.InsertAccount(ctx, account)
		if err != nil {
			return fmt.Errorf("insert account: %w", err)
		}
		if !inserted {
			return fmt.Errorf("account %q: %w", account.Name, ErrAccountExists)
		}
		return writeAudit(ctx, tx, by, AuditEntry{Tenant: account.Tenant, Action: "account.create", Subject: account.Name})
	})
	return account, err
}

// ListAccounts gives a tenant's accounts by name, disabled ones too; all tenants' if tenant is empty.
func (a *Admin) ListAccounts(ctx context.Context, tenant string) (accounts []Account, err error) {
	err = a.store.InTx(ctx, func(tx AdminTx) error {
		if tenant != "" {
			if _, err := tx.GetTenant(ctx, tenant); err != nil {
				return fmt.Errorf("tenant %q: %w", tenant, err)
			}
		}
		accounts, err = tx.ListAccounts(ctx, tenant)
		return err
	})
	return accounts, err
}

// GetAccount gives an account of a tenant; ErrAccountUnknown if it has none of that name, ErrAccountDisabled if it is disabled.
func (a *Admin) GetAccount(ctx context.Context, tenant, name string) (account Account, err error) {
	err = a.store.InTx(ctx, func(tx AdminTx) error {
		account, err = tx.GetAccount(ctx, name)
		switch {
		case err == nil && account.Tenant != tenant:
			return fmt.Errorf("account %q of tenant %q: %w", name, tenant, ErrAccountUnknown)
		case err == nil && account.DisabledAt != nil:
			return fmt.Errorf("account %q: %w", name, ErrAccountDisabled)
		case err != nil:
			return fmt.Errorf("account %q: %w", name, err)
		}
		return nil
	})
	return account, err
}

// SetPassword gives an account another password and ends all its sessions, in one transaction.
func (a *Admin) SetPassword(ctx context.Context, name, hash string, by audit.By) (ended int64, err error) {
	err = a.changeAccount(ctx, name, "account.password", by, func(tx AdminTx, account Account) (bool, error) {
		if account.DisabledAt != nil {
			return false, fmt.Errorf("account %q: %w", name, ErrAccountDisabled)
		}
		if err := tx.SetPassword(ctx, account.ID, hash); err != nil {
			return false, fmt.Errorf("set password: %w", err)
		}
		ended, err = tx.EndSessionsOf(ctx, account.ID)
		return true, err
	})
	return ended, err
}

// SetRole gives an account another role, and with service also what belongs to all tenants at once, or takes that (nil leaves
// it). Sessions and the person's own tokens have the new role from the next request on. What changes nothing is not written
// down. The role before is in the audit entry's reason.
func (a *Admin) SetRole(ctx context.Context, name string, role Role, service *bool, by audit.By) (changed Account, err error) {
	if _, err := ParseAccountRole(string(role)); err != nil {
		return Account{}, err
	}
	err = a.store.InTx(ctx, func(tx AdminTx) error {
		before, err := tx.GetAccount(ctx, name)
		if err != nil {
			return fmt.Errorf("account %q: %w", name, err)
		}
		changed = before
		changed.Role = role
		if service != nil {
			changed.Service = *service
		}
		switch {
		case before.DisabledAt != nil:
			return fmt.Errorf("account %q: %w", name, ErrAccountDisabled)
		case before.Role == changed.Role && before.Service == changed.Service:
			return nil
		}
		if err := tx.SetRole(ctx, before.ID, changed.Role, changed.Service); err != nil {
			return fmt.Errorf("account %q: set role: %w", name, err)
		}
		told := by
		told.Reason = strings.TrimSpace(fmt.Sprintf("%s (%s, before %s)", by.Reason, changed.authority(), before.authority()))
		return writeAudit(ctx, tx, told, AuditEntry{Tenant: before.Tenant, Action: "account.role", Subject: name})
	})
	return changed, err
}

// authority is an account's role for people to read.
func (a Account) authority() string {
	if a.Service {
		return string(a.Role) + " with service access"
	}
	return string(a.Role)
}

// DisableAccount ends an account for good: its sessions and its own tokens are dead from the next request on. One that is
// disabled already stays so, without a second audit entry.
func (a *Admin) DisableAccount(ctx context.Context, name string, by audit.By) error {
	return a.changeAccount(ctx, name, "account.disable", by, func(tx AdminTx, account Account) (bool, error) {
		disabled, err := tx.DisableAccount(ctx, account.ID)
		if err != nil || !disabled {
			return false, err
		}
		_, err = tx.EndSessionsOf(ctx, account.ID)
		return true, err
	})
}

// changeAccount does something to an account, and writes it down if that changed anything.
func (a *Admin) changeAccount(ctx context.Context, name, action string, by audit.By, do func(AdminTx, Account) (changed bool, err error)) error {
	return a.store.InTx(ctx, func(tx AdminTx) error {
		account, err := tx.GetAccount(ctx, name)
		if err != nil {
			return fmt.Errorf("account %q: %w", name, err)
		}
		changed, err := do(tx, account)
		if err != nil || !changed {
			return err
		}
		return writeAudit(ctx, tx, by, AuditEntry{Tenant: account.Tenant, Action: action, Subject: name})
	})
}

// CreatePersonalToken makes a token that acts in a person's name: for a person's own scripts. It may do what both its role
// and the person may, as that stands when it is used, and is dead while the account is disabled.
func (a *Admin) CreatePersonalToken(ctx context.Context, name string, role Role, label string, by audit.By) (id, text string, err error) {
	if err := checkNewToken(role, label); err != nil {
		return "", "", err
	}
	id, secret := Generate()
	err = a.store.InTx(ctx, func(tx AdminTx) error {
		account, err := tx.GetAccount(ctx, name)
		if err != nil {
			return fmt.Errorf("account %q: %w", name, err)
		}
		if account.DisabledAt != nil {
			return fmt.Errorf("account %q: %w", name, ErrAccountDisabled)
		}
		if person := account.Identity(); !role.holds().in(person.Role.holds() | person.serviceHolds()) {
			return fmt.Errorf("account %q has the role %s, so it can't have a token with the role %s", name, account.Role, role)
		}
		return insertToken(ctx, tx, by, Token{
			ID: id, Tenant: account.Tenant, Role: role, Label: label, SecretHash: secret.Hash(), Account: &account.ID,
		})
	})
	if err != nil {
		return "", "", err
	}
	return id, Format(id, secret), nil
}
