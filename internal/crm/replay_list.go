package crm

import (
	"context"
	"slices"
	"time"

	"github.com/google/uuid"

	"invoicebridge/internal/crmdb"
	"invoicebridge/internal/problem"
)

// ListReplayRuns gives one page of a tenant's runs, the newest first unless OldestFirst.
func (s *Service) ListReplayRuns(ctx context.Context, tenant string, q PageQuery) (found Page[ReplayRun], err error) {
	err = readConsole(ctx, s.db.Of(tenant), func(queries *crmdb.Queries) error {
		rows, err := replayRunPaging(ctx, queries, tenant).page(q)
		found, err = pageOf(rows, err, func(r crmdb.ReplayRunListNewestRow) ReplayRun { return replayRun(crmdb.ReplayRunGetRow(r)) })
		return err
	})
	return found, listError("replays", err)
}

func replayRunPaging(ctx context.Context, queries *crmdb.Queries, tenant string) paging[crmdb.ReplayRunListNewestRow, uuid.UUID] {
	arg := crmdb.ReplayRunListNewestParams{TenantID: tenant}
	return paging[crmdb.ReplayRunListNewestRow, uuid.UUID]{
		newest: func(beyond *place[uuid.UUID], limit int32) ([]crmdb.ReplayRunListNewestRow, error) {
			arg.BeyondAt, arg.BeyondID = beyond.parts()
			arg.MaxItems = limit
			return queries.ReplayRunListNewest(ctx, arg)
		},
		oldest: func(beyond *place[uuid.UUID], limit int32) (told []crmdb.ReplayRunListNewestRow, err error) {
			arg.BeyondAt, arg.BeyondID = beyond.parts()
			arg.MaxItems = limit
			rows, err := queries.ReplayRunListOldest(ctx, crmdb.ReplayRunListOldestParams(arg))
			for _, r := range rows {
				told = append(told, crmdb.ReplayRunListNewestRow(r))
			}
			return told, err
		},
		at:    func(r crmdb.ReplayRunListNewestRow) place[uuid.UUID] { return place[uuid.UUID]{r.StartedAt, r.ID} },
		parse: parseUUID, format: formatUUID,
	}
}

// replayResults are all results.
func replayResults() []ReplayResult {
	return []ReplayResult{ReplayWaiting, ReplayQueued, ReplayRefused, ReplayStopped}
}

// ListReplayItems gives one page of a run's operations with their results, in the order of their turns. The problem is
// not-found if the tenant has no run of that id, malformed-request if the filter is wrong.
func (s *Service) ListReplayItems(ctx context.Context, tenant string, id uuid.UUID, f ReplayItemFilter) (found Page[ReplayItem], err error) {
	if f.Result != "" && !slices.Contains(replayResults(), f.Result) {
		return found, problem.New(problem.MalformedRequest, "%q is not a result of a replay.", excerpt(string(f.Result)))
	}
	if _, err := s.GetReplayRun(ctx, tenant, id); err != nil {
		return found, err
	}
	err = readConsole(ctx, s.db.Of(tenant), func(queries *crmdb.Queries) error {
		rows, err := replayItemPaging(ctx, queries, id, f.Result).page(f.PageQuery)
		found, err = pageOf(rows, err, func(r crmdb.ReplayItemListForwardRow) ReplayItem {
			return ReplayItem{
				Position: r.Position, Key: r.Key, Result: ReplayResult(r.Result), Detail: r.Detail, DoneAt: r.DoneAt, Status: OperationStatus(r.Status),
			}
		})
		return err
	})
	return found, listError("a replay's operations", err)
}

// replayItemPaging: the list is in the order of the turns, which alone tell its rows apart. They have no time.
func replayItemPaging(ctx context.Context, queries *crmdb.Queries, run uuid.UUID, result ReplayResult) paging[crmdb.ReplayItemListForwardRow, int32] {
	arg := crmdb.ReplayItemListForwardParams{RunID: run, Result: orNil(string(result))}
	return paging[crmdb.ReplayItemListForwardRow, int32]{
		newest: func(beyond *place[int32], limit int32) ([]crmdb.ReplayItemListForwardRow, error) {
			_, arg.BeyondPosition = beyond.parts()
			arg.MaxItems = limit
			return queries.ReplayItemListForward(ctx, arg)
		},
		oldest: func(beyond *place[int32], limit int32) (told []crmdb.ReplayItemListForwardRow, err error) {
			_, arg.BeyondPosition = beyond.parts()
			arg.MaxItems = limit
			rows, err := queries.ReplayItemListBack(ctx, crmdb.ReplayItemListBackParams(arg))
			for _, r := range rows {
				told = append(told, crmdb.ReplayItemListForwardRow(r))
			}
			return told, err
		},
		at:    func(r crmdb.ReplayItemListForwardRow) place[int32] { return place[int32]{time.Time{}, r.Position} },
		parse: parsePosition, format: func(position int32) string { return formatNumber(int64(position)) },
	}
}
