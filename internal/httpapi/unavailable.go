package httpapi

import (
	"errors"
	"io"
	"net"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/puddle/v2"
)

// databaseAway says whether an error means that the database could not be used just now, through no fault of the
// request: no connection, a broken one, a server that stops, has no room or only reads.
func databaseAway(err error) bool {
	var refusal *pgconn.PgError
	if errors.As(err, &refusal) {
		return awayCode(refusal.Code)
	}
	var connect *pgconn.ConnectError
	var network net.Error
	return errors.As(err, &connect) || errors.As(err, &network) ||
		errors.Is(err, puddle.ErrClosedPool) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		pgconn.SafeToRetry(err) || pgconn.Timeout(err)
}

// awayCode judges a SQLSTATE (PostgreSQL manual, appendix A).
func awayCode(code string) bool {
	switch code {
	case "25006", // read_only_sql_transaction: a standby, or made read-only
		"25P03", // idle_in_transaction_session_timeout: this process stood still
		"55000", // object_not_in_prerequisite_state: the database accepts no connections
		"55P03", // lock_not_available
		"57014", // query_canceled: by a time limit
		"57P01", // admin_shutdown
		"57P02", // crash_shutdown
		"57P03", // cannot_connect_now
		"57P05": // idle_session_timeout
		return true
	}
	// connection exceptions, transaction rollbacks that were not worth another inner try, insufficient resources
	return strings.HasPrefix(code, "08") || strings.HasPrefix(code, "40") || strings.HasPrefix(code, "53")
}
