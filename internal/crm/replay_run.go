package crm

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"invoicebridge/internal/audit"
	"invoicebridge/internal/crmdb"
	"invoicebridge/internal/logctx"
	"invoicebridge/internal/problem"
)

// replaySample is how many operations a preview shows.
const replaySample = 20

func (f ReplayFilter) check() error {
	switch {
	case f.Status != "" && f.Status != StatusPending && f.Status != StatusUnknown:
		return problem.New(problem.MalformedRequest, "status must be %s or %s: nothing else can be replayed.", StatusPending, StatusUnknown)
	case f.MinAge < 0 || f.MinAge > 100*365*24*time.Hour:
		return problem.New(problem.MalformedRequest, "The age must be from 0 to 100 years.")
	case storable(f.Source) != f.Source || storable(string(f.Reason)) != string(f.Reason):
		return problem.New(problem.MalformedRequest, "source and reason must be text of at most 2000 characters.")
	}
	return nil
}

func (f ReplayFilter) countParams(tenant string) crmdb.ReplayCountParams {
	return crmdb.ReplayCountParams{
		TenantID: tenant, Status: string(f.Status), Reason: string(f.Reason), Source: f.Source, MinAgeSeconds: f.MinAge.Truncate(time.Second).Seconds(),
	}
}

// PreviewReplays says what StartReplays would take up. A wrong filter is malformed-request.
func (s *Service) PreviewReplays(ctx context.Context, tenant string, f ReplayFilter) (ReplayPreview, error) {
	if err := f.check(); err != nil {
		return ReplayPreview{}, err
	}
	queries, count := crmdb.New(s.db.Of(tenant)), f.countParams(tenant)
	n, err := queries.ReplayCount(ctx, count)
	if err != nil {
		return ReplayPreview{}, fmt.Errorf("count what can be replayed: %w", err)
	}
	rows, err := queries.ReplaySample(ctx, crmdb.ReplaySampleParams{
		TenantID: count.TenantID, Status: count.Status, Reason: count.Reason, Source: count.Source,
		MinAgeSeconds: count.MinAgeSeconds, MaxItems: replaySample,
	})
	if err != nil {
		return ReplayPreview{}, fmt.Errorf("list what can be replayed: %w", err)
	}
	preview := ReplayPreview{Count: n, Sample: make([]Operation, len(rows))}
	for i, row := range rows {
		preview.Sample[i] = operationRow(row).operation()
	}
	return preview, nil
}

// StartReplays freezes the operations that match into a run, with its job and an audit entry, in one transaction. The job
// replays them batch by batch, each as Replay does.
//
// expected is the count that was previewed. If more match now, or none, or another run of the tenant is not finished, it is
// refused with wrong-state.
func (s *Service) StartReplays(ctx context.Context, tenant string, f ReplayFilter, expected int64, by audit.By) (ReplayRun, error) {
	if err := errors.Join(checkBy(by), f.check()); err != nil {
		return ReplayRun{}, err
	}
	if s.opts.Actions == nil {
		return ReplayRun{}, errors.New("start replays: no jobs for it are configured")
	}
	id := uuid.Must(uuid.NewV7())
	err := pgx.BeginFunc(ctx, s.db.Of(tenant), func(tx pgx.Tx) error {
		queries := crmdb.New(tx)
		matched, err := s.freeze(ctx, queries, tenant, id, f, by)
		switch {
		case err != nil:
			return err
		case matched == 0:
			return problem.New(problem.WrongState, "Nothing that can be replayed matches.")
		case matched > expected:
			return problem.New(problem.WrongState, "%d operations match by now, more than the %d that were shown. Look at the preview again.", matched, expected)
		}
		if err := s.opts.Actions.InsertReplayRun(ctx, tx, id); err != nil {
			return fmt.Errorf("insert job: %w", err)
		}
		return writeAudit(ctx, queries, tenant, "replay.start", id.String(), by)
	})
	if err != nil {
		return ReplayRun{}, fmt.Errorf("start replays: %w", err)
	}
	s.log.LogAttrs(ctx, slog.LevelInfo, "replay of many operations started", slog.String(logctx.TenantKey, tenant),
		slog.String("replay", id.String()), slog.String("actor", by.Actor))
	return s.GetReplayRun(ctx, tenant, id)
}

