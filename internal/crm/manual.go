package crm

import (
	"context"

	"invoicebridge/internal/audit"
)

// SubmitByHand takes in one order that a person has written, for when its source is away: Submit with the channel manual,
// with an audit entry in the same transaction. The refusals are Submit's; their pointers go into the order.
//
// Of an invoice that was cancelled by hand it makes a new operation, also where just the same is wanted.
func (s *Service) SubmitByHand(ctx context.Context, tenant string, order Order, by audit.By) (Submission, error) {
	return Submission{}, errNotYet()
}
