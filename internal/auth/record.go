package auth

import (
	"context"

	"invoicebridge/internal/audit"
)

// Record writes audit entries, all or none, for what somebody does elsewhere than in this service's own tables: with the
// queue. Do it first: what could not be written down must not be done.
func (a *Admin) Record(ctx context.Context, by audit.By, entries ...AuditEntry) error {
	if len(entries) == 0 {
		return nil
	}
	return a.store.InTx(ctx, func(tx AdminTx) error {
		for _, entry := range entries {
			if err := writeAudit(ctx, tx, by, entry); err != nil {
				return err
			}
		}
		return nil
	})
}