func (s *Service) freeze(ctx context.Context, queries *crmdb.Queries, tenant string, id uuid.UUID, f ReplayFilter, by audit.By) (matched int64, err error) {
	count := f.countParams(tenant)
	matched, err = queries.ReplayFreeze(ctx, crmdb.ReplayFreezeParams{
		ID: id, TenantID: tenant, Status: count.Status, Reason: count.Reason, Source: count.Source, MinAgeSeconds: count.MinAgeSeconds,
		MaxItems: MaxReplays, StartedBy: by.Actor, StartedBecause: by.Reason, StartedVia: by.Way(), StartedAddress: by.Address,
		StartedRequest: by.RequestID, StartedAccount: by.AccountID(),
	})
	if !errors.Is(err, pgx.ErrNoRows) {
		return matched, err
	}
	if open, err := queries.ReplayRunGetOpen(ctx, tenant); err == nil {
		return 0, problem.New(problem.WrongState, "A replay is running already (%s): wait for its end, or stop it.", open)
	}
	return 0, problem.New(problem.WrongState, "A replay was running at this very moment: look at the preview again.")
}

// replayBatch is how many operations of a run are replayed in one transaction, before a pause.
const replayBatch = 50

// WorkReplayRun replays the next operations of a run, each as Replay does and under the name of who started it, in one
// transaction with their results, and says whether the run has come to its end. It may be called at any time by anybody:
// whoever works on the same run takes turns, and no operation has two results.
func (s *Service) WorkReplayRun(ctx context.Context, id uuid.UUID) (finished bool, err error) {
	err = pgx.BeginFunc(ctx, s.db.Unscoped(), func(tx pgx.Tx) error {
		queries := crmdb.New(tx)
		run, err := queries.ReplayRunLock(ctx, id)
		if errors.Is(err, pgx.ErrNoRows) {
			finished = true
			return nil
		}
		if err != nil {
			return fmt.Errorf("lock the run: %w", err)
		}
		finished, err = s.workReplayBatch(ctx, tx, id, run)
		return err
	})
	if err != nil {
		return false, fmt.Errorf("work on replay %s: %w", id, err)
	}
	s.jobs.Wake() // once a second at the most, so whether or not there is something new
	return finished, nil
}

func (s *Service) workReplayBatch(ctx context.Context, tx pgx.Tx, id uuid.UUID, run crmdb.ReplayRunLockRow) (finished bool, err error) {
	queries := crmdb.New(tx)
	items, err := queries.ReplayItemListWaiting(ctx, id, replayBatch)
	if err != nil {
		return false, fmt.Errorf("list what is waiting: %w", err)
	}
	by := audit.By{
		Actor: run.StartedBy, Reason: run.StartedBecause + " (replay " + id.String() + ")", Via: audit.Via(run.StartedVia),
		Address: run.StartedAddress, RequestID: run.StartedRequest,
	}
	if run.StartedAccount != nil {
		by.Account = *run.StartedAccount
	}
	done := crmdb.ReplayItemDoneParams{RunID: id}
	var queued []uuid.UUID
	for _, item := range items {
		result, why := ReplayQueued, ""
		operationID, err := handBack(ctx, queries, run.TenantID, item.Key, by)
		switch {
		case err == nil:
			queued = append(queued, operationID)
		case errors.Is(err, pgx.ErrNoRows):
			if result, why, err = refusedReplay(ctx, queries, run.TenantID, item.Key); err != nil {
				return false, err
			}
		default:
			return false, fmt.Errorf("replay %s: %w", item.Key, err)
		}
		done.Positions, done.Results, done.Details = append(done.Positions, item.Position), append(done.Results, string(result)), append(done.Details, why)
	}
	if len(queued) > 0 {
		if err := s.jobs.InsertDeliveries(ctx, tx, queued, time.Time{}); err != nil {
			return false, fmt.Errorf("insert jobs: %w", err)
		}
	}
	if err := allOf(len(items))(queries.ReplayItemDone(ctx, done)); err != nil {
		return false, fmt.Errorf("write results: %w", err)
	}
	return queries.ReplayRunAdvance(ctx, int32(len(queued)), int32(len(items)-len(queued)), id)
}

