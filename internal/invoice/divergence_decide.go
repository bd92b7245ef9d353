package invoice

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"invoicebridge/internal/audit"
	"invoicebridge/internal/erpapi"
	"invoicebridge/internal/erpdb"
	"invoicebridge/internal/problem"
)

// DivergenceState is where a divergence stands.
type DivergenceState string

// The states. Only an open one counts as open.
const (
	DivergenceOpen     DivergenceState = "open"
	DivergenceAccepted DivergenceState = "accepted" // known and all right, until it is gone
	DivergenceResolved DivergenceState = "resolved" // gone, or closed by hand
)

// DivergenceStates are all of them.
func DivergenceStates() []DivergenceState {
	return []DivergenceState{DivergenceOpen, DivergenceAccepted, DivergenceResolved}
}

// DivergenceView is a divergence with what a person has decided, and the invoice that it is about.
type DivergenceView struct {
	Divergence
	AcceptedAt *time.Time
	// DecidedBy and DecisionReason are who accepted it or closed it by hand, and why; empty where nobody did.
	DecidedBy, DecisionReason string
	Invoice                   *erpapi.InvoiceLink // nil where there is none
}

// State is where it stands.
func (d DivergenceView) State() DivergenceState {
	switch {
	case d.ResolvedAt != nil:
		return DivergenceResolved
	case d.AcceptedAt != nil:
		return DivergenceAccepted
	}
	return DivergenceOpen
}

// Actions says what can be done with it.
func (d DivergenceView) Actions() []ActionState {
	state := d.State()
	return []ActionState{actionState(ActionAccept, whyNoAccept(state)), actionState(ActionClose, whyNoClose(state))}
}

func whyNoAccept(state DivergenceState) string {
	switch state {
	case DivergenceResolved:
		return "It is resolved."
	case DivergenceAccepted:
		return "It is accepted already."
	case DivergenceOpen:
	}
	return ""
}

func whyNoClose(state DivergenceState) string {
	if state == DivergenceResolved {
		return "It is resolved."
	}
	return ""
}

// DivergenceFilter narrows a list. Members left zero do not narrow.
type DivergenceFilter struct {
	Kind  string
	State DivergenceState
}

// SearchDivergences gives a page of a tenant's divergences, the newest first, and the cursor of the next page, or nil on the
// last. It fails with problem malformed-request for a kind or state that there is not, a limit out of range or a cursor
// that it never gave.
func (s *Service) SearchDivergences(ctx context.Context, tenant string, f DivergenceFilter, p Page) (list []DivergenceView, next *string, err error) {
	limit := p.Limit
	if limit == 0 {
		limit = DefaultPage
	}
	params := erpdb.DivergenceSearchParams{TenantID: tenant, Kind: optional(f.Kind), State: optional(string(f.State)), MaxItems: int32(limit) + 1}
	switch {
	case limit < 1 || limit > MaxPage:
		return nil, nil, problem.New(problem.MalformedRequest, "limit must be from 1 to %d.", MaxPage)
	case f.Kind != "" && !slices.Contains(DivergenceKinds(), f.Kind):
		return nil, nil, problem.New(problem.MalformedRequest, "kind must be one of %s.", strings.Join(DivergenceKinds(), ", "))
	case f.State != "" && !slices.Contains(DivergenceStates(), f.State):
		return nil, nil, problem.New(problem.MalformedRequest, "state must be open, accepted or resolved.")
	}
	if p.Cursor != "" {
		at, id, err := parseSerialPosition(p.Cursor)
		if err != nil {
			return nil, nil, err
		}
		params.BeyondAt, params.BeyondID = &at, &id
	}
	rows, err := erpdb.New(s.pool).DivergenceSearch(ctx, params)
	if err != nil {
		return nil, nil, s.readFailed(ctx, "list divergences", err)
	}
	if len(rows) > limit {
		rows = rows[:limit]
		next = new(serialPosition(rows[limit-1].FirstSeenAt, rows[limit-1].ID))
	}
	list = []DivergenceView{}
	for _, r := range rows {
		list = append(list, divergenceView(r))
	}
	return list, next, nil
}

// GetDivergence gives one divergence. It fails with problem not-found if the tenant has none of this id.
func (s *Service) GetDivergence(ctx context.Context, tenant string, id int64) (DivergenceView, error) {
	rows, err := erpdb.New(s.pool).DivergenceSearch(ctx, erpdb.DivergenceSearchParams{TenantID: tenant, ID: &id, MaxItems: 1})
	if err != nil {
		return DivergenceView{}, s.readFailed(ctx, "get a divergence", err)
	}
	if len(rows) == 0 {
		return DivergenceView{}, noDivergence()
	}
	return divergenceView(rows[0]), nil
}

