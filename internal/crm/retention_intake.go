package crm

import (
	"context"
	"time"

	"github.com/google/uuid"

	"invoicebridge/internal/crmdb"
	"invoicebridge/internal/retention"
)

// What was turned away belongs to no operation, so nothing but its age keeps it.

func removeIntakeRefusals(db *crmdb.Queries, keep float64) retention.Step {
	return retention.NewStep("intake_refusals",
		func(ctx context.Context, after *crmdb.IntakeRefusalListExpiredRow, limit int32) ([]crmdb.IntakeRefusalListExpiredRow, error) {
			arg := crmdb.IntakeRefusalListExpiredParams{KeepSeconds: keep, MaxItems: limit}
			if after != nil {
				arg.AfterAt, arg.AfterID = after.ReceivedAt, after.ID
			}
			return db.IntakeRefusalListExpired(ctx, arg)
		},
		func(row crmdb.IntakeRefusalListExpiredRow) time.Duration { return overdue(row.OverdueSeconds) },
		func(ctx context.Context, rows []crmdb.IntakeRefusalListExpiredRow) (int64, error) {
			ids := make([]int64, len(rows))
			for i, row := range rows {
				ids[i] = row.ID
			}
			return db.IntakeRefusalDelete(ctx, ids, keep)
		})
}

// minimiseImports removes what imports quote of their rows; that a file was imported, and its sums, stay.
func minimiseImports(db *crmdb.Queries, keep float64) retention.Step {
	return retention.NewStep("imports",
		func(ctx context.Context, after *crmdb.ImportListToMinimiseRow, limit int32) ([]crmdb.ImportListToMinimiseRow, error) {
			arg := crmdb.ImportListToMinimiseParams{KeepSeconds: keep, MaxItems: limit}
			if after != nil {
				arg.AfterAt, arg.AfterID = after.StartedAt, after.ID
			}
			return db.ImportListToMinimise(ctx, arg)
		},
		func(row crmdb.ImportListToMinimiseRow) time.Duration { return overdue(row.OverdueSeconds) },
		func(ctx context.Context, rows []crmdb.ImportListToMinimiseRow) (int64, error) {
			ids := make([]uuid.UUID, len(rows))
			for i, row := range rows {
				ids[i] = row.ID
			}
			return db.ImportMinimise(ctx, ids, keep)
		})
}
