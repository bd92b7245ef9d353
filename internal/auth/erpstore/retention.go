package erpstore

import (
	"context"
	"time"

	"invoicebridge/internal/auth"
	"invoicebridge/internal/erpdb"
	"invoicebridge/internal/retention"
)

// RetentionSteps are what a retention.Purger removes of log-ins: sessions whose life is over, and failures that the slow-down
// has forgotten. Log-ins do the same a few at a time; this is for what the last of them leave.
func (s *Store) RetentionSteps() []retention.Step {
	db := erpdb.New(s.pool)
	return []retention.Step{removeSessions(db), removeLogInFailures(db, auth.ForgetAfter.Seconds())}
}

func removeSessions(db *erpdb.Queries) retention.Step {
	return retention.NewStep("sessions",
		func(ctx context.Context, after *erpdb.SessionListExpiredRow, limit int32) ([]erpdb.SessionListExpiredRow, error) {
			if after == nil {
				after = &erpdb.SessionListExpiredRow{IDHash: []byte{}}
			}
			return db.SessionListExpired(ctx, after.ExpiresAt, after.IDHash, limit)
		},
		func(row erpdb.SessionListExpiredRow) time.Duration { return seconds(row.OverdueSeconds) },
		func(ctx context.Context, rows []erpdb.SessionListExpiredRow) (int64, error) {
			hashes := make([][]byte, len(rows))
			for i, row := range rows {
				hashes[i] = row.IDHash
			}
			return db.SessionDeleteExpired(ctx, hashes)
		})
}

func removeLogInFailures(db *erpdb.Queries, forget float64) retention.Step {
	return retention.NewStep("login_failures",
		func(ctx context.Context, after *erpdb.LoginFailureListOldRow, limit int32) ([]erpdb.LoginFailureListOldRow, error) {
			arg := erpdb.LoginFailureListOldParams{ForgetSeconds: forget, MaxItems: limit}
			if after != nil {
				arg.AfterAt, arg.AfterSubject = after.LastFailedAt, after.Subject
			}
			return db.LoginFailureListOld(ctx, arg)
		},
		func(row erpdb.LoginFailureListOldRow) time.Duration { return seconds(row.OverdueSeconds) },
		func(ctx context.Context, rows []erpdb.LoginFailureListOldRow) (int64, error) {
			subjects := make([]string, len(rows))
			for i, row := range rows {
				subjects[i] = row.Subject
			}
			return db.LoginFailureDeleteForgotten(ctx, subjects, forget)
		})
}

func seconds(n float64) time.Duration { return time.Duration(n * float64(time.Second)) }
