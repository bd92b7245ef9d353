package crmstore

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"invoicebridge/internal/auth"
	"invoicebridge/internal/crmdb"
)

// AccountByName implements auth.SessionStore.
func (s *Store) AccountByName(ctx context.Context, name string) (auth.Account, error) {
	return account(crmdb.New(s.pool).AccountGetByName(ctx, name))
}

// RenewPasswordHash implements auth.SessionStore.
func (s *Store) RenewPasswordHash(ctx context.Context, account uuid.UUID, old, renewed string) (bool, error) {
	n, err := crmdb.New(s.pool).AccountRenewPasswordHash(ctx, renewed, account, old)
	return n == 1, err
}

// BeginSession implements auth.SessionStore.
func (s *Store) BeginSession(ctx context.Context, n auth.NewSession) (bool, error) {
	rows, err := crmdb.New(s.pool).SessionInsert(ctx, crmdb.SessionInsertParams{
		IDHash: n.Hash, AccountID: n.Account, PasswordHash: orNull(n.PasswordHash), LifeSeconds: n.Life.Seconds(),
		Address: n.Address, UserAgent: n.UserAgent,
	})
	return rows == 1, err
}

// SessionOf implements auth.SessionStore.
func (s *Store) SessionOf(ctx context.Context, hash []byte, idle, touch time.Duration) (who auth.Identity, stale bool, err error) {
	row, err := crmdb.New(s.pool).SessionGet(ctx, touch.Seconds(), hash, idle.Seconds())
	if errors.Is(err, pgx.ErrNoRows) {
		return auth.Identity{}, false, auth.ErrSessionUnknown
	}
	if err != nil {
		return auth.Identity{}, false, err
	}
	return auth.Identity{
		Tenant: row.TenantID, Role: auth.Role(row.Role), Account: row.ID, Name: row.Name, DisplayName: row.DisplayName,
		Service: row.ServiceAccess,
	}, row.Touch, nil
}

// TouchSession implements auth.SessionStore.
func (s *Store) TouchSession(ctx context.Context, hash []byte, touch time.Duration) error {
	return crmdb.New(s.pool).SessionTouch(ctx, hash, touch.Seconds())
}

// EndSession implements auth.SessionStore.
func (s *Store) EndSession(ctx context.Context, hash []byte) error {
	return crmdb.New(s.pool).SessionDelete(ctx, hash)
}

// RemoveEndedSessions implements auth.SessionStore.
func (s *Store) RemoveEndedSessions(ctx context.Context, idle time.Duration) error {
	_, err := crmdb.New(s.pool).SessionDeleteEnded(ctx, idle.Seconds())
	return err
}

// CountTry implements auth.SessionStore. It is one transaction of its own.
func (s *Store) CountTry(ctx context.Context, subjects []string, forget time.Duration, decide func([]auth.Failures) time.Duration) (wait time.Duration, err error) {
	err = pgx.BeginFunc(ctx, s.pool, func(t pgx.Tx) error {
		q := crmdb.New(t)
		if err := q.LoginFailureLock(ctx, subjects); err != nil {
			return err
		}
		rows, err := q.LoginFailureGet(ctx, subjects, forget.Seconds())
		if err != nil {
			return err
		}
		failed := make([]auth.Failures, len(rows))
		for i, row := range rows {
			age := time.Duration(row.AgeSeconds * float64(time.Second))
			failed[i] = auth.Failures{Subject: row.Subject, Count: int(row.Failures), Age: age}
		}
		if wait = decide(failed); wait > 0 {
			return nil
		}
		if err := q.LoginFailureCount(ctx, subjects, forget.Seconds()); err != nil {
			return err
		}
		_, err = q.LoginFailureDeleteOld(ctx, forget.Seconds())
		return err
	})
	return wait, err
}

// TryWasRight implements auth.SessionStore. It is one transaction of its own.
func (s *Store) TryWasRight(ctx context.Context, subjects []string, forgiven string) error {
	return pgx.BeginFunc(ctx, s.pool, func(t pgx.Tx) error {
		q := crmdb.New(t)
		if err := q.LoginFailureLock(ctx, subjects); err != nil {
			return err
		}
		if err := q.LoginFailureUncount(ctx, subjects); err != nil {
			return err
		}
		return q.LoginFailureDelete(ctx, forgiven)
	})
}
