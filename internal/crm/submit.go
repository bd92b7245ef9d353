package crm

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"invoicebridge/internal/crmdb"
	"invoicebridge/internal/logctx"
	"invoicebridge/internal/problem"
)

// submitTries is how often a call's transaction is run in all, if the database breaks it off for another's sake.
const submitTries = 5

// Submit takes orders in: what is new becomes orders, operations with keys and frozen requests, and jobs, in one
// transaction for the whole call. It returns one Submission per order, in the same order; the same order may stand
// in a call several times and is taken in the order given. Repeats change nothing, whoever sends them and when.
//
// Once Submit returns without an error, everything is committed. If an order is refused and KeepGood is not set,
// nothing is stored and the error is a *problem.Problem (invalid-order, or version-conflict where that is the only
// cause) whose pointers begin with the order's index; the submissions still say which orders were refused and why.
// An unknown tenant is not-found. If the database keeps breaking the transaction off, the error is unavailable. Any
// other error means that nothing was stored, or (connection lost during the commit) that it is not known;
// submitting the same again is always safe.
//
// Ids (source, order, message id, corrects) lose their outer blanks, U+00A0 and the invisible ones included, before
// they are compared. They are case-sensitive: A-1 and a-1 are two orders.
func (s *Service) Submit(ctx context.Context, tenant string, channel Channel, orders []Order, opt SubmitOptions) ([]Submission, error) {
	prepared := prepare(orders)
	for try := 1; ; try++ {
		submissions, err := s.submitOnce(ctx, tenant, channel, prepared, opt)
		switch {
		case err == nil:
			s.logSubmissions(ctx, tenant, channel, submissions)
			s.tellOutcomes(channel, submissions)
			return submissions, nil
		case problem.As(err) != nil:
			s.tellOutcomes(channel, submissions)
			return submissions, err
		case !brokenOff(err):
			return nil, fmt.Errorf("submit %d orders: %w", len(orders), err)
		case try == submitTries:
			return nil, errors.Join(errKeepsBreaking(), fmt.Errorf("submit %d orders, try %d: %w", len(orders), try, err))
		}
		s.log.InfoContext(ctx, "submit is run again", logctx.TenantKey, tenant, "orders", len(orders), "try", try, "error", err)
	}
}

func (s *Service) tellOutcomes(channel Channel, submissions []Submission) {
	for _, sub := range submissions {
		s.told(channel, sub.Outcome)
	}
}

func errKeepsBreaking() *problem.Problem {
	p := problem.New(problem.Unavailable, "The database is too busy with the same orders. Nothing was stored.")
	p.RetryAfter = time.Second
	return p
}

// brokenOff says whether the database ended a transaction for another's sake, so that it is to be run again whole.
func brokenOff(err error) bool {
	var answer *pgconn.PgError
	if !errors.As(err, &answer) {
		return false
	}
	return answer.Code == "40001" || answer.Code == "40P01" // serialization_failure, deadlock_detected
}

func (s *Service) submitOnce(ctx context.Context, tenant string, channel Channel, prepared []incoming, opt SubmitOptions) (submissions []Submission, err error) {
	var call *submitTx
	err = pgx.BeginFunc(ctx, s.db.Of(tenant), func(tx pgx.Tx) error {
		call = &submitTx{tx: tx, queries: crmdb.New(tx), jobs: s.jobs, tenant: tenant, channel: channel, incoming: prepared}
		if err := call.lockOrders(ctx); err != nil {
			return err
		}
		submissions = call.takeAll()
		if !opt.KeepGood {
			if p := refusal(submissions); p != nil {
				return p // rolls back: nothing is stored
			}
		}
		if err := call.write(ctx); err != nil {
			return err
		}
		return call.auditByHand(ctx, submissions, opt.byHand)
	})
	switch {
	case err == nil && call.queued:
		s.jobs.Wake()
	case err != nil && !opt.KeepGood:
		keepRefusedOnly(submissions)
	}
	return submissions, err
}

// refusal is the problem of a call that is refused as a whole, nil if no order of it is.
func refusal(submissions []Submission) *problem.Problem {
	const most = 100 // members told; a file of 10,000 wrong rows is not read to its end by anybody
	p := problem.New(problem.VersionConflict, "")
	refused := 0
	for i, s := range submissions {
		if s.Outcome != OutcomeRefused {
			continue
		}
		refused++
		told := s.Errors
		if len(s.Errors) > 0 {
			p.Type = problem.InvalidOrder
		} else {
			told = []problem.FieldError{{Pointer: "/version", Detail: s.Detail}}
		}
		for _, e := range told {
			if len(p.Errors) < most {
				p.Errors = append(p.Errors, problem.FieldError{Pointer: fmt.Sprintf("/%d%s", i, e.Pointer), Detail: e.Detail})
			}
		}
	}
	if refused == 0 {
		return nil
	}
	p.Detail = fmt.Sprintf("%d of %d orders refused, so nothing was stored.", refused, len(submissions))
	return p
}

// keepRefusedOnly takes back what the others were told: it was rolled back.
func keepRefusedOnly(submissions []Submission) {
	for i := range submissions {
		if s := &submissions[i]; s.Outcome != OutcomeRefused {
			s.Outcome, s.Detail, s.Version, s.Operations = OutcomeNone, "", 0, []OperationLink{}
		}
	}
}

// logSubmissions tells what became of each operation; only what a person has to see is told at every level.
func (s *Service) logSubmissions(ctx context.Context, tenant string, channel Channel, submissions []Submission) {
	for _, sub := range submissions {
		level := slog.LevelDebug
		if sub.Outcome == OutcomeChangedAfterDelivery {
			level = slog.LevelWarn
		}
		if !s.log.Enabled(ctx, level) {
			continue
		}
		for _, op := range sub.Operations {
			s.log.LogAttrs(ctx, level, "order submitted", slog.String(logctx.TenantKey, tenant),
				slog.String(logctx.OperationKeyKey, op.Key), slog.String("channel", string(channel)),
				slog.String("source", sub.Source), slog.String("order", sub.Order), slog.Int64("version", sub.Version),
				slog.String("outcome", string(sub.Outcome)), slog.String("detail", sub.Detail),
				slog.String("status", string(op.Status)))
		}
	}
}
