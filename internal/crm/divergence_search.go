package crm

import (
	"context"
	"slices"

	"invoicebridge/internal/crmdb"
	"invoicebridge/internal/problem"
)

// DivergenceSearch says which divergences a list has. What is left empty does not narrow.
type DivergenceSearch struct {
	Kind               DivergenceKind
	Resolved, Accepted *bool // false and false are those that count as open
	Key                string
	Source, Order      string
	PageQuery
}

// SearchDivergences gives one page of a tenant's divergences, the newest first unless OldestFirst. A wrong filter is
// malformed-request.
func (c *Console) SearchDivergences(ctx context.Context, tenant string, f DivergenceSearch) (found Page[Divergence], err error) {
	if f.Kind != "" && !slices.Contains(DivergenceKinds(), f.Kind) {
		return found, problem.New(problem.MalformedRequest, "%q is not a kind of divergence.", excerpt(string(f.Kind)))
	}
	if err := storableFilter(f.Key, f.Source, f.Order); err != nil {
		return found, err
	}
	err = readConsole(ctx, c.db.Of(tenant), func(queries *crmdb.Queries) error {
		found, err = searchDivergences(ctx, queries, tenant, f)
		return err
	})
	return found, listError("divergences", err)
}

func searchDivergences(ctx context.Context, queries *crmdb.Queries, tenant string, f DivergenceSearch) (Page[Divergence], error) {
	arg := crmdb.DivergenceSearchNewestParams{
		TenantID: tenant, Kind: orNil(string(f.Kind)), Resolved: f.Resolved, Accepted: f.Accepted, Key: orNil(f.Key),
		Source: orNil(normaliseID(f.Source)), OrderID: orNil(normaliseID(f.Order)),
	}
	rows, err := divergencePaging(ctx, queries, arg).page(f.PageQuery)
	return pageOf(rows, err, foundDivergence)
}

func foundDivergence(r crmdb.DivergenceSearchNewestRow) Divergence {
	return Divergence{
		ID: r.ID, Kind: DivergenceKind(r.Kind), Owner: r.Owner, Subject: r.Subject, Source: r.Source, Order: r.OrderID,
		Key: r.Key, Ours: r.Ours, Theirs: r.Theirs, Action: r.Action, FirstSeenAt: r.FirstSeenAt, LastSeenAt: r.LastSeenAt,
		ResolvedAt: r.ResolvedAt, AcceptedAt: r.AcceptedAt, DecidedBy: r.DecidedBy, DecisionReason: r.DecisionReason,
		AgeSeconds: r.AgeSeconds,
	}
}

func divergencePaging(ctx context.Context, queries *crmdb.Queries, arg crmdb.DivergenceSearchNewestParams) paging[crmdb.DivergenceSearchNewestRow, int64] {
	return paging[crmdb.DivergenceSearchNewestRow, int64]{
		newest: func(beyond *place[int64], limit int32) ([]crmdb.DivergenceSearchNewestRow, error) {
			arg.BeyondAt, arg.BeyondID = beyond.parts()
			arg.MaxItems = limit
			return queries.DivergenceSearchNewest(ctx, arg)
		},
		oldest: func(beyond *place[int64], limit int32) (told []crmdb.DivergenceSearchNewestRow, err error) {
			arg.BeyondAt, arg.BeyondID = beyond.parts()
			arg.MaxItems = limit
			rows, err := queries.DivergenceSearchOldest(ctx, crmdb.DivergenceSearchOldestParams(arg))
			for _, r := range rows {
				told = append(told, crmdb.DivergenceSearchNewestRow(r))
			}
			return told, err
		},
		at:    func(r crmdb.DivergenceSearchNewestRow) place[int64] { return place[int64]{r.FirstSeenAt, r.ID} },
		parse: parseNumber, format: formatNumber,
	}
}
