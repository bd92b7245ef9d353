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

// SearchDivergences gives a page of a tenant's divergences, the newest first. It fails with problem malformed-request for a
// kind or state that there is not, a limit out of range or a cursor that it never gave.
func (s *Service) SearchDivergences(ctx context.Context, tenant string, f DivergenceFilter, w Walk) (page Walked[DivergenceView], err error) {
	switch {
	case f.Kind != "" && !slices.Contains(DivergenceKinds(), f.Kind):
		return page, problem.New(problem.MalformedRequest, "kind must be one of %s.", strings.Join(DivergenceKinds(), ", "))
	case f.State != "" && !slices.Contains(DivergenceStates(), f.State):
		return page, problem.New(problem.MalformedRequest, "state must be open, accepted or resolved.")
	}
	queries, kind, state := erpdb.New(s.db.Of(tenant)), optional(f.Kind), optional(string(f.State))
	page, err = walking[erpdb.DivergenceSearchRow, serialPlace, DivergenceView]{
		older: func(behind *serialPlace, limit int32) ([]erpdb.DivergenceSearchRow, error) {
			params := erpdb.DivergenceSearchParams{TenantID: tenant, Kind: kind, State: state, MaxItems: limit}
			if behind != nil {
				params.BeyondAt, params.BeyondID = &behind.at, &behind.id
			}
			return queries.DivergenceSearch(ctx, params)
		},
		newer: func(behind *serialPlace, limit int32) (rows []erpdb.DivergenceSearchRow, err error) {
			newer, err := queries.DivergenceSearchNewer(ctx, erpdb.DivergenceSearchNewerParams{
				TenantID: tenant, Kind: kind, State: state, BeyondAt: behind.at, BeyondID: behind.id, MaxItems: limit,
			})
			for _, r := range newer {
				rows = append(rows, erpdb.DivergenceSearchRow(r))
			}
			return rows, err
		},
		parse:  parseSerialPlace,
		cursor: func(r erpdb.DivergenceSearchRow) string { return serialPlace{r.FirstSeenAt, r.ID}.cursor() },
		item:   divergenceView,
	}.page(w)
	if err != nil {
		return page, s.readFailed(ctx, "list divergences", err)
	}
	return page, nil
}

// GetDivergence gives one divergence. It fails with problem not-found if the tenant has none of this id.
func (s *Service) GetDivergence(ctx context.Context, tenant string, id int64) (DivergenceView, error) {
	rows, err := erpdb.New(s.db.Of(tenant)).DivergenceSearch(ctx, erpdb.DivergenceSearchParams{TenantID: tenant, ID: &id, MaxItems: 1})
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
	err := pgx.BeginFunc(ctx, s.db.Of(tenant), func(tx pgx.Tx) error {
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

// serialPlace is a place in a list by time and a number: what one batch of a run finds shares its time.
type serialPlace struct {
	at time.Time
	id int64
}

func (p serialPlace) cursor() string {
	whole := position{createdAt: p.at}
	binary.BigEndian.PutUint64(whole.id[8:], uint64(p.id))
	return whole.cursor()
}

func parseSerialPlace(cursor string) (serialPlace, error) {
	p, err := parseCursor(cursor)
	if err != nil {
		return serialPlace{}, err
	}
	none, id := binary.BigEndian.Uint64(p.id[:8]), binary.BigEndian.Uint64(p.id[8:])
	if none != 0 || id > math.MaxInt64 {
		return serialPlace{}, badCursor()
	}
	return serialPlace{p.createdAt, int64(id)}, nil
}
