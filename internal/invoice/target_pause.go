package invoice

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"invoicebridge/internal/audit"
	"invoicebridge/internal/erpdb"
	"invoicebridge/internal/logctx"
	"invoicebridge/internal/problem"
)

// Pause is who keeps a target from being called, since when and why.
type Pause struct {
	At     time.Time
	By     string
	Reason string
}

// TargetView is a target with what is open there.
type TargetView struct {
	TargetSettings
	CreatedAt  time.Time
	DisabledAt *time.Time
	Pause      *Pause // nil: it is called
	// Open registrations by status, and how many of them wait for a person. OldestAt is when the oldest was written down.
	Pending, Processing, Unknown, Flagged int64
	OldestAt                              *time.Time
}

// Actions says which of pause and resume is available.
func (t TargetView) Actions() []ActionState {
	return []ActionState{actionState(ActionPause, t.Pause.whyNoPause()), actionState(ActionResume, t.Pause.whyNoResume())}
}

func (p *Pause) whyNoPause() string {
	if p == nil {
		return ""
	}
	return fmt.Sprintf("It is paused already, by %s since %s.", p.By, p.At.UTC().Format(time.RFC3339))
}

func (p *Pause) whyNoResume() string {
	if p == nil {
		return "It is not paused."
	}
	return ""
}

// Targets gives a tenant's targets by id, the disabled ones included, each with what is open there.
func (s *Service) Targets(ctx context.Context, tenant string) ([]TargetView, error) {
	queries := erpdb.New(s.db.Of(tenant))
	rows, err := queries.TargetList(ctx, tenant)
	if err != nil {
		return nil, s.readFailed(ctx, "list targets", err)
	}
	standings, err := queries.TargetStandings(ctx, tenant)
	if err != nil {
		return nil, s.readFailed(ctx, "count what is open at targets", err)
	}
	views := make([]TargetView, len(rows))
	for i, row := range rows {
		views[i] = targetView(row)
		for _, standing := range standings {
			if standing.TargetID == row.ID {
				views[i].count(standing)
			}
		}
	}
	return views, nil
}

// Target gives one of them. It fails with problem not-found if the tenant has none of this id.
func (s *Service) Target(ctx context.Context, tenant, id string) (TargetView, error) {
	views, err := s.Targets(ctx, tenant)
	if err != nil {
		return TargetView{}, err
	}
	for _, view := range views {
		if view.ID == id {
			return view, nil
		}
	}
	return TargetView{}, noTarget(id)
}

func noTarget(id string) error { return problem.New(problem.NotFound, "There is no target %.80q.", id) }

func targetView(row erpdb.Target) TargetView {
	return TargetView{
		TargetSettings: TargetSettings{
			Tenant: row.TenantID, ID: row.ID, Kind: row.Kind, BaseURL: row.BaseUrl, CredentialRef: row.CredentialRef,
			Can: capabilitiesOf(row.KeyWindowSeconds, row.Locatable, row.AbsentAfterSeconds), Disabled: row.DisabledAt != nil,
		},
		CreatedAt: row.CreatedAt.UTC(), DisabledAt: utc(row.DisabledAt), Pause: pauseOf(row.PausedAt, row.PausedBy, row.PauseReason),
	}
}

func pauseOf(at *time.Time, by, reason string) *Pause {
	if at == nil {
		return nil
	}
	return &Pause{at.UTC(), by, reason}
}

func (t *TargetView) count(row erpdb.TargetStandingsRow) {
	switch RegistrationStatus(row.Status) {
	case RegistrationPending:
		t.Pending = row.Registrations
	case RegistrationProcessing:
		t.Processing = row.Registrations
	case RegistrationUnknown:
		t.Unknown = row.Registrations
	case RegistrationSucceeded, RegistrationFailed:
	}
	t.Flagged += row.Flagged
	if oldest := row.OldestAt.UTC(); t.OldestAt == nil || oldest.Before(*t.OldestAt) {
		t.OldestAt = &oldest
	}
}

