package invoice

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

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
	// groupPatience is how long a group waits for the key or the order of one member, and counterPatience how long for
	// the counter of one tenant, before that member or tenant is put off. Counters are what the groups of several
	// processes meet at, each for the time of the other's transaction: what is put off for that would be put off for
	// nothing.
	groupPatience   = 50 * time.Millisecond
	counterPatience = 500 * time.Millisecond
	// searchPatience is for finding who it is that blocks a group: who is put off wrongly only goes a little later.
	searchPatience = 10 * time.Millisecond
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
		members[i] = s.member(ctx, cmd)
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

// Again gives the answer of a request whose very bytes have been answered under this key before, if it is in memory: what Issue
// would give it, without its being decoded. Not known says nothing: Issue then decides.
func (s *Service) Again(ctx context.Context, tenant string, key idempotency.Key, body Body) (r Result, known bool) {
	return s.replays.again(ctx, replayKey{tenant, key}, body, s.now())
}

// settle gives the members of a round their results. In a hurry it waits for no key, no order and no counter for long,
// and gives back, unsettled, the members that would have to; otherwise the round is of one member, and none is given back.
//
// The unique constraints decide what exists once. Their violation aborts the transaction; what is stored then shows
// in the look-up of the next try, which answers. So every try but the first is the whole transaction with the look-up
// before it, and none trusts that what was not there a moment ago still isn't.
func (s *Service) settle(ctx context.Context, round []*member, hurry bool) (blocked []*member) {
	var err error
	for try := range maxTries {
		if try > 0 || s.looksFirst(round) {
			round, err = s.lookUp(ctx, round)
		}
		if err == nil && len(round) > 0 {
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
		case what == failureSettled, what == failureRetry:
			// Again, from the look-up on.
		case hurry && what == failureBlocked && errors.Is(err, errTakeNumbers) && len(tenantsOf(round)) == 1:
			for _, m := range round { // all of them need that counter, or one beside it
				m.counterBusy = true
			}
			return round
		case len(round) > 1 && what.mayBeOfOneMember():
			return s.settleApart(ctx, round, hurry)
		case hurry && (what == failureInProgress || what == failureBlocked):
			round[0].keyBusy = what == failureInProgress
			return round
		default:
			s.fail(ctx, round, err)
			return nil
		}
	}
	if len(round) > 1 || err == nil { // nil: the last try only found out which others are refused
		return s.settleApart(ctx, round, hurry)
	}
	s.fail(ctx, round, err)
	return nil
}

// settleApart keeps what is wrong with one member, or blocks it, from its neighbours: each half of them goes without the
// other, and so on, tenants apart first. Of n members one is found in 2 log n transactions, and the rest goes together.
func (s *Service) settleApart(ctx context.Context, round []*member, hurry bool) (blocked []*member) {
	for _, m := range round {
		m.apart = true
	}
	for _, part := range halves(round) {
		blocked = append(blocked, s.settle(ctx, part, hurry)...)
	}
	return blocked
}

// halves cuts a round in two, where possible between two tenants: a tenant's counter is then found at once. The members
// keep their sequence within a tenant.
func halves(round []*member) [][]*member {
	if len(round) < 2 {
		return [][]*member{round}
	}
	sorted := slices.Clone(round)
	slices.SortStableFunc(sorted, func(a, b *member) int { return cmp.Compare(a.Tenant, b.Tenant) })
	best := len(sorted) / 2
	for distance := range len(sorted)/2 + 1 {
		below, above := len(sorted)/2-distance, len(sorted)/2+distance
		if below > 0 && sorted[below-1].Tenant != sorted[below].Tenant {
			best = below
			break
		}
		if above < len(sorted) && sorted[above-1].Tenant != sorted[above].Tenant {
			best = above
			break
		}
	}
	return [][]*member{sorted[:best], sorted[best:]}
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
// Locks are taken in one order everywhere: keys, orders, counters, each sorted by tenant and then among themselves. After
// that nothing waits. Three round trips: all that locks, all that is written, each as one; what is to be registered
// takes two more.
func (s *Service) commit(ctx context.Context, round []*member, hurry bool) error {
	var times idempotency.Times
	var registering bool
	mark := s.replays.mark(s.now())
	err := s.transact(ctx, tenantsOf(round), func(tx *transaction) (err error) {
		if times, registering, err = s.lock(ctx, tx, round, s.patienceOf(round, hurry)); err != nil {
			return err
		}
		return s.insert(ctx, tx, round, times.FirstSeen, registering)
	})
	if err != nil {
		return fmt.Errorf("issue %d invoices: %w", len(round), err)
	}
	s.committed(len(round))
	if registering {
		s.wake()
	}
	for _, m := range round {
		answer := &Answer{InvoiceID: m.id, Number: m.number.String(), Document: m.document}
		m.settle(Result{Answer: answer, FirstSeen: times.FirstSeen, Expires: times.Expires})
		s.replays.keep(mark, m, m.result, times.FirstSeen)
	}
	return nil
}

// lock takes all locks of a round, and with them its keys, its room in the orders and its numbers. It says, too, whether
// the invoices are to be registered anywhere.
func (s *Service) lock(ctx context.Context, tx *transaction, round []*member, patience patience) (times idempotency.Times, registering bool, err error) {
	reservation, err := s.reserve(ctx, tx, round, patience.key)
	if err != nil {
		return times, false, err
	}
	orders := addToOrders(ctx, tx, round, patience.order)
	numbers := takeNumbers(ctx, tx, round, patience.counter)
	targets := tx.statements().TargetAnyOpen(ctx, [][]string{tenantsOf(round)})
	if err := tx.send(ctx); err != nil {
		return times, false, err
	}
	if times, err = reservation.Done(); err != nil {
		return times, false, err
	}
	if err := orders(); err != nil {
		return times, false, err
	}
	if err := numbers(); err != nil {
		return times, false, err
	}
	if registering, err = one(targets.QueryRow); err != nil {
		return times, false, fmt.Errorf("look for targets: %w", err)
	}
	return times, registering, tx.received()
}

func tenantsOf(round []*member) (tenants []string) {
	seen := map[string]bool{}
	for _, m := range round {
		if !seen[m.Tenant] {
			seen[m.Tenant] = true
			tenants = append(tenants, m.Tenant)
		}
	}
	return tenants
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
	switch {
	case hurry && round[0].apart: // the others of its group wait behind it
		return patience{key: searchPatience, order: searchPatience, counter: groupPatience}
	case hurry:
		return patience{key: groupPatience, order: groupPatience, counter: counterPatience}
	}
	return p
}

func (s *Service) reserve(ctx context.Context, tx *transaction, round []*member, patience time.Duration) (*idempotency.Reservation, error) {
	claims := make([]idempotency.Claim, len(round))
	for i, m := range round {
		var err error
		if m.id, err = uuid.NewV7(); err != nil {
			return nil, fmt.Errorf("make invoice id: %w", err)
		}
		claims[i] = idempotency.Claim{Tenant: m.Tenant, Key: m.Key, Fingerprint: m.fingerprint, ResourceID: m.id}
	}
	terms := idempotency.Terms{Patience: patience, Retention: s.retention}
	return idempotency.Reserve(ctx, (*collector)(tx), operationKind, claims, terms), nil
}
