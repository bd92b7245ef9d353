package crm

import (
	"context"
	"time"

	"github.com/google/uuid"

	"invoicebridge/internal/crmdb"
	"invoicebridge/internal/retention"
)

// What people did with operations. Each action is in the audit for ever; here its working papers go: which operations a
// replay took, and the evidence of a resolution. What was done with an operation that is still open stays with it.

func removeReplayItems(db *crmdb.Queries, keep float64) retention.Step {
	return retention.NewStep("replay_items",
		func(ctx context.Context, after *crmdb.RetentionListReplayItemsRow, limit int32) ([]crmdb.RetentionListReplayItemsRow, error) {
			arg := crmdb.RetentionListReplayItemsParams{KeepSeconds: keep, MaxItems: limit}
			if after != nil {
				arg.AfterAt, arg.AfterRunID, arg.AfterPosition = after.FinishedAt, after.RunID, after.Position
			}
			return db.RetentionListReplayItems(ctx, arg)
		},
		func(row crmdb.RetentionListReplayItemsRow) time.Duration { return overdue(row.OverdueSeconds) },
		func(ctx context.Context, rows []crmdb.RetentionListReplayItemsRow) (int64, error) {
			runs, positions := make([]uuid.UUID, len(rows)), make([]int32, len(rows))
			for i, row := range rows {
				runs[i], positions[i] = row.RunID, row.Position
			}
			return db.RetentionDeleteReplayItems(ctx, runs, positions, keep)
		})
}

// removeReplayRuns removes runs of which no operation is left: removing one with all of them would be one long statement. Where those
// take more than a batch, it goes with the next purge.
func removeReplayRuns(db *crmdb.Queries, keep float64) retention.Step {
	return retention.NewStep("replay_runs",
		func(ctx context.Context, after *crmdb.RetentionListReplayRunsRow, limit int32) ([]crmdb.RetentionListReplayRunsRow, error) {
			arg := crmdb.RetentionListReplayRunsParams{KeepSeconds: keep, MaxItems: limit}
			if after != nil {
				arg.AfterAt, arg.AfterID = after.FinishedAt, after.ID
			}
			return db.RetentionListReplayRuns(ctx, arg)
		},
		func(row crmdb.RetentionListReplayRunsRow) time.Duration { return overdue(row.OverdueSeconds) },
		func(ctx context.Context, rows []crmdb.RetentionListReplayRunsRow) (int64, error) {
			ids := make([]uuid.UUID, len(rows))
			for i, row := range rows {
				ids[i] = row.ID
			}
			return db.RetentionDeleteReplayRuns(ctx, ids, keep)
		})
}

func removeResolutions(db *crmdb.Queries, keep float64) retention.Step {
	return retention.NewStep("resolutions",
		func(ctx context.Context, after *crmdb.RetentionListResolutionsRow, limit int32) ([]crmdb.RetentionListResolutionsRow, error) {
			arg := crmdb.RetentionListResolutionsParams{KeepSeconds: keep, MaxItems: limit}
			if after != nil {
				arg.AfterAt, arg.AfterID = after.DecidedAt, after.ID
			}
			return db.RetentionListResolutions(ctx, arg)
		},
		func(row crmdb.RetentionListResolutionsRow) time.Duration { return overdue(row.OverdueSeconds) },
		func(ctx context.Context, rows []crmdb.RetentionListResolutionsRow) (int64, error) {
			ids := make([]uuid.UUID, len(rows))
			for i, row := range rows {
				ids[i] = row.ID
			}
			return db.RetentionDeleteResolutions(ctx, ids, keep)
		})
}
