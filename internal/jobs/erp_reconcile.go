package jobs

import (
	"context"

	"github.com/jackc/pgx/v5"

	"invoicebridge/internal/invoice"
)

var _ invoice.ReconciliationQueue = (*ERPInserter)(nil)

// InsertReconciliation implements invoice.ReconciliationQueue.
func (i *ERPInserter) InsertReconciliation(ctx context.Context, tx pgx.Tx, tenant string) error {
	return i.inserter.InsertReconciliation(ctx, tx, tenant)
}
