package crmstore

import (
	"context"
	"errors"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"invoicebridge/internal/auth"
	"invoicebridge/internal/crmdb"
)

// InsertAccount implements auth.AccountTx.
func (t tx) InsertAccount(ctx context.Context, a auth.Account) (bool, error) {
	n, err := t.q.AccountInsert(ctx, crmdb.AccountInsertParams{
		ID: a.ID, TenantID: a.Tenant, Name: a.Name, DisplayName: a.DisplayName, Role: string(a.Role),
		ServiceAccess: a.Service, PasswordHash: orNull(a.PasswordHash),
	})
	return n == 1, err
}

// GetAccount implements auth.AccountTx.
func (t tx) GetAccount(ctx context.Context, name string) (auth.Account, error) {
	return account(t.q.AccountGetByName(ctx, name))
}

// GetAccountByOIDC implements auth.AccountTx.
func (t tx) GetAccountByOIDC(ctx context.Context, issuer, subject string) (auth.Account, error) {
	return account(t.q.AccountGetByOIDC(ctx, issuer, subject))
}

// BindOIDC implements auth.AccountTx.
func (t tx) BindOIDC(ctx context.Context, account uuid.UUID, issuer, subject string) (bool, error) {
	n, err := t.q.AccountBindOIDC(ctx, issuer, subject, account)
	return n == 1, err
}

// ListAccounts implements auth.AccountTx.
func (t tx) ListAccounts(ctx context.Context, tenant string) ([]auth.Account, error) {
	rows, err := t.q.AccountList(ctx, orNull(tenant))
	accounts := make([]auth.Account, len(rows))
	for i, row := range rows {
		accounts[i], _ = account(row, nil)
	}
	return accounts, err
}

// SetPassword implements auth.AccountTx.
func (t tx) SetPassword(ctx context.Context, account uuid.UUID, hash string) error {
	n, err := t.q.AccountSetPassword(ctx, hash, account)
	if err == nil && n == 0 {
		return auth.ErrAccountUnknown
	}
	return err
}

// SetRole implements auth.AccountTx.
func (t tx) SetRole(ctx context.Context, account uuid.UUID, role auth.Role, service bool) error {
	n, err := t.q.AccountSetRole(ctx, string(role), service, account)
	if err == nil && n == 0 {
		return auth.ErrAccountDisabled
	}
	return err
}

// DisableAccount implements auth.AccountTx.
func (t tx) DisableAccount(ctx context.Context, account uuid.UUID) (bool, error) {
	n, err := t.q.AccountDisable(ctx, account)
	return n == 1, err
}

// EndSessionsOf implements auth.AccountTx.
func (t tx) EndSessionsOf(ctx context.Context, account uuid.UUID) (int64, error) {
	return t.q.SessionDeleteOfAccount(ctx, account)
}

func account(row crmdb.Account, err error) (auth.Account, error) {
	if errors.Is(err, pgx.ErrNoRows) {
		return auth.Account{}, auth.ErrAccountUnknown
	}
	if err != nil {
		return auth.Account{}, err
	}
	return auth.Account{
		ID: row.ID, Tenant: row.TenantID, Name: row.Name, DisplayName: row.DisplayName, Role: auth.Role(row.Role),
		Service: row.ServiceAccess, PasswordHash: orEmpty(row.PasswordHash), Issuer: orEmpty(row.OidcIssuer),
		Subject: orEmpty(row.OidcSubject), CreatedAt: row.CreatedAt, DisabledAt: row.DisabledAt,
	}, nil
}

func orNull(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

func orEmpty(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}
