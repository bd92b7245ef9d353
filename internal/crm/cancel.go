package crm

import (
	"context"

	"invoicebridge/internal/audit"
)

// Cancel takes an operation back of which nothing has left: no attempt began, or none got as far as a connection. Operation
// and audit entry are one transaction.
//
// What the order does afterwards: a repeat, or a newer version that wants just this invoice, leaves it cancelled; a newer
// version that wants it otherwise makes a new operation under a new key.
//
// What may have been sent, is being worked on or is final is refused with wrong-state; an unknown key is not-found.
func (s *Service) Cancel(ctx context.Context, tenant, key string, by audit.By) (Operation, error) {
	return Operation{}, errNotYet()
}
