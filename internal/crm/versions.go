package crm

import (
	"fmt"
	"math"
	"slices"

	"github.com/google/uuid"
)

// orderState is one order under its lock, with what this call makes of it.
type orderState struct {
	id          orderID
	known       bool // there is a version of it, in the database or from earlier in this call
	version     int64
	status      OrderStatus
	content     []byte // only where this call brought it
	contentHash hash

	operations map[claim]*operationState // the live ones
	retired    []*operationState         // those that this call took out of them
	seen       map[messageKey]bool
	changed    bool // the row is to be updated

	// cancelledByHand are the requests that a person cancelled, by claims that have no live operation.
	cancelledByHand map[claim]hash
	byHand          bool    // this call is a person's: what was cancelled by hand is wanted again
	staysCancelled  []claim // what the newest version wants, and a person cancelled
}

// messageKey recognises a message that came before.
type messageKey struct {
	messageID string
	hash      hash
}

func newOrderState(id orderID) *orderState {
	return &orderState{id: id, operations: map[claim]*operationState{}, seen: map[messageKey]bool{}}
}

// take lets one order of the call take effect. The rules: the newest version wins; the same version with the same
// content is a repeat, with other content a contradiction; an older one has no effect. Without a version the
// content decides, and other content is the next version. A message that came before has no effect, even if its
// order has moved on since.
func (st *orderState) take(in *incoming) Submission {
	switch {
	case st.seenBefore(in):
		return st.submission(in, OutcomeAlreadyThere, "this message came before")
	case !st.known:
		return st.create(in)
	case st.byHand && in.contentHash == st.contentHash && len(st.lacking(in)) > 0:
		return st.wantAgain(in)
	case in.version == nil && in.contentHash == st.contentHash:
		return st.submission(in, OutcomeAlreadyThere, "")
	case in.version == nil && st.version == math.MaxInt64:
		return st.refuseVersion(in, st.version, "there is no version after %d", st.version)
	case in.version == nil:
		return st.replace(in, st.version+1)
	case *in.version < st.version:
		s := st.submission(in, OutcomeStale, fmt.Sprintf("version %d is known", st.version))
		s.Version = *in.version
		return s
	case *in.version > st.version:
		return st.replace(in, *in.version)
	case in.contentHash == st.contentHash:
		return st.submission(in, OutcomeAlreadyThere, "")
	}
	return st.refuseVersion(in, *in.version, "version %d is known with other content", st.version)
}

func (st *orderState) seenBefore(in *incoming) bool {
	if in.messageID == "" {
		return false
	}
	key := messageKey{in.messageID, in.messageHash()}
	return st.seen[key]
}

// create takes the first version of an order. Its row is there already: lockOrders made it from this very message.
func (st *orderState) create(in *incoming) Submission {
	st.known, st.version = true, firstVersion(in)
	st.status, st.contentHash, st.content = in.status, in.contentHash, in.content
	st.want(in)
	if in.status == OrderCancelled {
		return st.submission(in, OutcomeCancelled, "nothing was known of this order")
	}
	return st.submission(in, OutcomeCreated, "")
}

func firstVersion(in *incoming) int64 {
	if in.version == nil {
		return 1
	}
	return *in.version
}

// replace takes a newer version.
func (st *orderState) replace(in *incoming, version int64) Submission {
	sameContent := in.contentHash == st.contentHash
	st.version, st.changed = version, true
	st.status, st.contentHash, st.content = in.status, in.contentHash, in.content
	if sameContent {
		return st.submission(in, OutcomeChanged, "only the version is another one")
	}
	if differ := st.want(in); len(differ) > 0 {
		return st.submission(in, OutcomeChangedAfterDelivery, sentOtherwise(differ))
	}
	if in.status == OrderCancelled {
		return st.submission(in, OutcomeCancelled, "")
	}
	return st.submission(in, OutcomeChanged, staysCancelled(st.staysCancelled))
}

func (st *orderState) refuseVersion(in *incoming, version int64, detail string, args ...any) Submission {
	s := st.submission(in, OutcomeRefused, fmt.Sprintf(detail, args...))
	s.Version = version
	return s
}

func (st *orderState) submission(in *incoming, outcome Outcome, detail string) Submission {
	s := in.submission(outcome)
	s.Version, s.Detail = st.version, detail
	for _, op := range st.operations {
		s.Operations = append(s.Operations, OperationLink{
			Key: op.key, Role: op.claim.role, Sequence: op.claim.sequence, Status: op.status,
		})
	}
	slices.SortFunc(s.Operations, func(a, b OperationLink) int {
		return compareClaims(claim{a.Role, a.Sequence}, claim{b.Role, b.Sequence})
	})
	return s
}

// want brings the operations in line with what the order now wants, as far as nothing was sent. It returns those
// that were sent otherwise: they stay as they are.
func (st *orderState) want(in *incoming) (differ []*operationState) {
	wanted := map[claim]bool{}
	st.staysCancelled = nil
	for _, w := range in.wants {
		wanted[w.claim] = true
		op := st.operations[w.claim]
		switch {
		case op == nil && !st.byHand && st.cancelledByHand[w.claim] == w.hash:
			st.staysCancelled = append(st.staysCancelled, w.claim)
		case op == nil:
			st.add(w, nil)
		case op.requestHash == w.hash:
			op.setChangedAfterDelivery(0)
		case op.untried():
			op.revise(w, st.version)
		case op.unsent(): // a request that was tried never changes, so another intention takes its place
			st.cancel(op)
			st.add(w, nil)
		case op.provenNotApplied():
			st.supersede(op, w)
		default:
			op.setChangedAfterDelivery(st.version)
			differ = append(differ, op)
		}
	}
	for c, op := range st.operations {
		switch {
		case wanted[c] || op.provenNotApplied():
		case op.unsent():
			st.cancel(op)
		default:
			op.setChangedAfterDelivery(st.version)
			differ = append(differ, op)
		}
	}
	return differ
}

func (st *orderState) add(w want, supersedes *operationState) {
	id := newOperationID()
	st.operations[w.claim] = &operationState{
		id: id, key: id.String(), claim: w.claim, status: StatusPending, requestHash: w.hash, request: w.request,
		orderVersion: st.version, supersedes: supersedes, change: operationNew,
	}
}

// supersede makes a corrected revision of an operation that the ERP refused: a new intention under a new key.
func (st *orderState) supersede(op *operationState, w want) {
	op.superseded = true
	st.retired = append(st.retired, op)
	st.add(w, op)
}

// cancel takes an operation out that was never sent. One that only this call made was never there.
func (st *orderState) cancel(op *operationState) {
	delete(st.operations, op.claim)
	if op.change != operationNew {
		op.status, op.change = StatusCancelled, operationCancelled
		st.retired = append(st.retired, op)
		return
	}
	if previous := op.supersedes; previous != nil {
		previous.superseded = false
		st.operations[op.claim] = previous
	}
}

// newOperationID is the one place where keys are made: UUID version 7, so that they sort by the time they were made.
func newOperationID() uuid.UUID { return uuid.Must(uuid.NewV7()) }
