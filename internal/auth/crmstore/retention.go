package crmstore

import (
	"context"
	"time"

	"invoicebridge/internal/auth"
	"invoicebridge/internal/crmdb"
	"invoicebridge/internal/retention"
)

// RetentionSteps are what a retention.Purger removes of log-ins: sessions whose life is over, and failures that the slow-down
// has forgotten. Log-ins do the same a few at a time; this is for what the last of them leave.
func (s *Store) RetentionSteps() []retention.Step {
	db := crmdb.New(s.pool)
	return []retention.Step{removeSessions(db), removeLogInFailures(db, auth.ForgetAfter.Seconds())}
}

func removeSessions(db *crmdb.Queries) retention.Step {
	return retention.NewStep("sessions",
		func(ctx context.Context, after *crmdb.SessionListExpiredRow, limit int32) ([]crmdb.SessionListExpiredRow, error) {
			if after == nil {
				after = &crmdb.SessionListExpiredRow{IDHash: []byte{}}
			}
			return db.SessionListExpired(ctx, after.ExpiresAt, after.IDHash, limit)
		},
		func(row crmdb.SessionListExpiredRow) time.Duration { return seconds(row.OverdueSeconds) },
		func(ctx context.Context, rows []crmdb.SessionListExpiredRow) (int64, error) {
			hashes := make([][]byte, len(rows))
			for i, row := range rows {
				hashes[i] = row.IDHash
			}
			return db.SessionDeleteExpired(ctx, hashes)
		})
}

func removeLogInFailures(db *crmdb.Queries, forget float64) retention.Step {
	return retention.NewStep("login_failures",
		func(ctx context.Context, after *crmdb.LoginFailureListOldRow, limit int32) ([]crmdb.LoginFailureListOldRow, error) {
			arg := crmdb.LoginFailureListOldParams{ForgetSeconds: forget, MaxItems: limit}
			if after != nil {
				arg.AfterAt, arg.AfterSubject = after.LastFailedAt, after.Subject
			}
			return db.LoginFailureListOld(ctx, arg)
		},
		func(row crmdb.LoginFailureListOldRow) time.Duration { return seconds(row.OverdueSeconds) },
		func(ctx context.Context, rows []crmdb.LoginFailureListOldRow) (int64, error) {
			subjects := make([]string, len(rows))
			for i, row := range rows {
				subjects[i] = row.Subject
			}
			return db.LoginFailureDeleteForgotten(ctx, subjects, forget)
		})
}

func seconds(n float64) time.Duration { return time.Duration(n * float64(time.Second)) }