// PauseTarget keeps a target from being called: no attempt begins there from then on, neither a sending nor a question.
// Those that have begun end as they would, and invoices go on being issued; their registrations wait. Pause and audit
// entry are one transaction. It fails with problem not-found, malformed-request without a reason, and wrong-state if the
// target is paused already.
func (s *Service) PauseTarget(ctx context.Context, tenant, id string, by audit.By) error {
	err := s.changeTarget(ctx, tenant, id, by, func(queries *erpdb.Queries, _ pgx.Tx, pause *Pause) error {
		if err := refuseFor(pause.whyNoPause()); err != nil {
			return err
		}
		_, err := queries.TargetPause(ctx, erpdb.TargetPauseParams{TenantID: tenant, ID: id, PausedBy: by.Actor, PauseReason: by.Reason})
		if err != nil {
			return err
		}
		return writeAudit(ctx, queries, tenant, "target.pause", id, by)
	})
	if err == nil {
		s.logger.WarnContext(ctx, "target paused", slog.String(logctx.TenantKey, tenant), slog.String("target", id), slog.String("actor", by.Actor))
	}
	return err
}

// ResumeTarget ends a pause, and has all that is due there worked on at once: its jobs are inserted in the same transaction.
// queued is how many these are. It fails as PauseTarget does, with wrong-state if the target is not paused.
func (s *Service) ResumeTarget(ctx context.Context, tenant, id string, by audit.By) (queued int, err error) {
	err = s.changeTarget(ctx, tenant, id, by, func(queries *erpdb.Queries, tx pgx.Tx, pause *Pause) error {
		if err := refuseFor(pause.whyNoResume()); err != nil {
			return err
		}
		if _, err := queries.TargetResume(ctx, tenant, id); err != nil {
			return err
		}
		due, err := queries.TargetListDue(ctx, tenant, id, string(ReasonNothingIsSafe))
		if err != nil {
			return err
		}
		if err := s.enqueue(ctx, tx, due); err != nil {
			return err
		}
		queued = len(due)
		return writeAudit(ctx, queries, tenant, "target.resume", id, by)
	})
	if err != nil {
		return 0, err
	}
	if queued > 0 {
		s.wake()
	}
	s.logger.InfoContext(ctx, "target resumed", slog.String(logctx.TenantKey, tenant), slog.String("target", id),
		slog.Int("queued", queued), slog.String("actor", by.Actor))
	return queued, nil
}

// changeTarget runs do in a transaction that has the target locked.
func (s *Service) changeTarget(ctx context.Context, tenant, id string, by audit.By, do func(*erpdb.Queries, pgx.Tx, *Pause) error) error {
	if err := checkBy(by); err != nil {
		return err
	}
	if !isStorable(id) {
		return noTarget(id)
	}
	err := pgx.BeginFunc(ctx, s.db.Of(tenant), func(tx pgx.Tx) error {
		queries := erpdb.New(tx)
		row, err := queries.TargetGet(ctx, tenant, id)
		if errors.Is(err, pgx.ErrNoRows) {
			return noTarget(id)
		}
		if err != nil {
			return err
		}
		return do(queries, tx, pauseOf(row.PausedAt, row.PausedBy, row.PauseReason))
	})
	if err != nil && problem.As(err) == nil {
		return s.readFailed(ctx, "change target "+id, err)
	}
	return err
}

// pauseAt is the pause of a registration's target; nil if there is none.
func pauseAt(ctx context.Context, queries *erpdb.Queries, tenant string, registration uuid.UUID) (*Pause, error) {
	row, err := queries.TargetOfRegistration(ctx, tenant, registration)
	if err != nil {
		return nil, fmt.Errorf("read the target of registration %s: %w", registration, err)
	}
	return pauseOf(row.PausedAt, row.PausedBy, row.PauseReason), nil
}
