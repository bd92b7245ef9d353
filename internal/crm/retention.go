package crm

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"invoicebridge/internal/crmdb"
	"invoicebridge/internal/retention"
)

// How long things are kept, unless Keep says otherwise (docs/retention.md).
const (
	DefaultKeepPersonalData = 365 * 24 * time.Hour
	DefaultKeepAttempts     = 365 * 24 * time.Hour
	DefaultKeepInbox        = 90 * 24 * time.Hour
	DefaultKeepActions      = 365 * 24 * time.Hour
)

// Keep says how long the CRM side keeps what it need not keep for ever. Zero values take the defaults.
type Keep struct {
	// PersonalData is how long after their end orders and operations still hold names, addresses and texts. After it
	// they are minimised: key, hash, claim, amounts and the invoice's number stay. Resolved divergences are removed.
	PersonalData time.Duration
	// Attempts is how long after their operation's end its attempts can be read.
	Attempts time.Duration
	// Inbox is how long a message is recognised by its id, and how long what was refused, and what an import says of
	// rows that were not taken, can be read.
	Inbox time.Duration
	// Actions is how long after their end replays of many can be read, and after their decision resolutions.
	Actions time.Duration
}

// WithDefaults fills in what is not set.
func (k Keep) WithDefaults() Keep {
	if k.PersonalData == 0 {
		k.PersonalData = DefaultKeepPersonalData
	}
	if k.Attempts == 0 {
		k.Attempts = DefaultKeepAttempts
	}
	if k.Inbox == 0 {
		k.Inbox = DefaultKeepInbox
	}
	if k.Actions == 0 {
		k.Actions = DefaultKeepActions
	}
	return k
}

// RetentionSteps are what a retention.Purger does on the CRM side's database. Nothing of an operation that is
// unfinished, unknown or with an operator is touched, however old it is.
func RetentionSteps(pool *pgxpool.Pool, keep Keep) []retention.Step {
	keep = keep.WithDefaults()
	db := crmdb.New(pool)
	return []retention.Step{
		minimiseOperations(db, keep.PersonalData.Seconds()),
		minimiseOrders(db, keep.PersonalData.Seconds()),
		removeAttempts(db, keep.Attempts.Seconds()),
		removeInboxMessages(db, keep.Inbox.Seconds()),
		removeIntakeRefusals(db, keep.Inbox.Seconds()),
		minimiseImports(db, keep.Inbox.Seconds()),
		removeDivergences(db, keep.PersonalData.Seconds()),
		removeReplayItems(db, keep.Actions.Seconds()),
		removeReplayRuns(db, keep.Actions.Seconds()),
		removeResolutions(db, keep.Actions.Seconds()),
	}
}

// AuditPurge writes into every tenant's audit that somebody ran the purge by hand.
func AuditPurge(ctx context.Context, pool *pgxpool.Pool, actor, subject, reason string) error {
	if err := crmdb.New(pool).RetentionAudit(ctx, actor, subject, reason); err != nil {
		return fmt.Errorf("write the audit: %w", err)
	}
	return nil
}

func minimiseOperations(db *crmdb.Queries, keep float64) retention.Step {
	return retention.NewStep("operations",
		func(ctx context.Context, after *crmdb.RetentionListOperationsRow, limit int32) ([]crmdb.RetentionListOperationsRow, error) {
			arg := crmdb.RetentionListOperationsParams{KeepSeconds: keep, MaxItems: limit}
			if after != nil {
				arg.AfterAt, arg.AfterID = after.FinishedAt, after.ID
			}
			return db.RetentionListOperations(ctx, arg)
		},
		func(row crmdb.RetentionListOperationsRow) time.Duration { return overdue(row.OverdueSeconds) },
		func(ctx context.Context, rows []crmdb.RetentionListOperationsRow) (int64, error) {
			ids := make([]uuid.UUID, len(rows))
			for i, row := range rows {
				ids[i] = row.ID
			}
			return db.RetentionMinimiseOperations(ctx, ids, keep)
		})
}

