package invoice

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"invoicebridge/internal/idempotency"
	"invoicebridge/internal/problem"
)

const (
	// maxTries is how often one transaction is run in all: again after 40001 and 40P01, and after somebody else's
	// commit was seen, with the look-up before it.
	maxTries = 5
	// keyPatience is how long a request waits for the first one with its key before it is told to come later.
	keyPatience = 2 * time.Second
	// lockPatience is how long a request waits for its order and for its series' counter.
	lockPatience = 10 * time.Second
	// groupPatience is how long a group waits for the key or the order of one member before that one is put off.
	groupPatience = 50 * time.Millisecond
	// retryAfter is what a caller is told to wait where it is worth coming again.
	retryAfter = time.Second
)

// Issue issues the invoices that the commands ask for and gives one Result for each, in their order.
//
// A Result without Err is committed. A command that is refused (by any problem) has stored nothing and taken no
// number. What happens to one command is told in its Result alone: none fails another. Commands that can go together
// go in one transaction; those that share a key or an order go one after the other; one that has to wait for others
// goes last. If ctx ends, what is not committed is rolled back.
//
// A Result with problem unavailable may be committed nevertheless, if the connection broke during COMMIT. The same
// command again tells.
func (s *Service) Issue(ctx context.Context, cmds []Command) []Result {
	members := make([]*member, len(cmds))
	for i, cmd := range cmds {
		members[i] = newMember(cmd)
	}
	for _, round := range rounds(members) {
		together := len(round) > 1
		for _, m := range s.settle(ctx, round, together) {
			s.settle(ctx, []*member{m}, false)
		}
	}
	results := make([]Result, len(members))
	for i, m := range members {
		results[i] = m.result
	}
	return results
}

// settle gives the members of a round their results. In a hurry it waits for no key and no order longer than
// groupPatience, and gives back, unsettled, the members that would have to; otherwise it gives back none.
//
// The unique constraints decide what exists once. Their violation aborts the transaction; what is stored then shows
// in the look-up of the next try, which answers. So every try is the whole transaction with the look-up before it, and
// none trusts that what was not there a moment ago still isn't.
func (s *Service) settle(ctx context.Context, round []*member, hurry bool) (blocked []*member) {
	var err error
	for range maxTries {
		if round, err = s.lookUp(ctx, round); err == nil && len(round) > 0 {
			err = s.commit(ctx, round, hurry)
		}
		var refused refusals
		switch what := failureOf(err); {
		case err == nil:
			return nil
		case errors.As(err, &refused):
			// The order was locked, so what was committed before shows now. A claim that is taken comes before a
			// limit that is reached by the very invoice that took it.
			refused.note()
			if round, err = s.lookUp(ctx, round); err == nil && len(round) == 0 {
				return nil
			}
		case what == failureSettled, what == failureRetry && len(round) == 1:
			// Again, from the look-up on.
		case len(round) > 1 && what.mayBeOfOneMember():
			return s.settleOneByOne(ctx, round, hurry)
		case hurry && (what == failureInProgress || what == failureBlocked):
			for _, m := range round {
				m.counterBusy = errors.Is(err, errTakeNumbers)
			}
			return round
		default:
			s.fail(ctx, round, err)
			return nil
		}
	}
	if len(round) > 1 || err == nil { // nil: the last try only found out which others are refused
		return s.settleOneByOne(ctx, round, hurry)
	}
	s.fail(ctx, round, err)
	return nil
}

// settleOneByOne keeps what is wrong with one member, or blocks it, from its neighbours. In a hurry, those behind a
// member that is blocked by its counter are blocked, too: they need the same one.
func (s *Service) settleOneByOne(ctx context.Context, round []*member, hurry bool) (blocked []*member) {
	for i, m := range round {
		m.oneByOne = true
		blocked = append(blocked, s.settle(ctx, []*member{m}, hurry)...)
		if m.counterBusy {
			return append(blocked, round[i+1:]...)
		}
	}
	return blocked
}

// fail settles members whose tries have come to nothing.
func (s *Service) fail(ctx context.Context, round []*member, err error) {
	for _, m := range round {
		m.settle(s.failure(ctx, m, err))
	}
}

// failure is the result of a member whose tries have come to nothing because of err.
func (s *Service) failure(ctx context.Context, m *member, err error) Result {
	switch failureOf(err) {
	case failureInProgress:
		p := problem.New(problem.OperationInProgress, "The first request with this key has not ended yet.")
		p.RetryAfter = retryAfter
		return Result{Err: p}
	case failureRetry, failureBlocked, failureUnavailable:
		s.logger.WarnContext(ctx, "invoice not issued, the caller is to come again",
			"tenant", m.Tenant, "operation_key", m.Key.String(), "error", err)
		return Result{Err: unavailable()}
	default:
		return Result{Err: err}
	}
}

func unavailable() *problem.Problem {
	p := problem.New(problem.Unavailable, "The service can't reach its database in time. The same request may be sent again.")
	p.RetryAfter = retryAfter
	return p
}

// commit issues the invoices of a round in one transaction. On any error nothing is stored and no number is taken.
//
// Locks are taken in one order everywhere: keys, orders, counters, each sorted. After that nothing waits.
func (s *Service) commit(ctx context.Context, round []*member, hurry bool) error {
	var times idempotency.Times
	patience := s.patienceOf(round, hurry)
	err := pgx.BeginTxFunc(ctx, s.db.Of(tenantsOf(round)...), pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) (err error) {
		if times, err = s.reserve(ctx, tx, round, patience.key); err != nil {
			return err
		}
		if err := addToOrders(ctx, tx, round, patience.order); err != nil {
			return err
		}
		if err := takeNumbers(ctx, tx, round, patience.counter); err != nil {
			return err
		}
		return s.insert(ctx, tx, round, times.FirstSeen)
	})
	if err != nil {
		return fmt.Errorf("issue %d invoices: %w", len(round), err)
	}
	s.committed(len(round))
	for _, m := range round {
		answer := &Answer{InvoiceID: m.id, Number: m.number.String(), Document: m.document}
		m.settle(Result{Answer: answer, FirstSeen: times.FirstSeen, Expires: times.Expires})
	}
	return nil
}

// patience is how long a transaction waits for a lock that another one holds.
type patience struct{ key, order, counter time.Duration }

// patienceOf counts what a member has waited for its key in a hurry towards its keyPatience.
func (s *Service) patienceOf(round []*member, hurry bool) patience {
	now := s.now()
	p := patience{key: keyPatience, order: lockPatience, counter: lockPatience}
	for _, m := range round {
		if m.giveUpAt.IsZero() {
			m.giveUpAt = now.Add(keyPatience)
		}
		p.key = min(p.key, m.giveUpAt.Sub(now))
	}
	if hurry {
		p.key, p.order = groupPatience, groupPatience
		if round[0].oneByOne { // the others of its group wait behind it
			p.counter = groupPatience
		}
	}
	return p
}

func (s *Service) reserve(ctx context.Context, tx pgx.Tx, round []*member, patience time.Duration) (idempotency.Times, error) {
	claims := make([]idempotency.Claim, len(round))
	for i, m := range round {
		var err error
		if m.id, err = uuid.NewV7(); err != nil {
			return idempotency.Times{}, fmt.Errorf("make invoice id: %w", err)
		}
		claims[i] = idempotency.Claim{Key: m.Key, Fingerprint: m.fingerprint, ResourceID: m.id}
	}
	scope := idempotency.Scope{Tenant: round[0].Tenant, Operation: operationKind}
	return idempotency.Reserve(ctx, tx, scope, claims, idempotency.Terms{Patience: patience, Retention: s.retention})
}
