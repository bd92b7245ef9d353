package invoice

import (
	"context"

	"invoicebridge/internal/erpapi"
	"invoicebridge/internal/erpdb"
)

// exportBatch is how many invoices are read at a time: enough that round trips don't count, few enough to be held.
const exportBatch = 500

// Each hands all invoices that fit to do, newest first, and holds no more than a batch of them and no connection while do
// works: whoever reads slowly keeps nobody waiting. Invoices never change and never go, so the walk through batches meets
// each that was there at its start exactly once. It ends with do's first error, and fails as Search does.
func (s *Service) Each(ctx context.Context, tenant string, f Search, do func(*erpapi.Invoice) error) error {
	params, err := searchParams(tenant, f)
	if err != nil {
		return err
	}
	params.MaxItems = exportBatch
	var at *position
	for {
		var rows []foundRow
		err := s.searching(ctx, tenant, func(queries *erpdb.Queries) (err error) {
			rows, err = page(ctx, queries, params, at, false)
			return err
		})
		if err != nil {
			return s.readFailed(ctx, "export invoices", err)
		}
		for _, row := range rows {
			inv, err := readDocument(row.document)
			if err != nil {
				return err
			}
			if err := do(inv); err != nil {
				return err
			}
		}
		if len(rows) < exportBatch {
			return nil
		}
		at = &rows[len(rows)-1].position
	}
}
