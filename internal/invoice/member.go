package invoice

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"invoicebridge/internal/erpapi"
	"invoicebridge/internal/idempotency"
	"invoicebridge/internal/problem"
)

// member is one command on its way through Issue.
type member struct {
	Command
	place       order
	canonical   []byte
	fingerprint idempotency.Fingerprint
	draft       *draft           // nil where refused
	refusal     *problem.Problem // why the request is not valid; told only if the key has no answer already
	overrun     *problem.Problem // what its order has no room for; told only if the claim is free, too

	giveUpAt    time.Time // when waiting for the key ends; set when it begins
	apart       bool      // its group could not go together
	keyBusy     bool      // in a hurry it met its key in use by another transaction
	counterBusy bool      // in a hurry it met the counter of its tenant in use by another transaction

	// The invoice of the current try. It exists once that has committed.
	id       uuid.UUID
	number   number
	corrects uuid.UUID // Nil where it corrects none
	document []byte

	settled bool // result is final
	result  Result
}

// order is what a member locks: two members of one order never go in one round.
type order struct{ tenant, source, id string }

func newMember(cmd Command) *member {
	m := identify(cmd)
	m.judge()
	return m
}

// member is newMember for a command whose answer may be in memory.
func (s *Service) member(ctx context.Context, cmd Command) *member {
	m := identify(cmd)
	s.replays.answer(ctx, m, s.now())
	m.judge()
	return m
}

// identify says which request this is, judge whether it is valid.
func identify(cmd Command) *member {
	m := &member{Command: cmd, place: orderOfRequest(cmd.Tenant, cmd.Request)}
	var err error
	if m.canonical, err = cmd.Request.Canonical(); err != nil {
		m.settle(Result{Err: fmt.Errorf("issue invoice: %w", err)})
		return m
	}
	m.fingerprint = idempotency.NewFingerprint(erpapi.CanonicalVersion, m.canonical)
	return m
}

func (m *member) judge() {
	if !m.settled {
		m.draft, m.refusal = validate(m.Request)
	}
}

func orderOfRequest(tenant string, r *erpapi.InvoiceRequest) order {
	return order{tenant, identity(r.Source), identity(r.Order)}
}

func (m *member) order() order { return m.place }

func (m *member) settle(r Result) { m.result, m.settled = r, true }

func (m *member) refuse(p *problem.Problem) { m.settle(Result{Err: p}) }

// maxRound bounds one transaction.
const maxRound = 256

// rounds splits members into groups that can each go in one transaction: of one tenant, with distinct keys and
// distinct orders. Members that share a key or an order stay in their sequence.
func rounds(members []*member) [][]*member {
	var all [][]*member
	for waiting := members; len(waiting) > 0; {
		var round []*member
		round, waiting = nextRound(waiting, maxRound)
		if len(round) > 0 {
			all = append(all, round)
		}
	}
	return all
}

// nextRound takes at most most members, and always the first that is open.
func nextRound(members []*member, most int) (round, later []*member) {
	var before apartness
	tenant := ""
	for _, m := range members {
		if m.settled {
			continue
		}
		if tenant == "" {
			tenant = m.Tenant
		}
		if m.Tenant != tenant {
			later = append(later, m)
			continue
		}
		if before.add(m) && len(round) < most {
			round = append(round, m)
		} else {
			later = append(later, m)
		}
	}
	return round, later
}

// apartness keeps apart, among the members of one tenant, what shares a key or an order.
type apartness struct {
	keys   map[idempotency.Key]struct{}
	orders map[order]struct{}
}

// add says whether m shares nothing with those before it, those that were put off included, or a later member would
// overtake an earlier one of its order.
func (a *apartness) add(m *member) bool {
	if a.keys == nil {
		a.keys, a.orders = map[idempotency.Key]struct{}{}, map[order]struct{}{}
	}
	_, sameKey := a.keys[m.Key]
	_, sameOrder := a.orders[m.place]
	a.keys[m.Key], a.orders[m.place] = struct{}{}, struct{}{}
	return !sameKey && !sameOrder
}
