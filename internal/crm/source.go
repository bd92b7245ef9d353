package crm

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"invoicebridge/internal/audit"
	"invoicebridge/internal/crmdb"
	"invoicebridge/internal/logctx"
	"invoicebridge/internal/problem"
)

// maxResumed is how many operations a resumed source has queued at once.
const maxResumed = 10_000

// SourcePause is who holds a source's deliveries back, since when and why.
type SourcePause struct {
	PausedAt time.Time `json:"paused_at"`
	PausedBy string    `json:"paused_by"`
	Reason   string    `json:"reason"`
}

// Source is one source of orders, with what of it is open.
type Source struct {
	Source string       `json:"source"`
	Pause  *SourcePause `json:"pause"` // nil if its deliveries go on
	// Open operations by status; Flagged is how many of them are left to an operator.
	Pending    int64 `json:"pending"`
	Processing int64 `json:"processing"`
	Unknown    int64 `json:"unknown"`
	Flagged    int64 `json:"flagged"`
}

// The actions with a source.
const (
	ActionPause  ActionName = "pause"
	ActionResume ActionName = "resume"
)

// Actions says which of pause and resume is available.
func (s Source) Actions() []ActionState {
	if s.Pause == nil {
		return []ActionState{actionState(ActionPause, ""), actionState(ActionResume, "Its deliveries are not paused.")}
	}
	return []ActionState{actionState(ActionPause, "Its deliveries are paused already, by "+s.Pause.PausedBy+"."), actionState(ActionResume, "")}
}

// requireTenant refuses a tenant that there is not, with not-found: a mistake that a command line makes, where no token says whose
// things are meant.
func requireTenant(ctx context.Context, queries *crmdb.Queries, tenant string) error {
	_, err := queries.TenantGet(ctx, tenant)
	if errors.Is(err, pgx.ErrNoRows) {
		return problem.New(problem.NotFound, "There is no tenant %q.", excerpt(tenant))
	}
	if err != nil {
		return fmt.Errorf("get tenant: %w", err)
	}
	return nil
}

// ListSources gives every source that a tenant has orders from, or has paused, by name.
func (s *Service) ListSources(ctx context.Context, tenant string) ([]Source, error) {
	rows, err := crmdb.New(s.db.Of(tenant)).SourceList(ctx, tenant)
	if err != nil {
		return nil, fmt.Errorf("list sources: %w", err)
	}
	if len(rows) == 0 {
		return []Source{}, requireTenant(ctx, crmdb.New(s.db.Of(tenant)), tenant)
	}
	sources := make([]Source, len(rows))
	for i, r := range rows {
		sources[i] = Source{Source: r.Source, Pending: r.Pending, Processing: r.Processing, Unknown: r.Unknown, Flagged: r.Flagged}
		if r.PausedAt != nil && r.PausedBy != nil && r.Reason != nil {
			sources[i].Pause = &SourcePause{PausedAt: *r.PausedAt, PausedBy: *r.PausedBy, Reason: *r.Reason}
		}
	}
	return sources, nil
}

// PauseSource holds a source's deliveries back: no attempt begins from then on. Those that run end as they would, and
// orders go on being taken. Pause and audit entry are one transaction. The name is compared as Submit compares it; a source
// need not have orders yet. One that is paused is refused with wrong-state.
func (s *Service) PauseSource(ctx context.Context, tenant, source string, by audit.By) (SourcePause, error) {
	source = normaliseID(source)
	if err := errors.Join(checkBy(by), checkSource(source)); err != nil {
		return SourcePause{}, err
	}
	pause := SourcePause{PausedBy: by.Actor, Reason: by.Reason}
	err := pgx.BeginFunc(ctx, s.db.Of(tenant), func(tx pgx.Tx) (err error) {
		queries := crmdb.New(tx)
		if err := requireTenant(ctx, queries, tenant); err != nil {
			return err
		}
		pause.PausedAt, err = queries.SourcePauseInsert(ctx, crmdb.SourcePauseInsertParams{
			TenantID: tenant, Source: source, PausedBy: by.Actor, Reason: by.Reason,
		})
		if errors.Is(err, pgx.ErrNoRows) {
			return refusePause(ctx, queries, tenant, source)
		}
		if err != nil {
			return err
		}
		return writeAudit(ctx, queries, tenant, "source.pause", source, by)
	})
	if err != nil {
		return SourcePause{}, fmt.Errorf("pause a source: %w", err)
	}
	s.log.LogAttrs(ctx, slog.LevelWarn, "deliveries of a source paused", slog.String(logctx.TenantKey, tenant),
		slog.String("source", source), slog.String("actor", by.Actor))
	return pause, nil
}

func checkSource(source string) error {
	if source == "" || utf8.RuneCountInString(source) > maxSourceLength || storable(source) != source {
		return problem.New(problem.MalformedRequest, "source must be text of 1 to %d characters.", maxSourceLength)
	}
	return nil
}

func refusePause(ctx context.Context, queries *crmdb.Queries, tenant, source string) error {
	row, err := queries.SourcePauseGet(ctx, tenant, source)
	if errors.Is(err, pgx.ErrNoRows) {
		return problem.New(problem.WrongState, "%s", whyChanged)
	}
	if err != nil {
		return err
	}
	return problem.New(problem.WrongState, "Its deliveries are paused already, by %s since %s.", row.PausedBy, row.PausedAt.UTC().Format(time.RFC3339))
}

// ResumeSource ends a source's pause. What is due is queued in the same transaction (the oldest 10,000; the sweep does the
// rest), and how many that are is returned. A source that is not paused is refused with wrong-state.
func (s *Service) ResumeSource(ctx context.Context, tenant, source string, by audit.By) (queued int, err error) {
	source = normaliseID(source)
	if err := errors.Join(checkBy(by), checkSource(source)); err != nil {
		return 0, err
	}
	err = pgx.BeginFunc(ctx, s.db.Of(tenant), func(tx pgx.Tx) error {
		queries := crmdb.New(tx)
		n, err := queries.SourcePauseDelete(ctx, tenant, source)
		if err != nil {
			return err
		}
		if n == 0 {
			return problem.New(problem.WrongState, "Its deliveries are not paused.")
		}
		due, err := queries.SourcePauseListDue(ctx, tenant, source, maxResumed)
		if err != nil {
			return fmt.Errorf("list what is due: %w", err)
		}
		if queued = len(due); queued > 0 {
			if err := s.jobs.InsertDeliveries(ctx, tx, due, time.Time{}); err != nil {
				return fmt.Errorf("insert jobs: %w", err)
			}
		}
		return writeAudit(ctx, queries, tenant, "source.resume", source, by)
	})
	if err != nil {
		return 0, fmt.Errorf("resume a source: %w", err)
	}
	if queued > 0 {
		s.jobs.Wake()
	}
	s.log.LogAttrs(ctx, slog.LevelInfo, "deliveries of a source resumed", slog.String(logctx.TenantKey, tenant),
		slog.String("source", source), slog.Int("queued", queued), slog.String("actor", by.Actor))
	return queued, nil
}
