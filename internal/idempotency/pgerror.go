package idempotency

import (
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"
)

var (
	// ErrTaken says that a committed reservation has the key.
	ErrTaken = errors.New("the key is taken")
	// ErrInProgress says that a transaction that has not ended holds the key.
	ErrInProgress = errors.New("the first request with this key has not ended")
)

// What PostgreSQL says when a reservation fails (appendix A of its manual, and the constraint's name).
const (
	uniqueViolation  = "23505"
	lockNotAvailable = "55P03"
	primaryKey       = "idempotency_records_pkey"
)

// interpretReserve turns what the reserving statement was answered into the two errors that are expected of it. Any
// other error stays what it is.
func interpretReserve(err error) error {
	var answer *pgconn.PgError
	switch {
	case !errors.As(err, &answer):
		return err
	case answer.Code == uniqueViolation && answer.ConstraintName == primaryKey:
		return fmt.Errorf("%w: %w", ErrTaken, err)
	case answer.Code == lockNotAvailable:
		return fmt.Errorf("%w: %w", ErrInProgress, err)
	}
	return err
}
