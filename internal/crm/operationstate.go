package crm

import (
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"
)

// operationChange is what a call has to write for an operation.
type operationChange int

const (
	operationKept operationChange = iota
	operationNew
	operationRevised
	operationCancelled
)

// operationState is one live operation of an order under its lock.
type operationState struct {
	id          uuid.UUID
	key         string
	claim       claim
	status      OperationStatus
	attempt     int32
	nothingLeft bool // none of its attempts reached the ERP; known only where it was locked
	reason      Reason
	requestHash hash
	request     []byte // only where this call brought it
	// orderVersion is the version that request was made from, where this call brought it.
	orderVersion int64

	change             operationChange
	superseded         bool            // made room for a revision in this call
	supersedes         *operationState // which this one, new in this call, is the revision of
	changedVersion     int64           // changed_after_delivery_version; 0 is none
	changedVersionOnDB int64
}

// unsent says whether nothing of it has left this side: no attempt has begun, or none of them got as far as a
// connection. It holds until the commit: the row is locked.
func (op *operationState) unsent() bool {
	return op.status == StatusPending && (op.attempt == 0 || op.nothingLeft)
}

// untried says whether no attempt has begun, so that the request may still change under its key.
func (op *operationState) untried() bool { return op.status == StatusPending && op.attempt == 0 }

// provenNotApplied says whether the ERP read the request and refused it. Nothing came of it, so a newer version of
// the order may try again, as a new operation. Other failures (a conflict, a wrong configuration) are not for a
// newer version to mend.
func (op *operationState) provenNotApplied() bool {
	return op.status == StatusFailed && op.reason == ReasonRejected && !op.superseded
}

// correctable says whether an operator may send it again in another form: it is proven not applied, either by the ERP's
// own refusal, or because what was asked was no ERP and no earlier attempt can have arrived at one, or by two people's word.
func (op *operationState) correctable() bool {
	return op.status == StatusFailed && correctableReason(op.reason) && !op.superseded
}

func correctableReason(r Reason) bool {
	return r == ReasonRejected || r == ReasonConfiguration || r == ReasonResolvedNotApplied
}

func (op *operationState) revise(w want, version int64) {
	op.request, op.requestHash, op.orderVersion = w.request, w.hash, version
	if op.change == operationKept {
		op.change = operationRevised
	}
}

func (op *operationState) setChangedAfterDelivery(version int64) { op.changedVersion = version }

// sentOtherwise names the operations that were sent before the order changed.
func sentOtherwise(differ []*operationState) string {
	slices.SortFunc(differ, func(a, b *operationState) int { return compareClaims(a.claim, b.claim) })
	names := make([]string, len(differ))
	for i, op := range differ {
		names[i] = fmt.Sprintf("%s %d (%s)", op.claim.role, op.claim.sequence, op.status)
	}
	return "sent before in another form: " + strings.Join(names, ", ")
}
