package idempotency

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"invoicebridge/internal/erpdb"
)

// answerCreated is the one status of stored answers: what was refused stores nothing.
const answerCreated = 201

// Claim is one key to reserve, for the request with this fingerprint, which makes the resource with this id. A key is
// unique in its tenant and operation: the same key elsewhere is another key.
type Claim struct {
	Tenant      string
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

// Reserve reserves the keys of all claims, for one kind of operation such as "issue_invoice", in the transaction of db,
// each already succeeded: the caller makes the resources in the same transaction, so commit shows key and resource together
// and rollback leaves neither. The keys of a tenant must be distinct. Whether it was done tells Done, to be called once.
//
// It waits where another transaction holds one of the keys, for each in its turn: they are sorted by tenant and key.
func Reserve(ctx context.Context, db erpdb.DBTX, operation string, claims []Claim, terms Terms) *Reservation {
	claims = slices.Clone(claims)
	slices.SortFunc(claims, func(a, b Claim) int {
		return cmp.Or(strings.Compare(a.Tenant, b.Tenant), strings.Compare(a.Key.text, b.Key.text))
	})
	params := erpdb.IdempotencyRecordReserveParams{
		Operation: operation, AnswerStatus: answerCreated,
		RetentionSeconds: int64(terms.Retention / time.Second), LockTimeout: LockTimeout(terms.Patience),
	}
	for _, c := range claims {
		params.TenantIds = append(params.TenantIds, c.Tenant)
		params.Keys = append(params.Keys, c.Key.text)
		params.FingerprintVersions = append(params.FingerprintVersions, c.Fingerprint.Version)
		params.Fingerprints = append(params.Fingerprints, c.Fingerprint.Sum[:])
		params.ResourceIds = append(params.ResourceIds, c.ResourceID)
	}
	made := erpdb.New(db).IdempotencyRecordReserve(ctx, []erpdb.IdempotencyRecordReserveParams{params})
	return &Reservation{claims: len(claims), made: made}
}

// Reservation is one that may still be on its way to the database.
type Reservation struct {
	claims int
	made   *erpdb.IdempotencyRecordReserveBatchResults
}

// Done waits until the keys are reserved. ErrTaken says that a key is reserved for good; then what is stored under it
// can be read, by a new transaction. ErrInProgress says that patience ran out first. Both, like every error, leave the
// transaction fit for nothing but a rollback.
func (r *Reservation) Done() (times Times, err error) {
	r.made.Query(func(_ int, rows []erpdb.IdempotencyRecordReserveRow, failed error) {
		switch {
		case failed != nil:
			err = fmt.Errorf("reserve %d keys: %w", r.claims, interpretReserve(failed))
		case len(rows) != r.claims:
			err = fmt.Errorf("reserve %d keys: %d rows were written", r.claims, len(rows))
		default: // now() does not move within a transaction: all rows have the same times
			times = Times{FirstSeen: rows[0].FirstSeenAt.UTC(), Expires: rows[0].ExpiresAt.UTC()}
		}
	})
	return times, err
}

// LockTimeout is a duration as the setting lock_timeout wants it. Zero would mean to wait for ever, so it is at
// least a millisecond.
func LockTimeout(d time.Duration) string {
	return strconv.FormatInt(max(1, d.Milliseconds()), 10)
}
