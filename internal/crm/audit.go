package crm

import (
	"context"
	"fmt"

	"invoicebridge/internal/audit"
	"invoicebridge/internal/crmdb"
)

// writeAudit writes down what was done by hand, in the transaction that does it.
func writeAudit(ctx context.Context, queries *crmdb.Queries, tenant, action, subject string, by audit.By) error {
	err := queries.AuditEntryInsert(ctx, crmdb.AuditEntryInsertParams{
		TenantID: tenant, Actor: by.Actor, Action: action, Subject: subject, Reason: by.Reason,
		Via: by.Way(), Address: by.Address, RequestID: by.RequestID, AccountID: by.AccountID(),
	})
	if err != nil {
		return fmt.Errorf("write audit entry: %w", err)
	}
	return nil
}