func minimiseOrders(db *crmdb.Queries, keep float64) retention.Step {
	return retention.NewStep("orders",
		func(ctx context.Context, after *crmdb.RetentionListOrdersRow, limit int32) ([]crmdb.RetentionListOrdersRow, error) {
			arg := crmdb.RetentionListOrdersParams{KeepSeconds: keep, MaxItems: limit}
			if after != nil {
				arg.AfterAt, arg.AfterTenantID = after.UpdatedAt, after.TenantID
				arg.AfterSource, arg.AfterOrderID = after.Source, after.OrderID
			}
			return db.RetentionListOrders(ctx, arg)
		},
		func(row crmdb.RetentionListOrdersRow) time.Duration { return overdue(row.OverdueSeconds) },
		func(ctx context.Context, rows []crmdb.RetentionListOrdersRow) (int64, error) {
			arg := crmdb.RetentionMinimiseOrdersParams{KeepSeconds: keep}
			for _, row := range rows {
				arg.TenantIds = append(arg.TenantIds, row.TenantID)
				arg.Sources, arg.OrderIds = append(arg.Sources, row.Source), append(arg.OrderIds, row.OrderID)
			}
			return db.RetentionMinimiseOrders(ctx, arg)
		})
}

func removeAttempts(db *crmdb.Queries, keep float64) retention.Step {
	return retention.NewStep("attempts",
		func(ctx context.Context, after *crmdb.RetentionListAttemptsRow, limit int32) ([]crmdb.RetentionListAttemptsRow, error) {
			arg := crmdb.RetentionListAttemptsParams{KeepSeconds: keep, MaxItems: limit}
			if after != nil {
				arg.AfterAt, arg.AfterID, arg.AfterNumber = after.StartedAt, after.OperationID, after.Number
			}
			return db.RetentionListAttempts(ctx, arg)
		},
		func(row crmdb.RetentionListAttemptsRow) time.Duration { return overdue(row.OverdueSeconds) },
		func(ctx context.Context, rows []crmdb.RetentionListAttemptsRow) (int64, error) {
			ids, numbers := make([]uuid.UUID, len(rows)), make([]int32, len(rows))
			for i, row := range rows {
				ids[i], numbers[i] = row.OperationID, row.Number
			}
			return db.RetentionDeleteAttempts(ctx, ids, numbers, keep)
		})
}

func removeInboxMessages(db *crmdb.Queries, keep float64) retention.Step {
	return retention.NewStep("inbox_messages",
		func(ctx context.Context, after *crmdb.RetentionListInboxMessagesRow, limit int32) ([]crmdb.RetentionListInboxMessagesRow, error) {
			arg := crmdb.RetentionListInboxMessagesParams{KeepSeconds: keep, MaxItems: limit}
			if after != nil {
				arg.AfterAt, arg.AfterID = after.ReceivedAt, after.ID
			}
			return db.RetentionListInboxMessages(ctx, arg)
		},
		func(row crmdb.RetentionListInboxMessagesRow) time.Duration { return overdue(row.OverdueSeconds) },
		func(ctx context.Context, rows []crmdb.RetentionListInboxMessagesRow) (int64, error) {
			ids := make([]int64, len(rows))
			for i, row := range rows {
				ids[i] = row.ID
			}
			return db.RetentionDeleteInboxMessages(ctx, ids, keep)
		})
}

func removeDivergences(db *crmdb.Queries, keep float64) retention.Step {
	return retention.NewStep("divergences",
		func(ctx context.Context, after *crmdb.RetentionListDivergencesRow, limit int32) ([]crmdb.RetentionListDivergencesRow, error) {
			arg := crmdb.RetentionListDivergencesParams{KeepSeconds: keep, MaxItems: limit}
			if after != nil {
				arg.AfterAt, arg.AfterID = after.ResolvedAt, after.ID
			}
			return db.RetentionListDivergences(ctx, arg)
		},
		func(row crmdb.RetentionListDivergencesRow) time.Duration { return overdue(row.OverdueSeconds) },
		func(ctx context.Context, rows []crmdb.RetentionListDivergencesRow) (int64, error) {
			ids := make([]int64, len(rows))
			for i, row := range rows {
				ids[i] = row.ID
			}
			return db.RetentionDeleteDivergences(ctx, ids, keep)
		})
}

func overdue(seconds float64) time.Duration { return time.Duration(seconds * float64(time.Second)) }
