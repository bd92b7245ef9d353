// Package crmstore keeps the CRM side's tenants, tokens, accounts and sessions in its database.
package crmstore

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"invoicebridge/internal/auth"
	"invoicebridge/internal/crmdb"
	"invoicebridge/internal/tenantdb"
)

// Store implements auth.Store, auth.AdminStore and auth.SessionStore.
type Store struct{ pool *pgxpool.Pool }

// New makes a Store on a pool of the CRM side's database.
func New(pool *pgxpool.Pool) *Store { return &Store{pool: pool} }

// TokenByID implements auth.Store.
func (s *Store) TokenByID(ctx context.Context, id string) (auth.Token, error) {
	row, err := crmdb.New(s.pool).TokenGet(ctx, id)
	if errors.Is(err, pgx.ErrNoRows) {
		return auth.Token{}, auth.ErrTokenUnknown
	}
	return token(row), err
}

// TokensByID implements auth.Store.
func (s *Store) TokensByID(ctx context.Context, ids []string) ([]auth.Token, error) {
	rows, err := crmdb.New(s.pool).TokenListByIDs(ctx, ids)
	tokens := make([]auth.Token, len(rows))
	for i, row := range rows {
		tokens[i] = token(crmdb.TokenGetRow(row))
	}
	return tokens, err
}

// InTx implements auth.AdminStore. For a caller it reaches no further than the caller's tenant.
func (s *Store) InTx(ctx context.Context, do func(auth.AdminTx) error) error {
	return pgx.BeginFunc(ctx, tenantdb.New(s.pool).AsCaller(ctx), func(t pgx.Tx) error { return do(tx{crmdb.New(t)}) })
}

type tx struct{ q *crmdb.Queries }

func (t tx) InsertTenant(ctx context.Context, id, name string) (bool, error) {
	n, err := t.q.TenantInsert(ctx, id, name)
	return n == 1, err
}

func (t tx) GetTenant(ctx context.Context, id string) (auth.Tenant, error) {
	row, err := t.q.TenantGet(ctx, id)
	if errors.Is(err, pgx.ErrNoRows) {
		return auth.Tenant{}, auth.ErrTenantUnknown
	}
	return auth.Tenant(row), err
}

func (t tx) ListTenants(ctx context.Context) ([]auth.Tenant, error) {
	rows, err := t.q.TenantList(ctx)
	tenants := make([]auth.Tenant, len(rows))
	for i, row := range rows {
		tenants[i] = auth.Tenant(row)
	}
	return tenants, err
}

func (t tx) InsertToken(ctx context.Context, tok auth.Token) error {
	return t.q.TokenInsert(ctx, crmdb.TokenInsertParams{
		ID: tok.ID, TenantID: tok.Tenant, Role: string(tok.Role), Label: tok.Label, SecretHash: tok.SecretHash, AccountID: tok.Account,
	})
}

func (t tx) ListTokens(ctx context.Context, tenant string) ([]auth.Token, error) {
	rows, err := t.q.TokenList(ctx, tenant)
	tokens := make([]auth.Token, len(rows))
	for i, row := range rows {
		tokens[i] = token(crmdb.TokenGetRow(row))
	}
	return tokens, err
}

func (t tx) RevokeToken(ctx context.Context, tenant, id string) (bool, error) {
	n, err := t.q.TokenRevoke(ctx, id, tenant)
	return n == 1, err
}

func (t tx) InsertAuditEntry(ctx context.Context, e auth.AuditEntry) error {
	return t.q.AuditEntryInsert(ctx, crmdb.AuditEntryInsertParams{
		TenantID: e.Tenant, Actor: e.By.Actor, Action: e.Action, Subject: e.Subject, Reason: e.By.Reason,
		Via: e.By.Way(), Address: e.By.Address, RequestID: e.By.RequestID, AccountID: e.By.AccountID(),
	})
}

func token(row crmdb.TokenGetRow) auth.Token {
	t := auth.Token{
		ID: row.ID, Tenant: row.TenantID, Role: auth.Role(row.Role), Label: row.Label,
		SecretHash: row.SecretHash, CreatedAt: row.CreatedAt, RevokedAt: row.RevokedAt, Account: row.AccountID,
	}
	if row.AccountID != nil && row.AccountName != nil {
		t.Owner = &auth.Account{
			ID: *row.AccountID, Tenant: row.TenantID, Name: *row.AccountName, DisplayName: orEmpty(row.AccountDisplayName),
			Role: auth.Role(orEmpty(row.AccountRole)), Service: row.AccountService != nil && *row.AccountService,
			DisabledAt: row.AccountDisabledAt,
		}
	}
	return t
}
