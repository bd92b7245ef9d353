package invoice

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// RegistrationQueue is the queue of registrations. It is a means: that a registration is open and due is on record, and
// a job that is lost is enqueued again by the Sweeper. internal/jobs has the real one.
type RegistrationQueue interface {
	// InsertRegistrations inserts a job for each registration, to be worked on at a time or, where that is not in
	// the future, at once. The jobs are there once the caller's transaction has committed, and never otherwise.
	InsertRegistrations(ctx context.Context, tx pgx.Tx, ids []uuid.UUID, at time.Time) error
	// Wake is to be called after that commit: it tells the workers, of all processes, that there are jobs. It returns at once
	// and may fail unseen; the workers then find the jobs when they look next, within a second or so.
	Wake()
	// RegistrationIsQueued says whether a job is just about to work on a registration, or does.
	RegistrationIsQueued(ctx context.Context, tx pgx.Tx, id uuid.UUID) (bool, error)
}

// enqueue puts registrations that were just written into the queue, in their own transaction: after the commit nobody
// needs to remember them. What is left to do then is wake.
func (s *Service) enqueue(ctx context.Context, tx pgx.Tx, registrations []uuid.UUID) error {
	if len(registrations) == 0 || s.queue == nil {
		return nil
	}
	if err := s.queue.InsertRegistrations(ctx, tx, registrations, time.Time{}); err != nil {
		return fmt.Errorf("enqueue %d registrations: %w", len(registrations), err)
	}
	return nil
}

// wake tells the workers of what enqueue has put into the queue, after the commit.
func (s *Service) wake() {
	if s.queue != nil {
		s.queue.Wake()
	}
}
