package invoice

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"invoicebridge/internal/erpdb"
	"invoicebridge/internal/problem"
)

// Divergence is one difference between the ERP's books and a target's, from the run that found it first to the one that no
// longer did.
type Divergence struct {
	ID                      int64
	Kind, Owner, Subject    string // Subject is the registration's id
	Source, Order, Key      string
	Ours, Theirs, Action    string
	FirstSeenAt, LastSeenAt time.Time
	ResolvedAt              *time.Time
}

// ListDivergences gives the newest divergences of a tenant, at most limit (1 to MaxPage; 0 is DefaultPage): of one kind, or
// of all; with resolved those that are, or are not, or, where it is nil, all. A wrong filter is malformed-request, a tenant that is not there not-found.
func (s *Service) ListDivergences(ctx context.Context, tenant, kind string, resolved *bool, limit int) ([]Divergence, error) {
	if limit == 0 {
		limit = DefaultPage
	}
	if limit < 1 || limit > MaxPage {
		return nil, problem.New(problem.MalformedRequest, "limit must be from 1 to %d.", MaxPage)
	}
	if kind != "" && !slices.Contains(DivergenceKinds(), kind) {
		return nil, problem.New(problem.MalformedRequest, "%.80q is not a kind of divergence.", kind)
	}
	rows, err := erpdb.New(s.db.Of(tenant)).DivergenceListPage(ctx, erpdb.DivergenceListPageParams{
		TenantID: tenant, Kind: optional(kind), Resolved: resolved, MaxItems: int32(limit),
	})
	if err != nil {
		return nil, s.readFailed(ctx, "list divergences", err)
	}
	if len(rows) == 0 {
		if _, err := erpdb.New(s.db.Of(tenant)).TenantGet(ctx, tenant); errors.Is(err, pgx.ErrNoRows) {
			return nil, noTenant(tenant)
		} else if err != nil {
			return nil, s.readFailed(ctx, "list divergences", err)
		}
	}
	list := make([]Divergence, len(rows))
	for i, r := range rows {
		list[i] = Divergence{
			ID: r.ID, Kind: r.Kind, Owner: r.Owner, Subject: r.Subject, Source: r.Source, Order: r.OrderID, Key: r.Key,
			Ours: r.Ours, Theirs: r.Theirs, Action: r.Action, FirstSeenAt: r.FirstSeenAt, LastSeenAt: r.LastSeenAt, ResolvedAt: r.ResolvedAt,
		}
	}
	return list, nil
}

func noTenant(tenant string) error {
	return problem.New(problem.NotFound, "There is no tenant %.80q.", tenant)
}
