package invoice

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"invoicebridge/internal/idempotency"
)

// Constraints whose violation is an answer and not a mistake of ours.
const (
	businessClaim  = "invoices_business_claim_key"
	operationKey   = "invoices_operation_key_key"
	seriesOfTenant = "invoice_series_tenant_id_fkey"
)

// SQLSTATEs (appendix A of PostgreSQL's manual) that decide what happens next.
const (
	serializationFailure = "40001"
	deadlockDetected     = "40P01"
	lockNotAvailable     = "55P03"
	queryCanceled        = "57014" // by a statement_timeout, or by an operator
	readOnlyTransaction  = "25006" // a standby that was the primary a moment ago
	idleInTransaction    = "25P03" // this process stood still for longer than the server allows
	connectionException  = "08"    // class
	operatorIntervention = "57P"   // class, less 57014: shutting down, starting up, terminated
	outOfResources       = "53"    // class: connections, memory, disk
)

// failure is what an error of the database means to an Issue.
type failure int

const (
	failureInternal    failure = iota // a mistake of ours
	failureSettled                    // somebody else's commit has the key or the claim: look again
	failureInProgress                 // the first request with this key has not ended
	failureRetry                      // the whole transaction may be run again at once
	failureBlocked                    // an order or a counter was locked for longer than we wait
	failureUnavailable                // nothing is known to be wrong with the request: again, later
	failureCanceled                   // the caller has gone
)

// mayBeOfOneMember says that a group may have failed because of one member, so that the others would succeed alone.
func (f failure) mayBeOfOneMember() bool { return f != failureUnavailable && f != failureCanceled }

// failureOf is the one place where the driver's errors get their meaning.
func failureOf(err error) failure {
	var answer *pgconn.PgError
	switch {
	case errors.Is(err, context.Canceled):
		return failureCanceled
	case errors.Is(err, idempotency.ErrTaken) || violates(err, businessClaim, operationKey):
		return failureSettled
	case errors.Is(err, idempotency.ErrInProgress):
		return failureInProgress
	case errors.As(err, &answer):
		return failureOfCode(answer.Code)
	case connectionLost(err):
		return failureUnavailable
	}
	return failureInternal
}

func failureOfCode(code string) failure {
	switch {
	case code == serializationFailure || code == deadlockDetected:
		return failureRetry
	case code == lockNotAvailable:
		return failureBlocked
	case code == queryCanceled, code == readOnlyTransaction, code == idleInTransaction,
		strings.HasPrefix(code, connectionException),
		strings.HasPrefix(code, operatorIntervention),
		strings.HasPrefix(code, outOfResources):
		return failureUnavailable
	}
	return failureInternal
}

// connectionLost says that there was no connection, or that it broke, or that there was no time left. Where it broke
// during COMMIT nobody knows yet whether the invoice exists; the same request again will tell.
func connectionLost(err error) bool {
	var connect *pgconn.ConnectError
	var network net.Error
	return errors.As(err, &connect) || errors.As(err, &network) || pgconn.SafeToRetry(err) ||
		errors.Is(err, context.DeadlineExceeded) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed)
}

// violates says that err is the violation of one of these constraints.
func violates(err error, constraints ...string) bool {
	var answer *pgconn.PgError
	return errors.As(err, &answer) && slices.Contains(constraints, answer.ConstraintName)
}
