package invoice

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"invoicebridge/internal/audit"
	"invoicebridge/internal/erpdb"
	"invoicebridge/internal/problem"
)

// AcknowledgeRegistration puts on record that a person has dealt with a registration that has come to its end, and takes
// off its flag; status, reason and detail stay. Without its flag it no longer keeps the reservation of its key. Change
// and audit entry are one transaction.
//
// It fails with problem not-found, malformed-request without a reason, and wrong-state unless the registration has failed,
// or has succeeded with a flag: while it is open, its flag tells of what goes on, and is taken off by replay or resolve.
func (s *Service) AcknowledgeRegistration(ctx context.Context, tenant string, id uuid.UUID, by audit.By) error {
	if err := checkReason(by); err != nil {
		return err
	}
	return s.changeRegistration(ctx, tenant, id, func(tx pgx.Tx, status RegistrationStatus) error {
		if !status.Final() {
			return problem.New(problem.WrongState, "This registration is %s. Only one that has come to its end can be acknowledged.", status)
		}
		acknowledged, err := erpdb.New(tx).RegistrationAcknowledge(ctx, id)
		if err != nil {
			return err
		}
		if acknowledged == 0 {
			return problem.New(problem.WrongState, "This registration has %s and has no flag. There is nothing to acknowledge.", status)
		}
		return auditRegistration(ctx, tx, tenant, id, "registration.acknowledge", by)
	})
}
