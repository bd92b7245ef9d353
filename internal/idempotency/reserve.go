package idempotency

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"invoicebridge/internal/erpdb"
)

// answerCreated is the one status of stored answers: what was refused stores nothing.
const answerCreated = 201

// Scope is what keys are unique in: the same key in another scope is another key.
type Scope struct {
	Tenant    string
	Operation string // the kind of operation, such as "issue_invoice"
}

// Claim is one key to reserve, for the request with this fingerprint, which makes the resource with this id.
type Claim struct {
	Key         Key
	Fingerprint Fingerprint
	ResourceID  uuid.UUID
}

// Terms say how long to wait for a reservation and how long to keep it.
type Terms struct {
	Patience  time.Duration // how long to wait for each transaction that holds one of the keys
	Retention time.Duration // whole seconds
}

// Times are the moments that an answer tells about its reservation, by the database's clock.
type Times struct {
	FirstSeen time.Time // the time of the transaction
	Expires   time.Time
}

// Reserve reserves the keys of all claims on tx, each already succeeded: the caller makes the resources in the same
// transaction, so commit shows key and resource together and rollback leaves neither. The keys must be distinct.
//
// It waits where another transaction holds one of the keys. ErrTaken says that a key is reserved for good; then what
// is stored under it can be read, by a new transaction. ErrInProgress says that patience ran out first. Both, like
// every error, leave tx fit for nothing but a rollback.
func Reserve(ctx context.Context, tx pgx.Tx, scope Scope, claims []Claim, terms Terms) (Times, error) {
	claims = slices.Clone(claims)
	slices.SortFunc(claims, func(a, b Claim) int { return strings.Compare(a.Key.text, b.Key.text) })
	params := erpdb.IdempotencyRecordReserveParams{
		TenantID: scope.Tenant, Operation: scope.Operation, AnswerStatus: answerCreated,
		RetentionSeconds: int64(terms.Retention / time.Second), LockTimeout: LockTimeout(terms.Patience),
	}
	for _, c := range claims {
		params.Keys = append(params.Keys, c.Key.text)
		params.FingerprintVersions = append(params.FingerprintVersions, c.Fingerprint.Version)
		params.Fingerprints = append(params.Fingerprints, c.Fingerprint.Sum[:])
		params.ResourceIds = append(params.ResourceIds, c.ResourceID)
	}
	rows, err := erpdb.New(tx).IdempotencyRecordReserve(ctx, params)
	if err != nil {
		return Times{}, fmt.Errorf("reserve %d keys: %w", len(claims), interpretReserve(err))
	}
	if len(rows) != len(claims) {
		return Times{}, fmt.Errorf("reserve %d keys: %d rows were written", len(claims), len(rows))
	}
	// now() does not move within a transaction: all rows have the same times.
	return Times{FirstSeen: rows[0].FirstSeenAt.UTC(), Expires: rows[0].ExpiresAt.UTC()}, nil
}

// LockTimeout is a duration as the setting lock_timeout wants it. Zero would mean to wait for ever, so it is at
// least a millisecond.
func LockTimeout(d time.Duration) string {
	return strconv.FormatInt(max(1, d.Milliseconds()), 10)
}