func refusedReplay(ctx context.Context, queries *crmdb.Queries, tenant, key string) (ReplayResult, string, error) {
	op, err := queries.OperationGetByKey(ctx, tenant, key)
	if err != nil {
		return "", "", fmt.Errorf("read %s: %w", key, err)
	}
	why := whyNoReplay(OperationStatus(op.Status), op.FlaggedAt != nil)
	if why == "" {
		why = whyChanged
	}
	return ReplayRefused, why, nil
}

// StopReplayRun ends a run: what is waiting stays as it is. One that has ended is refused with wrong-state.
func (s *Service) StopReplayRun(ctx context.Context, tenant string, id uuid.UUID, by audit.By) (ReplayRun, error) {
	if err := checkBy(by); err != nil {
		return ReplayRun{}, err
	}
	if _, err := s.GetReplayRun(ctx, tenant, id); err != nil {
		return ReplayRun{}, err
	}
	err := pgx.BeginFunc(ctx, s.db.Of(tenant), func(tx pgx.Tx) error {
		queries := crmdb.New(tx)
		if _, err := queries.ReplayRunLock(ctx, id); errors.Is(err, pgx.ErrNoRows) {
			return problem.New(problem.WrongState, "It has come to its end.")
		} else if err != nil {
			return fmt.Errorf("lock the run: %w", err)
		}
		if err := allOf(1)(queries.ReplayRunStop(ctx, &by.Actor, id)); err != nil {
			return err
		}
		return writeAudit(ctx, queries, tenant, "replay.stop", id.String(), by)
	})
	if err != nil {
		return ReplayRun{}, fmt.Errorf("stop a replay: %w", err)
	}
	return s.GetReplayRun(ctx, tenant, id)
}

// GetReplayRun gives one run; the problem is not-found if the tenant has none of that id.
func (s *Service) GetReplayRun(ctx context.Context, tenant string, id uuid.UUID) (ReplayRun, error) {
	row, err := crmdb.New(s.db.Of(tenant)).ReplayRunGet(ctx, tenant, id)
	if errors.Is(err, pgx.ErrNoRows) {
		return ReplayRun{}, problem.New(problem.NotFound, "There is no replay of this id.")
	}
	if err != nil {
		return ReplayRun{}, fmt.Errorf("get replay: %w", err)
	}
	return replayRun(row), nil
}

func replayRun(r crmdb.ReplayRunGetRow) ReplayRun {
	run := ReplayRun{
		ID: r.ID, Matched: r.Matched, Total: int(r.Total), Queued: int(r.Queued), Refused: int(r.Refused), Stopped: int(r.Stopped),
		Filter: ReplayFilter{
			Status: OperationStatus(r.Status), Reason: Reason(r.Reason), Source: r.Source, MinAge: time.Duration(r.MinAgeSeconds) * time.Second,
		},
		By: audit.By{
			Actor: r.StartedBy, Reason: r.StartedBecause, Via: audit.Via(r.StartedVia), Address: r.StartedAddress, RequestID: r.StartedRequest,
		},
		StartedAt: r.StartedAt, FinishedAt: r.FinishedAt,
	}
	if r.StartedAccount != nil {
		run.By.Account = *r.StartedAccount
	}
	if r.StoppedBy != nil {
		run.StoppedBy = *r.StoppedBy
	}
	return run
}
