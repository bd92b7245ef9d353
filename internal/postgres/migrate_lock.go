package postgres

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/pressly/goose/v3/lock"
)

const (
	lockPoll        = 100 * time.Millisecond
	lockFirstReport = time.Second // replicas that start at once wait for less, and need no line in the log
	lockProgress    = 10 * time.Second
	lockLimit       = 10 * time.Minute
)

// lockMigrations waits for the database's migration lock, telling every few seconds who has it. It asks again and
// again instead of waiting in the server: a waiting statement keeps a snapshot open, which a CREATE INDEX
// CONCURRENTLY in the other program's migration would wait for. The lock is goose's own, so that its command line
// tool is kept out, too.
func lockMigrations(ctx context.Context, session *pgxpool.Pool, log *slog.Logger) (unlock func(), err error) {
	start := time.Now()
	nextReport := start.Add(lockFirstReport)
	for {
		var got bool
		err := session.QueryRow(ctx, "SELECT pg_try_advisory_lock($1)", lock.DefaultLockID).Scan(&got)
		switch {
		case err != nil:
			return nil, fmt.Errorf("take the migration lock: %w", err)
		case got:
			return func() { unlockMigrations(ctx, session, log) }, nil
		case time.Since(start) > lockLimit:
			return nil, fmt.Errorf("another program (%s) has the migration lock for over %s", lockHolder(ctx, session), lockLimit)
		case time.Now().After(nextReport):
			log.Info("waiting for another program's migrations", "holder", lockHolder(ctx, session),
				"waited", time.Since(start).Round(time.Second))
			nextReport = time.Now().Add(lockProgress)
		}
		if err := pause(ctx, lockPoll); err != nil {
			return nil, fmt.Errorf("wait for the migration lock: %w", err)
		}
	}
}

// unlockMigrations works after ctx has ended, too. Where it fails, the session has ended, and the lock with it.
func unlockMigrations(ctx context.Context, session *pgxpool.Pool, log *slog.Logger) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), connectTimeout)
	defer cancel()
	if _, err := session.Exec(ctx, "SELECT pg_advisory_unlock($1)", lock.DefaultLockID); err != nil {
		log.Debug("migration lock went with its session", "error", err)
	}
}

func lockHolder(ctx context.Context, session *pgxpool.Pool) string {
	var holder string
	err := session.QueryRow(ctx, `
		SELECT format('process %s, %s', a.pid, coalesce(nullif(a.application_name, ''), 'unnamed'))
		FROM pg_locks l JOIN pg_stat_activity a USING (pid)
		WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 1
		  AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
		  AND (l.classid::bigint << 32) | l.objid::bigint = $1
		LIMIT 1`, lock.DefaultLockID).Scan(&holder)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return "just ended"
	case err != nil:
		return "unknown"
	}
	return holder
}
