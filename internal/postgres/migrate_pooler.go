package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// ErrPooler says that a connection pooler hands one server session to several clients in turn.
var ErrPooler = errors.New("the address leads through a connection pooler in transaction mode, where the lock that " +
	"keeps migrations apart does not hold: give the server's own address, or a pooler in session mode")

// refusePooler looks for a pooler: one announces a session number of its own, not the server's. Session mode does no
// harm, so it is refused only if a second client is given the session that the first one still uses. A pooler that
// happens to give another session goes unnoticed; every usual one gives the one used last.
func refusePooler(ctx context.Context, first *pgx.Conn) error {
	session, err := serverSession(ctx, first)
	if err != nil || session == first.PgConn().PID() {
		return err
	}
	second, err := pgx.ConnectConfig(ctx, first.Config())
	if err != nil {
		return fmt.Errorf("look for a connection pooler: %w", err)
	}
	defer func() { _ = second.Close(context.WithoutCancel(ctx)) }()
	for _, conn := range []*pgx.Conn{second, first} {
		again, err := serverSession(ctx, conn)
		if err != nil {
			return err
		}
		if (conn == second) == (again == session) {
			return ErrPooler
		}
	}
	return nil
}

// serverSession asks in the simple protocol: poolers know no prepared statements of their clients.
func serverSession(ctx context.Context, conn *pgx.Conn) (pid uint32, err error) {
	err = conn.QueryRow(ctx, "SELECT pg_backend_pid()", pgx.QueryExecModeSimpleProtocol).Scan(&pid)
	if err != nil {
		return 0, fmt.Errorf("ask for the session's number: %w", err)
	}
	return pid, nil
}