func noDivergence() error {
	return problem.New(problem.NotFound, "There is no divergence with this id.")
}

func divergenceView(r erpdb.DivergenceSearchRow) DivergenceView {
	d := DivergenceView{
		Divergence: Divergence{
			ID: r.ID, Kind: r.Kind, Owner: r.Owner, Subject: r.Subject, Source: r.Source, Order: r.OrderID, Key: r.Key, Ours: r.Ours,
			Theirs: r.Theirs, Action: r.Action, FirstSeenAt: r.FirstSeenAt.UTC(), LastSeenAt: r.LastSeenAt.UTC(), ResolvedAt: utc(r.ResolvedAt),
		},
		AcceptedAt: utc(r.AcceptedAt), DecidedBy: r.DecidedBy, DecisionReason: r.DecisionReason,
	}
	if r.InvoiceID != nil && r.InvoiceNumber != nil {
		d.Invoice = &erpapi.InvoiceLink{ID: r.InvoiceID.String(), Number: *r.InvoiceNumber}
	}
	return d
}

// AcceptDivergence says that a divergence is known and all right. It no longer counts as open, also when it is found again;
// when it is gone it is resolved as any other. Change and audit entry are one transaction. It fails with problem not-found,
// malformed-request without a reason, and wrong-state if it is accepted or resolved.
func (s *Service) AcceptDivergence(ctx context.Context, tenant string, id int64, by audit.By) error {
	return s.decideDivergence(ctx, tenant, id, by, func(queries *erpdb.Queries, state DivergenceState) error {
		if err := refuseFor(whyNoAccept(state)); err != nil {
			return err
		}
		_, err := queries.DivergenceAccept(ctx, erpdb.DivergenceAcceptParams{DecidedBy: by.Actor, DecisionReason: by.Reason, TenantID: tenant, ID: id})
		if err != nil {
			return err
		}
		return writeAudit(ctx, queries, tenant, "divergence.accept", strconv.FormatInt(id, 10), by)
	})
}

// CloseDivergence resolves a divergence by hand. If it is found again, it opens anew. It fails as AcceptDivergence does, with
// wrong-state if it is resolved.
func (s *Service) CloseDivergence(ctx context.Context, tenant string, id int64, by audit.By) error {
	return s.decideDivergence(ctx, tenant, id, by, func(queries *erpdb.Queries, state DivergenceState) error {
		if err := refuseFor(whyNoClose(state)); err != nil {
			return err
		}
		_, err := queries.DivergenceClose(ctx, erpdb.DivergenceCloseParams{DecidedBy: by.Actor, DecisionReason: by.Reason, TenantID: tenant, ID: id})
		if err != nil {
			return err
		}
		return writeAudit(ctx, queries, tenant, "divergence.close", strconv.FormatInt(id, 10), by)
	})
}

func (s *Service) decideDivergence(ctx context.Context, tenant string, id int64, by audit.By, decide func(*erpdb.Queries, DivergenceState) error) error {
	if err := checkBy(by); err != nil {
		return err
	}
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		queries := erpdb.New(tx)
		row, err := queries.DivergenceLock(ctx, tenant, id)
		if errors.Is(err, pgx.ErrNoRows) {
			return noDivergence()
		}
		if err != nil {
			return err
		}
		return decide(queries, DivergenceView{AcceptedAt: row.AcceptedAt, Divergence: Divergence{ResolvedAt: row.ResolvedAt}}.State())
	})
	if err != nil && problem.As(err) == nil {
		return s.readFailed(ctx, "decide on a divergence", err)
	}
	return err
}

// serialPosition is a cursor of a list by time and a number: what one batch of a run finds shares its time.
func serialPosition(at time.Time, id int64) string {
	p := position{createdAt: at}
	binary.BigEndian.PutUint64(p.id[8:], uint64(id))
	return p.cursor()
}

func parseSerialPosition(cursor string) (time.Time, int64, error) {
	p, err := parseCursor(cursor)
	if err != nil {
		return time.Time{}, 0, err
	}
	none, id := binary.BigEndian.Uint64(p.id[:8]), binary.BigEndian.Uint64(p.id[8:])
	if none != 0 || id > math.MaxInt64 {
		return time.Time{}, 0, badCursor()
	}
	return p.createdAt, int64(id), nil
}
