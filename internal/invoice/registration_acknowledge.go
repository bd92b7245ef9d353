package invoice

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"invoicebridge/internal/audit"
	"invoicebridge/internal/erpdb"
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
		if err := refuseFor(whyNoAcknowledge(status, true)); err != nil {
			return err
		}
		acknowledged, err := erpdb.New(tx).RegistrationAcknowledge(ctx, id)
		if err != nil {
			return err
		}
		if acknowledged == 0 {
			return refuseFor(whyNoAcknowledge(status, false))
		}
		return auditRegistration(ctx, tx, tenant, id, "registration.acknowledge", by)
	})
}
