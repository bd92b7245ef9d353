package invoice

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"invoicebridge/internal/erpapi"
	"invoicebridge/internal/erpdb"
)

// FoundRegistrations is a page of registrations, newest first, with the cursors of its neighbours as in Found.
type FoundRegistrations struct {
	Registrations  []erpapi.RegistrationDetail
	Next, Previous string
}

// WalkRegistrations is ListRegistrations with a way back.
func (s *Service) WalkRegistrations(ctx context.Context, tenant string, f RegistrationFilter, w Walk) (FoundRegistrations, error) {
	at, newer, err := w.position()
	if err != nil {
		return FoundRegistrations{}, err
	}
	if !newer {
		items, next, err := s.ListRegistrations(ctx, tenant, f, Page{Limit: w.Limit, Cursor: w.After})
		found := FoundRegistrations{Registrations: items}
		if next != nil {
			found.Next = *next
		}
		if at != nil && len(items) > 0 {
			found.Previous = registrationCursor(items[0])
		}
		return found, err
	}
	params, err := registrationListParams(tenant, f, Page{Limit: w.Limit})
	if err != nil {
		return FoundRegistrations{}, err
	}
	limit := int(params.PageSize)
	rows, err := erpdb.New(s.db.Of(tenant).PlannedAnew()).RegistrationListNewer(ctx, erpdb.RegistrationListNewerParams{
		TenantID: tenant, Status: params.Status, TargetID: params.TargetID, Flagged: params.Flagged,
		BeyondAt: at.createdAt, BeyondID: at.id, PageSize: params.PageSize + 1,
	})
	if err != nil {
		return FoundRegistrations{}, s.readFailed(ctx, "list registrations", err)
	}
	more := len(rows) > limit
	rows = rows[:min(len(rows), limit)]
	slices.Reverse(rows)
	found := FoundRegistrations{Registrations: make([]erpapi.RegistrationDetail, len(rows))}
	for i, row := range rows {
		found.Registrations[i] = registrationDetail(erpdb.RegistrationGetRow(row))
	}
	if len(rows) > 0 {
		found.Next = position{rows[len(rows)-1].CreatedAt, rows[len(rows)-1].ID}.cursor()
		if more {
			found.Previous = position{rows[0].CreatedAt, rows[0].ID}.cursor()
		}
	}
	return found, nil
}

func registrationCursor(r erpapi.RegistrationDetail) string {
	id, err := uuid.Parse(r.ID)
	if err != nil {
		return ""
	}
	return position{r.CreatedAt, id}.cursor()
}

// RegistrationCount is how many registrations of a status there are: all open ones, and of the finished ones those with a flag.
type RegistrationCount struct {
	Status         RegistrationStatus
	Count, Flagged int64
	OldestAt       time.Time
}

// CountRegistrations counts what is open, and what a person has to look at.
func (s *Service) CountRegistrations(ctx context.Context, tenant string) ([]RegistrationCount, error) {
	rows, err := erpdb.New(s.db.Of(tenant)).RegistrationCounts(ctx, tenant)
	if err != nil {
		return nil, s.readFailed(ctx, "count registrations", err)
	}
	counts := make([]RegistrationCount, len(rows))
	for i, r := range rows {
		counts[i] = RegistrationCount{RegistrationStatus(r.Status), r.Registrations, r.Flagged, r.OldestAt.UTC()}
	}
	return counts, nil
}

// RegistrationActions says of each action with a registration whether it is available: replay, resolve, acknowledge. It
// fails with problem not-found if the tenant has no such registration.
func (s *Service) RegistrationActions(ctx context.Context, tenant string, id uuid.UUID) (states []ActionState, err error) {
	err = pgx.BeginTxFunc(ctx, s.db.Of(tenant), pgx.TxOptions{AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		queries := erpdb.New(tx)
		row, err := queries.RegistrationGet(ctx, tenant, id)
		if err != nil {
			return err
		}
		pause, err := pauseAt(ctx, queries, tenant, id)
		if err != nil {
			return err
		}
		var queued bool
		if s.queue != nil {
			if queued, err = s.queue.RegistrationIsQueued(ctx, tx, id); err != nil {
				return err
			}
		}
		status := RegistrationStatus(row.Status)
		states = []ActionState{
			actionState(ActionReplay, whyNoReplay(status, queued, pause)), actionState(ActionResolve, whyNoResolve(status)),
			actionState(ActionAcknowledge, whyNoAcknowledge(status, row.FlaggedAt != nil)),
		}
		return nil
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, noRegistration()
	}
	if err != nil {
		return nil, s.readFailed(ctx, "see what can be done with a registration", err)
	}
	return states, nil
}
