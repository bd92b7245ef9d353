package invoice

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"invoicebridge/internal/erpdb"
	"invoicebridge/internal/retention"
)

// How long things are kept, unless Keep says otherwise (docs/retention.md).
const (
	DefaultKeepConflicts   = 365 * 24 * time.Hour
	DefaultKeepDivergences = 365 * 24 * time.Hour
)

// Keep says how long the ERP keeps what it need not keep for ever. Zero values take the defaults. A reservation says
// itself when it expires (Options.KeyRetention when it was made); invoices are never removed.
type Keep struct {
	Conflicts   time.Duration // keys that came back with other content
	Divergences time.Duration // after they were resolved
}

// WithDefaults fills in what is not set.
func (k Keep) WithDefaults() Keep {
	if k.Conflicts == 0 {
		k.Conflicts = DefaultKeepConflicts
	}
	if k.Divergences == 0 {
		k.Divergences = DefaultKeepDivergences
	}
	return k
}

// RetentionSteps are what a retention.Purger does on the ERP's database. The reservation of an invoice with an
// unfinished or flagged registration stays, however long it has been expired.
//
// After a reservation's removal nothing can be issued that could not before: the invoice remembers its key, its
// fingerprint and its business claim.
func RetentionSteps(pool *pgxpool.Pool, keep Keep) []retention.Step {
	keep = keep.WithDefaults()
	db := erpdb.New(pool)
	return []retention.Step{
		removeReservations(db),
		removeKeyConflicts(db, keep.Conflicts.Seconds()),
		removeDivergences(db, keep.Divergences.Seconds()),
	}
}

// AuditPurge writes into every tenant's audit that somebody ran the purge by hand.
func AuditPurge(ctx context.Context, pool *pgxpool.Pool, actor, subject, reason string) error {
	if err := erpdb.New(pool).RetentionAudit(ctx, actor, subject, reason); err != nil {
		return fmt.Errorf("write the audit: %w", err)
	}
	return nil
}

func removeReservations(db *erpdb.Queries) retention.Step {
	return retention.NewStep("idempotency_records",
		func(ctx context.Context, after *erpdb.RetentionListReservationsRow, limit int32) ([]erpdb.RetentionListReservationsRow, error) {
			if after == nil {
				after = new(erpdb.RetentionListReservationsRow)
			}
			return db.RetentionListReservations(ctx, after.ExpiresAt, after.ResourceID, limit)
		},
		func(row erpdb.RetentionListReservationsRow) time.Duration { return overdue(row.OverdueSeconds) },
		func(ctx context.Context, rows []erpdb.RetentionListReservationsRow) (int64, error) {
			var tenants, operations, keys []string
			for _, row := range rows {
				tenants, operations, keys = append(tenants, row.TenantID), append(operations, row.Operation), append(keys, row.Key)
			}
			return db.RetentionDeleteReservations(ctx, tenants, operations, keys)
		})
}

func removeKeyConflicts(db *erpdb.Queries, keep float64) retention.Step {
	return retention.NewStep("key_conflicts",
		func(ctx context.Context, after *erpdb.RetentionListKeyConflictsRow, limit int32) ([]erpdb.RetentionListKeyConflictsRow, error) {
			arg := erpdb.RetentionListKeyConflictsParams{KeepSeconds: keep, MaxItems: limit}
			if after != nil {
				arg.AfterAt, arg.AfterID = after.OccurredAt, after.ID
			}
			return db.RetentionListKeyConflicts(ctx, arg)
		},
		func(row erpdb.RetentionListKeyConflictsRow) time.Duration { return overdue(row.OverdueSeconds) },
		func(ctx context.Context, rows []erpdb.RetentionListKeyConflictsRow) (int64, error) {
			ids := make([]int64, len(rows))
			for i, row := range rows {
				ids[i] = row.ID
			}
			return db.RetentionDeleteKeyConflicts(ctx, ids, keep)
		})
}

func removeDivergences(db *erpdb.Queries, keep float64) retention.Step {
	return retention.NewStep("divergences",
		func(ctx context.Context, after *erpdb.RetentionListDivergencesRow, limit int32) ([]erpdb.RetentionListDivergencesRow, error) {
			arg := erpdb.RetentionListDivergencesParams{KeepSeconds: keep, MaxItems: limit}
			if after != nil {
				arg.AfterAt, arg.AfterID = after.ResolvedAt, after.ID
			}
			return db.RetentionListDivergences(ctx, arg)
		},
		func(row erpdb.RetentionListDivergencesRow) time.Duration { return overdue(row.OverdueSeconds) },
		func(ctx context.Context, rows []erpdb.RetentionListDivergencesRow) (int64, error) {
			ids := make([]int64, len(rows))
			for i, row := range rows {
				ids[i] = row.ID
			}
			return db.RetentionDeleteDivergences(ctx, ids, keep)
		})
}

func overdue(seconds float64) time.Duration { return time.Duration(seconds * float64(time.Second)) }
