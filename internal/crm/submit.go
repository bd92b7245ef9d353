package crm

import (
	"context"
	"errors"
)

// Submit takes orders in: what is new becomes orders, operations with keys and frozen requests, and jobs, in one
// transaction for the whole call. It returns one Submission per order, in the same order; the same order may stand
// in a call several times and is taken in the order given. Repeats change nothing, whoever sends them and when.
//
// Once Submit returns without an error, everything is committed. If an order is refused and KeepGood is not set,
// nothing is stored and the error is a *problem.Problem (invalid-order, or version-conflict where that is the only
// cause) whose pointers begin with the order's index; the submissions still say which orders were refused and why.
// An unknown tenant is not-found. Any other error means that nothing was stored, or (connection lost during the
// commit) that it is not known; submitting the same again is always safe.
//
// Ids (source, order, message id, corrects) lose their outer blanks, U+00A0 and the invisible ones included, before
// they are compared. They are case-sensitive: A-1 and a-1 are two orders.
func (s *Service) Submit(ctx context.Context, tenant string, channel Channel, orders []Order, opt SubmitOptions) ([]Submission, error) {
	return nil, errors.New("not there yet")
}
